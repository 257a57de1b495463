#!/usr/bin/env bash
# Saves the database and the data sets: backup.sh FOLDER
#
# Makes FOLDER/<time in UTC>/ with database.dump (pg_dump, custom format) and datasets/, and prints its path. Data sets that
# an earlier backup has already are linked, not copied. The service may go on meanwhile: the dump is one consistent snapshot, and
# the file of a data set never changes. Redis holds nothing worth saving.
#
#   WARPFOLD_DATABASE_URL or WARPFOLD_DATABASE_URL_FILE   the database; without either, the one of the service in WARPFOLD_DATA_DIR
#   WARPFOLD_DATA_DIR, WARPFOLD_DATASET_DIR               as the service has them
#   PG_BIN                                                folder of pg_dump, if it is not on PATH
#   KEEP                                                  how many backups to keep in FOLDER (14)
set -euo pipefail
umask 077

folder=${1:?usage: backup.sh FOLDER}
data=${WARPFOLD_DATA_DIR:-.warpfold}
datasets=${WARPFOLD_DATASET_DIR:-$data/datasets}
secret=${WARPFOLD_DATABASE_URL_FILE:-$data/database_url}
url=${WARPFOLD_DATABASE_URL:-$(cat "$secret")}
dump=${PG_BIN:+$PG_BIN/}pg_dump

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
name=$(date -u +%Y-%m-%dT%H-%M-%SZ)
part=$folder/.$name.part
trap 'rm -rf "$part"' EXIT
mkdir "$part" "$part/datasets"

# The dump comes first: a data set that arrives later is in no row of it, and one that is removed meanwhile is only missing.
"$dump" --format=custom --no-owner --no-privileges --file="$part/database.dump" "$url"
last=$(find "$folder" -mindepth 1 -maxdepth 1 -type d -name '2*Z' | sort | tail -n 1)
if [ -d "$datasets" ]; then
    # incoming/ is left out: it holds what is still being uploaded.
    find "$datasets" -mindepth 2 -maxdepth 2 -type f -name '*.npy' -printf '%P\n' | while read -r file; do
        mkdir -p "$part/datasets/$(dirname "$file")"
        if [ -n "$last" ] && [ -f "$last/datasets/$file" ]; then
            ln "$last/datasets/$file" "$part/datasets/$file"
        else
            # A file that was removed since it was listed is left out.
            cp -p "$datasets/$file" "$part/datasets/$file" || [ ! -e "$datasets/$file" ]
        fi
    done
fi
mv "$part" "$folder/$name"
trap - EXIT
find "$folder" -mindepth 1 -maxdepth 1 -type d -name '2*Z' | sort | head -n "-${KEEP:-14}" | xargs -r rm -rf
echo "$folder/$name"

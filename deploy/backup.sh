#!/usr/bin/env bash
# Saves the database, the data sets and the stored results: backup.sh FOLDER
#
# Makes FOLDER/<time in UTC>/ with database.dump (pg_dump, custom format), datasets/ and artefacts/, and prints its path. Files
# that an earlier backup has already are linked, not copied. The service may go on meanwhile: the dump is one consistent snapshot, and
# the file of a data set never changes. Redis holds nothing worth saving.
#
#   WARPFOLD_DATABASE_URL or WARPFOLD_DATABASE_URL_FILE   the database; without either, the one of the service in WARPFOLD_DATA_DIR
#   WARPFOLD_DATA_DIR, _DATASET_DIR, _ARTEFACT_DIR        as the service has them
#   PG_BIN                                                folder of pg_dump, if it is not on PATH
#   KEEP                                                  how many backups to keep in FOLDER (14)
set -euo pipefail
umask 077

folder=${1:?usage: backup.sh FOLDER}
data=${WARPFOLD_DATA_DIR:-.warpfold}
datasets=${WARPFOLD_DATASET_DIR:-$data/datasets}
artefacts=${WARPFOLD_ARTEFACT_DIR:-$data/artefacts}
secret=${WARPFOLD_DATABASE_URL_FILE:-$data/database_url}
url=${WARPFOLD_DATABASE_URL:-$(cat "$secret")}
dump=${PG_BIN:+$PG_BIN/}pg_dump

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
name=$(date -u +%Y-%m-%dT%H-%M-%SZ)
part=$folder/.$name.part
trap 'rm -rf "$part"' EXIT
mkdir "$part" "$part/datasets" "$part/artefacts"

# The dump comes first: a data set that arrives later is in no row of it, and one that is removed meanwhile is only missing.
"$dump" --format=custom --no-owner --no-privileges --file="$part/database.dump" "$url"
last=$(find "$folder" -mindepth 1 -maxdepth 1 -type d -name '2*Z' | sort | tail -n 1)
save() {  # FOLDER NAME DEPTH: the files of a folder, which never change once they have their place
    [ -d "$1" ] || return 0
    # incoming/ is left out: it holds what is still being written.
    find "$1" -mindepth "$3" -maxdepth "$3" -type f -regex '.*\.\(npy\|arrow\)' -not -path "$1/incoming/*" -printf '%P\n' | while read -r file; do
        mkdir -p "$part/$2/$(dirname "$file")"
        if [ -n "$last" ] && [ -f "$last/$2/$file" ]; then
            ln "$last/$2/$file" "$part/$2/$file"
        else
            # A file that was removed since it was listed is left out.
            cp -p "$1/$file" "$part/$2/$file" || [ ! -e "$1/$file" ]
        fi
    done
}
save "$datasets" datasets 2
save "$artefacts" artefacts 3
mv "$part" "$folder/$name"
trap - EXIT
find "$folder" -mindepth 1 -maxdepth 1 -type d -name '2*Z' | sort | head -n "-${KEEP:-14}" | xargs -r rm -rf
echo "$folder/$name"

#!/usr/bin/env bash
# Brings a backup back: restore.sh BACKUP, where BACKUP is a folder that backup.sh made
#
# It restores into an empty database only, so that it overwrites nothing by accident. Stop the service first. The script reads
# the same variables as backup.sh. Jobs that ran when the backup was made run again: their leases have expired, so the
# dispatcher queues them again.
set -euo pipefail
umask 077

backup=${1:?usage: restore.sh BACKUP}
data=${WARPFOLD_DATA_DIR:-.warpfold}
datasets=${WARPFOLD_DATASET_DIR:-$data/datasets}
artefacts=${WARPFOLD_ARTEFACT_DIR:-$data/artefacts}
secret=${WARPFOLD_DATABASE_URL_FILE:-$data/database_url}
url=${WARPFOLD_DATABASE_URL:-$(cat "$secret")}
bin=${PG_BIN:+$PG_BIN/}

tables=$("${bin}psql" --no-psqlrc --tuples-only --no-align --dbname="$url" \
    --command="select count(*) from pg_tables where schemaname = 'public'")
if [ "$tables" != 0 ]; then
    echo "the database has $tables tables already; restore into an empty one" >&2
    exit 1
fi
"${bin}pg_restore" --exit-on-error --single-transaction --no-owner --no-privileges --dbname="$url" "$backup/database.dump"
# A dump brings no statistics, without which a long queue is read as a whole.
"${bin}psql" --no-psqlrc --quiet --dbname="$url" --command="analyze"
mkdir -p "$datasets" "$artefacts"
# Files are named after their content, or after the attempt that made them, so one that exists already is the same.
cp -rpn "$backup/datasets/." "$datasets/"
[ ! -d "$backup/artefacts" ] || cp -rpn "$backup/artefacts/." "$artefacts/"
echo "restored $backup; now run \`warpfold migrate\`, then start the service"

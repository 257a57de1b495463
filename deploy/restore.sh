#!/usr/bin/env bash
# Brings a backup back: restore.sh BACKUP, where BACKUP is a folder that backup.sh made
#
# Into an empty database only, so that nothing can be overwritten by a slip; stop the service before. Takes the same
# variables as backup.sh. What ran when the backup was made runs again: its lease is over, so the dispatcher takes it back.
set -euo pipefail
umask 077

backup=${1:?usage: restore.sh BACKUP}
data=${WARPFOLD_DATA_DIR:-.warpfold}
datasets=${WARPFOLD_DATASET_DIR:-$data/datasets}
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
mkdir -p "$datasets"
# Files are named by their content: what is there already is the same.
cp -rpn "$backup/datasets/." "$datasets/"
echo "restored $backup; now run \`warpfold migrate\`, then start the service"

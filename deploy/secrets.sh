#!/usr/bin/env bash
# Makes the secrets that docker-compose.yml reads, where they are not there yet: deploy/secrets.sh [FOLDER]
set -euo pipefail
folder=${1:-"$(dirname "$0")/secrets"}

mkdir -p "$folder"
if [ -e "$folder/postgres_password" ]; then
    echo "$folder has a password already: the database knows no other" >&2
    exit 1
fi
password=$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')
printf '%s' "$password" > "$folder/postgres_password"
printf 'postgresql://warpfold:%s@postgres:5432/warpfold' "$password" > "$folder/database_url"
# The folder keeps others on this machine away; in the container another user must be able to read the file.
chmod 700 "$folder"
chmod 644 "$folder"/*

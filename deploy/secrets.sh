#!/usr/bin/env bash
# Makes the secrets that docker-compose.yml and the units of systemd read, unless they exist already:
#
#   deploy/secrets.sh [FOLDER]
#
#   POSTGRES   where the database is, HOST:PORT (postgres:5432, the name in docker-compose.yml)
#   REDIS      where Redis is, HOST:PORT (redis:6379)
#
# FOLDER (deploy/secrets) then holds
#
#   postgres_password                      of the superuser; no process of Warpfold reads it
#   {migrate,api,dispatcher,worker}_database_url   an address a role, each with a password of its own (postgres/roles.sql)
#   redis_password, redis_url, redis.acl   Redis's one user: its password, the address, what it may do
#
# A secret that exists is kept, because Postgres expects that one.
set -euo pipefail
folder=${1:-"$(dirname "$0")/secrets"}
postgres=${POSTGRES:-postgres:5432}
redis=${REDIS:-redis:6379}

mkdir -p "$folder"
# Only the owner may enter the folder. The files in it are readable, because the containers run as another user.
chmod 700 "$folder"

password() {
    head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'
}

make() {
    if [ ! -e "$folder/$1" ]; then
        printf '%s' "$2" > "$folder/$1"
        chmod 644 "$folder/$1"
        echo "made $folder/$1"
    fi
}

make postgres_password "$(password)"
for role in migrate api dispatcher worker; do
    make "${role}_database_url" "postgresql://warpfold_$role:$(password)@$postgres/warpfold"
done
make redis_password "$(password)"
make redis_url "redis://:$(cat "$folder/redis_password")@$redis/0"
# The user may do all but manage or wipe the server. Of that, RQ and `warpfold doctor` need to see who is connected, the version
# and one setting.
hash=$(printf '%s' "$(cat "$folder/redis_password")" | sha256sum | cut -d ' ' -f 1)
make redis.acl "user default on #$hash ~* &* +@all -@admin -@dangerous +client +info +config|get
"

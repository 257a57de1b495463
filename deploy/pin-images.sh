#!/usr/bin/env bash
# Asks the registries which digest each tag of images.env has today, and writes images.lock: pin-images.sh [FOLDER]
#
# FOLDER is the folder of this script, unless it is given, and holds images.env. The script needs a network, and skopeo or crane.
# Where an image has a list of platforms, the digest is that of the list, so the lock serves every architecture. Nothing is
# written unless every image has a digest.
set -euo pipefail
folder=${1:-"$(dirname "$0")"}

digest_of() {
    if command -v skopeo > /dev/null; then
        # The digest is the hash of the manifest as the registry sends it.
        skopeo inspect --raw "docker://$1" | sha256sum | sed 's/ .*//; s/^/sha256:/'
    elif command -v crane > /dev/null; then
        crane digest "$1"
    else
        echo "pin-images.sh: install skopeo or crane" >&2
        return 1
    fi
}

lock=$(mktemp "$folder/.images.lock.XXXXXX")
trap 'rm -f "$lock"' EXIT
echo "# Made by deploy/pin-images.sh from images.env on $(date -u +%Y-%m-%d). Do not edit: make it anew." > "$lock"
while IFS='=' read -r name image; do
    case $name in '' | '#'*) continue ;; esac
    digest=$(digest_of "$image")
    if ! [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]]; then
        echo "pin-images.sh: $image has no digest, but: ${digest:-nothing}" >&2
        exit 1
    fi
    echo "$name=$image@$digest" >> "$lock"
done < "$folder/images.env"
chmod 644 "$lock"
mv "$lock" "$folder/images.lock"
trap - EXIT
cat "$folder/images.lock"

#!/usr/bin/env bash
# Refuses a release whose images are not pinned, because a tag may mean another image tomorrow: check-images.sh [FOLDER]
#
# FOLDER is the folder of this script, unless it is given. The exit code is 0 if images.lock there has each image of images.env,
# with the same tag and with a digest, and WARPFOLD_VERSION is a version. Else it is 1, with a line for each fault.
set -euo pipefail
folder=${1:-"$(dirname "$0")"}
wrong=0

complain() {
    echo "check-images.sh: $1" >&2
    wrong=1
}

case ${WARPFOLD_VERSION:-latest} in
    latest) complain "set WARPFOLD_VERSION: 'latest' is another image after each build" ;;
esac
if [ ! -e "$folder/images.lock" ]; then
    complain "there is no images.lock; \`make pin-images\` makes it, where there is a network"
    exit 1
fi
while IFS='=' read -r name image; do
    case $name in '' | '#'*) continue ;; esac
    locked=$(sed -n "s/^$name=//p" "$folder/images.lock")
    if [ -z "$locked" ]; then
        complain "images.lock lacks $name; run \`make pin-images\` again"
    elif ! [[ $locked =~ @sha256:[0-9a-f]{64}$ ]]; then
        complain "$name is $locked, without a digest"
    elif [ "${locked%@*}" != "$image" ]; then
        complain "images.lock has $name as ${locked%@*}, images.env as $image; run \`make pin-images\` again"
    fi
done < "$folder/images.env"
exit "$wrong"

#!/usr/bin/env bash
# Refuses a release whose images could be others tomorrow: check-images.sh [FOLDER]
#
# Exit code 0 if images.lock in FOLDER (the one of this script) names each image of images.env, with the tag that stands there and
# with a digest, and WARPFOLD_VERSION is a version; 1 with a line for each thing that is wrong.
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

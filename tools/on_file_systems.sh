#!/usr/bin/env bash
# Runs a command with IOLAB_TEST_DIRS naming a directory on each of ext4, xfs, btrfs and tmpfs:
# loop devices over files of its own, removed again however it ends. Without root the command runs
# with the temporary directory alone, and this says so.
#
#   tools/on_file_systems.sh cargo test -p iolab-real --test conformance
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"

if [ "$(id -u)" != 0 ] || [ ! -w /dev/loop-control ]; then
    echo "file systems: not root, or no loop devices: only the temporary directory" >&2
    exec "$@"
fi

folder=$(mktemp -d)
remove() {
    local mounted
    for mounted in "$folder"/*/; do
        umount "$mounted" 2>/dev/null || true
    done
    rm -rf --one-file-system "$folder"
}
trap remove EXIT

directories=''
for fs in ext4 xfs btrfs tmpfs; do
    mkdir "$folder/$fs"
    if [ "$fs" = tmpfs ]; then
        mount -t tmpfs -o size=256m iolab-test "$folder/$fs"
    elif command -v "mkfs.$fs" >/dev/null; then
        truncate -s 512M "$folder/$fs.img"
        "mkfs.$fs" -q "$folder/$fs.img" >/dev/null
        mount -o loop "$folder/$fs.img" "$folder/$fs"
    else
        echo "file systems: no mkfs.$fs: $fs is left out" >&2
        continue
    fi
    directories+="${directories:+:}$folder/$fs"
done
IOLAB_TEST_DIRS="$directories" "$@"

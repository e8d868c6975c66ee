#!/bin/sh
# Runs the study on a simulated disk and, as root, on a real loop device that is as slow as a disk
# (tools/slow_disk.py), and judges each in three ways: by the time until the application is up, by
# the longest wait of its reads, and by the bytes of all together.
#
#   sh examples/05-contention/run.sh OUT [IOLAB]      IOLAB: command to use instead of `iolab`
set -eu
here="$(dirname "$0")"
out="${1:?name a directory for the results}"
export STUDY="$here/study.toml" OUT="$out" IOLAB="${2:-iolab}"

judge() {
    $IOLAB report "$1" --metric max --metric-of start-up --out "$1/longest-wait"
    $IOLAB report "$1" --metric throughput --out "$1/throughput"
}

$IOLAB run "$STUDY" --out "$out/simulated"
judge "$out/simulated"
[ "$(id -u)" = 0 ] || exit 0
# shellcheck disable=SC2016
"${PYTHON:-python3}" "$here/../../tools/slow_disk.py" sh -c \
    '$IOLAB run "$STUDY" --on device:"$SLOW_DISK" --erase-serial "$SLOW_DISK_SERIAL" --out "$OUT/loop"'
judge "$out/loop"

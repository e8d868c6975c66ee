#!/bin/sh
# Runs the study on a loop device (as root) and on a simulated disk, and judges each in three ways:
# by the p99 latency of the small reader, by its longest wait, and by the bytes of all together.
#
#   sh examples/05-contention/run.sh OUT [IOLAB]      IOLAB: command to use instead of `iolab`
set -eu
study="$(dirname "$0")/study.toml"
out="${1:?name a directory for the results}"
iolab="${2:-iolab}"

judge() {
    $iolab report "$1" --metric max --metric-of reader --out "$1/longest-wait"
    $iolab report "$1" --metric throughput --out "$1/throughput"
}

$iolab run "$study" --out "$out/loop"
judge "$out/loop"
$iolab run "$study" --on sim:sata7200-4tb --rounds 8 --out "$out/simulated"
judge "$out/simulated"

#!/usr/bin/env bash
# The demo: one question, answered. Which scheduler keeps an application quick while something else
# writes in bulk? As root on a private loop device that was slowed to the speed of a disk
# (tools/slow_disk.py), because no scheduler has anything to decide on a device that is never busy;
# then the same of the schedulers that no kernel has any more, on a simulated disk. Without root the
# simulation alone, and then record sizes in a directory, a question of their own. Every call makes a
# new folder under demo-out/; nothing that is there is overwritten.
set -euo pipefail
cd "$(dirname "$0")/.."

study=examples/06-quick-beside-a-writer/study.toml
simulated=examples/07-quick-in-simulation/study.toml
out=demo-out/$(date +%Y%m%d-%H%M%S)
mkdir -p demo-out
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Progress is seen as it comes; what the command says at its end is shown only if it failed, because
# the last screen says it shorter.
run() {
    "$@" >"$log" || {
        cat "$log"
        exit 1
    }
}

if [ "$(id -u)" = 0 ] && [ -w /dev/loop-control ] && [ -w /dev/fuse ]; then
    echo "demo: as root, on a private loop device that is slowed to the speed of a disk (about 2 minutes)"
    export STUDY="$study" OUT="$out"
    # shellcheck disable=SC2016
    run python tools/slow_disk.py sh -c \
        'iolab run "$STUDY" --on device:"$SLOW_DISK" --erase-serial "$SLOW_DISK_SERIAL" --out "$OUT"'
    echo
    echo "Measured on a private loop device, slowed to the speed of a disk for this demonstration:"
    echo
    python tools/demo_answer.py "$out"
    echo
    echo "The same question to schedulers of former kernels, on a simulated disk:"
    echo
    run iolab run "$simulated" --out "$out-simulated"
    python tools/demo_answer.py "$out-simulated"
else
    mkdir -p demo-out/scratch
    echo "demo: without root: in simulation, then record sizes inside demo-out/scratch"
    run iolab run "$simulated" --out "$out/simulated"
    run iolab run examples/02-record-size-directory/study.toml --on dir:demo-out/scratch \
        --out "$out/real"
    echo
    python tools/demo_answer.py "$out/simulated" "$out/real"
fi
echo "next:    iolab compare --on loop:1g --scheduler none,mq-deadline,bfq    (root)"
echo "         iolab compare --on dir:. --record-size 4k,64k                  (anybody)"
echo "         iolab --help; docs/tutorial/first-comparison.md explains each line of a report"

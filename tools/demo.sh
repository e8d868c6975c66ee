#!/usr/bin/env bash
# The demo study: as root on a private loop device, otherwise on a directory of its own.
# Every call makes a new folder under demo-out/; nothing that is there is overwritten.
set -euo pipefail
cd "$(dirname "$0")/.."

out=demo-out/$(date +%Y%m%d-%H%M%S)
mkdir -p demo-out
if [ "$(id -u)" = 0 ] && [ -w /dev/loop-control ]; then
    study=examples/01-demo-loop/study.toml
    echo "demo: as root, on a private loop device: $study"
    exec iolab run "$study" --out "$out"
fi
study=examples/02-record-size-directory/study.toml
mkdir -p demo-out/scratch
echo "demo: without root, inside demo-out/scratch only: $study"
exec iolab run "$study" --on dir:demo-out/scratch --out "$out"

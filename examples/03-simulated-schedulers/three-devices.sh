#!/usr/bin/env bash
# The study beside this file on a disk, a SATA and an NVMe drive: what do eight schedulers of two
# decades change? Prints the answer per device, and how long all three took.
set -euo pipefail
cd "$(dirname "$0")"
out=${1:-three-devices}
begun=$SECONDS
for device in sata7200-4tb sata-860pro-256 nvme-pc601-256; do
    iolab run study.toml --on "sim:$device" --name "schedulers-$device" --out "$out/$device" \
        2> /dev/null | sed -n '1,/^$/p'
done
echo "$((SECONDS - begun)) s; reports in $out/*/report.html"

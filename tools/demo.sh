#!/usr/bin/env bash
# The demo: a study on something real and one in simulation, each with a verdict of its own.
# Real is a private loop device as root, otherwise a directory. Simulated is a published comparison
# of three schedulers, which needs no root. Every call makes a new folder under demo-out/; nothing
# that is there is overwritten.
set -euo pipefail
cd "$(dirname "$0")/.."

out=demo-out/$(date +%Y%m%d-%H%M%S)
mkdir -p demo-out
real=(examples/02-record-size-directory/study.toml --on dir:demo-out/scratch)
where="without root, inside demo-out/scratch only"
if [ "$(id -u)" = 0 ] && [ -w /dev/loop-control ]; then
    real=(examples/01-demo-loop/study.toml)
    where="as root, on a private loop device"
else
    mkdir -p demo-out/scratch
fi
simulated=examples/04-schedulers-of-a-guest/study.toml

echo "demo: in simulation: $simulated"
iolab run "$simulated" --out "$out/simulated"
echo
echo "demo: $where: ${real[0]}"
status=0
iolab run "${real[@]}" --out "$out/real" || status=$?

# Two answers to two questions: they stand side by side and are never one comparison.
sentence() {
    python -c 'import json, sys; print(json.load(open(sys.argv[1]))["sentence"])' "$1"
}
echo
for kind in real simulated; do
    if [ -f "$out/$kind/verdict.json" ]; then
        echo "$kind ($out/$kind/report.html):"
        sentence "$out/$kind/verdict.json" | fold -s -w 78 | sed 's/^/  /'
    fi
done
exit "$status"

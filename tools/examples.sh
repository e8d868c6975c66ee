#!/usr/bin/env bash
# Every study under examples/ must be understood: it is planned, and no trial is run.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
worst=0
for study in examples/*/study.toml; do
    status=0
    iolab run "$study" --dry-run --out "$scratch/out" >"$scratch/log" 2>&1 || status=$?
    if [ "$status" = 0 ]; then
        printf '%-50s ok\n' "$study"
    elif [ "$(id -u)" != 0 ] && grep -q 'needs root' "$scratch/log"; then
        printf '%-50s skipped: its testbed needs root\n' "$study"
    else
        printf '%-50s FAILED (exit code %d)\n' "$study" "$status"
        cat "$scratch/log"
        worst=1
    fi
done
exit "$worst"

#!/usr/bin/env bash
# Runs a checker that not every machine has, or says that it was left out.
set -euo pipefail
if command -v "$1" >/dev/null; then
    printf '%s\n' "$*"
    exec "$@"
fi
printf '%s: not installed, left out\n' "$1"

#!/usr/bin/env bash
# All tests in Python, or those that the arguments choose.
#
#   tools/python_tests.sh PYTHON [PYTEST ARGUMENTS...]
#
# Tests that compile run beside the others, which mostly wait for devices, and give way to them.
set -uo pipefail
cd "$(dirname "$0")/.."
python=$1
shift
if [ $# -gt 0 ]; then
    exec "$python" -m pytest "$@"
fi

COMPILING=tests/test_contributing.py
log=$(mktemp)
trap 'rm -f "$log"' EXIT
nice "$python" -m pytest -p no:cacheprovider "$COMPILING" >"$log" 2>&1 &
beside=$!
status=0
"$python" -m pytest --ignore="$COMPILING" || status=$?
wait "$beside" || status=$?
cat "$log"
exit "$status"

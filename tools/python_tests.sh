#!/usr/bin/env bash
# All tests in Python, or those that the arguments choose.
#
#   tools/python_tests.sh PYTHON [PYTEST ARGUMENTS...]
#
set -uo pipefail
cd "$(dirname "$0")/.." || exit
python=$1
shift
if [ $# -gt 0 ]; then
    exec "$python" -m pytest "$@"
fi

# In three processes: most tests compute, those of whole commands mostly wait for devices, and those
# that compile give way to both. Each prints all that it says at its end.
COMPILING=(tests/test_contributing.py)
WAITING=(tests/e2e tests/hostile)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

beside=()
nice "$python" -m pytest -p no:cacheprovider "${COMPILING[@]}" >"$logs/compiling" 2>&1 &
beside+=($!)
"$python" -m pytest -p no:cacheprovider "${WAITING[@]}" >"$logs/waiting" 2>&1 &
beside+=($!)
status=0
"$python" -m pytest "${COMPILING[@]/#/--ignore=}" "${WAITING[@]/#/--ignore=}" || status=$?
for process in "${beside[@]}"; do
    wait "$process" || status=$?
done
cat "$logs/waiting" "$logs/compiling"
exit "$status"

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

# In five processes: most tests compute, those of whole commands mostly wait for devices (two of
# these, about as long), those that open a browser or an office program wait for that, and those
# that compile give way to all. Each prints all that it says at its end.
COMPILING=(tests/test_contributing.py)
WORKLOADS=(tests/e2e/test_{any_workload,bonnie,examples,export_fio,filebench,fio,iozone}*.py
    tests/e2e/test_{mkfile,recorded_streams,workload_files,wrong_data,ycsb}*.py)
WAITING=(tests/e2e tests/hostile)
OPENING=(tests/report/test_{drawn_page,pictures,workbook}.py)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# Files of the tests that compute lie in memory, where there is enough of it: a fifth of their time
# is spent in the file system else. Those of whole commands want one that is on a disk.
available_kib=$(awk '$1 == "MemAvailable:" {print $2}' /proc/meminfo 2>/dev/null)
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && [ "${available_kib:-0}" -gt $((6 << 20)) ]; then
    in_memory=$(mktemp -d /dev/shm/iolab-tests.XXXXXX)
    trap 'rm -rf "$logs" "$in_memory"' EXIT
fi

beside=()
nice "$python" -m pytest -p no:cacheprovider "${COMPILING[@]}" >"$logs/compiling" 2>&1 &
beside+=($!)
"$python" -m pytest -p no:cacheprovider "${WORKLOADS[@]}" >"$logs/workloads" 2>&1 &
beside+=($!)
"$python" -m pytest -p no:cacheprovider "${WAITING[@]}" "${WORKLOADS[@]/#/--ignore=}" \
    >"$logs/waiting" 2>&1 &
beside+=($!)
"$python" -m pytest -p no:cacheprovider "${OPENING[@]}" >"$logs/opening" 2>&1 &
beside+=($!)
status=0
env ${in_memory:+PYTEST_DEBUG_TEMPROOT="$in_memory"} \
    "$python" -m pytest "${COMPILING[@]/#/--ignore=}" "${WAITING[@]/#/--ignore=}" \
    "${OPENING[@]/#/--ignore=}" || status=$?
for process in "${beside[@]}"; do
    wait "$process" || status=$?
done
cat "$logs/workloads" "$logs/waiting" "$logs/opening" "$logs/compiling"
exit "$status"

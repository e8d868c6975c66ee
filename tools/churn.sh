#!/usr/bin/env bash
# Runs a command so many times while others use the machine: loop devices that come and go, whose
# settings change, and one core that is busy. What the command checks must be its own.
#
#   tools/churn.sh TIMES COMMAND...
#
# Needs root. Touches only loop devices that it attached itself.
set -euo pipefail
times=$1
shift
[ "$(id -u)" = 0 ] || {
    echo "churn: needs root for loop devices" >&2
    exit 1
}
place=$(mktemp -d "${TMPDIR:-/var/tmp}/churn.XXXXXX")
others=()

finish() {
    kill "${others[@]}" 2>/dev/null || true
    wait "${others[@]}" 2>/dev/null || true
    local node
    for node in $(losetup --list --noheadings --output NAME,BACK-FILE | awk -v p="$place" 'index($2, p) {print $1}'); do
        losetup --detach "$node" || true
    done
    rm -rf "$place"
}
trap finish EXIT

# Attaches, changes and detaches for ever; what fails because a device is gone does not matter.
come_and_go() {
    local image=$place/$1 node queue
    truncate --size 16M "$image"
    while :; do
        node=$(losetup --find --show "$image" 2>/dev/null) || continue
        queue=/sys/block/${node#/dev/}/queue
        for scheduler in mq-deadline none; do
            echo "$scheduler" >"$queue/scheduler" || true
            echo $((RANDOM % 512 + 4)) >"$queue/read_ahead_kb" || true
            sleep 0.1
        done 2>/dev/null
        # Whoever detached it meanwhile: the name may be that of another device by now.
        if [ "$(losetup --list --noheadings --output BACK-FILE "$node" 2>/dev/null)" = "$image" ]; then
            losetup --detach "$node" 2>/dev/null || true
        fi
        sleep "0.0$((RANDOM % 10))"
    done
}

come_and_go one &
others+=($!)
come_and_go two &
others+=($!)
(while :; do :; done) &
others+=($!)

passed=0
for round in $(seq "$times"); do
    if "$@"; then passed=$((passed + 1)); else echo "churn: round $round failed"; fi
done
echo "churn: $passed of $times passed beside loop devices that come and go and a busy core"
[ "$passed" = "$times" ]

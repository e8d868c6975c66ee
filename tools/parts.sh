#!/usr/bin/env bash
# Runs make targets one after the other, all of them, and ends with a table: what each part
# came to, how long it took, and how many tests passed, failed and were skipped.
#
#   tools/parts.sh setup test-rust ...
#
# With IOLAB_DEADLINE (seconds since 1970, set by .ci/run), a part that exceeds its own minutes, or
# what is left until then, is stopped by name.
set -euo pipefail
cd "$(dirname "$0")/.."
# What is tested is what setup has installed, whatever a developer's shell points at.
unset PYTHONPATH PYTHONHOME IOLAB_AGENT

minutes_of() {
    case $1 in
        setup | setup-lint) echo 20 ;;
        test-rust) echo 30 ;;
        test-python) echo 35 ;;
        lint-rust) echo 12 ;;
        lint-python | types) echo 6 ;;
        *) echo 3 ;;
    esac
}

# "test result: ok. 3 passed; 0 failed; 1 ignored; ..." (cargo) and
# "=== 3 passed, 1 skipped in 0.5s ===" (pytest) become: passed failed skipped.
count_tests() {
    awk '
        /^test result: / { gsub(/;/, ","); is_summary = 1 }
        /^=+ .* in [0-9.]+s/ { is_summary = 1 }
        is_summary {
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^(passed|xpassed|xfailed),?$/) passed += $(i - 1)
                if ($i ~ /^(failed|errors?),?$/) failed += $(i - 1)
                if ($i ~ /^(skipped|ignored),?$/) skipped += $(i - 1)
            }
            is_summary = 0
        }
        END { print passed + 0, failed + 0, skipped + 0 }' "$1"
}

# Seconds that a part may take.
seconds_for() {
    local own=$(($(minutes_of "$1") * 60)) left=$((IOLAB_DEADLINE - $(date +%s)))
    [ "$left" -gt 1 ] || left=1
    echo $((own < left ? own : left))
}

run_part() {
    local part=$1 command=(make --no-print-directory "$1")
    if [ -n "${IOLAB_DEADLINE:-}" ]; then
        command=(timeout --kill-after=20 "$(seconds_for "$part")s" "${command[@]}")
    fi
    "${command[@]}" 2>&1 | tee "$log"
}

describe() {
    case $1 in
        0) echo ok ;;
        124 | 137) echo "FAILED: stopped, its $(minutes_of "$2") min or those of the whole were over" ;;
        *) echo FAILED ;;
    esac
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
table='' passed=0 failed=0 skipped=0 worst=0
for part in "$@"; do
    printf '\n== %s\n' "$part"
    begun=$SECONDS status=0
    run_part "$part" || status=$?
    read -r p f s < <(count_tests "$log")
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    outcome=$(describe "$status" "$part")
    table+=$(printf '%-12s %5d s  %s' "$part" $((SECONDS - begun)) "$outcome")$'\n'
    [ "$status" = 0 ] || worst=1
    # Nothing after it can work without the installation.
    [ "$part $status" = "setup 0" ] || [ "$part" != setup ] || break
done
printf '\n%s' "$table"
[ $((passed + failed + skipped)) != 0 ] || exit "$worst"
printf '%d passed, %d failed, %d skipped' "$passed" "$failed" "$skipped"
if [ "$skipped" = 0 ]; then echo; else echo ' (the reasons are listed above)'; fi
exit "$worst"

#!/usr/bin/env bash
# Makes the virtual environment of this clone and installs iolab into it, if sources changed since.
#
#   IOLAB_VENV=... CARGO_TARGET_DIR=... PYTHON=python3 tools/setup.sh EXTRAS
#
# Says in one line each what it does; the output of pip and cargo shows only if they fail.
set -euo pipefail
cd "$(dirname "$0")/.."
extras=$1
stamp=$IOLAB_VENV/iolab.stamp
log=$IOLAB_VENV/setup.log

fail() {
    printf 'setup: %s\n' "$1" >&2
    exit 1
}

quietly() {
    "$@" >"$log" 2>&1 && return
    cat "$log" >&2
    fail "failed: $*"
}

# What the package is built from; without one of them pip would fail, or `find` without a word.
SOURCES="crates python Cargo.toml Cargo.lock pyproject.toml setup.py README.md tools/locked"

check_sources() {
    local name
    for name in $SOURCES; do
        [ -e "$name" ] || fail "$name is missing here; get it back, as in: git checkout -- $name"
    done
}

check_tools() {
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        fail "needs python3 >= 3.11; name one with: make PYTHON=/path/to/python3.12 ..."
    command -v cargo >/dev/null || fail "needs cargo (Rust >= 1.88)"
    command -v cc >/dev/null || fail "needs a C linker; on Debian: apt install gcc libc6-dev"
}

make_venv() {
    [ -x "$IOLAB_VENV/bin/pip" ] && return
    echo "setup: virtual environment in $IOLAB_VENV"
    rm -rf "$IOLAB_VENV"
    "$PYTHON" -m venv "$IOLAB_VENV" ||
        fail "python3 cannot make virtual environments; on Debian: apt install python3-venv"
}

# What the installed package is made of, and the interpreter it is installed for.
source_digest() {
    {
        "$IOLAB_VENV/bin/python" -VV
        # shellcheck disable=SC2086 # words on purpose
        find $SOURCES -type f -not -name '*.so' -not -path '*/__pycache__/*' \
            -not -path '*.egg-info/*' -print0 | sort -z | xargs -0 sha256sum
    } | sha256sum | cut -d ' ' -f 1
}

# Exactly the locked versions, each file by its hash; IOLAB_UNLOCKED=1 takes whatever pyproject.toml
# allows (for a Python for which the locked versions have no files).
requirements() {
    local set=$1 locked=tools/locked/$1.txt digest
    digest=$(sha256sum "$locked" | cut -d ' ' -f 1)${IOLAB_UNLOCKED:-}
    [ -f "$stamp-$set" ] && [ "$(cat "$stamp-$set")" = "$digest" ] && return
    echo "setup: installing what is locked in $locked"
    if [ -n "${IOLAB_UNLOCKED:-}" ]; then
        quietly "$IOLAB_VENV/bin/pip" install --quiet "setuptools>=77,<84" "setuptools-rust>=1.10,<2"
        quietly "$IOLAB_VENV/bin/pip" install --quiet --no-build-isolation ".[$set]"
    else
        quietly "$IOLAB_VENV/bin/pip" install --quiet --require-hashes --requirement "$locked"
    fi
    echo "$digest" >"$stamp-$set"
}

install() {
    local digest set
    for set in ${extras//,/ }; do requirements "$set"; done
    digest=$(source_digest)
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$digest" ] && return
    echo "setup: building and installing iolab (the first time takes some minutes)"
    # setuptools would ship files that were removed since its last build.
    rm -rf build python/iolab.egg-info
    quietly "$IOLAB_VENV/bin/pip" install --quiet --no-deps --no-build-isolation .
    rm -rf build python/iolab.egg-info
    # The digest of before: what changed while it was built is built the next time.
    echo "$digest" >"$stamp"
}

check_sources
check_tools
mkdir -p "$(dirname "$IOLAB_VENV")"
# One set-up at a time: two `make` in one clone must not build over each other.
exec 9>"$IOLAB_VENV.lock"
flock 9
make_venv
install

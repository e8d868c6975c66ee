"""Locked packages of the two commands, and crates that keep the rules of `deny.toml`.

Issue 14, point 9: cargo-deny was in no check, the toolchain and the Python dependencies could be
others on each machine.
"""

import re
import tomllib
from pathlib import Path

import pytest

import crates
import lock

ROOT = Path(__file__).parents[1]
ALLOWED = {"MIT", "Apache-2.0", "Unicode-3.0"}


@pytest.mark.parametrize("extra", lock.SETS)
def test_everything_that_is_asked_for_is_locked_with_a_hash(extra):
    assert lock.problems(extra) == []
    text = (lock.LOCKED / f"{extra}.txt").read_text()
    entries = re.split(r"\n(?=\S)", text.strip())
    entries = [entry for entry in entries if not entry.startswith("#")]
    assert entries
    assert all("--hash=sha256:" in entry for entry in entries)


def test_what_is_not_locked_is_named(monkeypatch):
    monkeypatch.setattr(lock, "requirements", lambda _: ["numpy>=99", "nonesuch>=1"])
    found = " | ".join(lock.problems("test"))
    assert "numpy>=99 is wanted" in found
    assert "nonesuch>=1 is wanted, nothing is locked" in found


def test_the_toolchain_is_one_version():
    table = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())
    assert re.fullmatch(r"\d+\.\d+\.\d+", table["toolchain"]["channel"])


@pytest.mark.parametrize(
    ("expression", "is_met"),
    [
        ("MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("MIT/Apache-2.0", True),
    ],
)
def test_licence_expressions_are_understood(expression, is_met):
    assert crates.is_met(expression, ALLOWED) is is_met


def test_departures_of_a_crate_are_named():
    package = {"license": None, "source": "git+somewhere", "dependencies": []}
    assert crates.licence_problems(package, ALLOWED) == ["names no licence"]
    assert crates.source_problems(package) == ["comes from git+somewhere"]
    ours = {"source": None, "dependencies": [{"name": "serde", "req": "*", "source": "registry"}]}
    assert crates.wildcard_problems(ours) == ["takes any version of serde"]
    unsigned = {"package": [{"name": "x", "version": "1", "source": "registry"}]}
    assert crates.unlocked(unsigned) == ["x 1: has no checksum in Cargo.lock"]

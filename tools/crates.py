"""Licences, versions and sources of the crates in Cargo.lock, by the rules of `deny.toml`.

cargo-deny checks the same and the advisories, but takes minutes to compile and a network to fetch
its database, so it runs in `make audit` alone; this runs in `make lint`, offline, in a second.
Checked: every licence expression can be met by allowed licences; every crate comes from crates.io
with a checksum; no requirement is a wildcard. Left out: advisories, duplicates (a warning there).
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from license_expression import LicenseSymbol, get_spdx_licensing

ROOT = Path(__file__).parents[1]
REGISTRY = "/crates.io-index"
"""End of what cargo calls crates.io in Cargo.lock."""
SPDX = get_spdx_licensing()


def metadata() -> dict[str, Any]:
    """Packages of the workspace and all that they need, as cargo resolves them."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def is_met(expression: str, allowed: set[str]) -> bool:
    """Tell whether allowed licences can fulfil an SPDX expression; the old `A/B` means either."""
    parsed = SPDX.parse(expression.replace("/", " OR "), validate=True)
    symbols: set[LicenseSymbol] = SPDX.license_symbols(parsed, decompose=False)
    values = {
        symbol: SPDX.TRUE if str(symbol) in allowed else SPDX.FALSE  # by its SPDX name
        for symbol in symbols
    }
    return parsed.subs(values).simplify() == SPDX.TRUE


def licence_problems(package: dict[str, Any], allowed: set[str]) -> list[str]:
    """Reason why a crate's licence is not one that `deny.toml` allows."""
    expression = package["license"]
    if not expression:
        return ["names no licence"]
    if not is_met(expression, allowed):
        return [f"has the licence {expression}, which deny.toml does not allow"]
    return []


def source_problems(package: dict[str, Any]) -> list[str]:
    """Reason why a crate's source is none that is allowed: the workspace or crates.io."""
    source = package["source"]
    is_known = source is None or source.endswith(REGISTRY)
    return [] if is_known else [f"comes from {source}"]


def wildcard_problems(package: dict[str, Any]) -> list[str]:
    """Requirements of our own crates that any version would meet; paths have none."""
    if package["source"] is not None:
        return []
    needed = package["dependencies"]
    return [
        f"takes any version of {one['name']}"
        for one in needed
        if one["req"] == "*" and one["source"] is not None
    ]


def unlocked(lock: dict[str, Any]) -> list[str]:
    """Crates from a registry whose file has no checksum in Cargo.lock."""
    return [
        f"{package['name']} {package['version']}: has no checksum in Cargo.lock"
        for package in lock["package"]
        if "source" in package and "checksum" not in package
    ]


def problems() -> list[str]:
    """Every departure from the rules, one line each."""
    rules = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    allowed = set(rules["licenses"]["allow"])
    found = unlocked(lock)
    for package in metadata()["packages"]:
        about = [
            *licence_problems(package, allowed),
            *source_problems(package),
            *wildcard_problems(package),
        ]
        found += [f"{package['name']} {package['version']}: {text}" for text in about]
    return found


def main() -> int:
    """Print what is wrong, or how much was looked at."""
    found = problems()
    for problem in found:
        print(problem)
    if not found:
        print("crates: licences, sources and versions are as deny.toml allows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

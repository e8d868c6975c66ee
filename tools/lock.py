"""Locked versions of what the two commands install from PyPI, with the hash of each file.

`make lock` writes `tools/locked/test.txt` and `tools/locked/lint.txt` from what `pyproject.toml`
allows; `tools/setup.sh` installs exactly these. `--check` fails if `pyproject.toml` asks for
something that the locked files do not hold. Writing needs pip-compile (pip-tools) on the path.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKED = ROOT / "tools" / "locked"
SETS = ("test", "lint")
"""Extras of `pyproject.toml`; each set holds the package's own and build requirements, too."""
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ \\;]+)", re.MULTILINE)
HEADER = "# Written by `make lock` from pyproject.toml; do not edit.\n"


def requirements(extra: str) -> list[str]:
    """Requirements of the build, the package and one extra, as `pyproject.toml` has them."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        table = tomllib.load(file)
    project = table["project"]
    return [
        *table["build-system"]["requires"],
        *project["dependencies"],
        *project["optional-dependencies"][extra],
    ]


def write(extra: str) -> None:
    """Resolve one set and write its file, without addresses."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, found = Path(folder, "wanted.in"), Path(folder, "found.txt")
        wanted.write_text("\n".join(requirements(extra)) + "\n", encoding="utf-8")
        options = ["--generate-hashes", "--no-emit-index-url", "--no-emit-options"]
        options += ["--no-header", "--no-annotate", "--allow-unsafe", "--strip-extras", "--quiet"]
        if extra != SETS[0]:
            options += ["--constraint", str(LOCKED / f"{SETS[0]}.txt")]
        command = ["pip-compile", *options, "--output-file", str(found), str(wanted)]
        subprocess.run(command, check=True)
        LOCKED.mkdir(exist_ok=True)
        text = found.read_text(encoding="utf-8")
        (LOCKED / f"{extra}.txt").write_text(HEADER + text, encoding="utf-8")


def problems(extra: str) -> list[str]:
    """Requirements of `pyproject.toml` that the locked file does not hold."""
    path = LOCKED / f"{extra}.txt"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    pinned = {canonicalize_name(name): version for name, version in PIN.findall(text)}
    found: list[str] = []
    for line in requirements(extra):
        wanted = Requirement(line)
        version = pinned.get(canonicalize_name(wanted.name))
        if version is None or not wanted.specifier.contains(version):
            found.append(f"{path.name}: {line} is wanted, {version or 'nothing'} is locked")
    return found


def main(words: list[str]) -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description="Lock the versions that are installed.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args(words).check:
        for extra in SETS:
            write(extra)
    found = [problem for extra in SETS for problem in problems(extra)]
    for problem in found:
        print(f"{problem}: run `make lock`")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

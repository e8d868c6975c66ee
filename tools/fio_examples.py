"""Compare how job files are understood here and by the installed fio.

    python tools/fio_examples.py DIRECTORY [--list]

Every file of a directory (and below) that looks like a job file of fio is given to `fio --showcmd`
and to `iolab fio --showcmd`. Both print the options of each job as a command line. A file is

* `same`: both print the same options with the same values, section by section;
* `refused`: iolab refuses an option that it does not do, and names it in its message;
* `both refuse`: neither takes it (the installed fio lacks an option or an engine);
* `differs`: anything else. The exit code is 1 then, otherwise 0.

Nothing is measured, and no file of the directory is written. `--list` prints each file.
Left out: files that another file includes, which have no section of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolab import _core
from iolab.errors import IolabError

TIMEOUT_S: Final = 20.0
_SECTION: Final = re.compile(r"^\s*\[[^\]]+\]", re.MULTILINE)
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_OPTION: Final = re.compile(r"there is no option '([^']*)'|^\S+ ([\w-]+)(?:=|:)", re.MULTILINE)
_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one file."""

    path: Path
    kind: str
    detail: str


def job_files(directory: Path) -> Iterator[Path]:
    """Files with at least one section, in the order of their names."""
    for path in sorted(directory.rglob("*")):
        if not path.is_file() or path.stat().st_size > _BYTES_MAX or ".git" in path.parts:
            continue
        try:
            text = path.read_text()
        except (UnicodeDecodeError, OSError):
            continue
        if _SECTION.search(text) and "=" in text:
            yield path


def words_of_fio(path: Path) -> str | None:
    """Output of `fio --showcmd`; `None` if it refuses the file."""
    variables = dict.fromkeys(_VARIABLE.findall(path.read_text()), "1")
    done = subprocess.run(
        ["fio", "--showcmd", path.name],
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        env=variables | dict(os.environ),
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("fio ")]
    return lines[-1] if done.returncode == 0 and lines else None


def words_of_iolab(path: Path) -> tuple[str | None, str]:
    """Output of `iolab fio --showcmd`, or its message."""
    for name in _VARIABLE.findall(path.read_text()):
        os.environ.setdefault(name, "1")
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        plan = json.loads(_core.dialect_parse("fio", ["--showcmd", path.name]))
    except IolabError as error:
        return None, str(error)
    finally:
        os.chdir(before)
    return plan["only_text"], ""


def jobs(line: str) -> list[list[str]]:
    """Options by job; those before the first one are of the global sections."""
    found: list[list[str]] = [[]]
    for word in re.findall(r'--(?:[^ "]|"[^"]*")+', line):
        if word.startswith("--name="):
            found.append([])
        found[-1].append(word.replace('"', ""))
    return [sorted(part) for part in found]


def compare(path: Path) -> Finding:
    """Results of both for a file."""
    theirs = words_of_fio(path)
    ours, message = words_of_iolab(path)
    if theirs is None:
        return Finding(path, "both refuse" if ours is None else "only fio refuses", message)
    if ours is None:
        found = _OPTION.search(message)
        named = "" if found is None else found[1] or found[2]
        kind = "differs" if "there is no option" in message else "refused"
        return Finding(path, kind, named or message.splitlines()[0])
    if jobs(theirs) == jobs(ours):
        return Finding(path, "same", "")
    return Finding(path, "differs", f"fio: {theirs}\n  iolab: {ours}")


def main() -> int:
    """Compare all files of a directory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--list", action="store_true", help="print each file")
    options = parser.parse_args()
    if shutil.which("fio") is None:
        sys.exit("fio is not installed: `apt install fio`")
    if not options.directory.is_dir():
        sys.exit(f"{options.directory} is not a directory: name one that holds job files")
    findings = [compare(path.resolve()) for path in job_files(options.directory)]
    for finding in findings:
        if options.list or finding.kind == "differs":
            print(f"{finding.kind}: {finding.path.name}: {finding.detail}")
    kinds = Counter(finding.kind for finding in findings)
    refused = Counter(finding.detail for finding in findings if finding.kind == "refused")
    print(f"{len(findings)} files: " + ", ".join(f"{n} {kind}" for kind, n in kinds.items()))
    if refused:
        print("refused: " + ", ".join(f"{name} {n}" for name, n in refused.most_common()))
    return 1 if kinds["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())

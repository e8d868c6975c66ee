"""Lines of the centre: what studies, runs, the command line and the border take, by part.

The border is the types that cross between Rust and Python, and the code that carries them. Counted
are lines with code or comments in sources, without tests and without what is generated.
`python tools/centre_lines.py` prints the working tree; with the name of a revision it prints the
growth since that: by part, by the ability that a file serves, and by file (those that are new,
gone, or changed by `SHOWN_MIN` lines).
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "study": ("python/iolab/study/",),
    "run": ("python/iolab/run/",),
    "cli": ("python/iolab/cli/", "python/iolab/library/"),
    "border": (
        *("crates/iolab-protocol/src/", "crates/iolab-py/src/", "crates/iolab-agent/src/protocol"),
        *("python/iolab/json_text.py", "python/iolab/errors.py", "python/iolab/_core.pyi"),
    ),
}
"""Parts, by the beginnings of the names of their files; the library was a part of the cli."""
ABILITIES: Final[tuple[tuple[str, str], ...]] = (
    ("the schema and the types of the border", r"protocol/src/(agent|schema|extension|lib)\.rs"),
    (
        "the schema and the types of the border",
        r"(_core\.pyi|iolab-py/src/(error|schema|lib)|"
        r"agent/src/protocol|protocol/src/agent/(testbed|programs)|json_text)",
    ),
    ("traces, disk counters", r"(trace|iostat|disk_|block_traces)"),
    ("dialects in studies, fio", r"(dialect|entry_plan|typed_workloads|recordings|table\.py)"),
    (
        "validity: slices, pairs, power, noise",
        r"(validity|slice|pairs|power_reached|noise_study|"
        r"calibrat|forecast|contention|pace|comparing|rehears|/aa\.py)",
    ),
    ("the simulator's books and trials", r"(simulat|/sim|scenario|books|probe)"),
    ("whole devices, files in place", r"(confirm|wear|writes|in_place|places|outputs|refus)"),
    ("testbeds, agent, restoring", r"(testbed|agent_install|install_agent|doctor|restor|services)"),
    ("reports, archives, import, exports", r"(report|archiv|packing|import|answer|tables|result)"),
)
"""Abilities and the files that serve them, as a pattern of names; the first that fits counts."""
OTHER: Final = "conducting, planning, the rest"
GENERATED: Final = ("python/iolab/protocol.py",)
SHOWN_MIN: Final = 60
_SOURCE = re.compile(r".*\.(py|pyi|rs)$")
_TEST = re.compile(r"(^|/)tests(/|\.rs$)")


def part_of(name: str) -> str | None:
    """Part that a file belongs to."""
    if not _SOURCE.match(name) or _TEST.search(name) or name in GENERATED:
        return None
    return next((part for part, heads in PARTS.items() if name.startswith(heads)), None)


def lines_of(name: str, text: str) -> int:
    """Lines of a source that are not empty, without the tests at its end."""
    if name.endswith(".rs"):
        text = text.partition("#[cfg(test)]\nmod tests {")[0]
    return sum(1 for line in text.splitlines() if line.strip())


def counted(revision: str | None) -> dict[str, int]:
    """Lines of each file of the centre, of the working tree or of a revision."""
    root = Path(__file__).resolve().parents[1]

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout

    listed = ["ls-files"] if revision is None else ["ls-tree", "-r", "--name-only", revision]
    names = [name for name in git(*listed).splitlines() if part_of(name)]
    if revision is None:
        return {n: lines_of(n, (root / n).read_text("utf-8")) for n in names if (root / n).exists()}
    return {name: lines_of(name, git("show", f"{revision}:{name}")) for name in names}


def by_part(lines: Mapping[str, int]) -> Counter[str]:
    """Lines of each part."""
    found = Counter[str]()
    for name, count in lines.items():
        found[part_of(name) or ""] += count
    return found


def ability_of(name: str) -> str:
    """Ability that a file serves."""
    fitting = (ability for ability, pattern in ABILITIES if re.search(pattern, name))
    return next(fitting, OTHER)


def main() -> None:
    """Print the parts, and what grew since a revision."""
    now = counted(None)
    before = counted(sys.argv[1]) if len(sys.argv) > 1 else {}
    old, new = by_part(before), by_part(now)
    for part in PARTS:
        print(f"{part:8} {old[part]:6} -> {new[part]:6}  ({new[part] - old[part]:+})")
    print(f"{'all':8} {old.total():6} -> {new.total():6}  ({new.total() - old.total():+})")
    if not before:
        return
    changes = {name: now.get(name, 0) - before.get(name, 0) for name in {*now, *before}}
    abilities = Counter[str]()
    for name, change in changes.items():
        abilities[ability_of(name)] += change
    for ability, change in abilities.most_common():
        print(f"  {change:+6}  {ability}")
    for name, change in sorted(changes.items(), key=lambda item: -item[1]):
        if abs(change) >= SHOWN_MIN:
            state = "new" if name not in before else "gone" if name not in now else "changed"
            print(f"    {change:+5}  {state:8} {name}")


if __name__ == "__main__":
    main()

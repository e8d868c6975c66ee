"""A treatment as IOzone command lines (IOzone 3.489, whose behaviour was traced).

IOzone selects tests by number, and a number is often two of our phases (``-i 0`` writes, then
rewrites). What comes along unasked, and what IOzone does differently, stands in comments that begin
with ``no equivalent:``; a treatment that IOzone cannot run has comments only.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iolab.export.command_lines import without_ours
from iolab.export.environment import comment
from iolab.export.fio import file_names
from iolab.export.plain_names import one_line
from iolab.export.treatments import Exported

if TYPE_CHECKING:
    from iolab.protocol import Phase, Tenant

TEST_NUMBERS: Final[Mapping[str, int]] = {
    "write": 0,
    "rewrite": 0,
    "read": 1,
    "reread": 1,
    "random-read": 2,
    "random-write": 2,
    "backward-read": 3,
    "record-rewrite": 4,
    "stride-read": 5,
    "fwrite": 6,
    "frewrite": 6,
    "fread": 7,
    "freread": 7,
    "mix": 8,
    "pwrite": 9,
    "repwrite": 9,
    "pread": 10,
    "repread": 10,
}
_FEW_BUILDS: Final = ("pwritev", "preadv")
"""Tests 11 and 12: builds without them ignore them, or run test 0 instead."""
_RETESTS: Final = ("rewrite", "reread", "frewrite", "freread", "repwrite", "repread")
"""Tests that ``-+n`` leaves out."""
_FIRST_PASSES: Final = {"reread": "read", "freread": "fread", "repread": "pread"}
_NO_RETESTS_OF: Final = (6, 7, 9, 10)
"""In throughput mode."""
_RECORD_BYTES_MAX: Final = 16 << 20  # IOzone 3.489: above it, exit 23.
_WORKERS_MAX: Final = 1024  # The same: exit 14.
_KIB: Final = 1 << 10
_NONE: Final = "no equivalent: "


def iozone_script(items: Sequence[Exported], study_name: str) -> str:
    """All treatments as one shell script: commands of IOzone, the rest as comments."""
    lines = [
        "#!/bin/sh",
        comment(f"Study {study_name}: the same as IOzone command lines."),
        comment("Run it in an empty directory on the file system to be measured. Lines after a $"),
        comment("are for root and change the machine; they are never run by this script."),
    ]
    typed = next((item.command for item in items if item.command[:1] == ("iozone",)), None)
    if typed is not None:
        return "\n".join([*lines, "", *_typed(items[0], typed)]) + "\n"
    for item in items:
        lines += ["", *iozone_lines(item)]
    return "\n".join(lines) + "\n"


def _typed(item: Exported, command: Sequence[str]) -> list[str]:
    """A command line that was IOzone's from the beginning: as it was typed, without our options."""
    words = [*without_ours(command)]
    lines = list(item.environment)
    if "--compat" not in command:
        lines.append(f"{_NONE}incompressible data: IOzone writes zeros with 8 bytes in each page.")
    if any(word.partition("=")[0] in ("--repeat", "--rounds") for word in command):
        lines.append(f"{_NONE}--repeat: run the command as often.")
    return [*_comments(lines), shlex.join(map(one_line, words))]


def iozone_lines(item: Exported) -> list[str]:
    """One treatment: comments, then its commands."""
    if item.command[:1] == ("iozone",):
        return _typed(item, item.command)
    ids = ", ".join(trial_id for trial_id, _ in item.trials)
    head = [f"{item.name}. Trials: {ids}.", *item.environment]
    if item.memory_limit_bytes is not None:
        head.append(f"{_NONE}memory_limit; run IOzone in a control group, cache included:")
        head.append(f"$ systemd-run --scope -p MemoryMax={item.memory_limit_bytes} iozone ...")
    problem = _problem(item)
    if problem:
        return _comments([*head, f"{_NONE}{problem}."])
    return [*_comments([*head, *_general_notes(item)]), *_commands(item)]


def _comments(lines: Iterable[str]) -> list[str]:
    return [comment(line) for line in lines]


def _most(item: Exported) -> Tenant:
    """A tenant that has what the treatment asks for: streams know neither direct nor durable."""
    phases = item.workload["phases"]
    plain = [phase for phase in phases if not phase.get("engine")] or phases
    (tenant, *others) = plain[0]["tenants"]
    files = sum(other["workers"] for other in others)
    whole: Tenant = {
        **tenant,
        "workers": tenant["workers"] + files,
        "file_first": 0,
        "file_step": 1,
    }
    return whole if tenant.get("file_step", 1) != 1 else tenant


def _problem(item: Exported) -> str | None:
    """Reason why IOzone cannot run a treatment at all, or None."""
    names = [phase["name"] for phase in item.workload["phases"]]
    tenant, engine = _most(item), item.workload["engine"]
    if item.workload["name"] != "iozone" or any(
        name not in TEST_NUMBERS and name not in _FEW_BUILDS for name in names
    ):
        return "a mix of streams; IOzone runs one pattern at a time"
    special = _special_calls(tenant)
    if special:
        return special
    if engine not in ("sync", "psync", "mmap"):
        return f"engine {engine}; IOzone reads and writes through sync calls, mmap or POSIX aio"
    if tenant["depth"] > 1:
        return f"{tenant['depth']} operations in flight per worker"
    if tenant["io_size_bytes"] % _KIB or tenant["file_bytes"] % _KIB:
        return "sizes that are no multiple of 1 KiB, IOzone's unit"
    if tenant["io_size_bytes"] > _RECORD_BYTES_MAX:
        return "records above 16 MiB"
    if tenant["workers"] > _WORKERS_MAX:
        return f"more than {_WORKERS_MAX} workers"
    if tenant["workers"] > 1 and "record-rewrite" in names:
        return "record-rewrite by several workers: throughput mode has no such test"
    return None


def _special_calls(tenant: Tenant) -> str | None:
    """Properties of calls that IOzone's cannot have."""
    if tenant["fsync"]["kind"] == "every":
        return f"a flush after every {tenant['fsync']['ops']} writes"
    vectors, flags = tenant.get("vectors", 0), tenant.get("flags")
    if vectors > 1:
        return f"{vectors} buffers in each call"
    if flags:
        return f"flags of each transfer ({', '.join(flags)})"
    if tenant.get("is_preallocated"):
        return "blocks allocated before the file is written"
    return None


def _general_notes(item: Exported) -> Iterator[str]:
    tenant = _most(item)
    if item.workload["engine"] == "psync":
        yield (
            f"{_NONE}engine psync: IOzone seeks, then reads or writes, which is iolab's engine "
            "sync."
        )
    if item.workload["content"] != "zero":
        yield (
            f"{_NONE}incompressible data: IOzone writes zeros with 8 bytes in each 4 KiB page, "
            "which compressing or de-duplicating storage shrinks."
        )
    verify = item.workload.get("verify", "none")
    if verify != "none":
        yield (f"{_NONE}verify {verify}: IOzone's -+d compares data in a way of its own.")
    if tenant["fsync"]["kind"] == "none":
        yield f"{_NONE}no fsync at all: IOzone makes one after the clock has stopped."
    if tenant["durability"] != "none" and tenant["workers"] > 1:
        yield f"{_NONE}{tenant['durability']} writes only: with -t IOzone's reads have it too."
    if item.workload["pin_cpus"]:
        yield f"{_NONE}CPUs {item.workload['pin_cpus']}: IOzone's -P takes consecutive ones."


def _commands(item: Exported) -> Iterator[str]:
    """One command for all phases, or several if the cache has to be seen to between them."""
    missing = [name for name in _names(item.workload["phases"]) if name in _FEW_BUILDS]
    if missing:
        yield comment(f"{_NONE}{', '.join(missing)}: few builds of IOzone have these tests.")
    groups = _groups(item)
    is_written = not groups or groups[0][0]["tenants"][0]["opening"] == "create"
    if not is_written and _depends_on_cache(item):
        yield comment(f"{_NONE}laying the file out, untimed: here test 0 of IOzone does.")
        yield _command(item, ["write"], keeps=True)
        is_written = True
    for number, group in enumerate(groups):
        names = _names(group)
        if _depends_on_cache(item) and group[0]["tenants"][0]["direction"]["kind"] == "read":
            yield from _comments(_cache_lines(item))
            if names[0] in _FIRST_PASSES:
                yield comment(f"The cache was seen to before {names[0]} too: again a first pass.")
                names = [_FIRST_PASSES[names[0]]]
        if not is_written:
            yield comment(f"{_NONE}laying the file out, untimed: here test 0 of IOzone does.")
            names = ["write", *names]
        yield from _comments(_notes(names, item))
        yield _command(item, names, keeps=number < len(groups) - 1)
        is_written = True


def _names(phases: Sequence[Phase]) -> list[str]:
    return [phase["name"] for phase in phases]


def _depends_on_cache(item: Exported) -> bool:
    return not item.is_direct and item.cache != "as_is"


def _groups(item: Exported) -> list[list[Phase]]:
    """Phases that one command may run: all of them, if the page cache plays no part."""
    phases = [phase for phase in item.workload["phases"] if phase["name"] in TEST_NUMBERS]
    if not _depends_on_cache(item):
        return [phases] if phases else []
    groups: list[list[Phase]] = []
    for phase in phases:
        is_read = phase["tenants"][0]["direction"]["kind"] == "read"
        if is_read or not groups or _is_split_after(groups[-1], phase):
            groups.append([phase])
        else:
            groups[-1].append(phase)
    return groups


def _is_split_after(group: list[Phase], phase: Phase) -> bool:
    """Tell whether a writing phase needs a command of its own: it is no half of the last test."""
    number = TEST_NUMBERS[phase["name"]]
    is_read = group[-1]["tenants"][0]["direction"]["kind"] == "read"
    return is_read and number != TEST_NUMBERS[group[-1]["name"]]


def _cache_lines(item: Exported) -> Iterator[str]:
    if item.cache == "cold":
        yield "Before the next command, as iolab did and checked:"
        yield "$ sync; echo 3 > /proc/sys/vm/drop_caches"
    else:
        yield "Before the next command, as iolab did and checked:"
        yield f"$ cat {' '.join(file_names(_most(item)))} > /dev/null"


def _notes(names: Sequence[str], item: Exported) -> Iterator[str]:
    extra = _unasked(names, {TEST_NUMBERS[name] for name in names})
    if extra:
        yield f"{_NONE}{' and '.join(names)} alone: IOzone also runs {' and '.join(extra)}."
    without = [name for name in names if name in _RETESTS and TEST_NUMBERS[name] in _NO_RETESTS_OF]
    if without and _most(item)["workers"] > 1:
        yield f"{_NONE}{' and '.join(without)}: several workers of IOzone do not repeat this test."
    if "backward-read" in names and not _has_no_retests(names) and _most(item)["workers"] == 1:
        yield "IOzone reads backwards twice and reports the first pass."


def _unasked(names: Sequence[str], numbers: set[int]) -> list[str]:
    """Phases that the selected tests run although nobody asked."""
    is_without_retests = _has_no_retests(names)
    return [
        name
        for name, number in TEST_NUMBERS.items()
        if number in numbers and name not in names and not (is_without_retests and name in _RETESTS)
    ]


def _has_no_retests(names: Sequence[str]) -> bool:
    return not any(name in _RETESTS for name in names)


def _command(item: Exported, names: Sequence[str], *, keeps: bool) -> str:
    tenant, workload = _most(item), item.workload
    numbers = {TEST_NUMBERS[name] for name in names}
    words = ["iozone"]
    for number in sorted(numbers):
        words += ["-i", str(number)]
    words += ["-r", f"{tenant['io_size_bytes'] // _KIB}k", "-s", f"{tenant['file_bytes'] // _KIB}k"]
    words += ["-I"] if tenant["access"] == "direct" else []
    words += {"sync": ["-o"], "dsync": ["-+D"]}.get(tenant["durability"], [])
    words += ["-e"] if tenant["fsync"]["kind"] == "timed" else []
    words += ["-E"] if numbers & {9, 10} and tenant["workers"] == 1 else []
    words += {"whole_file": ["-W"], "record": ["-+l"]}.get(_lock(item), [])
    words += ["-B"] if workload["engine"] == "mmap" else []
    words += ["-+n"] if _has_no_retests(names) else []
    if "stride-read" in names:
        stride = next(
            pattern["stride"]
            for phase in workload["phases"]
            if (pattern := phase["tenants"][0]["pattern"])["kind"] == "stride"
            and phase["name"] == "stride-read"
        )
        words += ["-j", str(stride)]
    words += ["-w"] if keeps else []
    if tenant["workers"] == 1:
        words += ["-f", file_names(tenant)[0]]
    else:
        words += ["-T"] if workload["workers_as"] == "threads" else []
        words += ["-t", str(tenant["workers"]), "-F", *file_names(tenant)]
    return " ".join(map(shlex.quote, words))


def _lock(item: Exported) -> str:
    """Lock in the tests that lock at all: not in those of streams."""
    tenants = [tenant for phase in item.workload["phases"] for tenant in phase["tenants"]]
    locks = [tenant.get("lock", "none") for tenant in tenants]
    return next((lock for lock in locks if lock != "none"), "none")

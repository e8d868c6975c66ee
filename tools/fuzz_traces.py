"""Targets of `tools/fuzz.py` for the readers of block traces: recordings, mutated.

Each format has a target of its own, whose inputs begin as a file of that format, so that its reader
is reached; a case is shown, measured and converted. What comes out is bounded by what went in.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from fuzz_targets import GOLDEN, check_message, flipped, mutated_lines
from iolab import _core
from iolab.errors import IolabError
from iolab.library.disk_counters import parse_diskstats

TRACES: Final = GOLDEN / "trace"
_LINES: Final = 60
_OUTPUT_MAX: Final = 64 << 20
_PAGE_BYTES: Final = 4096
_RING_BYTES: Final = 1 << 14
_MSR: Final = "".join(
    f"{128166372003061629 + n * 997},hm,{n % 3},{('Read', 'Write')[n % 2]},{n * 4096},4096,{n}\n"
    for n in range(40)
)
_DISKSIM: Final = "".join(f"{n * 0.25:.6f} {n % 2} {n * 8} 8 {n % 2}\n" for n in range(40))
_FTRACE: Final = (
    "# tracer: nop\n"
    "              dd-22158   [001] .....  1550.177421: block_bio_queue: 7,2 RS 0 + 8 [dd]\n"
    "              dd-22158   [001] .....  1550.177429: block_getrq: 7,2 RS 0 + 8 [dd]\n"
    "              dd-22158   [001] .....  1550.177432: block_plug: [dd]\n"
    "              dd-22158   [001] .....  1550.177434: block_unplug: [dd] 1\n"
    "              dd-22158   [001] ...1.  1550.177436: block_rq_issue: 7,2 RS 4096 () 0 + 8 "
    "be,0,4 [dd]\n"
    "     ksoftirqd/1-22      [001] ..s..  1550.177472: block_rq_complete: 7,2 RS () 0 + 8 be,0,4 "
    "[0]\n"
    "              dd-1 [000] ..... 1551.1: block_bio_remap: 8,0 W 2112 + 8 <- (8,17) 64\n"
    "              dd-1 [000] ..... 1551.2: block_split: 8,0 W 2112 / 2116 [dd]\n"
    "CPU:0 [LOST 60 EVENTS]\n"
)
_IOLOG: Final = (
    "fio version 3 iolog\n0 /dev/sdb add\n1 /dev/sdb open\n5 /dev/sdb read 8192 4096\n"
    "9 /dev/sdb write 0 512\n12 /dev/sdb datasync 0 0\n15 /dev/sdb trim 4096 4096\n"
    "20 /dev/sdb close\n",
    "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 250 0\nf write 0 4096\nf close\n",
)


def trace_blktrace(rng: random.Random, folder: Path) -> None:
    """Files of blktrace, damaged, of one CPU or two."""
    parts = [flipped(rng, part) if rng.random() < 0.8 else part for part in _binaries()]
    if rng.random() < 0.2:
        parts = [_swapped(part) for part in parts]
    _used(rng, [part[: rng.randrange(1, len(part) + 1)] for part in parts], folder)


def trace_file(rng: random.Random, folder: Path) -> None:
    """Our own file: packed bytes, heads and index damaged."""
    body = _own()
    body = flipped(rng, body)
    if rng.random() < 0.3:
        body = body[: rng.randrange(1, len(body))]
    _used(rng, [body], folder)


def trace_blkparse(rng: random.Random, folder: Path) -> None:
    """Text of blkparse."""
    names = ("syn.blkparse.txt", "syn.blkparse-t.txt", "nb.blkparse.txt", "syn.blkparse-s.txt")
    _text(rng, _lines_of(TRACES / rng.choice(names), rng), folder)


def trace_ftrace(rng: random.Random, folder: Path) -> None:
    """Text of the kernel's events."""
    _text(rng, _FTRACE, folder)


def trace_csv(rng: random.Random, folder: Path) -> None:
    """Events as CSV, of a recording or converted."""
    text = _csv()
    head, *rest = text.splitlines(keepends=True)
    first = rng.randrange(max(1, len(rest) - _LINES))
    _text(rng, "".join(rest[first : first + _LINES]), folder, head)


def trace_msr(rng: random.Random, folder: Path) -> None:
    """Rows of the MSR Cambridge traces."""
    _text(rng, _MSR, folder)


def trace_iolog(rng: random.Random, folder: Path) -> None:
    """Fio's iolog."""
    head, _, rest = rng.choice(_IOLOG).partition("\n")
    _text(rng, rest, folder, head + "\n")


def trace_disksim(rng: random.Random, folder: Path) -> None:
    """Lines of DiskSim."""
    _text(rng, _DISKSIM, folder)


def trace_ring(rng: random.Random, _: Path) -> None:
    """Raw pages of the kernel's ring buffer, and its descriptions of them, damaged."""
    page, event, known, cpus = _ring(rng.choice(("tracefs", "tracefs-6.1")))
    formats = _formats(rng, known)
    if rng.random() < 0.1:
        page = mutated_lines(rng, page)
    pages = [flipped(rng, part[: rng.randrange(1, len(part) + 1)]) for part in cpus]
    try:
        told = json.loads(_core.trace_ring_pages((page, event), list(formats), pages))
    except IolabError as error:
        check_message(error)
        return
    # The smallest event has four bytes.
    assert told["events"] <= sum(map(len, pages)) // 2, told


def trace_perf(rng: random.Random, _: Path) -> None:
    """Bytes of a ring of perf events, damaged, read from anywhere."""
    known, cpus = _ring(rng.choice(("tracefs", "tracefs-6.1")))[2:]
    ring = flipped(rng, _perf_records(rng, rng.choice(cpus)))
    begin = rng.choice((0, rng.randrange(1 << 20), (1 << 64) - 1 - 2 * len(ring)))
    length = rng.choice((len(ring), rng.randrange(2 * len(ring) + 1)))
    try:
        told = json.loads(
            _core.trace_perf_ring(_formats(rng, known), ring, (begin, begin + length))
        )
    except IolabError as error:
        check_message(error)
        return
    # The shortest record has a head of eight bytes, and may bring a name.
    assert told["events"] <= length // 4, told


def _formats(rng: random.Random, known: tuple[str, ...]) -> list[str]:
    """Descriptions of events, some damaged, some of events that are of other layers then."""
    formats = [
        text.replace("name: block_", "name: layer_") if rng.random() < 0.2 else text
        for text in known
    ]
    if rng.random() < 0.1:
        formats = [text.replace("name: block_getrq", "name: task_rename") for text in formats]
    return [mutated_lines(rng, text) for text in formats] if rng.random() < 0.3 else formats


def _perf_records(rng: random.Random, pages: bytes) -> bytes:
    """The records of pages as samples of perf events, with a loss now and then."""
    out, time_ns = bytearray(), 1 << 40
    for content in _records(pages):
        time_ns += rng.randrange(1000)
        raw = struct.pack("=QI", time_ns, len(content)) + content
        raw += bytes(-(len(raw) + 8) % 8)
        out += struct.pack("=IHH", 9, 2, 8 + len(raw)) + raw
        if rng.random() < 0.01:
            out += struct.pack("=IHHQQ", 2, 0, 24, 1, rng.randrange(100))
        if len(out) > _RING_BYTES:
            break
    return bytes(out)


@cache
def _records(pages: bytes) -> list[bytes]:
    """Contents of the short records of pages of 4 KiB."""
    found = list[bytes]()
    for first in range(0, len(pages), _PAGE_BYTES):
        page = pages[first : first + _PAGE_BYTES]
        at, end = 16, 16 + (int.from_bytes(page[8:16], "little") & 0xFFFFF)
        while at + 4 <= min(end, len(page)):
            kind = page[at] & 31
            length = {0: 0, 29: 0, 30: 4, 31: 4}.get(kind, 4 * kind)
            if kind in (0, 29):
                break
            if kind < 29:
                found.append(page[at + 4 : at + 4 + length])
            at += 4 + length
    assert found, "a recording has records"
    return found


def trace_diskstats(rng: random.Random, _: Path) -> None:
    """Feed iostat with counters."""
    text = (GOLDEN / "iostat" / "diskstats_after.txt").read_text()
    try:
        parse_diskstats(mutated_lines(rng, text * 3))
    except IolabError as error:
        check_message(error)


def _text(rng: random.Random, text: str, folder: Path, head: str = "") -> None:
    content = (head + mutated_lines(rng, text)).encode(errors="replace")
    _used(rng, [flipped(rng, content) if rng.random() < 0.1 else content], folder)


def _used(rng: random.Random, parts: list[bytes], folder: Path) -> None:
    """Do one of the things that are done with a trace."""
    files = []
    for cpu, part in enumerate(parts):
        path = folder / f"t.blktrace.{cpu}"
        path.write_bytes(part)
        files.append((str(path), None))
    inputs = (files, rng.choice(([], [], [], ["8:0"], ["sda", "7:0"])))
    written = 0

    def sink(piece: bytes) -> None:
        nonlocal written
        written += len(piece)
        if written > _OUTPUT_MAX:
            raise AssertionError(f"{written} bytes of output")

    options = {"format": None, "kinds": None, "is_quiet": False, "has_programs": True}
    uses: tuple[Callable[[], object], ...] = (
        lambda: _core.trace_plot(inputs),
        lambda: _core.pattern_of(inputs, _question(rng)),
        lambda: _core.trace_show(inputs, json.dumps({**options, "has_times": True}), sink),
        lambda: _core.trace_stages(
            inputs, rng.choice(("device", "process", "direction", "size")), "stages"
        ),
        lambda: _core.trace_stages(inputs, "process", "btt"),
        lambda: _core.trace_convert(
            inputs, rng.choice(("iolab", "blktrace", "csv", "iolog")), "{}", sink
        ),
    )
    try:
        rng.choice(uses)()
    except IolabError as error:
        check_message(error)


def pattern_calls(rng: random.Random, folder: Path) -> None:
    """Find patterns in a text of strace, or in the texts of several threads."""
    name = rng.choice(sorted(path.name for path in (TRACES / "strace").glob("*f*")))
    text = (TRACES / "strace" / name).read_text()
    files = []
    for thread in range(rng.choice((1, 1, 1, 3))):
        content = mutated_lines(rng, text).encode(errors="replace")
        path = folder / f"calls.{thread}"
        path.write_bytes(flipped(rng, content) if rng.random() < 0.2 else content)
        files.append((str(path), None))
    try:
        _core.pattern_of((files, []), _question(rng))
    except IolabError as error:
        check_message(error)


def _question(rng: random.Random) -> str:
    return json.dumps(
        {
            "only": rng.choice(("", "", "data")),
            "files_max": rng.choice((None, 1, 12)),
            "has_pictures": True,
            "form": rng.choice((None, "study", "fio", "iozone")),
        }
    )


@cache
def _binaries() -> list[bytes]:
    return [(TRACES / f"syn.blktrace.{cpu}").read_bytes() for cpu in (0, 1)]


@cache
def _ring(name: str) -> tuple[str, str, tuple[str, ...], tuple[bytes, ...]]:
    """Descriptions and pages of a recorded kernel."""
    folder = TRACES / name
    formats = sorted((folder / "events/block").glob("*/format"))
    return (
        (folder / "events/header_page").read_text(),
        (folder / "events/header_event").read_text(),
        tuple(path.read_text() for path in formats),
        tuple(path.read_bytes() for path in sorted(folder.glob("cpu*.raw"))),
    )


def _swapped(part: bytes) -> bytes:
    """The magic number in the other byte order; the rest is read as it lies."""
    return part[3::-1] + part[4:]


def _converted(output: str) -> bytes:
    pieces = list[bytes]()
    inputs = ([(str(TRACES / f"nb.blktrace.{cpu}"), None) for cpu in (0, 1)], [])
    _core.trace_convert(inputs, output, "{}", pieces.append)
    return b"".join(pieces)


@cache
def _own() -> bytes:
    return _converted("iolab")


@cache
def _csv() -> str:
    return _converted("csv").decode()


def _lines_of(path: Path, rng: random.Random) -> str:
    lines = path.read_text().splitlines(keepends=True)
    first = rng.randrange(max(1, len(lines) - _LINES))
    return "".join(lines[first : first + _LINES])

"""Targets of `tools/fuzz.py`, and the mutation of recordings into inputs.

The inputs keep the shape of what they come from: command lines are mutated word by word and number
by number, lines of results field by field, spreadsheets record by record; bytes are flipped now and
then. What is right about a case: the program answers, or refuses with a message of its own.
"""

from __future__ import annotations

import json
import random
import shlex
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from iolab import _core
from iolab.errors import IolabError
from iolab.imported.foreign.join import Named
from iolab.imported.mapping import Wishes
from iolab.imported.study import store_imported, understand_files
from iolab.library.dialect.plan import DialectPlan, study_of
from iolab.stats.judge import judge
from iolab.store.db import Store
from iolab.study.model import TestbedRequest
from iolab.study.plan import make_plan

GOLDEN: Final = Path(__file__).parents[1] / "tests" / "golden"
_NUMBERS: Final = (
    *("0", "1", "2", "-1", "-2", "7", "255", "4096", "65536", "2147483647", "2147483648"),
    *("4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551616"),
    *("1" + "0" * 40, "1e9", "0.5", ".5", "1.", "-0", "+4", "0x10", "nan", "inf", "", "+++++"),
)
_SUFFIXES: Final = ("", "", "", "k", "m", "g", "t", "K", "M", "G", "b", "x", "kk", "us", "ms", "s")
_SIGNS: Final = ("-", "+", ":", ",", "=", "/", "-+", "--", " ", "\t", '"', "'", "\\", "\x00")
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ODD: Final = ("\u00e9", "\u20ac", "\U0001f4be", "\u202e", "\ufeff", "\r", "\x1b[31m", "%s", "{}")
_STORED_SHARE: Final = 0.05
_MKFILE_LINES: Final = (
    *("1m a", "-n 1g b c", "-v 512b a", "-nv 10k x y", "-vn 3 z", "--random 4k a", "0 a"),
    *("--sync 64k a", "1048576 some/where", "-n 8G a b c d"),
)


# --- command lines ------------------------------------------------------------------------------


def iozone_words(rng: random.Random, folder: Path) -> None:
    """A command line of iozone."""
    parse_and_plan("iozone", mutated_words(rng, _command_lines("iozone")), folder)


def bonnie_words(rng: random.Random, folder: Path) -> None:
    """A command line of bonnie++."""
    parse_and_plan("bonnie++", mutated_words(rng, _command_lines("bonnie++")), folder)


def mkfile_words(rng: random.Random, folder: Path) -> None:
    """A command line of mkfile."""
    lines = tuple(tuple(line.split()) for line in _MKFILE_LINES)
    parse_and_plan("mkfile", mutated_words(rng, lines), folder)


def parse_and_plan(dialect: str, words: list[str], folder: Path) -> None:
    """Understand the words and plan the study that they stand for, as `iolab` does."""
    try:
        plan = DialectPlan.of_words(_core, dialect, words)
    except IolabError as error:
        check_message(error)
        return
    begin = {"event": "begin", "began": "now", "version": "1", "machine": "here"}
    _core.dialect_render(dialect, plan.text, json.dumps(begin))
    if plan.values["only_text"] is not None or not plan.rows:
        return
    try:
        study = replace(study_of(plan), testbed=TestbedRequest("dir", str(folder)))
        make_plan(study.with_seed(1))
    except IolabError as error:
        check_message(error)


def check_message(error: IolabError) -> None:
    """Refuse an error that leaves its reader alone."""
    if not str(error).strip():
        raise AssertionError("an error that says nothing")


@cache
def _command_lines(program: str) -> tuple[tuple[str, ...], ...]:
    """The words of every recorded command of a program."""
    found = set[tuple[str, ...]]()
    for path in sorted((GOLDEN / program.rstrip("+")).glob("*.cmd")):
        for command in path.read_text().replace("|", ";").replace("&", ";").split(";"):
            try:
                words = shlex.split(command)
            except ValueError:
                continue
            if program in words:
                found.add(tuple(words[words.index(program) + 1 :]))
    assert found, f"no recorded command of {program}"
    return tuple(sorted(found))


def mutated_words(rng: random.Random, lines: Sequence[tuple[str, ...]]) -> list[str]:
    """Words of one of the lines, a few of them changed."""
    words = list(rng.choice(lines))
    known = sorted({word for line in lines for word in line})
    for _ in range(rng.choice((0, 1, 1, 2, 3, 5, 9))):
        at = rng.randrange(len(words) + 1)
        match rng.randrange(7):
            case 0:
                words.insert(at, rng.choice(known))
            case 1:
                words[at:at] = _other(rng, lines)
            case 2:
                words.insert(at, "-" + rng.choice(("", "+")) + rng.choice(_LETTERS))
            case 3:
                del words[at : at + rng.randrange(1, 3)]
            case 4 if words:
                words[at % len(words)] = mutated_text(rng, words[at % len(words)])
            case 5 if words:
                words[at % len(words)] = _number(rng)
            case _:
                options = ("--repeat", "--on", "--compat", "--help", "--out=", "--repeat=")
                words.insert(at, rng.choice(options) + rng.choice(("", "3", "loop:1g", "sim:x")))
    # A NUL cannot stand in a command line.
    return [word.replace("\x00", "") for word in words]


def _other(rng: random.Random, lines: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    line = rng.choice(lines)
    first = rng.randrange(len(line) + 1)
    return line[first : first + 3]


def _number(rng: random.Random) -> str:
    parts = [rng.choice(_NUMBERS) + rng.choice(_SUFFIXES) for _ in range(rng.choice((1, 1, 2, 5)))]
    return ":".join(parts)


def mutated_text(rng: random.Random, text: str) -> str:
    """Text with a part changed, added, repeated or left out."""
    at = rng.randrange(len(text) + 1)
    match rng.randrange(5):
        case 0:
            return text[:at] + rng.choice(_SIGNS) + text[at:]
        case 1:
            return text[:at] + rng.choice(_NUMBERS) + text[at + 1 :]
        case 2:
            return text[:at] + text[at + 1 :]
        case 3:
            return text[:at] + rng.choice(_ODD) + text[at:]
        case _:
            return text[:at] + text[at : at + 4] * rng.choice((2, 3, 50)) + text[at:]


# --- results ------------------------------------------------------------------------------------


def bonnie_lines(rng: random.Random, _: Path) -> None:
    """Lines for `bon-csv2txt`."""
    texts = [text for path, text in _texts() if path.parent.name == "bonnie"]
    text = mutated_lines(rng, rng.choice(texts).decode(errors="replace"))
    event = json.dumps({"event": "table", "text": text})
    answer = json.loads(_core.dialect_render("bonnie++", "{}", event))
    assert isinstance(answer["text"], str)
    assert isinstance(answer["problems"], list)


def imported_files(rng: random.Random, folder: Path) -> None:
    """One to three files for `iolab import`; now and then the study is stored and judged."""
    named = list[Named]()
    for number in range(rng.choice((1, 1, 1, 2, 3))):
        origin, content = rng.choice(_texts())
        path = folder / f"{rng.choice(('run', 'a-', 'b-'))}{number}{origin.suffix}"
        path.write_bytes(_mutated_content(rng, origin, content))
        named.append(Named(path, rng.choice(("", "", "x", "y"))))
    try:
        imported = understand_files(named, Wishes())
        if rng.random() < _STORED_SHARE:
            _store_and_judge(imported, folder / "stored")
    except IolabError as error:
        check_message(error)
    finally:
        for each in named:
            each.path.unlink(missing_ok=True)


def _store_and_judge(imported: object, folder: Path) -> None:
    database = folder / "study.db"
    try:
        store_imported(imported, database, "fuzz")  # type: ignore[arg-type]
        with Store.open_reader(database) as store:
            judge(store.load_data())
    finally:
        for path in folder.glob("*"):
            path.unlink()
        if folder.exists():
            folder.rmdir()


@cache
def _texts() -> tuple[tuple[Path, bytes], ...]:
    """Every recorded result: text, spreadsheet, line, table."""
    folders = ("iozone", "bonnie", "published")
    suffixes = {".stdout", ".stderr", ".xls", ".csv", ".txt"}
    paths = [path for folder in folders for path in sorted((GOLDEN / folder).iterdir())]
    found = [(path, path.read_bytes()) for path in paths if path.suffix in suffixes]
    found = [(path, content) for path, content in found if content]
    assert any(path.suffix == ".xls" for path, _ in found), "no recorded spreadsheet"
    return tuple(found)


def _mutated_content(rng: random.Random, origin: Path, content: bytes) -> bytes:
    if origin.suffix == ".xls" and rng.random() < 0.9:
        return _mutated_records(rng, content)
    text = content.decode(errors="replace")
    if rng.random() < 0.9:
        content = mutated_lines(rng, text).encode(errors="replace")
    return flipped(rng, content) if rng.random() < 0.2 else content


def mutated_lines(rng: random.Random, text: str) -> str:
    """Text with some lines changed, moved, repeated or left out."""
    lines = text.splitlines()
    for _ in range(rng.choice((1, 1, 2, 4, 12))):
        if not lines:
            return text[: rng.randrange(len(text) + 1)]
        at = rng.randrange(len(lines))
        match rng.randrange(7):
            case 0:
                del lines[at]
            case 1:
                lines[at:at] = lines[at : at + 3] * rng.choice((1, 2, 40))
            case 2:
                lines.insert(rng.randrange(len(lines) + 1), lines.pop(at))
            case 3:
                lines[at] = mutated_text(rng, lines[at])
            case 4:
                del lines[at:]
            case _:
                lines[at] = _mutated_fields(rng, lines[at])
    return "\n".join(lines) + rng.choice(("\n", "", "\r\n"))


def _mutated_fields(rng: random.Random, line: str) -> str:
    sign = "," if "," in line else None
    fields = line.split(sign)
    if not fields:
        return rng.choice(_NUMBERS)
    at = rng.randrange(len(fields))
    deeds: tuple[Callable[[], None], ...] = (
        lambda: fields.__setitem__(at, _number(rng)),
        lambda: fields.__setitem__(at, mutated_text(rng, fields[at])),
        lambda: fields.insert(at, _number(rng)),
        lambda: fields.__delitem__(at),
        lambda: fields.insert(at, fields[-1]),
    )
    rng.choice(deeds)()
    return (sign or "\t ").join(fields)


def _mutated_records(rng: random.Random, content: bytes) -> bytes:
    """A spreadsheet of records (number, length, body), some of them changed."""
    records = list[tuple[int, int, bytes]]()
    at = 0
    while at + 4 <= len(content):
        number, length = struct.unpack_from("<HH", content, at)
        records.append((number, length, content[at + 4 : at + 4 + length]))
        at += 4 + length
    for _ in range(rng.choice((1, 1, 2, 5))):
        if not records:
            break
        at = rng.randrange(len(records))
        number, length, body = records[at]
        match rng.randrange(6):
            case 0:
                records[at] = (rng.randrange(1 << 16), length, body)
            case 1:
                records[at] = (number, rng.choice((0, 1, min(length + 1, 0xFFFF), 0xFFFF)), body)
            case 2:
                records[at] = (number, length, flipped(rng, body))
            case 3:
                del records[at]
            case 4:
                records[at:at] = records[at : at + 2] * rng.choice((1, 30))
            case _:
                del records[at + 1 :]
    return b"".join(struct.pack("<HH", n, length) + body for n, length, body in records)


def flipped(rng: random.Random, content: bytes) -> bytes:
    """Content with a few bytes changed."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 2, 8)) if changed else 0):
        changed[rng.randrange(len(changed))] = rng.choice((0, 0xFF, 0x7F, rng.randrange(256)))
    return bytes(changed)

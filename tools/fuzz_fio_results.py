"""Targets of `tools/fuzz.py` for results of fio in `iolab import`: JSON, terse and text, logs.

Inputs are recorded results, changed letter by letter, number by number and cut off. Right is a
study, or an error that says something; wrong is any other exception, a hang or too much memory.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from fuzz_targets import check_message, flipped, mutated_lines, mutated_text
from iolab.errors import IolabError
from iolab.imported.foreign.join import Named
from iolab.imported.mapping import Wishes
from iolab.imported.study import understand_files

GOLDEN: Final = Path(__file__).parents[1] / "tests" / "golden" / "fio"
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
_NUMBERS: Final = (
    *("0", "-1", "1e400", "1e99", "NaN", "-nan", "Infinity", "null", "true", '"x"', "[]", "{}"),
    *("18446744073709551616", "9" * 30, "9" * 5000, "0.0", "1e-400", "4096", "2147483647"),
)
_UNITS: Final = ("", "", "IOPS", "us", "KiB/s", "ms")
_LOG_NAMES: Final = ("x_bw.1.log", "x_iops.1.log", "x_clat.2.log", "x_clat_hist.1.log", "x.txt")
_DEEP: Final = 200_000
_MANY: Final = 20_000
_MANY_BYTES: Final = 1 << 20


@cache
def _recorded(pattern: str) -> tuple[str, ...]:
    found = tuple(p.read_text() for p in sorted(GOLDEN.rglob(pattern)) if p.stat().st_size)
    assert found, f"no recording {pattern}"
    return found


def _changed(rng: random.Random, text: str) -> str:
    """Text with numbers replaced, parts mutated, or its end cut off."""
    for _ in range(rng.choice((0, 1, 2, 5))):
        match rng.randrange(4):
            case 0:
                text = mutated_text(rng, text)
            case 1:
                places = list(_NUMBER.finditer(text))
                if places:
                    one = rng.choice(places)
                    text = text[: one.start()] + rng.choice(_NUMBERS) + text[one.end() :]
            case 2:
                text = text[: rng.randrange(len(text) + 1)]
            case _:
                text = mutated_lines(rng, text)
    return text


def _understand(rng: random.Random, folder: Path, files: Sequence[tuple[str, bytes]]) -> None:
    named: list[Named] = []
    for name, content in files:
        path = folder / name
        path.write_bytes(flipped(rng, content) if content and rng.random() < 0.1 else content)
        named.append(Named(path, rng.choice(("", "", "", "x"))))
    try:
        understand_files(named, Wishes(unit=rng.choice(_UNITS)))
    except IolabError as error:
        check_message(error)
    finally:
        for each in named:
            each.path.unlink(missing_ok=True)


def json_files(rng: random.Random, folder: Path) -> None:
    """One to three documents, in one file or in several; now and then one that is very deep."""
    texts = [
        _changed(rng, rng.choice(_recorded("*.json"))) for _ in range(rng.choice((1, 1, 2, 3)))
    ]
    if rng.random() < 0.02:
        opener = rng.choice(("[", '{"a":', '{\n"jobs":['))
        texts.append('{"fio version": "x", "jobs": ' + opener * _DEEP)
    if rng.random() < 0.3:
        texts = ["\n".join(texts)]
    files = [(f"{n}.json", text.encode(errors="replace")) for n, text in enumerate(texts)]
    _understand(rng, folder, files)


def text_files(rng: random.Random, folder: Path) -> None:
    """Terse lines and normal output, mixed and repeated."""
    texts = [
        _changed(rng, rng.choice(_recorded(rng.choice(("terse-v*.stdout", "g*.stdout")))))
        for _ in range(rng.choice((1, 1, 2, 3)))
    ]
    if rng.random() < 0.3:
        texts = ["".join(texts) * rng.choice((1, 2, 20))]
    files = [(f"{n}.txt", text.encode(errors="replace")) for n, text in enumerate(texts)]
    _understand(rng, folder, files)


def log_files(rng: random.Random, folder: Path) -> None:
    """Logs of every kind under names that fit and names that do not."""
    files: dict[str, bytes] = {}
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice((*_recorded("*.log"), _histogram(rng)))
        if rng.random() < 0.05:
            text = (text * min(_MANY, _MANY_BYTES // max(len(text), 1) + 1))[:_MANY_BYTES]
        if rng.random() < 0.8:
            text = _changed(rng, text)
        files[rng.choice(_LOG_NAMES)] = text.encode(errors="replace")
    _understand(rng, folder, list(files.items()))


def _histogram(rng: random.Random) -> str:
    bins = 1856 >> rng.randrange(7)
    counts = ", ".join(str(rng.choice((0, 0, 0, 1, 1000))) for _ in range(bins))
    return f"{rng.randrange(10_000)}, {rng.randrange(3)}, 4096, {counts}\n"

"""Targets of `tools/fuzz.py` for the dialect fio: its command lines, and job files.

Inputs are the recorded ones, changed word by word, line by line and letter by letter. Right is any
answer, or a refusal that says something; wrong is a panic, a hang or too much memory.
"""

from __future__ import annotations

import os
import random
import shlex
from functools import cache
from pathlib import Path
from typing import Final

from iolab import _core
from iolab.errors import IolabError

GOLDEN: Final = Path(__file__).parents[1] / "tests" / "golden" / "fio"
_VALUES: Final = (
    *("0", "1", "-1", "4k", "4q", "1m", "16g", "9223372036854775807", "18446744073709551616"),
    *("50%", "101%", "1,2,3", ",", "1-2", "2:1", "(1+2)", "((((", "(2^99)", "10s", "1.5", ""),
    *("4k/60:16k/", "4k/60:8k/60", "/", "4k/1e9", "zipf:1.1", "zipf:1", "zipf:1e308", "pareto:0.2"),
    *("normal:0", "zoned:60/10:30/20:10/70", "zoned:/", "random:4", "sequential", "randread:8"),
    *("read:-8k", "read:9223372036854775807", "randrw:0", "8k-64k", "filecreate", "poisson"),
    *("nan", "a:b:c", "\\:", "$pagesize*2", "${HOME}", "${NOT_SET}", "\u00e9", "x" * 5000, "%s"),
)
_LINES: Final = ("[global]", "[a]", "[]", "[", "include x", "include job.fio", "=", ";", "#", "\t")
_LONG_SHARE: Final = 0.02
_LONG: Final = 4 << 20
_MANY: Final = 100_000


@cache
def _names() -> tuple[str, ...]:
    """Every option that the reference lists."""
    text = _core.dialect_parse("fio", ["--cmdhelp=all"])
    del text
    lines = _core.dialect_reference("fio").splitlines()
    return tuple(line.split("`")[1] for line in lines if line.startswith("| `"))


@cache
def _files() -> tuple[str, ...]:
    return tuple(path.read_text() for path in sorted(GOLDEN.rglob("*.fio")))


def _option(rng: random.Random) -> str:
    name = rng.choice(_names()).lstrip("-").partition("=")[0].partition("[")[0]
    return name if rng.random() < 0.2 else f"{name}={rng.choice(_VALUES)}"


def fio_words(rng: random.Random, folder: Path) -> None:
    """A command line."""
    words = shlex.split("--name=x --rw=randread --size=1m --bs=4k --ioengine=null")
    for _ in range(rng.choice((0, 1, 2, 3, 8))):
        at = rng.randrange(len(words) + 1)
        match rng.randrange(4):
            case 0:
                words.insert(at, rng.choice(("-", "--")) + _option(rng))
            case 1:
                del words[at : at + 1]
            case 2:
                words.insert(at, f"--name={rng.choice(_VALUES)}")
            case _:
                words.insert(at, rng.choice(_VALUES))
    _parse([word.replace("\x00", "") for word in words], folder)


def fio_job(rng: random.Random, folder: Path) -> None:
    """A job file."""
    lines = rng.choice(_files()).splitlines()
    for _ in range(rng.choice((1, 1, 2, 4, 9))):
        at = rng.randrange(len(lines) + 1)
        match rng.randrange(6):
            case 0:
                lines.insert(at, _option(rng))
            case 1:
                lines.insert(at, rng.choice(_LINES))
            case 2:
                del lines[at : at + 1]
            case 3:
                lines[at:at] = rng.choice(_files()).splitlines()
            case 4 if lines:
                line = lines[at % len(lines)]
                cut = rng.randrange(len(line) + 1)
                lines[at % len(lines)] = line[:cut] + rng.choice(_VALUES) + line[cut + 1 :]
            case _ if rng.random() < _LONG_SHARE:
                lines.insert(at, rng.choice(("size=", ";", "description=")) + "7" * _LONG)
            case _ if rng.random() < _LONG_SHARE:
                lines[at:at] = ["[job]"] * _MANY
            case _:
                pass
    path = folder / "job.fio"
    path.write_text("\n".join(lines) + rng.choice(("", "\n", "\r\n")))
    try:
        _parse([str(path)], folder)
    finally:
        path.unlink()


def _parse(words: list[str], folder: Path) -> None:
    before = Path.cwd()
    os.chdir(folder)
    try:
        plan = _core.dialect_parse("fio", words)
        _core.dialect_render("fio", plan, '{"event":"row","phases":[]}')
    except IolabError as error:
        if not str(error).strip():
            raise AssertionError("an error that says nothing") from None
    finally:
        os.chdir(before)

"""Targets of `tools/fuzz.py` for the dialect filebench: its command lines, and scripts.

Inputs are the recorded scripts and the personalities, changed word by word, line by line and letter
by letter. Right is any answer, or a refusal that says something; wrong is a panic, a hang or too
much memory.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Final

from iolab import _core
from iolab.errors import IolabError

GOLDEN: Final = Path(__file__).parents[1] / "tests" / "golden" / "filebench"
_SMALL: Final = ("--set", "nfiles=20")
_VALUES: Final = (
    *("0", "1", "-1", "4k", "4K", "1g", "9223372036854775807", "9223372036854775808", "08", "1.5"),
    *("true", "false", "$dir", "${dir}", "$(dir)", "$x", "$nosuch", "$nfiles * $nfiles", "name"),
    *("create", '"a b"', '"$dir"', '"', "{", "}", "{{50,1k,2k},{50,2k,1k}}", "(", ")", ",", "="),
    *("randvar(type=gamma,mean=4k)", "randvar(type=uniform,min=9,mean=1)", "randvar(", "cvar()"),
    *("cvar(type=cvar-normal,parameters=mean:0;sigma:0)", "cvar(type=cvar-lognormal)", "\u00e9"),
    *("randvar(type=gamma,mean=$self)", "x" * 5000, "-", "/", "*", "\\", "\t", "# a comment"),
)
_STATEMENTS: Final = (
    *("run", "run 5", "run $nfiles", "psrun -1 5", "psrun 0", "quit", "create files", "version"),
    *(
        "set mode quit firstdone",
        "set mode quit",
        "enable lathist",
        "enable multi",
        "eventgen rate=9",
    ),
    *("load fileserver", "load x", 'usage "x"', 'system "true"', 'echo "$dir"', "list fileset"),
    *("define file name=f1,path=/tmp,size=1g", "define fileset name=f2,path=/tmp,entries=0"),
    *(
        "define randvar name=$rv,mean=5",
        "set $self=$self",
        "sleep 1",
        "debug 3",
        "foreach",
        "flowop",
    ),
    "define flowop name=loop1 { flowop loop1 name=in1 }",
)


@cache
def _words() -> tuple[str, ...]:
    """Every word that the reference lists."""
    lines = _core.dialect_reference("filebench").splitlines()
    return tuple(line.split("`")[1] for line in lines if line.startswith("| `"))


@cache
def _scripts() -> tuple[str, ...]:
    return tuple(path.read_text() for path in sorted(GOLDEN.rglob("*.f")))


def filebench_words(rng: random.Random, folder: Path) -> None:
    """A command line."""
    del folder
    words = [rng.choice(("fileserver", "varmail", "oltp", "makedirs", "-f")), *_SMALL]
    for _ in range(rng.choice((0, 1, 2, 3, 8))):
        at = rng.randrange(len(words) + 1)
        match rng.randrange(4):
            case 0:
                words.insert(at, rng.choice(_words()))
            case 1:
                del words[at : at + 1]
            case 2:
                words[at:at] = ["--set", f"{rng.choice(_words())}={rng.choice(_VALUES)}"]
            case _:
                words.insert(at, rng.choice(_VALUES))
    _parse([word.replace("\x00", "") for word in words])


def filebench_script(rng: random.Random, folder: Path) -> None:
    """A script."""
    lines = rng.choice(_scripts()).splitlines()
    for _ in range(rng.choice((1, 1, 2, 4, 9))):
        at = rng.randrange(len(lines) + 1)
        match rng.randrange(6):
            case 0:
                lines.insert(at, rng.choice(_STATEMENTS))
            case 1:
                lines.insert(at, rng.choice(_words()))
            case 2:
                del lines[at : at + 1]
            case 3:
                lines[at:at] = rng.choice(_scripts()).splitlines()
            case 4 if lines:
                parts = lines[at % len(lines)].split("=")
                place = rng.randrange(len(parts))
                parts[place] = rng.choice(_VALUES)
                lines[at % len(lines)] = "=".join(parts)
            case _ if lines:
                line = lines[at % len(lines)]
                cut = rng.randrange(len(line) + 1)
                lines[at % len(lines)] = line[:cut] + rng.choice(_VALUES) + line[cut + 1 :]
            case _:
                pass
    path = folder / "script.f"
    path.write_text("\n".join(lines) + rng.choice(("", "\n", "\r\n")))
    try:
        _parse([rng.choice(("-f", "--print", "--showcmd")), str(path)])
    finally:
        path.unlink()


def _parse(words: list[str]) -> None:
    try:
        plan = _core.dialect_parse("filebench", words)
        _core.dialect_render("filebench", plan, '{"event":"begin"}')
        _core.dialect_render("filebench", plan, '{"event":"row","phases":[]}')
    except IolabError as error:
        if not str(error).strip():
            raise AssertionError("an error that says nothing") from None

"""Targets of `tools/fuzz.py` for the dialect ycsb: its command lines, and property files.

What is right about a case: the words are understood and planned, or refused with a message of its
own; a property file is read whatever is in it.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Final

from fuzz_targets import check_message, mutated_words, parse_and_plan
from iolab import _core
from iolab.errors import IolabError

GOLDEN: Final = Path(__file__).parents[1] / "tests" / "golden" / "ycsb"
_LINES: Final = (
    "load rocksdb -p workload=core -p recordcount=10 -s",
    "run rocksdb -p workload=core -p operationcount=9 -threads 4 -target 100 -l x",
    "run memory -p workload=core -p operationcount=9 -p measurementtype=hdrhistogram+raw",
    "-t -db site.ycsb.BasicDB -p workload=core -p operationcount=1 -p basicdb.simulatedelay=1",
    "run rocksdb -p workload=core -p operationcount=9 -p requestdistribution=latest --showcmd",
    "run rocksdb -p workload=core -p maxexecutiontime=9 -p rocksdb.option.num_levels=4",
    "run rocksdb -p workload=core -p operationcount=5 -p fieldlengthdistribution=zipfian",
)
_ENDS: Final = ("\n", "\r\n", "\\\n", "\\\\\n", "", " \n", "\\u00e9\n", "\\u12\n", ":\n", "=\n")


def ycsb_words(rng: random.Random, folder: Path) -> None:
    """A command line of ycsb."""
    lines = tuple(tuple(line.split()) for line in _LINES)
    parse_and_plan("ycsb", mutated_words(rng, lines), folder)


def property_files(rng: random.Random, folder: Path) -> None:
    """A property file, mutated line by line and byte by byte, and used twice."""
    texts = [path.read_text() for path in sorted(GOLDEN.glob("*.properties"))]
    lines = rng.choice(texts).splitlines()
    for _ in range(rng.randrange(4)):
        place = rng.randrange(len(lines))
        name, _, value = lines[place].partition("=")
        value = rng.choice((value, "", "-1", "1e400", "NaN", "9" * 25, "zipfian", "TRUE", "\u20ac"))
        name = rng.choice((name, name.upper(), name[:-1], f" {name}\t", f"{name}\\ x", "!" + name))
        lines[place] = name + rng.choice(("=", ":", " ", " = ", "")) + value
    data = bytearray("".join(line + rng.choice(_ENDS) for line in lines).encode())
    for _ in range(rng.randrange(3)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    path = folder / "workload.properties"
    path.write_bytes(data)
    words = ["run", "memory", "-P", str(path), "-P", str(path), "--showcmd"]
    try:
        plan = _core.dialect_parse("ycsb", words)
        _core.dialect_render("ycsb", plan, json.dumps({"event": "row", "phases": []}))
    except IolabError as error:
        check_message(error)
    parse_and_plan("ycsb", words[:-1], folder)

"""The names of engines and knobs are the agent's, and nobody has to type them a second time."""

import subprocess
from pathlib import Path

import iolab.study.names
from iolab.study.factors import FactorKind, find_factor
from iolab.study.names import ENGINES, KNOBS
from iolab.testbed.command import find_agent

FILE = Path(iolab.study.names.__file__).with_suffix(".json")


def test_the_file_is_what_the_agent_says():
    command = [find_agent(), "names"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert FILE.read_text(encoding="utf-8") == said, "a list has changed: run `make docs`"


def test_every_knob_is_a_factor_that_takes_its_examples():
    assert len(KNOBS) > 20
    for knob in KNOBS:
        definition = find_factor(knob.name)
        assert definition.is_knob
        assert definition.help == knob.help
        assert (definition.kind is FactorKind.NAME) == bool(knob.choices)
        assert [definition.parse(value) for value in knob.example] == [(v,) for v in knob.example]


def test_every_engine_is_a_level():
    engine = find_factor("engine")
    assert engine.choices == tuple(row.name for row in ENGINES)
    assert engine.default in engine.choices
    assert any(row.is_asynchronous for row in ENGINES)

"""Example 08 in simulation has the signs and the order of what kernel 6.18 was asked.

The recording is a run of benches/beside_loop.py, which asks the kernel anew.
"""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "golden" / "example-08" / "linux-6.18.json"


def bench():
    spec = importlib.util.spec_from_file_location("beside_loop", ROOT / "benches/beside_loop.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BENCH = bench()


def recorded(study):
    rows = [BENCH.Row(**row) for row in json.loads(RECORDED.read_text())["rows"][study]]
    return {(row.workload, row.level): row for row in rows}


@pytest.mark.parametrize("study", BENCH.STUDIES)
def test_the_simulated_loop_device_answers_as_the_kernel_does(study, tmp_path):
    simulated = BENCH.simulated(BENCH.EXAMPLE / study, tmp_path / "out")
    assert BENCH.misses(recorded(study), simulated) == []


def test_another_sign_and_another_order_are_misses():
    real = recorded("study.toml")
    row = real["appenders", "nodelalloc"]
    other_sign = real | {("appenders", "nodelalloc"): BENCH.Row(*row.key, "better", 1.5, 1.4, 1.6)}
    found = BENCH.misses(real, other_sign)
    assert any(line.startswith("appenders nodelalloc: 0.640, simulated 1.500") for line in found)
    assert any("appenders 0.640 below overwrite" in line for line in found)
    assert BENCH.misses(real, real) == []

"""Examples with an `expected/verdict.json` give it again: a simulation is a function of its study.

`IOLAB_BLESS=1` rewrites what is expected; the difference is to be reviewed.
"""

import json
import os
from pathlib import Path

import pytest

from iolab.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = sorted(EXAMPLES.glob("*/expected/verdict.json"))
PERSONAL = ("study_id", "created_at_unix_ns", "iolab_version")
DETAILS = (
    *("cells", "treatments", "request_times", "closer", "findings"),
    *("methods", "environment", "citation"),
)
"""Left out, to be small: what is pooled follows from it, and texts follow from the study."""


def read(path):
    document = json.loads(path.read_text(encoding="utf-8"))
    for key in PERSONAL:
        document["study"].pop(key, None)
    return {key: value for key, value in document.items() if key not in DETAILS}


def differences(ours, theirs, place=""):
    """Paths at which two documents differ; logarithms may round differently elsewhere."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            yield from differences(ours.get(key), theirs.get(key), f"{place}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(*pair, f"{place}[{index}]")
    elif isinstance(ours, float) and isinstance(theirs, float):
        if ours != pytest.approx(theirs, rel=1e-6, abs=1e-12):
            yield f"{place}: {ours} was {theirs}"
    elif ours != theirs:
        yield f"{place}: {ours} was {theirs}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("expected", EXPECTED, ids=[path.parts[-3] for path in EXPECTED])
def test_a_simulated_example_gives_what_is_expected(expected, tmp_path):
    study = expected.parents[1] / "study.toml"
    assert main(["run", str(study), "--out", str(tmp_path / "out")]) == 0
    found = read(tmp_path / "out" / "verdict.json")
    if os.environ.get("IOLAB_BLESS") == "1":
        text = json.dumps(found, indent=1, ensure_ascii=False)
        expected.write_text(text + "\n", encoding="utf-8")
    assert found["study"]["kind"] == "simulated"
    assert list(differences(found, read(expected))) == []

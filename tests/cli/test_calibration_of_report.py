"""Choice of the stored A/A result that a report shows: that of its testbed and kernel, the
newest.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.library import calibrations

FACTS = {"kernel.release": "6.18.5", "cpu.count": "2"}


def _store(name: str, made: int, **machine: str) -> None:
    calibrations.FOLDER.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": {"testbed": "loop:1g"} | {k.replace("_", "."): v for k, v in machine.items()},
        "made_at_unix_ns": made,
        "result": {"small_studies": made},
    }
    path = calibrations.FOLDER / f"{name}.json"
    path.write_text(json.dumps(document), encoding="utf-8")


def test_the_newest_of_the_same_machine_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert calibrations.find_for("loop:1g", FACTS) is None
    _store("old", 1, kernel_release="6.18.5", cpu_count="2")
    _store("new", 2, kernel_release="6.18.5", cpu_count="2")
    _store("other-kernel", 3, kernel_release="6.1.0", cpu_count="2")
    (calibrations.FOLDER / "broken.json").write_text("{", encoding="utf-8")
    found = calibrations.find_for("loop:1g", FACTS)
    assert found is not None
    assert found["small_studies"] == 2
    assert calibrations.find_for("loop:2g", FACTS) is None

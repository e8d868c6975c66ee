"""CAL-6: the consistency checker on published tables."""

from __future__ import annotations

import csv
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from iolab.stats.consistency import Check, check_mean, check_product, half_unit

PUBLISHED = Path(__file__).parent.parent / "golden" / "published"


def _rows(name: str) -> list[dict[str, str]]:
    with (PUBLISHED / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _iostat() -> dict[str, dict[str, str]]:
    """Values by option and column."""
    values: dict[str, dict[str, str]] = defaultdict(dict)
    for row in _rows("solaris_iostat"):
        values[row["option"].split()[0]][row["operation"].split(" ")[1]] = row["value"]
    return values


def test_cal_6_every_printed_mean_of_d2_agrees_with_its_runs() -> None:
    cells: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for row in _rows("iozone_vmware_pc601"):
        if row["value"]:
            cells[row["option"], row["record_size_bytes"], row["operation"]][row["run"]] = row[
                "value"
            ]
    checks: list[Check] = []
    for name, runs in cells.items():
        mean = runs.pop("mean", None)
        if mean is not None and len(runs) == 3:
            checks.append(check_mean(" ".join(name), mean, list(runs.values())))
    assert len(checks) >= 30
    assert [str(check) for check in checks if not check.is_consistent] == []


def test_cal_6_the_ufs_row_of_d3_is_flagged() -> None:
    row = _iostat()["UFS"]
    queue = check_product("UFS queue", row["actv"], (row["w/s"], row["svc_t"]), "0.001")
    assert not queue.is_consistent
    assert queue.derived == pytest.approx(Decimal("36.8"), abs=Decimal("0.05"))
    assert "printed 39.5 does not agree with 36.7752" in str(queue)
    assert check_product("UFS bandwidth", row["kw/s"], (row["w/s"], "128"), "1").is_consistent


def test_cal_6_the_vxfs_row_of_d3_passes() -> None:
    row = _iostat()["VxFS"]
    queue = check_product("VxFS queue", row["actv"], (row["w/s"], row["svc_t"]), "0.001")
    assert queue.is_consistent, str(queue)
    bandwidth = check_product("VxFS bandwidth", row["kw/s"], (row["w/s"], "64"))
    assert bandwidth.is_consistent, str(bandwidth)


def test_a_printed_number_stands_for_what_rounds_to_it() -> None:
    assert half_unit("39.8") == Decimal("0.05")
    assert half_unit("924") == Decimal("0.5")
    assert half_unit("20061.98") == Decimal("0.005")
    assert check_mean("thirds", "0.33", ["0.00", "0.00", "1.00"]).is_consistent
    assert not check_mean("thirds", "0.36", ["0.00", "0.00", "1.00"]).is_consistent

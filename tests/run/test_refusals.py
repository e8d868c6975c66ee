"""The question before a run: what a testbed cannot do, where, why, and what to do instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab import _core
from iolab.cli.main import main
from iolab.errors import StudyError
from iolab.run.refusals import check_possible, refusals
from iolab.testbed.model import make_testbed
from iolab.testbed.sim import SimTestbed


def spec(*tenants: dict[str, Any], **around: Any) -> dict[str, Any]:
    """A trial whose only phase has these tenants."""
    plain = {
        "workers": 1,
        "file": "data",
        "file_bytes": 1 << 20,
        "io_size_bytes": 4096,
        "pattern": {"kind": "sequential"},
        "direction": {"kind": "write"},
        "access": "direct",
        "opening": "create",
    }
    rows = [{"name": f"tenant-{i}", **plain, **tenant} for i, tenant in enumerate(tenants)]
    phases = [{"name": "first", "tenants": rows}]
    workload = {"version": 1, "name": "w", "engine": "psync", "seed": 1, "phases": phases}
    workload.update(around.pop("workload", {}))
    return {"workload": workload, **around}


SIM = make_testbed("sim", "fixed-100us", {})


@pytest.mark.parametrize(
    ("tenant", "around", "code", "part"),
    [
        ({"access": "plain"}, {}, "page_cache", "a simulation has no buffered files"),
        ({"access": "mapped"}, {}, "mapping", "no buffered files, and so no mapped ones"),
        ({"access": "stdio"}, {}, "streams", "no buffered files, and so no streams"),
        ({"lock": "record"}, {}, "lock", "no locks"),
        ({"flags": ["hipri"]}, {}, "idle_flags", "nothing polls"),
        ({}, {"memory_limit_bytes": 1 << 20}, "memory_limit", "no memory"),
        ({}, {"cache": "warm"}, "warm_cache", "no page cache"),
        ({}, {"io_groups": [{"tenants": ["main"]}]}, "control_groups", "not simulated yet"),
        ({}, {"changes": [{"at_ns": 1, "knobs": {}}]}, "changes", "keeps its settings"),
    ],
)
def test_a_simulated_stack_says_what_it_cannot_do(
    tenant: dict[str, Any], around: dict[str, Any], code: str, part: str
) -> None:
    (refusal,) = refusals(SIM, spec(tenant, **around), _core)
    assert refusal.code == code
    assert part in refusal.reason
    assert refusal.hint
    of_a_tenant = not around or code == "verify"
    assert (refusal.phase, refusal.tenant) == (("first", "tenant-0") if of_a_tenant else ("", ""))


def test_what_it_can_do_is_not_refused() -> None:
    possible = spec({"flags": ["dsync"], "vectors": 4, "is_preallocated": True}, cache="cold")
    assert refusals(SIM, possible, _core) == ()
    check_possible(SIM, possible, _core)


def test_everything_is_told_at_once_and_the_first_with_the_number_of_the_others() -> None:
    asked = spec({}, {"access": "plain", "lock": "record"}, memory_limit_bytes=1 << 20)
    found = refusals(SIM, asked, _core)
    assert [(r.code, r.tenant) for r in found] == [
        ("page_cache", "tenant-1"),
        ("lock", "tenant-1"),
        ("memory_limit", ""),
    ]
    with pytest.raises(StudyError) as caught:
        check_possible(SIM, asked, _core)
    assert caught.value.message == (
        "first on sim:fixed-100us goes through the page cache, and "
        "a simulation has no buffered files without a file system "
        "(besides: first locks files; 1 other reason)"
    )
    assert caught.value.hint == (
        "use --direct, or a file system: --fs ext4 of compare, or [files] of a stack file"
    )


def test_a_real_testbed_answers_by_its_engines(tmp_path: Path) -> None:
    testbed = make_testbed("dir", str(tmp_path), {})
    assert refusals(testbed, spec({"access": "plain"}), _core) == ()
    (refusal,) = refusals(testbed, spec({"vectors": 2}), _core)
    assert (refusal.code, refusal.reason) == (
        "vectors",
        "psync cannot move several buffers in one call",
    )
    asked = spec({"vectors": 2})
    asked["workload"]["phases"][0]["engine"] = "pvsync"
    assert refusals(testbed, asked, _core) == (), "the phase has an engine of its own"


def test_the_plan_of_a_study_asks_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        'testbed = "sim:fixed-100us"\nrounds = 5\n[factors]\nrecord_size = ["4k", "8k"]\n'
        '[[workloads]]\nkind = "mixed"\nduration = "1s"\n[[workloads.streams]]\nname = "a"\n'
        'direction = "read"\nrecord_size = "4k"\nfile_size = "1m"\nlock = "record"\n',
        encoding="utf-8",
    )
    text = study.read_text(encoding="utf-8").replace(
        'record_size = ["4k", "8k"]', 'scheduler = ["none", "bfq"]'
    )
    study.write_text(text, encoding="utf-8")
    for words in (["plan"], ["run", "--dry-run"], ["run", "--out", str(tmp_path / "o")]):
        assert main([words[0], str(study), *words[1:]]) == 1
        said = " ".join(capsys.readouterr().err.split())
        assert "locks files, and simulated files have no locks" in said, words
        assert "leave out lock" in said, words
    assert not (tmp_path / "o").exists()


def test_a_command_line_is_told_the_option_that_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["iozone", "-s", "64k", "-i", "0", "--on", "sim:fixed-100us"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "goes through the page cache, and a simulation has no buffered files" in said
    assert "add -I" in said
    assert list(tmp_path.iterdir()) == []


def test_the_answer_is_plain_data() -> None:
    assert isinstance(SIM, SimTestbed)
    found = json.loads(_core.sim_refusals(SIM.stack_json, json.dumps(spec({"lock": "record"}))))
    assert set(found[0]) == {"code", "what", "phase", "tenant", "reason", "hint"}

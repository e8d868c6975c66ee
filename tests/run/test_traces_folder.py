"""Issue 14, point 3: traces of trials lie in a directory of the user's own, behind no link."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from iolab.errors import RefusedError
from iolab.run.traces import FOLDER, Traces
from iolab.study.trace_words import TraceEvents

TRIAL: Any = cast("Any", SimpleNamespace(trial_id="t1"))


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / FOLDER).symlink_to(elsewhere)
    traces = Traces(out, cast("Any", None), TraceEvents())
    with pytest.raises(RefusedError, match="symbolic link"), traces.around(TRIAL):
        raise AssertionError("nothing is recorded")
    assert not list(elsewhere.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_the_directory_belongs_to_the_user_behind_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", "4711")
    monkeypatch.setenv("SUDO_GID", "4712")
    out = tmp_path / "out"
    out.mkdir()
    os.chown(out, 4711, 4712)
    with Traces(out, cast("Any", None), TraceEvents()).around(TRIAL):
        found = [out / FOLDER, *(out / FOLDER).iterdir()]
    assert len(found) == 2, "the directory and the trial's file"
    kept = out / FOLDER
    assert (kept.stat().st_uid, kept.stat().st_gid) == (4711, 4712)

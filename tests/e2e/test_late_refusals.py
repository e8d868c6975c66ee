"""Refusals of the agent in the first trial come before an image is written.

It was found out only after the image step: seconds, or minutes for a large one. A file system that
did not fit even let the study go on with half of its levels.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run

pytestmark = pytest.mark.needs_loop

LATE = [
    (["--on", "loop:300m", "--mount-options", "ro"], 2, "takes the mount option 'ro'"),
    (["--on", "loop:300m", "--memory-limit", "8m,none", "--buffered"], 2, "would kill the workers"),
    (["--on", "loop:200m", "--fs", "xfs,ext4"], 1, "xfs needs 300 MiB"),
]


@pytest.mark.parametrize(("asked", "code", "part"), LATE, ids=["ro", "memory", "xfs"])
def test_it_is_refused_before_anything_is_made(
    tmp_path: Path, iolab: Run, asked: list[str], code: int, part: str
) -> None:
    images = tmp_path / "images"
    images.mkdir()
    before_ns = images.stat().st_mtime_ns
    common = ["--image-dir", images, "--record-size", "4k,8k", "--file-size", "8m", "--out", "out"]
    run = iolab("compare", *asked, *common)
    assert (run.returncode, part in run.stderr) == (code, True), run.stderr
    assert images.stat().st_mtime_ns == before_ns, "a file was made there"
    assert not (tmp_path / "out").exists()

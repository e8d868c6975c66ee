"""Published tables of Solaris' iostat, from the stacks of its machines and the document's words."""

import io
from pathlib import Path
from statistics import fmean

from iolab.cli.console import Console
from iolab.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
STACK = EXAMPLES / "10-solaris-ufs" / "stack.toml"
VXFS_STACK = EXAMPLES / "11-solaris-vxfs" / "stack.toml"


def iolab(*words):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(word) for word in words], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


def test_mkfile_on_ufs_gives_the_published_table(tmp_path):
    out = tmp_path / "out"
    code, _, err = iolab("mkfile", "--on", f"sim:{STACK}", "--out", out, "500m", "testfile")
    assert code == 0, err
    code, told, err = iolab("iostat", "-x", "--solaris", out)
    assert (code, err) == (0, "")
    head, *rows = told.splitlines()[2:]
    names = head.split()[1:]
    # The first and the last intervals have the beginning and the end of the file.
    values = [dict(zip(names, map(float, row.split()[1:]), strict=True)) for row in rows[2:-3]]
    mean = {name: fmean(row[name] for row in values) for name in names}
    # Published: 39.8 w/s, 5097.4 kw/s, 39.5 actv, 924.0 svc_t, 100 %b.
    # Borders of indirect blocks and metadata make about 1 write a second that the sample lacks.
    assert abs(mean["w/s"] / 39.8 - 1) < 0.04, mean
    assert abs(mean["kw/s"] / 5097.4 - 1) < 0.03, mean
    assert abs(mean["actv"] / 39.5 - 1) < 0.05, mean
    assert abs(mean["svc_t"] / 924.0 - 1) < 0.10, mean
    assert max(row["%b"] for row in values) <= 100
    assert (mean["r/s"], mean["wait"]) == (0, 0)


def test_mkfile_on_vxfs_gives_the_published_table(tmp_path):
    out = tmp_path / "out"
    code, _, err = iolab("mkfile", "--on", f"sim:{VXFS_STACK}", "--out", out, "150m", "testfile")
    assert code == 0, err
    code, told, err = iolab("iostat", "-x", "--solaris", out)
    assert (code, err) == (0, "")
    head, *rows = told.splitlines()[2:]
    names = head.split()[1:]
    values = [dict(zip(names, map(float, row.split()[1:]), strict=True)) for row in rows[2:-2]]
    mean = {name: fmean(row[name] for row in values) for name in names}
    # Published: 100.2 w/s, 6400.2 kw/s, 14.5 actv, 144.8 svc_t, 100 %b.
    assert abs(mean["w/s"] / 100.2 - 1) < 0.05, mean
    assert abs(mean["kw/s"] / 6400.2 - 1) < 0.05, mean
    # max_diskq alone keeps 15.9 on their way; a slower processor keeps fewer.
    assert abs(mean["actv"] / 14.5 - 1) < 0.12, mean
    assert abs(mean["svc_t"] / 144.8 - 1) < 0.12, mean
    assert (mean["r/s"], mean["wait"]) == (0, 0)

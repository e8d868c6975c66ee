"""Workloads as they are typed after `iolab compare`; issue 15, point 2.

Only one could be typed. `--vary 'fio:bs=...'` added a word that no job followed, and
`--vary 'fio:--bs=...'` one after the last job of a file: levels were compared that were all alike.
"""

import io
import shlex
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.library.open_result import open as open_result

pytestmark = pytest.mark.timeout(240)
ON = "compare --on sim:fixed-100us --rounds 2 --seed 1"
JOB = """\
[global]
direct=1
size=256k
bs=4k
[reader]
rw=randread
[writer]
rw=write
blocksize=16k
stonewall
"""
IOZONE = "--workload 'iozone -I -s 256k -r 64k -i 0'"
FIO = "--workload 'fio job.fio'"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Path("job.fio").write_text(JOB)


def iolab(line):
    out, err = io.StringIO(), io.StringIO()
    code = main(shlex.split(line), console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


def test_each_workload_has_a_verdict_and_the_first_one_the_headline():
    code, _, err = iolab(f"{ON} {IOZONE} {FIO} {IOZONE} --scheduler none,mq-deadline --out o")
    assert code == 0, err
    result = open_result("o")
    assert result.study.workloads == ("iozone", "fio", "iozone-2")
    assert {m.workload for m in result.verdict.pooled} == {"iozone", "fio", "iozone-2"}
    assert {m.workload for m in result.verdict.headline} == {"iozone"}


@pytest.mark.parametrize("word", ["bs", "--bs"])
def test_an_option_of_fio_is_varied_in_every_job_of_a_file(word):
    code, _, err = iolab(f"{ON} {FIO} --vary 'fio:{word}=4k,64k' --out o")
    assert code == 0, err
    result = open_result("o")
    rows = [dict(zip(result.columns, row, strict=True)) for row in result.to_rows()]
    sizes = [row["throughput_bytes_per_s"] / row["throughput_ops_per_s"] for row in rows]
    assert sorted({round(size) for size in sizes}) == [4096, 65536]
    assert len(rows) == 2 * 2 * 2, "two jobs, two levels, two rounds"
    Path("job.fio").unlink()
    code, _, err = iolab("run o --out again")
    assert code == 0, f"the jobs are stored, not the name of their file: {err}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"{FIO} --vary 'fio:bz=4k,64k'", "no option 'bz' (did you mean `bs`?)"),
        (f"{FIO} --vary 'fio:description=a,b'", "changes nothing: the same is done at all of a, b"),
        (f"{FIO} --vary 'fio:bs=4k,4k'", "--vary: level '4k' is given twice"),
        (f"{IOZONE} --vary 'iozone:-r=4k,8k' --vary 'iozone:-r=1k,2k'", "is varied twice"),
        (f"{IOZONE} --vary 'iozon:-r=4k,8k'", "no workload 'iozon'; did you mean 'iozone'?"),
        (f"{IOZONE} --vary 'iozone:r=4k,8k'", "'r' is neither an option nor the value of one"),
        (f"{IOZONE} {FIO} --vary 'fio:bs=4k,64k'", "--workload: the first workload, 'iozone',"),
        ("--workload 'iozon -s 1m'", "is not a workload; did you mean 'iozone'?"),
        ("--workload nonsense", "is not a workload"),
        ("--workload 'fio none.fio'", "job file 'none.fio' cannot be read"),
        ("--workload none.toml", "none.toml cannot be read"),
        (f"--workload video --vary 'video:bs=4k,8k' {IOZONE}", "video is a preset"),
        (f"{IOZONE} --duration 1s", "the workload says itself when it ends"),
        (f"{IOZONE} --test write", "exclude each other"),
        (f"{IOZONE} --record-size 4k,8k", "no workload follows record_size"),
        ("--workload 'iozone -s \"1m'", "ends too early"),
    ],
)
def test_what_is_wrong_is_said_exactly(words, said):
    more = "" if said.startswith("--workload: the first") else "--scheduler none,bfq"
    code, out, err = iolab(f"{ON} {more} {words} --out o")
    assert (code, out) == (1, ""), err
    assert said in " ".join(err.split())
    assert not Path("o").exists()

"""The circle: what `iolab fio` prints, imported, says what iolab's own store says."""

import json
import math
import subprocess
import sys

import pytest

from iolab.imported.foreign.join import Named
from iolab.imported.mapping import Wishes
from iolab.imported.study import understand_files
from iolab.store.db import Store

JOB = "[w]\nrw=randwrite\nbs=4k\nsize=1m\nioengine=psync\nfilename=data\nrate_iops=1000\n"
FORMS = ("json", "json+", "terse", "normal")
EXACT = ("latency_ns_mean", "latency_ns_max", "throughput_bytes_per_s", "throughput_ops_per_s")
BUCKET = 1 / 64


@pytest.mark.parametrize("form", FORMS)
def test_what_iolab_fio_prints_is_what_its_store_says(tmp_path, form):
    (tmp_path / "job.fio").write_text(JOB)
    words = ["fio", f"--output-format={form}", "--output=out", "job.fio"]
    subprocess.run(
        [sys.executable, "-m", "iolab", *words], cwd=tmp_path, check=True, capture_output=True
    )
    with Store.open_reader(tmp_path / "iolab-out" / "fio-1" / "study.db") as store:
        own = {m.metric: m.value for m in store.load_data().measurements}
    reading = understand_files([Named(tmp_path / "out")], Wishes()).reading
    found = {
        v.quantity.metric: float(v.printed) * v.quantity.scale
        for v in reading.runs
        if v.quantity is not None
    }
    for metric in EXACT:
        # Rates are taken over whole milliseconds; text and terse lines round to a microsecond.
        slack = 1000 if metric.startswith("latency") and not form.startswith("json") else 1
        assert math.isclose(found[metric], own[metric], rel_tol=0.02, abs_tol=slack), metric
    if form.startswith("json"):
        assert math.isclose(found["latency_ns_p50"], own["latency_ns_p50"], rel_tol=2 * BUCKET)
    if form == "json":
        check_that_both_meet(tmp_path)


def check_that_both_meet(folder):
    """A job has its own name in the store, and that of what it does in an import; `diff` said that
    no operation was common to both.
    """

    def iolab(*words):
        done = subprocess.run(
            [sys.executable, "-m", "iolab", *words], cwd=folder, check=True, capture_output=True
        )
        return done.stdout

    iolab("import", "out", "--out", "imported")
    for words in (("iolab-out/fio-1", "imported"), ("imported", "iolab-out/fio-1")):
        said = json.loads(iolab("diff", "--json", *words))
        assert {cell["operation"] for cell in said["cells"]} == {"w"}
        assert "throughput_bytes_per_s" in {cell["metric"] for cell in said["cells"]}
        assert not said["only_after"]

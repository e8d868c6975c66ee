"""Run the real command line in a process of its own, with a stand-in for the compiled half.

Judging and drawing are left out too: these processes exist to be stopped and killed.
"""

import json
import sys
from types import SimpleNamespace

from iolab.cli.main import main
from iolab.library.services import Services


class FakeCore:
    """Builders that hand their input through; quantiles that are plausible."""

    def sim_refusals(self, stack_json, trial_json):
        return "[]"

    def workload_refusals(self, abilities_json, workload_json):
        return "[]"

    def iozone_workload(self, spec_json):
        return spec_json

    def mixed_workload(self, spec_json):
        return json.dumps({**json.loads(spec_json), "tests": ["mixed"]})

    def histogram_quantiles(self, histogram_json, quantiles):
        histogram = json.loads(histogram_json)
        low, high = histogram["min"], histogram["max"]
        return [low + q * (high - low) for q in quantiles]


def write_all(data, verdict, out_dir):
    for name in ("report.html", "report.xlsx", "verdict.json"):
        (out_dir / name).write_text(str(len(data.measurements)))
    return SimpleNamespace(
        html=out_dir / "report.html",
        xlsx=out_dir / "report.xlsx",
        verdict_json=out_dir / "verdict.json",
    )


def fake_services(headline_word="better"):
    return Services(
        load_core=FakeCore,
        judge=lambda data: SimpleNamespace(
            sentence=f"{len(data.trials)} trials were judged.", headline_word=headline_word
        ),
        write_all=write_all,
        render=lambda data, verdict, width: f"{verdict.sentence}\n| table |\n",
        brief=lambda data, verdict, width, place, again: f"{verdict.sentence}\n| table |\n",
    )


if __name__ == "__main__":
    sys.exit(main(services=fake_services()))

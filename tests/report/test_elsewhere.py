"""Files that leave the report: Markdown, JSON with its schema, a methods paragraph, BibTeX."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest

from iolab.report.markdown import render_markdown
from iolab.report.methods import citation_bibtex, environment_rows, methods_paragraph
from iolab.report.verdict_json import verdict_document
from iolab.stats.judge import judge
from iolab.store.rows import StudyData

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "verdict.schema.json"
NAMES = ["demo", "record_sizes", "published_d2", "simulated"]


def _methods(study: StudyData) -> str:
    return methods_paragraph(study, judge(study))


def test_methods_say_what_was_run_and_how_it_was_judged(canned: ModuleType) -> None:
    text = _methods(canned.demo())
    for part in (
        "Levels of scheduler were compared with none (none, mq-deadline and bfq)",
        "with iolab 0.1.0 (testbed loop:1g)",
        "5 rounds were planned, each running 9 treatments once in a fresh random order (seed 1)",
        "44 of 45 trials finished, 1 failed",
        "file system ext4",
        "direct I/O",
        "85 ns per operation",
        "one trial, never one I/O",
        "paired by round",
        "adjusted over all pairs of levels (Shaffer; Holm for 'same')",
        "Benjamini-Hochberg",
        "joint intervals against the baseline (Bonferroni), Hsu's comparison with the best",
        "within ±5 %",
        "Linux 6.18.5",
    ):
        assert part in text, part


def test_methods_never_name_a_test_that_was_not_used(canned: ModuleType) -> None:
    two = canned.make_study(workloads=(canned.Workload("iozone", ("read",), ("4k",)),))
    text = _methods(two)
    assert "Hsu" not in text
    assert "Holm-adjusted" not in text
    assert "analysis of variance" not in text
    assert "independent samples" not in text


def test_methods_of_a_simulation_claim_no_hardware(canned: ModuleType) -> None:
    text = _methods(canned.simulated())
    assert "a simulated stack: deterministic for a seed, no hardware" in text
    assert "Machine:" not in text
    assert "UTC" not in text


def test_methods_of_hard_factors_name_whole_plots(canned: ModuleType) -> None:
    text = _methods(canned.make_study(extra_factors={"fs": ("ext4", "xfs")}))
    assert "fs as whole plots" in text
    assert "Every level met every level of record_size (4k and 32k) and fs (ext4 and xfs)." in text


def test_the_environment_table_shows_what_a_reviewer_asks_for(canned: ModuleType) -> None:
    facts = {
        "kernel.release": "6.18.5",
        "cpu.model": "Example",
        "device.sda.model": "Disk",
        "device.sda.size_sectors": "2097152",
        "tool.mkfs.ext4": "mke2fs 1.47.0",
    }
    study = canned.make_study(facts=facts)
    varying = {
        "device.loop1.queue.nr_requests": {"t0": "64"},
        "device.loop2.queue.nr_requests": {"t1": "128"},
    }
    rows = dict(environment_rows(dataclasses.replace(study, varying_facts=varying)))
    assert rows["kernel"] == "6.18.5"
    assert rows["device model"] == "Disk"
    assert rows["device size"] == "1073741824 bytes"
    assert rows["requests in the queue"] == "64 or 128"
    assert rows["mkfs of ext4"] == "mke2fs 1.47.0"
    assert rows["facts that changed between trials"] == "2 of 7"


def test_bibtex_survives_names_that_mean_something_to_tex(canned: ModuleType) -> None:
    study = canned.demo()
    row = dataclasses.replace(study.study, name="50 % of {a}_b\\c & $d")
    text = citation_bibtex(dataclasses.replace(study, study=row))
    assert r"50 \% of \{a\}\_b\textbackslash{}c \& \$d" in text
    assert re.findall(r"^@misc\{(.*),$", text, re.MULTILINE) == ["iolab", "iolab-s1"]
    depth = 0
    for character in re.sub(r"\\[{}]", "", text):
        depth += (character == "{") - (character == "}")
        assert depth >= 0
    assert depth == 0


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_in_the_reference_accepts_what_is_printed(canned: ModuleType, name: str) -> None:
    study = getattr(canned, name)()
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    document = verdict_document(study, judge(study))
    jsonschema.validate(json.loads(json.dumps(document)), schema)
    assert document["methods"] == _methods(study)
    del document["methods"]
    with pytest.raises(jsonschema.ValidationError, match="methods"):
        jsonschema.validate(json.loads(json.dumps(document)), schema)


@pytest.mark.parametrize("name", NAMES)
def test_markdown_has_whole_tables(canned: ModuleType, name: str) -> None:
    study = getattr(canned, name)()
    text = render_markdown(study, judge(study))
    assert text.startswith("### ")
    widths: list[int] = []
    for line in text.splitlines():
        if line.startswith("|"):
            widths.append(len(re.findall(r"(?<!\\)\|", line)))
        elif widths:
            assert len(set(widths)) == 1, line
            assert len(widths) > 2
            widths = []
    assert text.count("<details>") == text.count("</details>")
    for title in ("Methods", "Environment", "Citation", "How far to trust this"):
        assert f"<summary>{title}" in text
    assert "●" in text


def test_markdown_takes_no_name_for_markup(canned: ModuleType) -> None:
    evil = "</details><img src=x>|`*a*_b_[c](http://d)@e #1\n# f"
    study = canned.make_study(levels=("none", evil))
    text = render_markdown(study, judge(study))
    assert "<img" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "\n# f" not in text
    for part in ("@e", "#1", "|`"):
        assert part not in text.replace("\\@e", "").replace("\\#1", "").replace("\\|\\`", "")


def test_markdown_of_one_configuration_has_values_and_no_verdicts(canned: ModuleType) -> None:
    text = render_markdown(*_alone(canned))
    assert "geometric mean" in text
    assert "undecided" not in text.partition("<details>")[0]


def _alone(canned: ModuleType) -> tuple[StudyData, object]:
    study = canned.make_study(
        levels=("none",), workloads=(canned.Workload("iozone", ("read",), ("4k",)),)
    )
    return study, judge(study)

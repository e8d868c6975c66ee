"""verdict.json: the judged study for programs; schema version 2.

The shape is fixed by ``verdict.schema.json`` beside this file and explained key by key in
docs/reference/verdict-json.md. Adding a key keeps the version, changing a meaning raises it.
"""

from __future__ import annotations

import json
import math
from typing import Final

from iolab import units
from iolab.report.findings import findings_document
from iolab.report.methods import citation_bibtex, environment_rows, methods_paragraph
from iolab.stats.judge import said_again
from iolab.stats.slices import carry_over, design_of, total_log_ratio
from iolab.stats.verdict import Comparison, StudyVerdict
from iolab.store.rows import StudyData

SCHEMA_VERSION: Final = 3


def verdict_document(data: StudyData, verdict: StudyVerdict) -> dict[str, object]:
    """Return the document as plain data."""
    study = data.study
    return {
        "schema_version": SCHEMA_VERSION,
        "study": {
            "study_id": study.study_id,
            "name": study.name,
            "kind": study.kind,
            "created_at_unix_ns": study.created_at_unix_ns,
            "iolab_version": study.iolab_version,
            "seed": study.seed,
            "testbed": study.testbed,
            "plan_digest": study.plan_digest,
            "rounds_planned": study.rounds_planned,
            "workloads": list(study.workloads),
            "factors": {name: list(levels) for name, levels in study.factors.items()},
            "settings": dict(study.settings),
            "metric": study.metric,
            "metric_of": study.metric_of,
        },
        **_slices(data, verdict),
        **verdict.to_dict(),
        "findings": findings_document(verdict),
        "methods": methods_paragraph(data, verdict),
        "environment": [{"what": what, "value": value} for what, value in environment_rows(data)],
        "citation": citation_bibtex(data),
    }


def _slices(data: StudyData, verdict: StudyVerdict) -> dict[str, object]:
    """Arrangement of alternating levels, with the ratios of totals; no key of a study in trials."""
    design = design_of(data)
    if design is None:
        return {}
    carried = carry_over(data)
    totals = [
        {
            "workload": c.workload,
            "level": c.level,
            "baseline": c.baseline,
            "ratio": None if (log := _total(data, c)) is None else math.exp(log),
        }
        for c in verdict.headline
    ]
    slices = {
        "design": design.text,
        "holds_for": design.holds_for,
        "slice_ns": design.slice_ns,
        "sessions": design.sessions,
        "slices": design.slices,
        "switch_cost_ns": design.switch_cost_ns,
        "stalls": design.stalls,
        "totals": totals,
        "carry_over": None
        if carried is None
        else {"ratio": carried.ratio, "p": carried.p, "units": carried.units},
    }
    return {"slices": slices}


def _total(data: StudyData, c: Comparison) -> float | None:
    return total_log_ratio(data, c.level, c.baseline, c.metric)


def render_json(data: StudyData, verdict: StudyVerdict) -> str:
    """Return the document as text; the same study gives the same bytes, in any units."""
    with units.shown_in("iec"):
        document = verdict_document(data, said_again(data, verdict))
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

"""Findings: what a study says beside its verdict, as one type with one list of kinds.

A finding names its subject, carries the values it rests on with their units, states its strength,
and has the sentences that every format prints. Each kind of finding is a row
(`FindingKind`) in `iolab.stats.findings`: the row says how the kind is called, how severe it is,
and so where it is shown, what the documents say of it, and which function finds it. Renderers
(`iolab.report.findings`) ask the row and never the name of a kind.

Left out: charts, which draw the estimates themselves (`StudyVerdict.request_times` and others).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from iolab.frozen import frozen
from iolab.wording import sentence_case

if TYPE_CHECKING:
    from iolab.stats.ledger import Ledger
    from iolab.stats.verdict import StudyVerdict
    from iolab.store.rows import StudyData

Scope = Literal["study", "treatment", "cell", "trial", "knob"]
Strength = Literal["observed", "shown", "suggested"]
"""`observed`: recorded or counted; `shown`: an interval or test of 95 % or more carries it;
`suggested`: single runs or a pattern, without a test."""
Severity = Literal["doubt", "note", "result"]
"""`doubt`: speaks against a number; `note`: says how a number came about; `result`: an estimate
beside the verdict."""
Weight = Literal["meaning", "comparison", "values", "information"]
"""`meaning`: the verdict is about something else than was asked, such as memory; `comparison`: its
levels were not measured alike, or too seldom; `values`: single values are in doubt; `information`:
nothing is to be doubted."""
Format = Literal["first screen", "terminal", "markdown", "page", "workbook", "verdict.json"]

FORMATS: Final[tuple[Format, ...]] = (
    *("first screen", "terminal", "markdown", "page", "workbook", "verdict.json"),
)
SHOWN: Final[Mapping[Severity, frozenset[Format]]] = {
    "doubt": frozenset(FORMATS),
    "note": frozenset(FORMATS) - {"first screen"},
    "result": frozenset(FORMATS) - {"first screen"},
}
"""Formats that show a finding, by the severity of its kind."""
WEIGHTS: Final[tuple[Weight, ...]] = ("meaning", "comparison", "values", "information")
"""Weights of caveats, the heaviest first: the order in which every format lists them."""
HEAVY: Final[tuple[Weight, ...]] = ("meaning", "comparison")
"""Weights of what questions the verdict itself: such a caveat is always named, never counted."""


@frozen
class About:
    """Subject of a finding: its scope, and the names that identify it inside the study."""

    scope: Scope = "study"
    label: str = ""
    """For people; empty of the whole study."""
    workload: str = ""
    operation: str = ""
    level: str = ""
    trial_id: str = ""
    knob: str = ""


@frozen
class Evidence:
    """One value that a finding rests on, with its unit and, where known, its 95 % interval."""

    name: str
    value: float | int | str
    unit: str = ""
    """As of metrics (``ns``, ``bytes/s``), or ``ratio``, ``share``, ``p``; empty for counts."""
    low: float | None = None
    high: float | None = None


@frozen
class Finding:
    """One thing that a study says beside its verdict."""

    kind: str
    """Stable name: a row of `iolab.stats.findings.FINDINGS`."""
    says: str
    """Statement, as one sentence or more."""
    hint: str = ""
    """Advice: the next thing to do."""
    count: int = 1
    """Places (trials, cells, levels) where it was seen."""
    evidence: tuple[Evidence, ...] = ()
    about: About = About()
    strength: Strength = "observed"
    brief: str = ""
    """The same on one line of a table, for kinds that have one row per subject."""
    heading: str = ""
    """Subheading under which the line stands; empty without."""

    @property
    def sentences(self) -> str:
        """Message and hint as sentences, whatever their authors ended them with."""
        return " ".join(_sentence(part) for part in (self.says, self.hint) if part)


Finder = Callable[["Ledger", "StudyVerdict"], Iterable[Finding]]
"""Finds while a study is judged; the result is stored with the verdict."""
Deriver = Callable[["StudyVerdict"], Iterable[Finding]]
"""Writes estimates of a finished verdict as findings, in the units shown now."""
Closing = Callable[["StudyData", "StudyVerdict"], str]
"""Says in a sentence what all findings of a kind mean together; empty for nothing."""
NextStep = Callable[["StudyData", "StudyVerdict"], tuple[str, str] | None]
"""Sentence of the first screen's next steps, and a command or an empty text."""


@frozen
class FindingKind:
    """One kind of finding: a row of the list that documents and renderers are made from."""

    name: str
    section: str
    """Heading of docs/explanation/honesty.md under which it stands."""
    seen: str
    """Condition of the finding, in Markdown."""
    advice: str
    """Advice, in Markdown."""
    severity: Severity = "doubt"
    weight: Weight = "values"
    """Place among the caveats; a note is information, whatever stands here."""
    scope: Scope = "study"
    title: str = ""
    """Heading of a block of its own; kinds without one are listed among the caveats."""
    find: Finder | None = None
    """Function that finds it; None: recorded (plan, agent, simulator, store, import) or derived."""
    derive: Deriver | None = None
    closing: Closing | None = None
    has_rows: bool = False
    """True if the terminal shows a line per finding, not only the closing sentence."""
    charts: tuple[str, ...] = ()
    """Rows of `CHARTS` that print it: as a table in the page, as a caption in the workbook."""
    is_quoting: bool = False
    """True if sizes in its text are quoted: names of levels, or another's words."""
    is_of_rounds: bool = False
    """True if it speaks of rounds, which an imported table does not have."""
    is_of_shortest: bool = False
    """True if of several places the shortest time is said."""
    is_of_plan: bool = False
    """True if the plan's guess gives way once there are rounds to judge."""
    bars_answer: bool = False
    """True if an imported table with it does not say which level is best."""
    is_in_methods: bool = False
    """True if the methods paragraph quotes it."""
    next_step: NextStep | None = None

    @property
    def anchor(self) -> str:
        """Heading of docs/explanation/honesty.md as a link's fragment."""
        return self.section.lower().replace(" ", "-")

    @property
    def name_shown(self) -> str:
        """The name for people: ``page cache``."""
        return self.name.replace("_", " ")

    @property
    def is_listed(self) -> bool:
        """Tell whether it stands in the list of caveats, not in a block of its own."""
        return not self.title

    @property
    def rank(self) -> int:
        """The place of its weight among all: the lower, the earlier it is listed."""
        return WEIGHTS.index("information" if self.severity == "note" else self.weight)

    @property
    def is_heavy(self) -> bool:
        """Tell whether it questions the verdict itself."""
        return WEIGHTS[self.rank] in HEAVY

    def is_shown(self, where: Format) -> bool:
        """Tell whether the severity puts it into a format."""
        return where in SHOWN[self.severity]


def _sentence(text: str) -> str:
    """Begin with a capital, unless it is a flag or a path, and end with a full stop."""
    start = sentence_case(text)
    return start if start.endswith((".", "!", "?")) else f"{start}."

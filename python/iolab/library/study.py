"""The question that a study asks, made from Python values or read from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self, TypeAlias

from iolab.frozen import frozen
from iolab.study import model
from iolab.study.load import load_study, parse_study, study_from_table
from iolab.study.render import spec_toml
from iolab.study.source import KeyPath
from iolab.study.treatment import treatments_of
from iolab.study.typed_workloads import typed_workloads
from iolab.study.workloads import DEFAULT_TESTS
from iolab.testbed.model import refuse_unknown_kind

Level: TypeAlias = str | int | float | bool
"""A level as a study file writes it: ``"bfq"``, ``"4k"``, ``4096``, ``True``."""
WorkloadTable: TypeAlias = Mapping[str, object]
"""Keys of one ``[[workloads]]`` table of a study file."""
Workload: TypeAlias = str | WorkloadTable | Sequence[str | WorkloadTable]
"""A command, a file, the name of a preset or a table; or several of them."""

_DEFAULT: Final[dict[str, object]] = {
    "name": "iozone",
    "kind": "iozone",
    "tests": list(DEFAULT_TESTS),
}
"""The workload that `iolab compare` takes if nobody names another."""


@frozen
class ArgumentSource:
    """Arguments of :class:`Study`, by the key of the study file that each one sets."""

    def where(self, path: KeyPath) -> str:
        """The argument, with the place inside it."""
        if not path:
            return "Study(...)"
        first, *rest = path
        name = "workload" if first == "workloads" else str(first)
        return f"Study({name}=...)" + "".join(f"[{part!r}]" for part in rest)

    def written(self, key: str, value: str) -> str:
        """The argument with a value."""
        return f"{key}={value}" if value.isdecimal() else f'{key}="{value}"'


class Study:
    """A question about storage: what is varied, what is asked of the storage, and where.

    A study is checked when it is made and does not change afterwards. Two studies are equal if they
    ask the same.

    Parameters
    ----------
    testbed : ``"sim:PROFILE"``, ``"sim:STACK.toml"``, ``"loop:1g"``, ``"dir:PATH"``,
        ``"device:/dev/DISK"``, or the ``testbed`` table of a study file.
    workload : what the storage is asked: a command of another program, as
        ``"iozone -s 64m -i 0 -i 1"``; a workload file, as ``"varmail.toml"``; the name of a preset
        (`iolab workloads` lists them); a ``[[workloads]]`` table of a study file; or a list of
        these, of which the first carries the headline verdict. None is IOzone's tests write, read,
        random-read and random-write.
    factors : factor to its levels, in order; the first level of the compared factor is the
        baseline. Sizes are texts with a unit (``"4k"``) or bytes.
    settings : factor to the one level that all trials have.
    rounds : rounds to run, each treatment once per round; 5 if neither it nor `budget` is given.
    seed : decides the order of trials and the random positions of operations, 0 to 2**63 - 1;
        drawn by :func:`iolab.run` if None.
    name : name of the study, up to 64 letters, digits, dots and dashes.
    options : further keys of a study file: ``budget`` (``"30m"``), ``margin`` (``"5%"``, or 0.05),
        ``compare``, ``baseline``, ``metric``, ``metric_of``, ``looks``, ``width``,
        ``specification``; `docs/reference/study-file.md` says what they mean.

    Raises
    ------
    StudyError : an argument has no meaning; names the argument and what is known instead.
    TestbedError : there is no such kind of testbed.
    """

    __slots__ = ("_checked", "_is_from_file")
    _checked: model.Study
    _is_from_file: bool

    def __init__(  # noqa: PLR0913 - keyword arguments, each with a name of its own
        self,
        *,
        testbed: str | Mapping[str, object],
        workload: Workload | None = None,
        factors: Mapping[str, Level | Sequence[Level]] | None = None,
        settings: Mapping[str, Level] | None = None,
        rounds: int | None = None,
        seed: int | None = None,
        name: str | None = None,
        **options: object,
    ) -> None:
        given: dict[str, object] = {
            "name": name,
            "testbed": testbed,
            "factors": factors,
            "settings": settings,
            "workloads": _workload_tables(workload),
            "rounds": rounds,
            "seed": seed,
            **options,
        }
        table = {key: _as_toml(value) for key, value in given.items() if value is not None}
        self._checked = study_from_table(table, ArgumentSource())
        refuse_unknown_kind(self._checked.testbed.kind)
        self._is_from_file = False

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a study file.

        Parameters
        ----------
        path : a TOML file (`docs/reference/study-file.md`).

        Raises
        ------
        StudyError : it cannot be read or describes no study; names file, line and key.
        """
        return cls._of(load_study(Path(path)), is_from_file=True)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a study from the text of a study file.

        Raises
        ------
        StudyError : it describes no study; names line and key.
        """
        return cls._of(parse_study(text), is_from_file=True)

    @classmethod
    def _of(cls, checked: model.Study, *, is_from_file: bool) -> Self:
        study = cls.__new__(cls)
        study._checked = checked
        study._is_from_file = is_from_file
        return study

    @property
    def name(self) -> str:
        """Its name."""
        return self._checked.name

    @property
    def testbed(self) -> str:
        """Testbed in the short form: ``loop:1g``."""
        return self._checked.testbed.text

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """Each varied factor with its levels, as text in the canonical form (``4k``, ``true``)."""
        return {
            factor.name: factor.levels for factor in self._checked.factors if len(factor.levels) > 1
        }

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names of the workloads; the first carries the headline verdict."""
        return tuple(workload.name for workload in self._checked.workloads)

    @property
    def rounds(self) -> int | None:
        """Rounds asked for; None if a budget alone ends the study."""
        return self._checked.rounds

    @property
    def seed(self) -> int | None:
        """The seed; None if `iolab.run` is to draw one."""
        return self._checked.seed

    @property
    def is_comparison(self) -> bool:
        """Tell whether a factor has several levels, which the verdict compares."""
        return self._checked.is_comparison

    @property
    def command(self) -> tuple[str, ...]:
        """Command line of another program that the study is, program first; empty if it is none."""
        return self._checked.command

    @property
    def n_treatments(self) -> int:
        """Trials of one round."""
        return len(treatments_of(self._checked))

    def with_seed(self, seed: int) -> Study:
        """The same study with another seed.

        Parameters
        ----------
        seed : 0 to 2**63 - 1.
        """
        return Study._of(self._checked.with_seed(seed), is_from_file=self._is_from_file)

    def to_toml(self) -> str:
        """The study as the text of a study file; :meth:`parse` gives an equal study."""
        return spec_toml(self._checked)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Study) and self._checked == other._checked

    def __hash__(self) -> int:
        return hash(self._checked)

    def __repr__(self) -> str:
        varied = ", ".join(f"{name}: {'/'.join(levels)}" for name, levels in self.factors.items())
        return f"<iolab.Study '{self.name}' on {self.testbed}: {varied or 'nothing varied'}>"


def _workload_tables(workload: Workload | None) -> list[object]:
    if workload is None:
        return [_DEFAULT]
    given = [workload] if isinstance(workload, str | Mapping) else list(workload)
    texts = [item for item in given if isinstance(item, str)]
    named = iter(typed_workloads(texts, "Study(workload=...)"))
    return [next(named) if isinstance(item, str) else item for item in given]


def _as_toml(value: object) -> object:
    """A value of Python as TOML would have given it: tables, lists, texts and numbers."""
    if isinstance(value, Mapping):
        return {str(key): _as_toml(item) for key, item in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_as_toml(item) for item in value]
    return value


def public_study(checked: model.Study, *, is_testbed_from_file: bool = False) -> Study:
    """The study that a checked one is."""
    of = Study._of  # pyright: ignore[reportPrivateUsage]
    return of(checked, is_from_file=is_testbed_from_file)


def checked_study(study: Study) -> model.Study:
    """Study of the planner, made of a public one."""
    return study._checked  # pyright: ignore[reportPrivateUsage]


def is_testbed_from_file(study: Study) -> bool:
    """Tell whether a text, not the program, names the testbed: of a device it must name the
    serial.
    """
    return study._is_from_file  # pyright: ignore[reportPrivateUsage]

"""Functions of the compiled half that `run` needs, as an interface that tests can stand in for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from iolab.errors import IolabError

if TYPE_CHECKING:
    from iolab.json_text import JsonText
    from iolab.protocol import (
        Capabilities,
        CommandPlan,
        Demand,
        FileUse,
        Histogram,
        IozoneRequest,
        MixedRequest,
        RecordedIdentity,
        Refusal,
        TraceMeasuredAnswer,
        TrialSpec,
        Workload,
    )


class Core(Protocol):
    """Workload builders and histogram arithmetic of `iolab._core`."""

    def iozone_workload(self, spec_json: JsonText[IozoneRequest], /) -> JsonText[Workload]:
        """Workload spec of IOzone's tests."""
        ...

    def mixed_workload(self, spec_json: JsonText[MixedRequest], /) -> JsonText[Workload]:
        """Workload spec of several streams side by side."""
        ...

    def workload_file_uses(self, workload_json: JsonText[Workload], /) -> JsonText[list[FileUse]]:
        """Uses of the files of a workload, in the order in which they are first named."""
        ...

    def dialect_parse(self, dialect: str, words: list[str], /) -> JsonText[CommandPlan]:
        """Plan of another program's command line, as JSON."""
        ...

    def recording_identity(self, path: str, /) -> JsonText[RecordedIdentity]:
        """Size and digest of the file of a recorded stream."""
        ...

    def workload_file(self, subject: str, text: str, /) -> JsonText[Workload]:
        """Workload description of a native workload file."""
        ...

    def workload_demand(self, workload_json: JsonText[Workload], /) -> JsonText[Demand | None]:
        """Space that the programs of a workload may take of a disk, as JSON."""
        ...

    def sim_refusals(
        self, stack_json: str, trial_json: JsonText[TrialSpec], /
    ) -> JsonText[list[Refusal]]:
        """Everything in a trial that a simulated stack cannot do, as JSON."""
        ...

    def workload_refusals(
        self,
        abilities_json: JsonText[Mapping[str, Capabilities]],
        workload_json: JsonText[Workload],
        /,
    ) -> JsonText[list[Refusal]]:
        """Everything in a workload that its engines cannot do, as JSON."""
        ...

    def trace_stages(
        self,
        inputs: tuple[Sequence[tuple[str, Callable[[int], bytes] | None]], Sequence[str]],
        by: str,
        style: str,
        span_ns: tuple[int, int] | None,
        /,
    ) -> JsonText[TraceMeasuredAnswer]:
        """Stage times of a block trace, as JSON."""
        ...

    def histogram_quantiles(
        self, histogram_json: JsonText[Histogram], quantiles: list[float], /
    ) -> list[float]:
        """Quantiles of a recorded histogram, in ns."""
        ...


def load_core() -> Core:
    """Return the compiled extension.

    Raises
    ------
    IolabError : it was not built.
    """
    try:
        from iolab import _core
    except ImportError as error:
        raise IolabError(
            f"the compiled part of iolab is missing ({error})",
            "run `pip install .` in the source directory",
        ) from None
    return _core

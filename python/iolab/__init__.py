"""iolab: a laboratory for storage I/O on Linux.

``iolab compare`` answers which I/O scheduler, file system, mount option or record size is best for
a workload on a device, with intervals and reasons, and puts the machine back as it was. The same
from Python:

    import iolab
    study = iolab.Study(
        testbed="sim:sata7200-4tb", workload="video", factors={"scheduler": ["noop", "cfq"]}
    )
    result = iolab.run(study, out="results")
    print(result.summary())

`docs/reference/library.md` describes every public name. Names that begin with an underscore, and
all modules below this package, are internal.
"""

import sys
from typing import TYPE_CHECKING

from iolab.errors import (
    AnalysisError,
    DamageError,
    DialectError,
    IolabError,
    MismatchError,
    RefusedError,
    RestoreError,
    StoppedError,
    StoreError,
    StudyError,
    TestbedError,
)
from iolab.lazy import lazy_package

if TYPE_CHECKING:
    from iolab.library.chart import Chart
    from iolab.library.open_result import open  # noqa: A004 - a verb of the library, as gzip.open
    from iolab.library.progress_bar import ProgressBar
    from iolab.library.result import Result
    from iolab.library.run_study import run
    from iolab.library.simulate_trial import SimulatedTrial, simulate
    from iolab.library.study import Study
    from iolab.run.progress import Progress
    from iolab.run.stop import StopSwitch

__all__ = [
    "AnalysisError",
    "Chart",
    "DamageError",
    "DialectError",
    "IolabError",
    "MismatchError",
    "Progress",
    "ProgressBar",
    "RefusedError",
    "RestoreError",
    "Result",
    "SimulatedTrial",
    "StopSwitch",
    "StoppedError",
    "StoreError",
    "Study",
    "StudyError",
    "TestbedError",
    "open",
    "run",
    "simulate",
]

sys.modules[__name__].__class__ = lazy_package(
    {
        "Chart": "iolab.library.chart",
        "Progress": "iolab.run.progress",
        "ProgressBar": "iolab.library.progress_bar",
        "Result": "iolab.library.result",
        "SimulatedTrial": "iolab.library.simulate_trial",
        "StopSwitch": "iolab.run.stop",
        "Study": "iolab.library.study",
        "open": "iolab.library.open_result",
        "run": "iolab.library.run_study",
        "simulate": "iolab.library.simulate_trial",
    }
)

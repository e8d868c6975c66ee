"""iolab: a laboratory for storage I/O on Linux.

``iolab compare`` answers which I/O scheduler, file system, mount option or record size is best for
a workload on a device, with intervals and reasons, and puts the machine back as it was.
"""

from iolab.errors import (
    AnalysisError,
    IolabError,
    RestoreError,
    StoreError,
    StudyError,
    TestbedError,
)

__all__ = [
    "AnalysisError",
    "IolabError",
    "RestoreError",
    "StoreError",
    "StudyError",
    "TestbedError",
]

"""The compiled half: typed workload builders, histograms, in-process targets.

Everything crosses as JSON text; the shapes are those of
``docs/design/0002-agent-protocol.md``.
"""

__all__ = [
    "__version__",
    "histogram_quantiles",
    "iozone_tests",
    "iozone_workload",
    "mixed_workload",
    "patterns",
    "run_in_process",
]

__version__: str

def iozone_workload(spec_json: str) -> str:
    """Workload spec of IOzone's tests.

    Parameters
    ----------
    spec_json : ``{"tests", "file_bytes", "io_size_bytes", "workers", "engine", "workers_as",
        "access", "durability", "fsync", "seed", "stride", "depth", "content"}``; sizes in bytes.

    Returns
    -------
    str : workload spec, version 1.

    Raises
    ------
    iolab.errors.StudyError : the values do not describe a workload.
    """

def mixed_workload(spec_json: str) -> str:
    """Workload spec of several streams that run side by side for a fixed time.

    Parameters
    ----------
    spec_json : ``{"name", "duration_ns", "engine", "workers_as", "seed", "access", "streams": [
        {"name", "read_share", "pattern", "io_size_bytes", "depth", "workers", "file_bytes",
        "rate_ops_per_s", "fsync_every"}]}``.

    Returns
    -------
    str : workload spec, version 1.

    Raises
    ------
    iolab.errors.StudyError : the values do not describe a workload.
    """

def iozone_tests() -> list[str]:
    """Names of the IOzone tests that exist, in the order in which they run.

    Returns
    -------
    list of str, for instance ``write``.
    """

def patterns() -> list[str]:
    """Names of the access patterns of streams.

    Returns
    -------
    list of str, for instance ``sequential``.
    """

def histogram_quantiles(histogram_json: str, quantiles: list[float]) -> list[float]:
    """Quantiles of a recorded histogram.

    Parameters
    ----------
    histogram_json : HISTOGRAM of the agent protocol.
    quantiles : each in [0, 1].

    Returns
    -------
    list of float, in the histogram's unit (ns), one per quantile.
    """

def run_in_process(workload_json: str) -> str:
    """Run a workload on the null or memory target inside this process.

    Parameters
    ----------
    workload_json : workload spec whose engine is ``null`` or ``memory``.

    Returns
    -------
    str : the ``phases`` of a record.
    """

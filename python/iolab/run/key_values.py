"""Metrics of clients of a key-value store: bytes written for each byte that was given to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from iolab.protocol import PhaseRecord, TenantOutcome

_FACT: Final = "write_amplification"


def key_value_metrics(phase: PhaseRecord, tenants: Sequence[TenantOutcome]) -> dict[str, float]:
    """Write amplification inside the store and at the device; empty of other workloads.

    Parameters
    ----------
    phase : its devices count what reached them, until the flush after it.
    tenants : those of the phase; clients of a store are alone in theirs.
    """
    records = [record for tenant in tenants if (record := tenant.get("kv")) is not None]
    if len(records) != 1:
        return {}
    (record,) = records
    found = {
        f"store_{fact['name']}": fact["value"]
        for fact in record.get("facts", ())
        if fact["name"] == _FACT
    }
    given = record["user_write_bytes"]
    devices = phase.get("devices") or []
    if given > 0 and devices and record["loaded"] == 0:
        written = sum(it["write_bytes"] + it["flushed_write_bytes"] for it in devices)
        found["device_write_amplification"] = written / given
    return found

"""The list of all kinds of findings; a row says what the kind is, and which function finds it.

Kinds that judging finds stand in `judged`, in the order in which they are shown; kinds that plan,
agent, simulator, store or import record stand in `recorded`.
"""

from iolab.stats.findings.lookup import FINDINGS, kind_of
from iolab.stats.findings.sections import SECTIONS

__all__ = ["FINDINGS", "SECTIONS", "kind_of"]

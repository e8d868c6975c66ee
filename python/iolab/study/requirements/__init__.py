"""Requirements that somebody published, by the name of the program: one file and one row each."""

from __future__ import annotations

from typing import Final

from iolab.study.requirements.etcd import ETCD
from iolab.study.requirements.gitaly import GITALY
from iolab.study.requirements.openshift import OPENSHIFT
from iolab.study.requirements.postgres import POSTGRES
from iolab.study.requirements.requirement import Requirement
from iolab.study.requirements.sd_card import SD_CARD

REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    ETCD,
    OPENSHIFT,
    GITALY,
    SD_CARD,
    POSTGRES,
)
"""All of them, those that most ask for first."""

__all__ = ["REQUIREMENTS"]

"""Facts about published documents beyond the cells of their tables.

Facts only, each with its source; a row applies where document and testbed of a table both match.
Adding one needs the document itself.
"""

from __future__ import annotations

from typing import Final

from iolab.frozen import frozen


@frozen
class DocumentFact:
    """A remark about the averages of one document."""

    document: str
    testbed: str
    about_averages: str


DOCUMENT_FACTS: Final[tuple[DocumentFact, ...]] = (
    # The document says which calls each average covers (iozone -I leaves fwrite buffered); the
    # share is that of its own single figures at 8 KiB, as the transcription notes.
    DocumentFact(
        "D1",
        "ubuntu1604-sda",
        "at 8k the one buffered operation, fwrite, makes up about 90 % of the average, which"
        " therefore mainly describes copying in memory",
    ),
)


def averages_remark(constants: dict[str, str]) -> str:
    """Remark about the averages of the table with these constant columns; maybe empty."""
    for fact in DOCUMENT_FACTS:
        if (constants.get("document"), constants.get("testbed")) == (fact.document, fact.testbed):
            return fact.about_averages
    return ""

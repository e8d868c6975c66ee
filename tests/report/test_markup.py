"""Elements: what is put into them is text, whatever it holds."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from iolab.report.markup import tag

EVERY_CONTROL = "".join(map(chr, (*range(32), 0x7F, 0xFFFE, 0xFFFF)))


def test_no_name_makes_an_element_that_is_no_xml() -> None:
    """Symptom: a device whose name held an escape made a picture that no program reads."""
    name = f"<img src=x onerror=alert(1)>{EVERY_CONTROL}\"'&"
    element = ET.fromstring(tag("text", name, id=name))
    assert element.text is not None
    assert element.text.startswith("<img src=x onerror=alert(1)>")
    assert len(element) == 0
    assert "\x1b" not in element.text

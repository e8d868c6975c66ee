"""From a judged study to what people read: HTML, Excel, JSON and text.

Nothing is imported here beyond the entry point, and that loads its renderers when it is called.
"""

from iolab.report.write import ReportPaths, write_all

__all__ = ["ReportPaths", "write_all"]

"""Designs: in which order the treatments of a round are executed."""

from __future__ import annotations

from typing import Final

from iolab.study.designs.adjacent import order_adjacent_round
from iolab.study.designs.factorial import order_factorial_round
from iolab.study.designs.table import order_table_round

DESIGNS: Final = {
    "adjacent": order_adjacent_round,
    "factorial": order_factorial_round,
    "pairs": order_factorial_round,
    "table": order_table_round,
}

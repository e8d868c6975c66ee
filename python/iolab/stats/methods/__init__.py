"""The list of statistical procedures a verdict rests on, each with its source."""

from __future__ import annotations

from typing import Final

from iolab.stats.methods.method import Method

METHODS: Final[tuple[Method, ...]] = (
    Method(
        "log_ratio",
        "values are compared as ratios, averaged on the ln scale (geometric means)",
        "Hoefler and Belli, SC'15",
    ),
    Method(
        "student",
        "rounds are the sample: paired t intervals of the mean ln-ratio over rounds",
        "Student, Biometrika 1908",
    ),
    Method(
        "verdict_rule",
        "two one-sided tests decide 'same', the 95 % interval decides 'better' and 'worse'",
        "Schuirmann, J. Pharmacokinet. Biopharm. 1987",
    ),
    Method(
        "holm",
        "intervals of one family of pooled comparisons are widened step by step",
        "Holm, Scand. J. Statist. 1979",
    ),
    Method(
        "benjamini_hochberg",
        "single cells and secondary metrics are exploratory; their p limits false discoveries",
        "Benjamini and Hochberg, J. R. Statist. Soc. B 1995",
    ),
    Method(
        "best_set",
        "levels count as equal to the best if shown to be within the margin of it",
        "Schuirmann 1987, Bonferroni over levels",
    ),
    Method(
        "position",
        "a linear effect of the place inside a round is tested beside treatments and rounds",
        "Frisch and Waugh, Econometrica 1933",
    ),
)

__all__ = ["METHODS", "Method"]

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
        results=lambda v: v.is_paired,
    ),
    Method(
        "verdict_rule",
        "two one-sided tests decide 'same', the 95 % interval decides 'better' and 'worse'",
        "Schuirmann, J. Pharmacokinet. Biopharm. 1987",
    ),
    Method(
        "shaffer",
        "all pairs of levels are one family; divisors only as large as pairs can be equal at once",
        "Shaffer, JASA 1986",
    ),
    Method(
        "holm",
        "'same' is a family of its own, adjusted step by step",
        "Holm, Scand. J. Statist. 1979",
    ),
    Method(
        "interaction",
        "cells that disagree are found by an F test of level by cell: the word is 'depends'",
        "Cochran and Cox, Experimental Designs",
    ),
    Method(
        "forecast",
        "further rounds are drawn from what the rounds seen allow; a range with its chance",
        "Gelman et al., Bayesian Data Analysis",
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
        results=lambda v: v.position,
    ),
    Method(
        "mser",
        "the warm-up of a trial is cut where the rest's mean is most certain (MSER-5)",
        "White, Simulation 1997; White, Cobb and Spratt, WSC 2000",
        "closer look",
        results=lambda v: v.closer.time_courses,
    ),
    Method(
        "steady_state",
        "the last five values are steady: range at most 20 %, fitted change at most 10 %",
        "SNIA SSS Performance Test Specification",
        "closer look",
        results=lambda v: v.closer.time_courses,
    ),
    Method(
        "change_points",
        "levels inside a trial are found by energy distance, kept by Welch's t and by size",
        "Matteson and James, JASA 2014; Fleming et al., ICPE 2023",
        "closer look",
        results=lambda v: v.closer.time_courses,
    ),
    Method(
        "trial_shape",
        "a trial is flat, warming up, decaying, cyclic or never steady",
        "Barrett et al., OOPSLA 2017",
        "closer look",
        results=lambda v: v.closer.time_courses,
    ),
    Method(
        "stalls",
        "slices that completed next to nothing are stalls, unless they are a trial's rhythm",
        "bounds of our own",
        "closer look",
        results=lambda v: v.closer.time_courses,
    ),
    Method(
        "location",
        "the median's order-statistic interval, and the BCa bootstrap over rounds",
        "David and Nagaraja, Order Statistics; Efron, JASA 1987",
        "closer look",
        results=lambda v: v.closer.robust,
    ),
    Method(
        "hodges_lehmann",
        "latency quantiles are compared by the median of pairwise means, Wilcoxon's interval",
        "Hodges and Lehmann, Ann. Math. Statist. 1963",
        "closer look",
        results=lambda v: v.closer.quantile_effects,
    ),
    Method(
        "hsu_mcb",
        "the winner set: levels that cannot be ruled out as the best, each pair by its own spread",
        "Edwards and Hsu, JASA 1983",
        "closer look",
        results=lambda v: v.closer.winner_sets,
    ),
    Method(
        "sign_flip",
        "exact p by flipping signs of rounds; which p so few rounds can reach at all",
        "Fisher, The Design of Experiments, 1935",
        "closer look",
        results=lambda v: v.closer.pairs,
    ),
    Method(
        "effect_size",
        "probability of superiority with its exact interval; Hedges' g",
        "Clopper and Pearson, Biometrika 1934; Hedges, J. Educ. Statist. 1981",
        "closer look",
        results=lambda v: v.closer.pairs,
    ),
    Method(
        "factor_effects",
        "main effects and interactions with variance shares; hard factors as whole plots",
        "Yates, J. R. Statist. Soc. Suppl. 1935; Olejnik and Algina, Psychol. Methods 2003",
        "closer look",
        results=lambda v: v.closer.factor_effects,
    ),
    Method(
        "covariate",
        "run delay as covariate: the paired ratio at equal waits for a processor, beside the mean",
        "Cochran, Biometrics 1957",
        "closer look",
        results=lambda v: [found for found in v.caveats if found.kind == "run_delay"],
    ),
    Method(
        "power",
        "chance of each word for a planned number of rounds; rounds needed for a wanted chance",
        "Phillips, J. Pharmacokinet. Biopharm. 1990",
        "planning",
    ),
    Method(
        "stein",
        "rounds for an interval of a wanted width, from a pilot, with exact coverage",
        "Stein, Ann. Math. Statist. 1945",
        "planning",
    ),
    Method(
        "group_sequential",
        "levels for looking before the end without more false findings",
        "Pocock, Biometrika 1977; O'Brien and Fleming, Biometrics 1979",
        "planning",
    ),
    Method(
        "confirm",
        "trials until the median is known to a few percent, by resampling a pilot",
        "Maricq et al., OSDI 2018",
        "planning",
    ),
    Method(
        "kalibera_jones",
        "at which level (trial, file system, day) repetitions pay",
        "Kalibera and Jones, ISMM 2013",
        "planning",
    ),
    Method(
        "autocorrelation",
        "whether a trial still feels the one before it (lag 1)",
        "Box and Jenkins, Time Series Analysis",
        "planning",
    ),
)

__all__ = ["METHODS", "Method"]

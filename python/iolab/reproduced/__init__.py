"""Published figures beside simulated ones: which come out, how closely, and which cannot.

`documents` holds a row per published number with the rule by which the simulated one is compared;
`published` reads the numbers, `rules` compares, `page` writes a document's page. What runs the
simulator is `iolab.library.reproducing`.
"""

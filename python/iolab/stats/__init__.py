"""From stored measurements to verdicts: pure functions of one `iolab.store.rows.StudyData`.

Nothing is imported here, so that `iolab --help` and a running study never load scipy.
Use :func:`iolab.stats.judge.judge`.
"""

"""The trials of a study in the language of other programs: fio job files, IOzone command lines."""

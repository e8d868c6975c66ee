//! The options of `IOzone`, one row each.

use crate::option::{Grammar, OptionRow, Standing, Takes};

/// What was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// -a.
    pub is_auto: bool,
}

/// The command line.
pub const GRAMMAR: Grammar<Typed> = Grammar { program: "iozone", rows: OPTIONS, word: None };

/// All options.
pub const OPTIONS: &[OptionRow<Typed>] = &[OptionRow {
    name: "-a",
    takes: Takes::Nothing,
    group: "What is run",
    doc: "automatic mode: a table of file sizes and record sizes",
    standing: Standing::Done,
    update: |typed, _| {
        typed.is_auto = true;
        Ok(())
    },
}];

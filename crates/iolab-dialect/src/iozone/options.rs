//! The options of `IOzone`, one row each, by group. Facts: the program's behaviour, version 3.489.

mod cluster;
mod content;
mod files;
mod how;
mod shown;
mod what;

use super::typed::Typed;
use crate::diagnostic::Problem;
use crate::option::{Given, Grammar, OptionRow, Standing, Takes};

/// The command line.
pub const GRAMMAR: Grammar<Typed> = Grammar { program: "iozone", rows: OPTIONS, word: None };

type Row = OptionRow<Typed>;
type Update = fn(&mut Typed, &Given<'_>) -> Result<(), Problem>;

const fn flag(
    name: &'static str,
    group: &'static str,
    doc: &'static str,
    standing: Standing,
    update: Update,
) -> Row {
    OptionRow { name, takes: Takes::Nothing, group, doc, standing, update }
}

const fn value(
    (name, metavar): (&'static str, &'static str),
    group: &'static str,
    doc: &'static str,
    standing: Standing,
    update: Update,
) -> Row {
    let is_plus = name.as_bytes()[1] == b'+';
    let takes = if is_plus { Takes::NextWord(metavar) } else { Takes::Value(metavar) };
    OptionRow { name, takes, group, doc, standing, update }
}

/// An option that is refused by name.
const fn refused(
    name: &'static str,
    group: &'static str,
    doc: &'static str,
    why: &'static str,
    instead: &'static str,
) -> Row {
    let standing = Standing::Refused(why, instead);
    OptionRow { name, takes: Takes::Nothing, group, doc, standing, update: |_, _| Ok(()) }
}

/// The groups, in the order of the help text.
const GROUPS: [&[Row]; 6] =
    [what::ROWS, files::ROWS, how::ROWS, shown::ROWS, content::ROWS, cluster::ROWS];

const COUNT: usize = {
    let (mut count, mut group) = (0, 0);
    while group < GROUPS.len() {
        count += GROUPS[group].len();
        group += 1;
    }
    count
};

const ALL: [Row; COUNT] = {
    let mut all = [GROUPS[0][0]; COUNT];
    let (mut at, mut group) = (0, 0);
    while group < GROUPS.len() {
        let mut row = 0;
        while row < GROUPS[group].len() {
            all[at] = GROUPS[group][row];
            at += 1;
            row += 1;
        }
        group += 1;
    }
    all
};

/// All options.
pub const OPTIONS: &[Row] = &ALL;

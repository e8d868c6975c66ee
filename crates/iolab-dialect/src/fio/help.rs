//! Texts that explain: `--help`, `--cmdhelp`, `--enghelp`, and the tables of the reference page.

use std::fmt::Write as _;

use super::command::{self, CommandRow, Takes};
use super::dialect::GRAMMAR;
use super::engine::{self, Engine};
use super::options;
use super::row::{Row, Tier};
use crate::columns::two_columns;
use crate::diagnostic::Problem;
use crate::option::{COMMON, common_row, help_text, reference_text};

/// Text above the options in `--help`.
const HELP: &str = "\
iolab fio: the command line and the job files of fio, with its results, on real
or simulated storage

  iolab fio JOBFILE...                   run job files as they are
  iolab fio --name=x --rw=randread --bs=4k --size=1g --direct=1
  iolab fio --output-format=json JOBFILE results that other programs read
  iolab fio --on loop:1g --repeat 5 JOBFILE
                                         five times on a disk of its own, with
                                         intervals
  iolab fio --cmdhelp=all                all job options

";
const WIDTH: usize = 28;

/// Text of `--help`.
pub fn help() -> String {
    let mut text = HELP.to_owned();
    for row in command::ROWS {
        let typed = format!("  --{}", typed(row));
        let meaning = format!("{}{}", row.doc, row.standing.remark());
        text.push_str(&two_columns(&typed, WIDTH, &meaning));
    }
    text + &help_text(&GRAMMAR)
}

/// Option of the program with the form of its value.
fn typed(row: &CommandRow) -> String {
    let name = row.name;
    match row.takes {
        Takes::Nothing => name.to_owned(),
        Takes::Value(value) => format!("{name}={value}"),
        Takes::Attached(value) => format!("{name}[={value}]"),
    }
}

/// Text of `--enghelp`: the engines, one of them (`NAME`), or an option of one (`NAME,OPTION`).
pub fn enghelp(text: &str) -> Result<String, Problem> {
    if text.is_empty() {
        return Ok(engines("  ").trim_end().to_owned());
    }
    let (name, option) = text.split_once(',').unwrap_or((text, ""));
    let Some(engine) = engine::ENGINES.iter().find(|engine| engine.name == name) else {
        let known = engine::ENGINES.iter().map(|engine| engine.name);
        let hint = iolab_model::nearest::did_you_mean(name, known);
        let what = engine::why_not(name).map_or_else(
            || format!("there is no ioengine '{name}'{hint}"),
            |why| format!("ioengine {name} is not supported: {why}"),
        );
        return Err(Problem::new(what, "see the list of `iolab fio --enghelp`"));
    };
    if option.is_empty() {
        return Ok(options_of(engine));
    }
    if !engine.options.contains(&option) {
        let what = format!("ioengine {name} has no option '{option}' of its own");
        let remedy = format!("see `iolab fio --enghelp={name}` or `iolab fio --cmdhelp={option}`");
        return Err(Problem::new(what, remedy));
    }
    cmdhelp(option)
}

/// An engine, with the options that it alone has.
fn options_of(engine: &Engine) -> String {
    let mut text = format!("{}: {}\n", engine.name, engine.doc);
    if engine.options.is_empty() {
        text.push_str("  It has no options of its own.\n");
    }
    for row in engine.options.iter().filter_map(|name| options::find(name)) {
        text.push_str(&line(row));
    }
    text.trim_end().to_owned()
}

/// Engines that are done.
fn engines(indent: &str) -> String {
    let of = |engine: &Engine| two_columns(&format!("{indent}{}", engine.name), 15, engine.doc);
    engine::ENGINES.iter().map(of).collect()
}

fn line(row: &Row) -> String {
    let meaning = format!("{}{}", row.doc, row.standing.remark());
    two_columns(&format!("  {}", row.name), WIDTH, &meaning)
}

/// Text of `--cmdhelp`: all job options, or one of them or of the program.
pub fn cmdhelp(name: &str) -> Result<String, Problem> {
    if name.is_empty() || name == "all" {
        return Ok(options::rows().map(line).collect::<String>().trim_end().to_owned());
    }
    if let Some(row) = options::find(name) {
        return Ok(about(row));
    }
    let plain = name.trim_start_matches('-');
    if let Some(row) = command::ROWS.iter().find(|row| row.name == plain) {
        let here = row.standing.here().replace("**", "");
        let typed = typed(row);
        return Ok(format!("--{typed}: {}\n  an option of the program\n  here: {here}", row.doc));
    }
    if let Some(row) = common_row(&format!("--{plain}")) {
        return Ok(format!("{}: {}\n  an option of iolab, not of fio", row.name, row.doc));
    }
    let names = |row: &'static Row| row.aliases.iter().copied().chain([row.name]);
    let known = options::rows().flat_map(names);
    let hint = iolab_model::nearest::did_you_mean(name, known);
    let what = format!("there is no option '{name}'{hint}");
    Err(Problem::new(what, "see the list of `iolab fio --cmdhelp=all`"))
}

/// Meaning, default and standing of a job option.
fn about(row: &Row) -> String {
    let default = if row.default.is_empty() { "none" } else { row.default };
    let here = row.standing.here().replace("**", "");
    let mut text = format!(
        "{}: {}\n  value: {}\n  default: {default}\n  here: {here}",
        row.name,
        row.doc,
        row.kind.name(),
    );
    if row.name == "ioengine" {
        text.push_str("\n  engines:\n");
        text.push_str(engines("    ").trim_end());
    }
    text
}

const fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::T1 => "1",
        Tier::T2 => "2",
        Tier::T3 => "3",
    }
}

/// Tables of the reference page.
pub fn reference() -> String {
    let mut text = String::from("\n### Of the program\n\n| option | tier | does | here |\n");
    text.push_str("|---|---|---|---|\n");
    for row in command::ROWS {
        let (typed, tier, here) = (typed(row), tier(row.tier), row.standing.here());
        let _ = writeln!(text, "| `--{typed}` | {tier} | {} | {here} |", row.doc);
    }
    for table in options::TABLES {
        let _ = writeln!(text, "\n### {}\n", table[0].group);
        text.push_str(
            "| option | tier | value | default | does | here |\n|---|---|---|---|---|---|\n",
        );
        for row in table {
            add_row(&mut text, row);
        }
    }
    text.push_str("\n### Engines\n\n| ioengine | is | options of its own |\n|---|---|---|\n");
    for engine in engine::ENGINES {
        let names: Vec<String> = engine.options.iter().map(|name| format!("`{name}`")).collect();
        let names = names.join(", ");
        let _ = writeln!(text, "| `{}` | {} | {names} |", engine.name, engine.doc);
    }
    let common = reference_text(&GRAMMAR);
    debug_assert!(COMMON.iter().all(|row| common.contains(row.name)));
    text + &common
}

fn add_row(text: &mut String, row: &Row) {
    let mut names = format!("`{}`", row.name);
    for alias in row.aliases {
        let _ = write!(names, ", `{alias}`");
    }
    let default = if row.default.is_empty() { String::new() } else { format!("`{}`", row.default) };
    let _ = writeln!(
        text,
        "| {names} | {} | {} | {default} | {} | {} |",
        tier(row.tier),
        row.kind.name(),
        row.doc,
        row.standing.here()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_name_options_that_there_are() {
        for engine in engine::ENGINES {
            for name in engine.options {
                assert!(options::find(name).is_some(), "{}: {name}", engine.name);
                assert!(enghelp(&format!("{},{name}", engine.name)).is_ok());
            }
            assert!(enghelp(engine.name).unwrap().starts_with(engine.name));
        }
        let refused = enghelp("rbd").unwrap_err().what;
        assert_eq!(refused, "ioengine rbd is not supported: there is no network");
    }

    #[test]
    fn lists_fit_into_80_columns() {
        for text in [cmdhelp("all").unwrap(), enghelp("").unwrap()] {
            let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
            assert!(long.is_empty(), "{long:#?}");
        }
    }

    #[test]
    fn options_of_the_program_and_of_iolab_are_explained_too() {
        assert!(cmdhelp("output").unwrap().contains("an option of the program"));
        assert!(cmdhelp("--repeat").unwrap().contains("an option of iolab"));
        assert!(cmdhelp("ioengine").unwrap().contains("io_uring"));
        assert!(cmdhelp("blocksise").unwrap_err().what.contains("blocksize"));
    }
}

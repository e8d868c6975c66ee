//! The dialect as the list of dialects knows it: JSON in, JSON and text out.

use std::fmt::Write as _;

use super::command::{self, Takes};
use super::host::{Here, Host};
use super::parse::{Typing, read};
use super::plan::{Plan, Show};
use super::result::{Event, EventKind, RowResult};
use super::row::{Row, Tier};
use super::showcmd::showcmd;
use super::{engine, eta, iolog, lower, options, render};
use crate::diagnostic::{Diagnostic, Problem};
use crate::option::{COMMON, Grammar, Standing, help_text, reference_text};
use crate::plan::Asked;
use crate::{Dialect, RenderError, read_json};

/// The dialect.
pub struct Fio;

/// Text above the options in `--help`.
const HELP: &str = "\
iolab fio: the command line and the job files of fio, with its results, on real or
simulated storage

  iolab fio JOBFILE...                     run job files as they are
  iolab fio --name=x --rw=randread --bs=4k --size=1g --direct=1
  iolab fio --output-format=json JOBFILE   results that other programs read
  iolab fio --on loop:1g --repeat 5 JOBFILE
                                           on a disk of its own, five times, with intervals
  iolab fio --cmdhelp=all                  all job options

";

/// Only the options that every dialect has.
const GRAMMAR: Grammar<()> = Grammar { program: "fio", rows: &[], word: None };

impl Dialect for Fio {
    fn name(&self) -> &'static str {
        GRAMMAR.program
    }

    fn parse(&self, words: &[String]) -> Result<String, Diagnostic> {
        let plan = plan(words, &Here)?;
        Ok(serde_json::to_string(&plan).expect("a plan has only text keys"))
    }

    fn render(&self, plan: &str, event: &str) -> Result<String, RenderError> {
        let Event { event: kind } = read_json((self.name(), "event"), event)?;
        if kind == EventKind::End {
            return Ok(String::new());
        }
        let plan: Plan = read_json((self.name(), "plan"), plan)?;
        if kind == EventKind::Begin {
            return Ok(render::heads(&plan));
        }
        if kind == EventKind::Progress {
            let told = read_json((self.name(), "event"), event)?;
            let line = eta::line(&plan.show, &plan.rows[0].workload, &told);
            return Ok(serde_json::to_string(&line).expect("a line has only text keys"));
        }
        // Read by itself: sums of 128 bits do not pass through a tagged enum.
        let row: RowResult = read_json((self.name(), "event"), event)?;
        Ok(render::render(&plan, &row))
    }

    fn file(&self, plan: &str, event: &str) -> Result<Vec<u8>, RenderError> {
        self.render(plan, event).map(String::into_bytes)
    }

    fn help(&self) -> String {
        let mut text = HELP.to_owned();
        for row in command::ROWS {
            let typed = format!("--{}{}", row.name, metavar(row.takes));
            let _ = writeln!(text, "  {typed:34} {}{}", row.doc, remark(row.standing));
        }
        text + &help_text(&GRAMMAR)
    }

    fn reference(&self) -> String {
        reference()
    }
}

/// The plan of a command line.
pub fn plan(words: &[String], host: &impl Host) -> Result<Plan, Diagnostic> {
    let mut typing = read(words, host)?;
    if typing.program.is_shown {
        // A study keeps these words, and runs them anywhere.
        iolog::anchor(&mut typing, host);
    }
    if let Some(text) = only_text(&typing, words)? {
        return Ok(text_plan(&typing, text));
    }
    iolog::load(&mut typing, words, host)?;
    let plan = lower::lower(&typing, words, host)?;
    let is_only_read = typing.program.is_only_parsed;
    Ok(if is_only_read { text_plan(&typing, String::new()) } else { plan })
}

/// A text that is all that is wanted.
fn only_text(typing: &Typing, words: &[String]) -> Result<Option<String>, Diagnostic> {
    let program = &typing.program;
    let problem = |problem| Diagnostic::of_all("fio", words, problem);
    Ok(if typing.common.is_help {
        Some(Fio.help())
    } else if program.is_version {
        Some(super::render::VERSION.to_owned())
    } else if let Some(name) = &program.cmdhelp {
        Some(cmdhelp(name).map_err(problem)?)
    } else if let Some(name) = &program.enghelp {
        Some(enghelp(name).map_err(problem)?)
    } else if program.is_shown && !typing.jobs.is_empty() {
        Some(showcmd(typing))
    } else {
        None
    })
}

fn enghelp(name: &str) -> Result<String, Problem> {
    let asked = |engine: &&engine::Engine| name.is_empty() || engine.name == name;
    let lines = engine::ENGINES.iter().filter(asked);
    let lines = lines.map(|engine| format!("{:10} {}", engine.name, engine.doc));
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        let known = engine::ENGINES.iter().map(|engine| engine.name);
        let hint = iolab_model::nearest::did_you_mean(name, known);
        let what = format!("there is no ioengine '{name}'{hint}");
        return Err(Problem::new(what, "`iolab fio --enghelp` lists all"));
    }
    Ok(lines.join("\n"))
}

fn cmdhelp(name: &str) -> Result<String, Problem> {
    if name.is_empty() || name == "all" {
        let line = |row: &Row| format!("{:30} {}{}", row.name, row.doc, remark(row.standing));
        let lines = options::rows().map(line);
        return Ok(lines.collect::<Vec<_>>().join("\n"));
    }
    let Some(row) = options::find(name) else {
        let names = |row: &'static Row| row.aliases.iter().copied().chain([row.name]);
        let known = options::rows().flat_map(names);
        let hint = iolab_model::nearest::did_you_mean(name, known);
        let what = format!("there is no option '{name}'{hint}");
        return Err(Problem::new(what, "`iolab fio --cmdhelp=all` lists all"));
    };
    let default = if row.default.is_empty() { "none" } else { row.default };
    Ok(format!(
        "{}: {}\n  value: {}\n  default: {default}\n  here: {}\n",
        row.name,
        row.doc,
        row.kind.name(),
        here(row.standing).replace("**", "")
    ))
}

fn text_plan(typing: &Typing, text: String) -> Plan {
    Plan {
        dialect: GRAMMAR.program.to_owned(),
        common: typing.common.clone(),
        only_text: Some(text),
        notes: Vec::new(),
        directory: String::new(),
        files: Vec::new(),
        cache: "as_is".to_owned(),
        asked: Asked::default(),
        show: Show {
            output: None,
            formats: Vec::new(),
            terse_version: 3,
            globals: Vec::new(),
            are_threads: false,
            heads: Vec::new(),
            units: Vec::new(),
            logs: Vec::new(),
            commands: Vec::new(),
            scheduler: None,
            are_dumped: false,
            states: Vec::new(),
            status_ns: 0,
            eta: eta::When::Never,
            eta_newline_ns: 0,
        },
        rows: Vec::new(),
    }
}

const fn metavar(takes: Takes) -> &'static str {
    match takes {
        Takes::Nothing => "",
        Takes::Value(text) | Takes::Attached(text) => {
            // The help tells the form, the reference page the word.
            if text.is_empty() { "" } else { "=..." }
        }
    }
}

fn here(standing: Standing) -> String {
    match standing {
        Standing::Done => "as the original".to_owned(),
        Standing::Differs(how) => how.to_owned(),
        Standing::Ignored(why) => format!("accepted, does nothing: {why}"),
        Standing::Refused(why, instead) => format!("**refused**: {why}; {instead}"),
    }
}

fn remark(standing: Standing) -> String {
    match standing {
        Standing::Done => String::new(),
        Standing::Differs(how) => format!(" [{how}]"),
        Standing::Ignored(why) => format!(" [does nothing: {why}]"),
        Standing::Refused(why, _) => format!(" [refused: {why}]"),
    }
}

const fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::T1 => "1",
        Tier::T2 => "2",
        Tier::T3 => "3",
    }
}

/// Tables of the reference page.
fn reference() -> String {
    let mut text = String::from("\n### Of the program\n\n| option | tier | does | here |\n");
    text.push_str("|---|---|---|---|\n");
    for row in command::ROWS {
        let value = match row.takes {
            Takes::Nothing => String::new(),
            Takes::Value(value) => format!("={value}"),
            Takes::Attached(value) => format!("[={value}]"),
        };
        let tier = tier(row.tier);
        let here = here(row.standing);
        let _ = writeln!(text, "| `--{}{value}` | {tier} | {} | {here} |", row.name, row.doc);
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
    text.push_str("\n### Engines\n\n| ioengine | is |\n|---|---|\n");
    for engine in engine::ENGINES {
        let _ = writeln!(text, "| `{}` | {} |", engine.name, engine.doc);
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
        here(row.standing)
    );
}

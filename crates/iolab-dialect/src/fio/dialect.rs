//! The dialect as the list of dialects knows it: JSON in, JSON and text out.

use super::host::{Here, Host};
use super::parse::{Typing, read};
use super::plan::{Plan, Show};
use super::result::{Event, EventKind, RowResult};
use super::showcmd::showcmd;
use super::{eta, help, iolog, lower, render};
use crate::diagnostic::Diagnostic;
use crate::option::Grammar;
use crate::plan::Asked;
use crate::{Dialect, RenderError, read_json};

/// The dialect.
pub struct Fio;

/// Only the options that every dialect has.
pub(super) const GRAMMAR: Grammar<()> = Grammar { program: "fio", rows: &[], word: None };

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
        help::help()
    }

    fn reference(&self) -> String {
        help::reference()
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
    let notes = plan.notes.clone();
    Ok(if is_only_read { Plan { notes, ..text_plan(&typing, String::new()) } } else { plan })
}

/// A text that is all that is wanted.
fn only_text(typing: &Typing, words: &[String]) -> Result<Option<String>, Diagnostic> {
    let program = &typing.program;
    let problem = |problem| Diagnostic::of_all("fio", words, problem);
    Ok(if typing.common.is_help {
        Some(help::help())
    } else if program.is_version {
        Some(super::render::VERSION.to_owned())
    } else if let Some(name) = &program.cmdhelp {
        Some(help::cmdhelp(name).map_err(problem)?)
    } else if let Some(name) = &program.enghelp {
        Some(help::enghelp(name).map_err(problem)?)
    } else if program.is_shown && !typing.jobs.is_empty() {
        Some(showcmd(typing))
    } else {
        None
    })
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

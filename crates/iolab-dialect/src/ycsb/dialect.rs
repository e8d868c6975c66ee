//! The dialect as the list of dialects knows it: JSON in, JSON and text out.

use std::fmt::Write as _;

use super::options::GRAMMAR;
use super::parse::{HELP, LocalFiles, parse};
use super::render::{Event, RowResult, YcsbEventKind, logs, report};
use super::table::{PROPERTIES, ValueForm};
use crate::diagnostic::Diagnostic;
use crate::option::{help_text, reference_text};
use crate::{Dialect, RenderError, read_json};

/// The dialect.
pub struct Ycsb;

impl Dialect for Ycsb {
    fn name(&self) -> &'static str {
        GRAMMAR.program
    }

    fn parse(&self, words: &[String]) -> Result<String, Diagnostic> {
        let plan = parse(words, &LocalFiles)?;
        Ok(serde_json::to_string(&plan).expect("a plan has only text keys"))
    }

    fn render(&self, plan: &str, event: &str) -> Result<String, RenderError> {
        let Event { event: kind } = read_json((self.name(), "event"), event)?;
        if !matches!(kind, YcsbEventKind::Row | YcsbEventKind::Logs) {
            return Ok(String::new());
        }
        // Read by itself: sums of 128 bits do not pass through a tagged enum.
        let result: RowResult = read_json((self.name(), "event"), event)?;
        let plan = read_json((self.name(), "plan"), plan)?;
        Ok(if kind == YcsbEventKind::Row { report(&plan, &result) } else { logs(&plan, &result) })
    }

    fn help(&self) -> String {
        HELP.to_owned() + &help_text(&GRAMMAR)
    }

    fn reference(&self) -> String {
        reference_text(&GRAMMAR) + &properties_text()
    }
}

/// Tables of the properties, in Markdown.
fn properties_text() -> String {
    let mut text = String::new();
    let mut groups: Vec<&str> = Vec::new();
    for row in PROPERTIES {
        if !groups.contains(&row.group) {
            groups.push(row.group);
        }
    }
    for group in groups {
        let head = "| property | values | default | does | here |\n|---|---|---|---|---|";
        let _ = writeln!(text, "\n### Properties: {}\n\n{head}", group.to_lowercase());
        for row in PROPERTIES.iter().filter(|row| row.group == group) {
            let here = row.standing.here();
            let values = match row.form {
                ValueForm::Count => "whole number".to_owned(),
                ValueForm::Number => "number".into(),
                ValueForm::Flag => "true, false".into(),
                ValueForm::Choice(known) => known.join(", "),
                ValueForm::Text => "text".into(),
            };
            let (name, default, doc) = (row.name, row.default, row.doc);
            let _ = writeln!(text, "| `{name}` | {values} | {default} | {doc} | {here} |");
        }
    }
    text
}

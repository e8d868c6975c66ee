//! bonnie++ 2.00: its command line, phases, table and CSV line; `bon_csv2txt` of every version.
//!
//! Facts were established by tracing the real program; see the reference page of the dialect for
//! what differs on purpose.

pub mod csv;
pub mod lower;
pub mod options;
pub mod parse;
pub mod plan;
pub mod render;
pub mod result;
pub mod table;
pub mod typed;

#[cfg(test)]
mod tests;

use serde::de::DeserializeOwned;

use crate::diagnostic::Diagnostic;
use crate::option::{help_text, reference_text};
use crate::{Dialect, RenderError};

/// The dialect.
pub struct Bonnie;

fn json<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, RenderError> {
    let wrong = |error: serde_json::Error| RenderError {
        dialect: "bonnie++",
        what,
        error: error.to_string(),
    };
    serde_json::from_str(text).map_err(wrong)
}

impl Dialect for Bonnie {
    fn name(&self) -> &'static str {
        options::GRAMMAR.program
    }

    fn parse(&self, words: &[String]) -> Result<String, Diagnostic> {
        let plan = parse::parse(words, &lower::Host::here())?;
        Ok(serde_json::to_string(&plan).expect("a plan has only text keys"))
    }

    fn render(&self, plan: &str, event: &str) -> Result<String, RenderError> {
        match json("event", event)? {
            result::Event::Table { text } => Ok(render::convert(&text)),
            event => Ok(render::render(&json("plan", plan)?, &event)),
        }
    }

    fn file(&self, _plan: &str, _event: &str) -> Result<Vec<u8>, RenderError> {
        Ok(Vec::new())
    }

    fn help(&self) -> String {
        parse::HELP.to_owned() + &help_text(&options::GRAMMAR)
    }

    fn reference(&self) -> String {
        reference_text(&options::GRAMMAR)
    }
}

//! The dialect's face to the front end: JSON in, text out.

use serde::de::DeserializeOwned;

use super::{biff, options, parse, render, report, result};
use crate::diagnostic::Diagnostic;
use crate::option::{help_text, reference_text};
use crate::{Dialect, RenderError};

/// The dialect.
pub struct Iozone;

fn json<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, RenderError> {
    let wrong = |error: serde_json::Error| RenderError {
        dialect: "iozone",
        what,
        error: error.to_string(),
    };
    serde_json::from_str(text).map_err(wrong)
}

impl Dialect for Iozone {
    fn name(&self) -> &'static str {
        options::GRAMMAR.program
    }

    fn parse(&self, words: &[String]) -> Result<String, Diagnostic> {
        let plan = parse::parse(words)?;
        Ok(serde_json::to_string(&plan).expect("a plan has only text keys"))
    }

    fn render(&self, plan: &str, event: &str) -> Result<String, RenderError> {
        Ok(render::render(&json("plan", plan)?, &json("event", event)?))
    }

    fn file(&self, plan: &str, event: &str) -> Result<Vec<u8>, RenderError> {
        match json("event", event)? {
            result::Event::End { rows } => {
                Ok(biff::worksheet(&report::cells(&json("plan", plan)?, &rows)))
            }
            _ => Ok(Vec::new()),
        }
    }

    fn help(&self) -> String {
        parse::HELP.to_owned() + &help_text(&options::GRAMMAR)
    }

    fn reference(&self) -> String {
        reference_text(&options::GRAMMAR)
    }
}

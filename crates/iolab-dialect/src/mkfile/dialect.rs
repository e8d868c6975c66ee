//! The dialect as the list of dialects knows it: JSON in, JSON and text out.

use crate::diagnostic::Diagnostic;
use crate::option::{help_text, reference_text};
use crate::{Dialect, RenderError, read_json};

use super::{options, parse, render};

/// The dialect.
pub struct Mkfile;

impl Dialect for Mkfile {
    fn name(&self) -> &'static str {
        options::GRAMMAR.program
    }

    fn parse(&self, words: &[String]) -> Result<String, Diagnostic> {
        let plan = parse::parse(words)?;
        Ok(serde_json::to_string(&plan).expect("a plan has only text keys"))
    }

    fn render(&self, plan: &str, event: &str) -> Result<String, RenderError> {
        let event = read_json((self.name(), "event"), event)?;
        Ok(render::render(&read_json((self.name(), "plan"), plan)?, &event))
    }

    fn help(&self) -> String {
        parse::HELP.to_owned() + &help_text(&options::GRAMMAR)
    }

    fn reference(&self) -> String {
        reference_text(&options::GRAMMAR)
    }
}

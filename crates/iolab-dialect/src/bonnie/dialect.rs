//! The dialect as the list of dialects knows it: JSON in, JSON and text out.

use crate::diagnostic::Diagnostic;
use crate::option::{help_text, reference_text};
use crate::{Dialect, RenderError, read_json};

use super::{lower, options, parse, render, result};

/// The dialect.
pub struct Bonnie;

impl Dialect for Bonnie {
    fn name(&self) -> &'static str {
        options::GRAMMAR.program
    }

    fn parse(&self, words: &[String]) -> Result<String, Diagnostic> {
        let plan = parse::parse(words, &lower::Host::here())?;
        Ok(serde_json::to_string(&plan).expect("a plan has only text keys"))
    }

    fn render(&self, plan: &str, event: &str) -> Result<String, RenderError> {
        let plan_of = |text| read_json((self.name(), "plan"), text);
        match read_json((self.name(), "event"), event)? {
            result::Event::Table { text } => Ok(render::convert(&text)),
            event => Ok(render::render(&plan_of(plan)?, &event)),
        }
    }

    fn help(&self) -> String {
        parse::HELP.to_owned() + &help_text(&options::GRAMMAR)
    }

    fn reference(&self) -> String {
        reference_text(&options::GRAMMAR)
    }
}

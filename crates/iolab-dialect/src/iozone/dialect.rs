//! The dialect's face to the front end: JSON in, text out.

use super::{biff, options, parse, render, report, result};
use crate::diagnostic::Diagnostic;
use crate::option::{help_text, reference_text};
use crate::{Dialect, RenderError, read_json};

/// The dialect.
pub struct Iozone;

impl Dialect for Iozone {
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

    fn file(&self, plan: &str, event: &str) -> Result<Vec<u8>, RenderError> {
        match read_json((self.name(), "event"), event)? {
            result::Event::End { rows } => {
                let plan = read_json((self.name(), "plan"), plan)?;
                Ok(biff::worksheet(&report::cells(&plan, &rows)))
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

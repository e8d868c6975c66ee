//! `IOzone` 3.489: its command line, tables, throughput report, Excel report and files.
//!
//! Facts were established by tracing the real program; see the reference page of the dialect for
//! what differs on purpose.

pub mod options;

use crate::diagnostic::{Diagnostic, Problem};
use crate::option::{Common, help_text, read, reference_text};
use crate::{Dialect, RenderError};

/// The dialect.
pub struct Iozone;

impl Dialect for Iozone {
    fn name(&self) -> &'static str {
        options::GRAMMAR.program
    }

    fn parse(&self, words: &[String]) -> Result<String, Diagnostic> {
        let (mut typed, mut common) = (options::Typed::default(), Common::default());
        read(&options::GRAMMAR, words, &mut typed, &mut common)?;
        let problem = Problem::new("iozone cannot be run yet", "use `iolab compare`");
        Err(Diagnostic::of_all(options::GRAMMAR.program, words, problem))
    }

    fn render(&self, _plan: &str, _event: &str) -> Result<String, RenderError> {
        Err(RenderError { dialect: "iozone", what: "event", error: "none exists".into() })
    }

    fn file(&self, _plan: &str, _event: &str) -> Result<Vec<u8>, RenderError> {
        Err(RenderError { dialect: "iozone", what: "event", error: "none exists".into() })
    }

    fn help(&self) -> String {
        help_text(&options::GRAMMAR)
    }

    fn reference(&self) -> String {
        reference_text(&options::GRAMMAR)
    }
}

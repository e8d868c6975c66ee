//! Text in other programs' languages to workloads, and results to those programs' own reports.
//!
//! Each dialect reads in two steps, `parse` (what was typed) and `lower` (what it means), and
//! writes with `render`. What crosses to the front end is JSON text: a *plan* (what to measure and
//! how to show it) and *events* (what happened), from which `render` makes the dialect's output.
//! Nothing here performs I/O, but for reading the job files that a command line of fio names. Left
//! out: running a plan, which is the front end's business.

pub mod bonnie;
mod columns;
pub mod diagnostic;
pub mod filebench;
pub mod fio;
pub mod iozone;
pub mod mkfile;
pub mod option;
pub mod plan;
pub mod solaris;
mod text_file;
pub mod workload;
pub mod workload_file;
pub mod ycsb;

pub use diagnostic::{Diagnostic, Problem};

/// Abilities of every dialect. A dialect is a unit struct that is listed in [`DIALECTS`].
pub trait Dialect: Sync {
    /// Name of the program, which is the command's name too.
    fn name(&self) -> &'static str;

    /// Reads a command line (without the program's name); answers with a plan as JSON text.
    fn parse(&self, words: &[String]) -> Result<String, Diagnostic>;

    /// Text that the dialect prints at an event: its standard output, as it would stand there.
    fn render(&self, plan: &str, event: &str) -> Result<String, RenderError>;

    /// A file that the dialect writes at the end of a plan, if it writes one of that kind.
    fn file(&self, plan: &str, event: &str) -> Result<Vec<u8>, RenderError> {
        let _ = (plan, event);
        Ok(Vec::new())
    }

    /// The text of `--help`.
    fn help(&self) -> String;

    /// The tables of options for the reference page, in Markdown.
    fn reference(&self) -> String;
}

/// A plan or event that the two sides do not agree on: a programmer's error, said by name.
#[derive(Debug, thiserror::Error)]
#[error("{dialect}: {what} is not understood: {error}")]
pub struct RenderError {
    /// Name of the dialect.
    pub dialect: &'static str,
    /// Plan or event.
    pub what: &'static str,
    /// Message of serde.
    pub error: String,
}

/// A plan or event (`what`) of a dialect, from its JSON text.
fn read_json<T: serde::de::DeserializeOwned>(
    (dialect, what): (&'static str, &'static str),
    text: &str,
) -> Result<T, RenderError> {
    let wrong = |error: serde_json::Error| RenderError { dialect, what, error: error.to_string() };
    serde_json::from_str(text).map_err(wrong)
}

macro_rules! dialects {
    ($($Row:path,)+) => {
        /// Every dialect.
        pub const DIALECTS: &[&dyn Dialect] = &[$(&$Row,)+];
    };
}

dialects! {
    iozone::Iozone,
    bonnie::Bonnie,
    mkfile::Mkfile,
    fio::Fio,
    filebench::Filebench,
    ycsb::Ycsb,
}

/// The dialect of this name.
pub fn find(name: &str) -> Option<&'static dyn Dialect> {
    DIALECTS.iter().copied().find(|dialect| dialect.name() == name)
}

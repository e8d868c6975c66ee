//! A workload that does what a trace shows, for other programs to run.

use std::fmt::Write as _;

use crate::report::{FilePattern, PatternReport};

mod bound;
mod fio;
mod iozone;
mod jobs;
mod losses;
mod parts;
mod places;
mod shares;

iolab_model::registry! {
    /// Form of an emitted workload.
    pub enum PatternForm as "form of a workload" {
        /// A study of iolab.
        Study = "study",
        /// A job file of fio.
        Fio = "fio",
        /// Command lines of `IOzone`.
        Iozone = "iozone",
    }
}

/// Share of one direction from which on the other is left out.
const ONE_DIRECTION: f64 = 0.99;

/// A workload as text, and what it does not keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmittedWorkload {
    /// The text; what it does not keep stands in it as a comment, too.
    pub text: String,
    /// A line for each thing of a file that the workload does not keep.
    pub losses: Vec<String>,
    /// Number of files that it has.
    pub files: usize,
}

/// Characters of a comment, at most: fio 3.33 reads a line of more than 8191 bytes as several, of
/// which the second is none of a comment; names of files may be long.
const COMMENT_MAX: usize = 1500;

/// A comment that is short enough.
pub fn bounded(text: &str) -> String {
    match text.char_indices().nth(COMMENT_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

impl EmittedWorkload {
    /// Adds the comments of a file: its sentence and its losses.
    fn begin_file(&mut self, mark: &str, file: &FilePattern, losses: &[String]) {
        let _ = writeln!(self.text, "\n{mark} {}", bounded(&file.sentence));
        for loss in losses {
            let _ = writeln!(self.text, "{mark} not kept: {}", bounded(loss));
            self.losses.push(format!("{}: {loss}", file.shown_name()));
        }
    }
}

/// Makes a workload of a report.
pub fn emit(report: &PatternReport, form: PatternForm) -> EmittedWorkload {
    let mut made = match form {
        PatternForm::Fio => fio::job_file(report),
        PatternForm::Study => fio::study(report),
        PatternForm::Iozone => iozone::command_lines(report),
    };
    let mark = if form == PatternForm::Fio { ';' } else { '#' };
    for note in &report.notes {
        let _ = write!(made.text, "\n{mark} note: {}\n", bounded(note));
    }
    if let Some(loss) = losses::of_files(report) {
        let _ = writeln!(made.text, "\n{mark} not kept: {loss}");
        made.losses.push(loss);
    }
    made
}

//! Place of something in a text: in a word of the command line or a line of a file.

use std::ops::Range;
use std::rc::Rc;

use crate::diagnostic::{Diagnostic, Problem};

/// Characters of a line that are shown around what is wrong.
const SHOWN: usize = 120;

/// A part of a word or a line.
#[derive(Clone, Debug)]
pub enum Place {
    /// Of the command line.
    Word {
        /// Ordinal of the word.
        index: usize,
        /// Characters of it.
        within: Range<usize>,
    },
    /// Of a job file.
    Line {
        /// Name of the file.
        file: Rc<str>,
        /// Ordinal of the line, from 1.
        number: usize,
        /// The line.
        line: Rc<str>,
        /// Characters of it.
        within: Range<usize>,
    },
}

impl Default for Place {
    fn default() -> Self {
        Self::Word { index: usize::MAX, within: 0..0 }
    }
}

impl Place {
    /// The same place, narrowed to characters `part` of it.
    #[must_use]
    pub fn part(&self, part: &Range<usize>) -> Self {
        let mut narrow = self.clone();
        let within = match &mut narrow {
            Self::Word { within, .. } | Self::Line { within, .. } => within,
        };
        let start = (within.start + part.start).min(within.end);
        *within = start..(within.start + part.end).clamp(start, within.end);
        narrow
    }

    /// The problem, told where it is.
    pub fn tell(&self, words: &[String], problem: Problem) -> Diagnostic {
        match self {
            Self::Word { index, within } => {
                Diagnostic::of_words("fio", words, (*index, within.clone()), problem)
            }
            Self::Line { file, number, line, within } => {
                let place = format!("{file}:{number}:{}", within.start + 1);
                // Of a line of megabytes only what surrounds the place is shown.
                let first = if within.start > SHOWN { within.start - SHOWN / 4 } else { 0 };
                let line: String = line.chars().skip(first).take(SHOWN).collect();
                let end = (within.end - first).min(line.chars().count());
                let marked = (within.start - first).min(end)..end;
                Diagnostic { place, line: visible(&line), marked, problem }
            }
        }
    }
}

/// The line without what would move the cursor.
fn visible(line: &str) -> String {
    line.chars()
        .map(|c| {
            if c == '\t' {
                ' '
            } else if c.is_control() {
                '?'
            } else {
                c
            }
        })
        .collect()
}

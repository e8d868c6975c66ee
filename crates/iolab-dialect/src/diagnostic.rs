//! Error in a text of another program's language: where, what, and what to do.
//!
//! A place is a line of text with a marked part: a command line, or a line of a file. Left out:
//! several problems at once; the first one ends the reading.

use std::fmt;
use std::ops::Range;

use iolab_model::visible::harmless;

/// A problem without its place: what an option's own code knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Fault, with the offending text.
    pub what: String,
    /// Advice: the next thing to do.
    pub remedy: String,
}

impl Problem {
    /// A problem and its remedy.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }

    /// The same, with the option's name before a fault that does not say it.
    pub(crate) fn about(self, option: &str) -> Self {
        let what =
            if self.what.contains(option) { self.what } else { format!("{option}: {}", self.what) };
        Self { what, ..self }
    }
}

/// A problem at its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostic {
    /// Place of the line: empty for a command line, else `FILE:LINE:COLUMN`.
    pub place: String,
    /// The line.
    pub line: String,
    /// The characters of it that are wrong; empty: nothing to point at.
    pub marked: Range<usize>,
    /// Fault and advice.
    pub problem: Problem,
}

impl Diagnostic {
    /// A problem of a command line, at characters `within` of word number `index` (0 = the first
    /// after the program's name); an index past the end points behind the last word.
    pub fn of_words(
        program: &str,
        words: &[String],
        (index, within): (usize, Range<usize>),
        problem: Problem,
    ) -> Self {
        let mut line = program.to_owned();
        let mut marked = None;
        for (number, word) in words.iter().enumerate() {
            line.push(' ');
            let start = line.chars().count();
            line.push_str(&quoted(word));
            if number == index {
                // Within a quoted word nothing is counted: all of it is marked.
                let is_plain = quoted(word) == *word;
                let end = line.chars().count();
                let part = start + within.start..start.saturating_add(within.end).min(end);
                marked = Some(if is_plain && !part.is_empty() { part } else { start..end });
            }
        }
        let end = line.chars().count();
        let marked = marked.unwrap_or(end + 1..end + 2);
        Self { place: String::new(), line, marked, problem }
    }

    /// A problem of the command line as a whole.
    pub fn of_all(program: &str, words: &[String], problem: Problem) -> Self {
        let mut all = Self::of_words(program, words, (usize::MAX, 0..0), problem);
        all.marked = 0..0;
        all
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { what, remedy } = &self.problem;
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        let (line, marked) = shortened(&self.line, &self.marked);
        write!(f, "{what}\n  {line}\n")?;
        if !marked.is_empty() {
            let blanks = " ".repeat(marked.start);
            writeln!(f, "  {blanks}{}", "^".repeat(marked.len()))?;
        }
        write!(f, "  {remedy}")
    }
}

/// Characters of a line that are shown at most, and before the marked ones.
const SHOWN_MAX: usize = 600;
const SHOWN_BEFORE: usize = 100;

/// A line that is not longer than a screen, with what is marked in it.
fn shortened(line: &str, marked: &Range<usize>) -> (String, Range<usize>) {
    let length = line.chars().count();
    if length.max(marked.end) <= SHOWN_MAX {
        return (line.to_owned(), marked.clone());
    }
    let from = marked.start.min(length).saturating_sub(SHOWN_BEFORE);
    let to = (from + SHOWN_MAX).min(length);
    let dots = |is_cut: bool| if is_cut { "..." } else { "" };
    let (before, after) = (dots(from > 0), dots(to < length));
    let part: String = line.chars().skip(from).take(to - from).collect();
    let place = |at: usize| at.clamp(from, to + 1) - from + before.len();
    (format!("{before}{part}{after}"), place(marked.start)..place(marked.end))
}

/// A word as a shell would need it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./+=:,@%^".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let shown = harmless(word);
    format!("'{}'", shown.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_caret_stands_below_the_wrong_part() {
        let problem = Problem::new("wrong", "correct it");
        let shown = Diagnostic::of_words("iozone", &words("-i 0 -s64x"), (2, 2..5), problem);
        assert_eq!(
            shown.to_string(),
            "wrong\n  iozone -i 0 -s64x\n                ^^^\n  correct it"
        );
    }

    #[test]
    fn what_is_missing_is_marked_behind_the_last_word() {
        let problem = Problem::new("missing", "add it");
        let shown = Diagnostic::of_words("iozone", &words("-s"), (1, 0..0), problem);
        assert_eq!(shown.to_string(), "missing\n  iozone -s\n            ^\n  add it");
    }

    #[test]
    fn a_long_line_is_shown_around_what_is_wrong() {
        let line = "{".repeat(1_000_000);
        let problem = Problem::new("wrong", "correct it");
        let place = "s.f:1:5001".to_owned();
        let shown = Diagnostic { place, line, marked: 5000..5001, problem }.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(shown.len() < 1000 && lines[1].starts_with("  ...{{"), "{shown}");
        assert_eq!(lines[2].trim_start(), "^");
        assert_eq!(lines[2].len(), 2 + 3 + SHOWN_BEFORE + 1);
    }

    #[test]
    fn words_with_blanks_are_quoted_and_marked_as_a_whole() {
        let all = vec!["-f".to_owned(), "a b".to_owned()];
        let shown = Diagnostic::of_words("x", &all, (1, 0..1), Problem::new("w", "r")).to_string();
        assert_eq!(shown, "w\n  x -f 'a b'\n       ^^^^^\n  r");
    }
}

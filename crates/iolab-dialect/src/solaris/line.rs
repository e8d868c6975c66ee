//! A typed line, its words with their places, and what is wrong with it in one line.

use std::fmt;
use std::ops::Range;

/// A line of a file, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Name of the file.
    pub file: String,
    /// Number in it, from 1.
    pub number: usize,
    /// Text; a line that ends in a backslash goes on with the next one.
    pub text: String,
}

/// A word of a line: its text without quotes, and its characters in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineWord {
    /// Text.
    pub text: String,
    /// Characters of the line.
    pub at: Range<usize>,
}

/// A line that cannot be meant so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct LineFault {
    /// Name of the file.
    pub file: String,
    /// Number of the line, from 1.
    pub line: usize,
    /// The line.
    pub typed: String,
    /// Characters of it.
    pub at: Range<usize>,
    /// Reason, with the manual's range where there is one.
    pub what: String,
    /// Next thing to do.
    pub remedy: String,
}

/// Characters of a line that are quoted at most.
const QUOTED_MAX: usize = 160;

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, at, what, remedy, .. } = self;
        write!(f, "{file}:{line}:{}: `{}`: {what}: {remedy}", at.start + 1, self.quoted())
    }
}

impl LineFault {
    /// The line as it is quoted.
    pub fn quoted(&self) -> String {
        quoted(&self.typed)
    }
}

/// A line as it is quoted in one line: no control characters, not endless.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let trimmed = text.trim();
    let mut shown: String = trimmed.chars().take(QUOTED_MAX).map(plain).collect();
    if trimmed.chars().count() > QUOTED_MAX {
        shown.push_str("...");
    }
    shown
}

impl Line {
    /// Something wrong with these characters of it.
    pub fn fault(
        &self,
        at: &Range<usize>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> LineFault {
        LineFault {
            file: self.file.clone(),
            line: self.number,
            typed: self.text.clone(),
            at: at.clone(),
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// `FILE:LINE`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.number)
    }

    /// Words from character `from` on; quotes hold blanks together.
    pub fn words(&self, from: usize) -> Vec<LineWord> {
        let mut words: Vec<LineWord> = Vec::new();
        let mut open: Option<LineWord> = None;
        let mut quote = None;
        for (index, letter) in self.text.chars().enumerate().skip(from) {
            if quote.is_none() && letter.is_whitespace() {
                words.extend(open.take());
                continue;
            }
            let word =
                open.get_or_insert_with(|| LineWord { text: String::new(), at: index..index });
            word.at.end = index + 1;
            match (quote, letter) {
                (None, '"' | '\'') => quote = Some(letter),
                (Some(mark), _) if mark == letter => quote = None,
                _ => word.text.push(letter),
            }
        }
        words.extend(open);
        words
    }
}

/// Lines of a text; one that ends in a backslash goes on.
pub fn lines(file: &str, text: &str) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    let mut goes_on = false;
    for (index, text) in text.lines().enumerate() {
        let (kept, more) = match text.strip_suffix('\\') {
            Some(kept) => (format!("{kept} "), true),
            None => (text.to_owned(), false),
        };
        match all.last_mut().filter(|_| goes_on) {
            Some(line) => line.text.push_str(&kept),
            None => all.push(Line { file: file.to_owned(), number: index + 1, text: kept }),
        }
        goes_on = more;
    }
    all
}

impl LineWord {
    /// Parts between commas, each with its characters; quotes are not expected inside.
    pub fn parts(&self) -> Vec<Self> {
        let mut from = self.at.start;
        let part = |text: &str| {
            let at = from..from + text.chars().count();
            from = at.end + 1;
            Self { text: text.to_owned(), at }
        };
        self.text.split(',').map(part).filter(|part| !part.text.is_empty()).collect()
    }

    /// Key and value of `key=value`.
    pub fn key_value(&self) -> (Self, Option<Self>) {
        let Some((key, value)) = self.text.split_once('=') else { return (self.clone(), None) };
        let length = key.chars().count();
        let middle = (self.at.start + length).min(self.at.end);
        let behind = (middle + 1).min(self.at.end);
        let key = Self { text: key.to_owned(), at: self.at.start..middle };
        (key, Some(Self { text: value.to_owned(), at: behind..self.at.end }))
    }

    /// Last part of a path: `d0` of `/dev/md/rdsk/d0`.
    pub fn base(&self) -> &str {
        let trimmed = self.text.trim_end_matches('/');
        trimmed.rsplit('/').next().unwrap_or(trimmed)
    }
}

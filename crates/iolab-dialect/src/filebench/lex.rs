//! Words of a script: the first step of reading it.

use crate::diagnostic::{Diagnostic, Problem};

/// A script and its name in messages.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// File, or the name of a personality.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Place in a script: line and characters of it, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptSpot {
    /// Line.
    pub line: usize,
    /// First character.
    pub from: usize,
    /// Behind the last one.
    pub to: usize,
}

/// A problem at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFault {
    /// Place.
    pub spot: ScriptSpot,
    /// Fault and advice.
    pub problem: Problem,
}

impl ScriptFault {
    /// A problem at a place.
    pub fn new(spot: ScriptSpot, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { spot, problem: Problem::new(what, remedy) }
    }
}

impl Source {
    /// The message about a problem.
    pub fn tell(&self, wrong: ScriptFault) -> Diagnostic {
        let ScriptFault { spot, problem } = wrong;
        let line = self.text.lines().nth(spot.line).unwrap_or_default();
        // A blank of its own width for each tab: the mark stands below its word.
        let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let place = format!("{}:{}:{}", self.name, spot.line + 1, spot.from + 1);
        let marked = spot.from..spot.to.max(spot.from + 1);
        Diagnostic { place, line, marked, problem }
    }
}

/// A word with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Lexeme {
    /// Word.
    pub kind: LexemeKind,
    /// Place.
    pub spot: ScriptSpot,
}

/// `LexemeKind` of a word.
#[derive(Clone, Debug, PartialEq)]
pub enum LexemeKind {
    /// A bare word: a keyword, a name, a path.
    Word(String),
    /// A whole number, its suffix applied.
    Integer(i64),
    /// `$name`, without the dollar sign.
    Variable(String),
    /// Text in double quotes, as it stands there.
    Quoted(String),
    /// One of `{ } ( ) = , * +`.
    Symbol(char),
    /// Behind the last word.
    End,
}

impl Lexeme {
    /// The word for messages.
    pub fn shown(&self) -> String {
        match &self.kind {
            LexemeKind::Word(text) => text.clone(),
            LexemeKind::Integer(value) => value.to_string(),
            LexemeKind::Variable(name) => format!("${name}"),
            LexemeKind::Quoted(text) => format!("\"{text}\""),
            LexemeKind::Symbol(symbol) => symbol.to_string(),
            LexemeKind::End => "the end of the script".to_owned(),
        }
    }
}

/// Longest script: it is kept in memory several times.
pub const SCRIPT_BYTES_MAX: usize = 4 << 20;

struct Lexer {
    line: usize,
    characters: Vec<char>,
    at: usize,
    tokens: Vec<Lexeme>,
}

/// All words of a script, and one behind the last.
pub fn tokens(source: &Source) -> Result<Vec<Lexeme>, ScriptFault> {
    if source.text.len() > SCRIPT_BYTES_MAX {
        let what = format!("a script of {} bytes", source.text.len());
        return Err(ScriptFault::new(ScriptSpot::default(), what, "write at most 4 MiB"));
    }
    let mut lexer = Lexer { line: 0, characters: Vec::new(), at: 0, tokens: Vec::new() };
    let lines: Vec<&str> = source.text.lines().collect();
    while let Some(line) = lines.get(lexer.line) {
        lexer.characters = line.chars().collect();
        lexer.at = 0;
        lexer.read_line(&lines)?;
        lexer.line += 1;
    }
    let line = lines.len().saturating_sub(1);
    let end = lines.last().map_or(0, |line| line.chars().count());
    let spot = ScriptSpot { line, from: end, to: end + 1 };
    lexer.tokens.push(Lexeme { kind: LexemeKind::End, spot });
    Ok(lexer.tokens)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._:;-".contains(c)
}

impl Lexer {
    fn spot(&self, from: usize) -> ScriptSpot {
        ScriptSpot { line: self.line, from, to: self.at }
    }

    fn push(&mut self, kind: LexemeKind, from: usize) {
        let spot = self.spot(from);
        self.tokens.push(Lexeme { kind, spot });
    }

    fn taken(&mut self, is_part: impl Fn(char) -> bool) -> String {
        let rest = self.characters[self.at..].iter().copied();
        let text: String = rest.take_while(|c| is_part(*c)).collect();
        self.at += text.chars().count();
        text
    }

    fn read_line(&mut self, lines: &[&str]) -> Result<(), ScriptFault> {
        while let Some(&first) = self.characters.get(self.at) {
            let from = self.at;
            match first {
                '#' => return Ok(()),
                c if c.is_whitespace() => self.at += 1,
                '{' | '}' | '(' | ')' | '=' | ',' | '*' | '+' => {
                    self.at += 1;
                    self.push(LexemeKind::Symbol(first), from);
                }
                '"' => self.quoted(lines)?,
                '$' => self.variable()?,
                '0'..='9' => self.number()?,
                '-' if self.characters.get(from + 1).is_some_and(char::is_ascii_digit) => {
                    self.number()?;
                }
                c if is_word(c) => {
                    let word = self.taken(is_word);
                    self.push(LexemeKind::Word(word), from);
                }
                c => {
                    self.at += 1;
                    let what = format!("Illegal character at '{c}'");
                    let remedy = "put text with such characters into double quotes";
                    return Err(ScriptFault::new(self.spot(from), what, remedy));
                }
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), ScriptFault> {
        let from = self.at;
        self.at += usize::from(self.characters[from] == '-');
        let text = self.taken(is_word);
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let factor: i64 = match &text[digits.len()..] {
            "" => 1,
            "k" => 1 << 10,
            "m" => 1 << 20,
            "g" => 1 << 30,
            _ => {
                let what = format!("Invalid number '{text}'");
                let remedy = "write whole numbers with k, m, g (1024, small letters) or nothing; \
                              text that begins with a digit goes into double quotes";
                return Err(ScriptFault::new(self.spot(from), what, remedy));
            }
        };
        let value = digits.parse::<i64>().ok().and_then(|value| value.checked_mul(factor));
        let Some(value) = value else {
            let what = format!("Invalid number '{text}'");
            return Err(ScriptFault::new(self.spot(from), what, "write a number below 2^63"));
        };
        let sign = if self.characters[from] == '-' { -1 } else { 1 };
        self.push(LexemeKind::Integer(sign * value), from);
        Ok(())
    }

    fn variable(&mut self) -> Result<(), ScriptFault> {
        let from = self.at;
        self.at += 1;
        let close = match self.characters.get(self.at) {
            Some('{') => Some('}'),
            Some('(') => Some(')'),
            _ => None,
        };
        self.at += usize::from(close.is_some());
        let name = self.taken(|c| c.is_ascii_alphanumeric() || c == '_');
        if let Some(close) = close {
            if self.characters.get(self.at) != Some(&close) {
                let what = format!("a variable without its '{close}'");
                return Err(ScriptFault::new(self.spot(from), what, format!("write ${{{name}}}")));
            }
            self.at += 1;
        }
        if name.len() < 2 || name.starts_with(|c: char| c.is_ascii_digit()) {
            let what = "Illegal character at '$'";
            let remedy =
                "a variable has a name of at least two letters, digits or _, a letter first";
            return Err(ScriptFault::new(self.spot(from), what, remedy));
        }
        self.push(LexemeKind::Variable(name), from);
        Ok(())
    }

    /// Text in double quotes, perhaps over several lines.
    fn quoted(&mut self, lines: &[&str]) -> Result<(), ScriptFault> {
        let (line, from) = (self.line, self.at);
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.characters.get(self.at) {
                Some('"') => {
                    self.at += 1;
                    let to = if line == self.line { self.at } else { from + 1 };
                    let spot = ScriptSpot { line, from, to };
                    self.tokens.push(Lexeme { kind: LexemeKind::Quoted(text), spot });
                    return Ok(());
                }
                Some('\\') if self.characters.get(self.at + 1) == Some(&'"') => {
                    text.push_str("\\\"");
                    self.at += 2;
                }
                Some(c) => {
                    text.push(*c);
                    self.at += 1;
                }
                None => {
                    let Some(next) = lines.get(self.line + 1) else {
                        let spot = ScriptSpot { line, from, to: from + 1 };
                        let what = "text whose double quotes are not closed";
                        return Err(ScriptFault::new(spot, what, "close it with \""));
                    };
                    text.push('\n');
                    self.line += 1;
                    self.characters = next.chars().collect();
                    self.at = 0;
                }
            }
        }
    }
}

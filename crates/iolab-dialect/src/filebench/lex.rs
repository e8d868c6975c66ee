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
pub struct Spot {
    /// Line.
    pub line: usize,
    /// First character.
    pub from: usize,
    /// Behind the last one.
    pub to: usize,
}

/// A problem at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Place.
    pub spot: Spot,
    /// Fault and advice.
    pub problem: Problem,
}

impl Wrong {
    /// A problem at a place.
    pub fn new(spot: Spot, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { spot, problem: Problem::new(what, remedy) }
    }
}

impl Source {
    /// The message about a problem.
    pub fn tell(&self, wrong: Wrong) -> Diagnostic {
        let Wrong { spot, problem } = wrong;
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
pub struct Token {
    /// Word.
    pub kind: Kind,
    /// Place.
    pub spot: Spot,
}

/// Kind of a word.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
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

impl Token {
    /// The word for messages.
    pub fn shown(&self) -> String {
        match &self.kind {
            Kind::Word(text) => text.clone(),
            Kind::Integer(value) => value.to_string(),
            Kind::Variable(name) => format!("${name}"),
            Kind::Quoted(text) => format!("\"{text}\""),
            Kind::Symbol(symbol) => symbol.to_string(),
            Kind::End => "the end of the script".to_owned(),
        }
    }
}

/// Longest script: it is kept in memory several times.
const SCRIPT_BYTES_MAX: usize = 4 << 20;

struct Lexer {
    line: usize,
    characters: Vec<char>,
    at: usize,
    tokens: Vec<Token>,
}

/// All words of a script, and one behind the last.
pub fn tokens(source: &Source) -> Result<Vec<Token>, Wrong> {
    if source.text.len() > SCRIPT_BYTES_MAX {
        let what = format!("a script of {} bytes", source.text.len());
        return Err(Wrong::new(Spot::default(), what, "write at most 4 MiB"));
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
    let spot = Spot { line, from: end, to: end + 1 };
    lexer.tokens.push(Token { kind: Kind::End, spot });
    Ok(lexer.tokens)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._:;-".contains(c)
}

impl Lexer {
    fn spot(&self, from: usize) -> Spot {
        Spot { line: self.line, from, to: self.at }
    }

    fn push(&mut self, kind: Kind, from: usize) {
        let spot = self.spot(from);
        self.tokens.push(Token { kind, spot });
    }

    fn taken(&mut self, is_part: impl Fn(char) -> bool) -> String {
        let rest = self.characters[self.at..].iter().copied();
        let text: String = rest.take_while(|c| is_part(*c)).collect();
        self.at += text.chars().count();
        text
    }

    fn read_line(&mut self, lines: &[&str]) -> Result<(), Wrong> {
        while let Some(&first) = self.characters.get(self.at) {
            let from = self.at;
            match first {
                '#' => return Ok(()),
                c if c.is_whitespace() => self.at += 1,
                '{' | '}' | '(' | ')' | '=' | ',' | '*' | '+' => {
                    self.at += 1;
                    self.push(Kind::Symbol(first), from);
                }
                '"' => self.quoted(lines)?,
                '$' => self.variable()?,
                '0'..='9' => self.number()?,
                '-' if self.characters.get(from + 1).is_some_and(char::is_ascii_digit) => {
                    self.number()?;
                }
                c if is_word(c) => {
                    let word = self.taken(is_word);
                    self.push(Kind::Word(word), from);
                }
                c => {
                    self.at += 1;
                    let what = format!("Illegal character at '{c}'");
                    let remedy = "put text with such characters into double quotes";
                    return Err(Wrong::new(self.spot(from), what, remedy));
                }
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Wrong> {
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
                return Err(Wrong::new(self.spot(from), what, remedy));
            }
        };
        let value = digits.parse::<i64>().ok().and_then(|value| value.checked_mul(factor));
        let Some(value) = value else {
            let what = format!("Invalid number '{text}'");
            return Err(Wrong::new(self.spot(from), what, "write a number below 2^63"));
        };
        let sign = if self.characters[from] == '-' { -1 } else { 1 };
        self.push(Kind::Integer(sign * value), from);
        Ok(())
    }

    fn variable(&mut self) -> Result<(), Wrong> {
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
                return Err(Wrong::new(self.spot(from), what, format!("write ${{{name}}}")));
            }
            self.at += 1;
        }
        if name.len() < 2 || name.starts_with(|c: char| c.is_ascii_digit()) {
            let what = "Illegal character at '$'";
            let remedy =
                "a variable has a name of at least two letters, digits or _, a letter first";
            return Err(Wrong::new(self.spot(from), what, remedy));
        }
        self.push(Kind::Variable(name), from);
        Ok(())
    }

    /// Text in double quotes, perhaps over several lines.
    fn quoted(&mut self, lines: &[&str]) -> Result<(), Wrong> {
        let (line, from) = (self.line, self.at);
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.characters.get(self.at) {
                Some('"') => {
                    self.at += 1;
                    let to = if line == self.line { self.at } else { from + 1 };
                    let spot = Spot { line, from, to };
                    self.tokens.push(Token { kind: Kind::Quoted(text), spot });
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
                        let spot = Spot { line, from, to: from + 1 };
                        let what = "text whose double quotes are not closed";
                        return Err(Wrong::new(spot, what, "close it with \""));
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

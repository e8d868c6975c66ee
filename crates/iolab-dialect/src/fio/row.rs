//! The typed table of job options: what a row says, and how a value becomes a field of a job.

use super::job::Job;
use super::value::{self, Amount, Fault, Read, TimeUnit, whole};
use crate::diagnostic::Problem;
use crate::option::Standing;

/// Kind of value that an option takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// 0 or 1; alone it is 1.
    Flag,
    /// A whole number between bounds.
    Count(i64, i64),
    /// Bytes.
    Size,
    /// Bytes, or percent of the file.
    Amount,
    /// A length of time, in this unit where none is written.
    Time(TimeUnit),
    /// Two lengths of time.
    TimeRange(TimeUnit),
    /// Two sizes.
    SizeRange,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, perhaps with more behind a colon.
    ChoiceAndMore(&'static [&'static str]),
    /// Any text.
    Text,
    /// Any text, or nothing.
    Prefix,
    /// Numbers between colons.
    Floats,
    /// Bytes for reads, writes and trims.
    Sizes,
    /// Whole numbers for reads, writes and trims, at most so much.
    Counts(i64),
    /// Two sizes for each of reads, writes and trims.
    SizeRanges,
}

impl Kind {
    /// As the reference page calls it.
    pub fn name(&self) -> String {
        match self {
            Self::Flag => "0 or 1".to_owned(),
            Self::Count(..) => "number".to_owned(),
            Self::Size => "size".to_owned(),
            Self::Amount => "size or %".to_owned(),
            Self::Time(unit) => format!("time ({})", unit.name()),
            Self::TimeRange(unit) => format!("time ({}) or range", unit.name()),
            Self::SizeRange => "size or range".to_owned(),
            Self::Choice(words) | Self::ChoiceAndMore(words) => words.join(", "),
            Self::Text => "text".to_owned(),
            Self::Prefix => "text or nothing".to_owned(),
            Self::Floats => "numbers".to_owned(),
            Self::Sizes => "size[,size[,size]]".to_owned(),
            Self::Counts(_) => "number[,number[,number]]".to_owned(),
            Self::SizeRanges => "range[,range[,range]]".to_owned(),
        }
    }

    /// Tell whether it may stand alone on a command line, so that the next word is no value of it.
    pub const fn may_stand_alone(&self) -> bool {
        matches!(self, Self::Flag)
    }
}

/// A value of its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a flag.
    Flag(bool),
    /// A number, bytes or nanoseconds.
    Number(u64),
    /// A number that may be negative.
    Signed(i64),
    /// Bytes or a share.
    Amount(Amount),
    /// Two bounds.
    Range((u64, u64)),
    /// Ordinal of a word, and what stands behind it.
    Word(usize, Option<String>),
    /// A text.
    Text(String),
    /// Numbers.
    Floats(Vec<f64>),
    /// One for each direction.
    Three([Option<u64>; 3]),
    /// Two bounds for each direction.
    Ranges([Option<(u64, u64)>; 3]),
}

/// Takes a value into a job; may refuse it.
pub type Set = fn(&mut Job, Value) -> Result<(), Problem>;

/// Certainty that an option works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Must work.
    T1,
    /// Should work.
    T2,
    /// Known and refused.
    T3,
}

/// One job option.
#[derive(Debug)]
pub struct Row {
    /// Its canonical name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Heading of the reference page.
    pub group: &'static str,
    /// Its values.
    pub kind: Kind,
    /// The value it has if nothing is said; empty: none.
    pub default: &'static str,
    /// Tier of the specification.
    pub tier: Tier,
    /// Effect, in one line.
    pub doc: &'static str,
    /// Degree to which it is done.
    pub standing: Standing,
    /// Takes its value.
    pub set: Set,
}

impl Row {
    /// The value of a text, or of an option that stands alone.
    pub fn read(&self, text: Option<&str>, kb_base: u64) -> Read<Value> {
        let Some(text) = text else {
            return match self.kind {
                Kind::Flag => Ok(Value::Flag(true)),
                Kind::Prefix => Ok(Value::Text(String::new())),
                Kind::Text if self.may_be_empty() => Ok(Value::Text(String::new())),
                _ => Err((0..usize::MAX, self.needs_value())),
            };
        };
        let size = |text: &str| value::size(text, kb_base);
        let time = |text: &str, unit| value::time(text, unit, kb_base);
        match self.kind {
            Kind::Flag => self.flag(text).map(Value::Flag),
            Kind::Count(low, high) => self.bounded(text, (low, high), kb_base).map(Value::Signed),
            Kind::Size => size(text).map(Value::Number),
            Kind::Amount => value::amount(text, kb_base).map(Value::Amount),
            Kind::Time(unit) => time(text, unit).map(Value::Number),
            Kind::TimeRange(unit) => value::range(text, |t| time(t, unit)).map(Value::Range),
            Kind::SizeRange => value::range(text, size).map(Value::Range),
            Kind::Choice(words) => {
                let at = words.iter().position(|word| *word == text);
                at.map(|at| Value::Word(at, None)).ok_or_else(|| self.unknown(text, words))
            }
            Kind::ChoiceAndMore(words) => {
                let (word, more) =
                    text.split_once(':').map_or((text, None), |(w, m)| (w, Some(m.to_owned())));
                let at = words.iter().position(|known| *known == word);
                at.map(|at| Value::Word(at, more)).ok_or_else(|| self.unknown(word, words))
            }
            Kind::Text | Kind::Prefix => Ok(Value::Text(text.to_owned())),
            Kind::Floats => value::floats(text).map(Value::Floats),
            Kind::Sizes => value::triple(text, size).map(Value::Three),
            Kind::Counts(high) => {
                let one = |text: &str| self.bounded(text, (0, high), kb_base);
                let unsigned = |value: Option<i64>| value.map(i64::unsigned_abs);
                value::triple(text, one).map(|three| Value::Three(three.map(unsigned)))
            }
            Kind::SizeRanges => {
                let range = |text: &str| {
                    if text.contains(['-', ':', '/']) {
                        value::range(text, size)
                    } else {
                        Err((whole(text), self.needs_two(text)))
                    }
                };
                value::triple(text, range).map(Value::Ranges)
            }
        }
    }

    fn needs_two(&self, text: &str) -> Problem {
        let what = format!("{}: '{text}' is no range", self.name);
        Problem::new(what, format!("write {}=LOW-HIGH, as 4k-16k", self.name))
    }

    fn may_be_empty(&self) -> bool {
        self.default.is_empty() && matches!(self.standing, Standing::Refused(..))
    }

    fn needs_value(&self) -> Problem {
        let what = format!("{} needs a value: {}", self.name, self.kind.name());
        Problem::new(what, format!("write {}=VALUE", self.name))
    }

    fn flag(&self, text: &str) -> Read<bool> {
        match text {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => {
                let what = format!("{} is 0 or 1, not '{text}'", self.name);
                Err((whole(text), Problem::new(what, "write 0 or 1")))
            }
        }
    }

    fn bounded(&self, text: &str, (low, high): (i64, i64), kb_base: u64) -> Read<i64> {
        let value = value::integer(text, kb_base)?;
        let wrong = |what: String| -> Fault {
            let bounds = match (low, high) {
                (low, i64::MAX) => format!("use {low} or more"),
                (low, high) => format!("use {low} to {high}"),
            };
            (whole(text), Problem::new(format!("{}: {what}", self.name), bounds))
        };
        match value {
            _ if value > high => Err(wrong(format!("{value} is out of range ({high} at most)"))),
            _ if value < low => Err(wrong(format!("{value} is out of range ({low} at least)"))),
            _ => Ok(value),
        }
    }

    fn unknown(&self, text: &str, words: &[&'static str]) -> Fault {
        let hint = iolab_model::nearest::did_you_mean(text, words.iter().copied());
        let what = format!("{} has no value '{text}'{hint}", self.name);
        (whole(text), Problem::new(what, format!("use one of {}", words.join(", "))))
    }

    /// Tell whether `name` is one of its names.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

impl Value {
    /// Of a flag.
    pub fn flag(&self) -> bool {
        matches!(self, Self::Flag(true))
    }

    /// A number that is not negative.
    pub fn number(&self) -> u64 {
        match self {
            Self::Number(value) => *value,
            Self::Signed(value) => value.unsigned_abs(),
            _ => 0,
        }
    }

    /// A small number that may be negative.
    pub fn signed(&self) -> i8 {
        match self {
            Self::Signed(value) => i8::try_from(*value).unwrap_or_default(),
            _ => 0,
        }
    }

    /// Bytes or a share.
    pub fn amount(&self) -> Amount {
        match self {
            Self::Amount(amount) => *amount,
            _ => Amount::Bytes(self.number()),
        }
    }

    /// Two bounds.
    pub fn range(&self) -> (u64, u64) {
        match self {
            Self::Range(range) => *range,
            _ => (0, 0),
        }
    }

    /// Ordinal of the word.
    pub fn word(&self) -> usize {
        match self {
            Self::Word(at, _) => *at,
            _ => 0,
        }
    }

    /// Text behind the word.
    pub fn more(&self) -> Option<String> {
        match self {
            Self::Word(_, more) => more.clone(),
            _ => None,
        }
    }

    /// The text.
    pub fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            _ => String::new(),
        }
    }

    /// Numbers.
    pub fn floats(self) -> Vec<f64> {
        match self {
            Self::Floats(values) => values,
            _ => Vec::new(),
        }
    }

    /// One for each direction.
    pub fn three(&self) -> [Option<u64>; 3] {
        match self {
            Self::Three(three) => *three,
            _ => [None; 3],
        }
    }

    /// Two bounds for each direction.
    pub fn ranges(&self) -> [Option<(u64, u64)>; 3] {
        match self {
            Self::Ranges(ranges) => *ranges,
            _ => [None; 3],
        }
    }
}

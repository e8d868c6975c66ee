//! Forms of the value behind the name of an option, and their descriptions.
//!
//! Every form is a closed set of characters without `/`, so that no value can name a file or a
//! device. Where a program rounds a number without a word, or the kernel refuses later what the
//! program took, only the numbers that it takes as they are stand here; what any other number
//! means, mkfs and the kernel judge.

use std::ops::RangeInclusive;

use super::Row;

/// Longer values are nobody's.
const VALUE_MAX: usize = 200;

/// Form of an option's value.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// Nothing.
    Flag,
    /// A whole number, both bounds included.
    Number(u64, u64),
    /// A number, perhaps with one letter for its unit.
    Size,
    /// A power of two, both bounds included.
    PowerOfTwo(u64, u64),
    /// A power of two, perhaps with `k` or `m` behind a number of these.
    SizeOfTwo(u64, u64),
    /// Per cent of the blocks, perhaps with a fraction.
    Percent,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words, perhaps with `:` and a level.
    Leveled(&'static [&'static str]),
    /// Some of these words, each perhaps with `^` for its opposite, or `none`.
    Features(&'static [&'static str]),
    /// Some of these words, joined by colons.
    Joined(&'static [&'static str]),
    /// Plain words.
    Names,
    /// A plain word.
    Label,
    /// Options of an option.
    List(&'static [Row]),
    /// The same, and it may be left out.
    Perhaps(&'static Form),
}

/// 0 or 1; alone it is 1.
pub const SWITCH: Form = Form::Perhaps(&Form::Number(0, 1));

impl Form {
    /// Tell whether a value may follow; it may have to.
    pub fn takes_value(self) -> bool {
        !matches!(self, Self::Flag)
    }

    /// Fault of a value, or of a missing one.
    pub fn trouble(self, value: Option<&str>) -> Option<String> {
        match (self, value) {
            (Self::Flag | Self::Perhaps(_), None) => None,
            (Self::Flag, Some(_)) => Some("takes no value".to_owned()),
            (_, None) => Some(format!("needs a value: {}", self.describe())),
            (_, Some(value)) => self.trouble_of(value),
        }
    }

    fn trouble_of(self, value: &str) -> Option<String> {
        let is_fine = match self {
            Self::Flag => false,
            Self::Number(least, most) => {
                is_number(value)
                    && value.parse().is_ok_and(|number| (least..=most).contains(&number))
            }
            Self::Size => is_size(value),
            Self::PowerOfTwo(least, most) => is_power_of_two(value, 1, least..=most),
            Self::SizeOfTwo(least, most) => {
                let (number, unit) = without_unit(value);
                is_power_of_two(number, unit, least..=most)
            }
            Self::Percent => is_percent(value),
            Self::Word(words) => words.contains(&value),
            Self::Leveled(words) => {
                let (word, level) = value.split_once(':').unwrap_or((value, "0"));
                words.contains(&word) && level.len() <= 3 && is_number(level)
            }
            Self::Features(words) => value.split(',').all(|word| {
                word == "none" || words.contains(&word.strip_prefix('^').unwrap_or(word))
            }),
            Self::Joined(words) => value.split(':').all(|word| words.contains(&word)),
            Self::Names => value.split(',').all(is_plain),
            Self::Label => is_plain(value),
            Self::List(rows) => return super::list_trouble(rows, value),
            Self::Perhaps(form) => return form.trouble_of(value),
        };
        let is_short = value.len() <= VALUE_MAX;
        (!is_fine || !is_short).then(|| match self {
            Self::Word(words) => format!("takes {}, not '{value}'", words.join(" or ")),
            _ => format!("does not take '{value}', but {}", self.describe()),
        })
    }

    /// Accepted values, as a phrase.
    pub fn describe(self) -> String {
        match self {
            Self::Flag => String::new(),
            Self::Number(least, u64::MAX) => format!("a number of at least {least}"),
            Self::Number(least, most) => format!("a number from {least} to {most}"),
            Self::Size => "a number, perhaps with a letter for its unit".to_owned(),
            Self::PowerOfTwo(least, most) => format!("a power of two from {least} to {most}"),
            Self::SizeOfTwo(least, most) => {
                format!("a power of two from {least} to {most}, perhaps with k or m for its unit")
            }
            Self::Percent => "a percentage up to 50".to_owned(),
            Self::Word([only]) => (*only).to_owned(),
            Self::Word(words) => format!("one of {}", words.join(", ")),
            Self::Leveled(words) => {
                format!("one of {}, or with a level (WORD:N)", words.join(", "))
            }
            Self::Features(words) => {
                format!("a list of {}; ^ in front means without", words.join(", "))
            }
            Self::Joined(words) => format!("one or more of {}, joined by colons", words.join(", ")),
            Self::Names => "plain words".to_owned(),
            Self::Label => "a plain word".to_owned(),
            Self::List(rows) => {
                let known: Vec<String> = rows.iter().map(Row::describe).collect();
                format!("a list of {}", known.join("; "))
            }
            Self::Perhaps(form) => format!("nothing or {}", form.describe()),
        }
    }
}

fn is_number(text: &str) -> bool {
    (1..=19).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_size(text: &str) -> bool {
    is_number(text.strip_suffix(|unit: char| "bBsSkKmMgGtTpP".contains(unit)).unwrap_or(text))
}

/// A number, and how much each of it counts.
fn without_unit(text: &str) -> (&str, u64) {
    let units = [(['k', 'K'], 1 << 10), (['m', 'M'], 1 << 20)];
    let found = units.iter().find_map(|(letters, unit)| Some((text.strip_suffix(letters)?, *unit)));
    found.unwrap_or((text, 1))
}

/// True if so many of a unit are a power of two within bounds.
fn is_power_of_two(text: &str, unit: u64, bounds: RangeInclusive<u64>) -> bool {
    let count = text.parse::<u64>().ok().filter(|_| is_number(text));
    let whole = count.and_then(|count| count.checked_mul(unit));
    whole.is_some_and(|whole| whole.is_power_of_two() && bounds.contains(&whole))
}

fn is_percent(text: &str) -> bool {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    is_number(whole) && is_number(part) && text.parse().is_ok_and(|share: f64| share <= 50.0)
}

fn is_plain(text: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric) && text.bytes().all(is_safe)
}

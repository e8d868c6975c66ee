//! Values of fio's options: numbers with units, times, ranges, triples of directions, expressions.
//!
//! Facts: fio 3.33. It drops what follows a number and is no unit (`4q` is 4); that is refused.

use std::ops::Range;

use crate::diagnostic::Problem;

/// Fault, and the offending characters of the value.
pub type Fault = (Range<usize>, Problem);
/// A value, or what is wrong with it.
pub type Read<T> = Result<T, Fault>;

/// Unit of a number of an option of time that names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl TimeUnit {
    /// Nanoseconds.
    pub const fn ns(self) -> u64 {
        match self {
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
            Self::S => 1_000_000_000,
        }
    }

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
        }
    }
}

/// Bytes, or a share of what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Number of bytes.
    Bytes(u64),
    /// Percentage, 1 to 100.
    Percent(u64),
}

const TIMES: &[(&str, u64)] = &[
    ("us", 1_000),
    ("usec", 1_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
const POWERS: &str = "kmgtp";
const NUMBER: &str = "write a whole number, perhaps with k, m, g, t or p";

fn fault<T>(within: Range<usize>, what: String, remedy: impl Into<String>) -> Read<T> {
    Err((within, Problem::new(what, remedy)))
}

/// All characters of `text`.
pub fn whole(text: &str) -> Range<usize> {
    0..text.chars().count()
}

/// Sign, digits and what follows them; `None` without digits.
fn digits(text: &str) -> Option<(bool, u64, &str)> {
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hex = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"));
    let (radix, rest) = hex.map_or((10, rest), |rest| (16, rest));
    let end = rest.find(|c: char| !c.is_digit(radix)).unwrap_or(rest.len());
    let number = u64::from_str_radix(&rest[..end], radix).ok()?;
    Some((is_negative, number, &rest[end..]))
}

/// Factor of a suffix of a size: k to p are powers of `kb_base`, and with `ib` behind them of the
/// other base (for old scripts).
fn size_unit(suffix: &str, kb_base: u64) -> Option<u64> {
    let lower = suffix.to_ascii_lowercase();
    if lower.is_empty() || lower == "b" {
        return Some(1);
    }
    let power = POWERS.find(lower.chars().next()?)? as u32 + 1;
    let base = match &lower[1..] {
        "" | "b" | "i" => kb_base,
        "ib" if kb_base == 1000 => 1024,
        "ib" => 1000,
        _ => return None,
    };
    base.checked_pow(power)
}

impl Default for Amount {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

/// A whole number with or without sign and unit.
pub fn integer(text: &str, kb_base: u64) -> Read<i64> {
    if let Some(inner) = parenthesised(text) {
        let value = Expression::new(inner, kb_base).value()?;
        return Ok(value);
    }
    let Some((is_negative, number, suffix)) = digits(text) else {
        return fault(whole(text), format!("'{text}' is not a number"), NUMBER);
    };
    let length = whole(text).end;
    let at = length - suffix.chars().count();
    let Some(unit) = size_unit(suffix, kb_base) else {
        let what = if suffix.starts_with('.') {
            format!("invalid number '{text}': no fraction of it counts")
        } else {
            format!("invalid number '{text}': '{suffix}' is no unit")
        };
        return fault(at..length, what, format!("{NUMBER}; fio would silently drop a part of it"));
    };
    let value = number.checked_mul(unit).and_then(|value| i64::try_from(value).ok());
    match value {
        Some(value) => Ok(if is_negative { -value } else { value }),
        None => fault(whole(text), format!("'{text}' is too large"), NUMBER),
    }
}

/// Bytes.
pub fn size(text: &str, kb_base: u64) -> Read<u64> {
    let value = integer(text, kb_base)?;
    let negative = || (whole(text), Problem::new(format!("'{text}' is negative"), NUMBER));
    u64::try_from(value).map_err(|_| negative())
}

/// Bytes, or a share.
pub fn amount(text: &str, kb_base: u64) -> Read<Amount> {
    let Some(number) = text.strip_suffix('%') else {
        return size(text, kb_base).map(Amount::Bytes);
    };
    match size(number, kb_base)? {
        percent @ 1..=100 => Ok(Amount::Percent(percent)),
        percent => fault(
            whole(text),
            format!("{percent} % is no share of a file"),
            "write 1% to 100%, or a number of bytes",
        ),
    }
}

/// Longest time that is taken: ten years.
const TIME_MAX: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// A length of time in nanoseconds.
pub fn time(text: &str, default: TimeUnit, kb_base: u64) -> Read<u64> {
    let remedy = "write a whole number, perhaps with us, ms, s, m, h or d";
    if let Some(inner) = parenthesised(text) {
        // Inside parentheses the unit is a microsecond, whatever the option's own is.
        let value = Expression::new(inner, kb_base).value()?;
        return Ok(u64::try_from(value).unwrap_or(0).saturating_mul(1000));
    }
    let Some((is_negative, number, suffix)) = digits(text) else {
        return fault(whole(text), format!("'{text}' is not a time"), remedy);
    };
    let length = whole(text).end;
    let at = length - suffix.chars().count();
    let known = TIMES.iter().find(|(name, _)| *name == suffix.to_ascii_lowercase());
    let unit = match (suffix, known) {
        ("", _) => default.ns(),
        (_, Some((_, unit))) => *unit,
        _ if suffix.starts_with('.') => {
            let what = format!("'{text}' is a fraction, which fio would cut to {number}");
            return fault(at..length, what, "write it in a smaller unit: 1500ms");
        }
        _ => {
            let what = format!("'{text}': '{suffix}' is no unit of time");
            return fault(at..length, what, remedy);
        }
    };
    match number.checked_mul(unit) {
        Some(ns) if !is_negative && ns > TIME_MAX => {
            fault(whole(text), format!("'{text}' is more than ten years"), "write a shorter time")
        }
        Some(ns) if !is_negative => Ok(ns),
        _ => fault(whole(text), format!("'{text}' is no time"), remedy),
    }
}

/// A value for each direction: read, write, trim; absent where it keeps what it has.
pub fn triple<T: Copy>(text: &str, one: impl Fn(&str) -> Read<T>) -> Read<[Option<T>; 3]> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        let what = format!("'{text}' has {} values", parts.len());
        return fault(whole(text), what, "write one for reads, one for writes, one for trims");
    }
    let mut found = [None; 3];
    let mut at = 0;
    for (place, part) in parts.iter().enumerate() {
        if !part.is_empty() {
            found[place] = Some(one(part).map_err(|fault| shifted(fault, at))?);
        }
        at += part.chars().count() + 1;
    }
    match parts.len() {
        1 => found = [found[0]; 3],
        2 => found[2] = found[1],
        _ => {}
    }
    if found.iter().all(Option::is_none) {
        return fault(whole(text), "a number is missing".to_owned(), NUMBER);
    }
    Ok(found)
}

/// Two bounds, the smaller one first: `lo-hi` or `lo:hi`; a single value is both.
pub fn range(text: &str, one: impl Fn(&str) -> Read<u64>) -> Read<(u64, u64)> {
    if let Some(at) = text.find('/') {
        let at = text[..at].chars().count();
        let what = "'/' stands between two ranges".to_owned();
        return fault(
            at..at + 1,
            what,
            "write a comma: 1k-4k,8k-16k; fio ignores what follows '/'",
        );
    }
    let Some((low, high)) = text.split_once(['-', ':']) else {
        return one(text).map(|value| (value, value));
    };
    let at = low.chars().count() + 1;
    let (low, high) = (one(low)?, one(high).map_err(|fault| shifted(fault, at))?);
    Ok((low.min(high), low.max(high)))
}

/// A number of a list.
pub fn float(text: &str) -> Read<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => fault(whole(text), format!("'{text}' is not a number"), "write for instance 99.9"),
    }
}

/// Numbers between colons.
pub fn floats(text: &str) -> Read<Vec<f64>> {
    let mut at = 0;
    let mut found = Vec::new();
    for part in text.split(':') {
        found.push(float(part).map_err(|fault| shifted(fault, at))?);
        at += part.chars().count() + 1;
    }
    Ok(found)
}

/// The same fault in a text that begins `at` characters earlier.
pub fn shifted((within, problem): Fault, at: usize) -> Fault {
    (within.start + at..within.end + at, problem)
}

fn parenthesised(text: &str) -> Option<&str> {
    text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'))
}

/// The value of an arithmetic text without parentheses around it; `None` if it is none.
pub fn arithmetic(text: &str, kb_base: u64) -> Option<i64> {
    Expression::new(text, kb_base).value().ok()
}

/// Deepest nesting of parentheses.
const DEPTH_MAX: u32 = 64;

/// Arithmetic on whole numbers with units: `+ - * / % ^` and parentheses.
struct Expression<'a> {
    text: &'a str,
    at: usize,
    kb_base: u64,
    depth: u32,
}

impl<'a> Expression<'a> {
    fn new(text: &'a str, kb_base: u64) -> Self {
        Self { text, at: 0, kb_base, depth: 0 }
    }

    fn value(mut self) -> Read<i64> {
        let value = self.sum();
        self.blanks();
        match value {
            Some(value) if self.at == self.text.len() => Ok(value),
            _ => {
                let at = self.text[..self.at].chars().count() + 1;
                let what = format!("'({})' is not understood from here on", self.text);
                fault(at..whole(self.text).end + 1, what, "write numbers and + - * / % ^ ( )")
            }
        }
    }

    fn blanks(&mut self) {
        self.at += self.text[self.at..].len() - self.text[self.at..].trim_start().len();
    }

    fn take(&mut self, known: &str) -> Option<char> {
        self.blanks();
        let next = self.text[self.at..].chars().next().filter(|c| known.contains(*c))?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        while let Some(sign) = self.take("+-") {
            let next = self.product()?;
            value = match sign {
                '+' => value.checked_add(next)?,
                _ => value.checked_sub(next)?,
            };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.power()?;
        while let Some(sign) = self.take("*/%") {
            let next = self.power()?;
            value = match sign {
                '*' => value.checked_mul(next)?,
                '/' => value.checked_div(next)?,
                _ => value.checked_rem(next)?,
            };
        }
        Some(value)
    }

    fn power(&mut self) -> Option<i64> {
        let value = self.unit()?;
        if self.take("^").is_none() {
            return Some(value);
        }
        self.depth += 1;
        let exponent = if self.depth > DEPTH_MAX { None } else { self.power() };
        value.checked_pow(u32::try_from(exponent?).ok()?)
    }

    fn unit(&mut self) -> Option<i64> {
        if self.take("(").is_some() {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return None;
            }
            let value = self.sum()?;
            return self.take(")").map(|_| value);
        }
        if self.take("-").is_some() {
            self.depth += 1;
            return if self.depth > DEPTH_MAX { None } else { self.unit()?.checked_neg() };
        }
        self.blanks();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let value = integer(&rest[..end], self.kb_base).ok().filter(|_| end > 0)?;
        self.at += end;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> bool {
        integer(text, 1024).is_err()
    }

    #[test]
    fn sizes_have_the_values_that_were_observed() {
        let seen = [
            ("4k", 4096),
            ("4K", 4096),
            ("4kB", 4096),
            ("4ki", 4096),
            ("4Kib", 4000),
            ("0x1000", 4096),
            ("4096b", 4096),
            ("1mi", 1 << 20),
            ("1mib", 1_000_000),
            ("(4*1024)", 4096),
            ("(2^3+1)", 9),
            ("((1+1)*2k)", 4096),
        ];
        for (text, value) in seen {
            assert_eq!(integer(text, 1024), Ok(value), "{text}");
        }
        let decimal = [("4k", 4000), ("4ki", 4000), ("4kib", 4096)];
        for (text, value) in decimal {
            assert_eq!(integer(text, 1000), Ok(value), "{text}");
        }
        for text in ["4q", "4.5k", "1e3", "4 k", "16s", "4kk", "4x", "", "k", "9e18t", "99999999p"]
        {
            assert!(refused(text), "{text}");
        }
        assert_eq!(integer("4q", 1024).unwrap_err().0, 1..2);
    }

    #[test]
    fn triples_follow_the_commas() {
        let read = |text| triple(text, |part| size(part, 1024)).unwrap();
        assert_eq!(read("8k"), [Some(8192); 3]);
        assert_eq!(read("8k,16k"), [Some(8192), Some(16384), Some(16384)]);
        assert_eq!(read("8k,"), [Some(8192), None, None]);
        assert_eq!(read(",8k"), [None, Some(8192), Some(8192)]);
        assert_eq!(read(",8k,"), [None, Some(8192), None]);
        assert!(triple(",,", |part| size(part, 1024)).is_err());
        assert_eq!(triple("4k,4q", |part| size(part, 1024)).unwrap_err().0, 4..5);
    }

    #[test]
    fn times_and_ranges() {
        assert_eq!(time("2", TimeUnit::S, 1024), Ok(2_000_000_000));
        assert_eq!(time("2", TimeUnit::Us, 1024), Ok(2000));
        assert_eq!(time("10ms", TimeUnit::Us, 1024), Ok(10_000_000));
        assert_eq!(time("1h", TimeUnit::Us, 1024), Ok(3_600_000_000_000));
        assert_eq!(time("(5)", TimeUnit::S, 1024), Ok(5000));
        assert!(time("1.5", TimeUnit::S, 1024).is_err());
        assert!(time("11000d", TimeUnit::S, 1024).is_err());
        let bytes = |text: &str| size(text, 1024);
        assert_eq!(range("16k-4k", bytes), Ok((4096, 16384)));
        assert_eq!(range("4k:16k", bytes), Ok((4096, 16384)));
        assert!(range("1k-4k/8k-16k", bytes).is_err());
        assert_eq!(amount("25%", 1024), Ok(Amount::Percent(25)));
        assert!(amount("101%", 1024).is_err() && amount("0%", 1024).is_err());
    }
}

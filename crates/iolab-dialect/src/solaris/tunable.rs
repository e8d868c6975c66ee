//! Tunables: names, units and ranges of the manuals, and what each means for a stack.

use std::fmt::Write as _;

use super::line::{Line, LineFault, LineWord};

/// Block of UFS and of QFS' maxcontig, and page of a SPARC of the time.
pub const BLOCK: u64 = 8 << 10;
/// Unit of `VxVM`, of newfs -s and of sizes without a letter.
pub const SECTOR: u64 = 512;
const KIB: u64 = 1 << 10;
/// Largest value of a 32-bit variable (`MAXINT`).
pub const MAXINT: u64 = i32::MAX as u64;

/// Unit in which a manual counts a tunable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// No value.
    Flag,
    /// Bytes.
    Bytes,
    /// Bytes, or with k, m, g, s (512 bytes): vxtunefs(1M).
    Size,
    /// Blocks of 8 KiB.
    Blocks,
    /// 512 bytes.
    Sectors,
    /// KiB.
    Kib,
    /// Blocks of the file system, whatever they are.
    FsBlocks,
    /// Pages of 8 KiB.
    Pages,
    /// Per cent.
    Percent,
    /// Milliseconds.
    Ms,
    /// Seconds.
    Seconds,
    /// A number.
    Count,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
}

impl Unit {
    /// Bytes of one of them.
    pub const fn bytes(self) -> Option<u64> {
        match self {
            Self::Bytes | Self::Size => Some(1),
            Self::Blocks | Self::Pages => Some(BLOCK),
            Self::Sectors => Some(SECTOR),
            Self::Kib => Some(KIB),
            _ => None,
        }
    }

    /// A value for people.
    pub fn shown(self, value: u64) -> String {
        let amount = self.bytes().map(|bytes| amount(value.saturating_mul(bytes)));
        match (self, amount) {
            (Self::Bytes | Self::Size, Some(amount)) => format!("{value} bytes ({amount})"),
            (Self::Blocks, Some(amount)) => format!("{value} blocks of 8 KiB ({amount})"),
            (Self::Pages, Some(amount)) => format!("{value} pages of 8 KiB ({amount})"),
            (Self::Sectors, Some(amount)) => format!("{value} x 512 bytes ({amount})"),
            (Self::Kib, Some(amount)) => format!("{value} KiB ({amount})"),
            (Self::FsBlocks, _) => format!("{value} blocks of the file system"),
            (Self::Percent, _) => format!("{value} %"),
            (Self::Ms, _) => format!("{value} ms"),
            (Self::Seconds, _) => format!("{value} s"),
            _ => value.to_string(),
        }
    }

    /// Unit alone, for ranges.
    const fn name(self) -> &'static str {
        match self {
            Self::Bytes | Self::Size => " bytes",
            Self::Blocks => " blocks of 8 KiB",
            Self::Pages => " pages",
            Self::Sectors => " units of 512 bytes",
            Self::Kib => " KiB",
            Self::FsBlocks => " blocks of the file system",
            Self::Percent => " %",
            Self::Ms => " ms",
            Self::Seconds => " s",
            _ => "",
        }
    }
}

/// Bytes for people: the largest unit of 1024 in which they are 1 or more.
pub fn amount(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let Some((size, name)) = units.into_iter().find(|&(size, _)| bytes >= size) else {
        return format!("{bytes} bytes");
    };
    if bytes.is_multiple_of(size) {
        return format!("{} {name}", bytes / size);
    }
    format!("{:.1} {name}", bytes as f64 / size as f64)
}

/// Meaning of a tunable for a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Longest transfer of the driver.
    Maxphys,
    /// Longest transfer of `DiskSuite`.
    MdMaxphys,
    /// Longest transfer of `VxVM`.
    VolMaxio,
    /// Commands given to a disk at once.
    Throttle,
    /// Pages of memory.
    Physmem,
    /// Blocks of a cluster of UFS.
    Maxcontig,
    /// A variable of the kernel, by its name there.
    System,
    /// An option of making the file system, by this name in the stack.
    Make(&'static str),
    /// An option of mount.
    Mount,
    /// A tunable of the file system itself.
    Own,
    /// Nothing in a stack; why.
    Nothing(&'static str),
}

/// A tunable, as a manual has it.
#[derive(Debug)]
pub struct Tunable {
    /// Name as typed, of a variable with its module.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Least and largest value.
    pub range: (u64, u64),
    /// Multiples of this alone.
    pub step: u64,
    /// Meaning.
    pub meaning: Meaning,
    /// Releases of Solaris that have it.
    pub releases: (u8, u8),
    /// Manual page, or book.
    pub manual: &'static str,
}

/// All releases that are simulated.
pub const RELEASES: (u8, u8) = (7, 10);

impl Tunable {
    /// A tunable of all releases.
    pub const fn new(
        name: &'static str,
        unit: Unit,
        range: (u64, u64),
        meaning: Meaning,
        manual: &'static str,
    ) -> Self {
        Self { name, unit, range, step: 1, meaning, releases: RELEASES, manual }
    }

    /// The same in multiples of a number alone.
    pub const fn in_steps(self, step: u64) -> Self {
        Self { step, ..self }
    }

    /// The same in some releases alone.
    pub const fn in_releases(self, first: u8, last: u8) -> Self {
        Self { releases: (first, last), ..self }
    }

    /// Name without its module.
    pub fn plain(&self) -> &'static str {
        self.name.rsplit(':').next().unwrap_or(self.name)
    }

    /// The manual's range, for messages.
    pub fn limits(&self) -> String {
        let mut text = format!("{} to {}{}", self.range.0, self.range.1, self.unit.name());
        if self.step > 1 {
            let _ = write!(text, " in steps of {}", self.step);
        }
        let _ = write!(text, " ({})", self.manual);
        text
    }

    /// Checks a number against the manual.
    pub fn check(&self, line: &Line, word: &LineWord, value: u64) -> Result<u64, LineFault> {
        let (least, most) = self.range;
        if (least..=most).contains(&value) && value.is_multiple_of(self.step) {
            return Ok(value);
        }
        let what = format!("{} = {}: the manual has {}", self.plain(), value, self.limits());
        let remedy = self.other_unit(value).unwrap_or_else(|| "write a value of that range".into());
        Err(line.fault(&word.at, what, remedy))
    }

    /// The value in its own unit, if it was probably meant in another one.
    fn other_unit(&self, value: u64) -> Option<String> {
        let own = self.unit.bytes()?;
        let fits = |count: u64| {
            (self.range.0..=self.range.1).contains(&count) && count.is_multiple_of(self.step)
        };
        [(1, "bytes"), (KIB, "KiB"), (SECTOR, "units of 512 bytes")].into_iter().find_map(
            |(bytes, name)| {
                let all = value.checked_mul(bytes)?;
                let count = all / own;
                (bytes != own && all.is_multiple_of(own) && fits(count))
                    .then(|| format!("{value} {name} would be {count}{}", self.unit.name()))
            },
        )
    }
}

/// Form of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Decimal alone, as options take them.
    Decimal,
    /// `0x` hexadecimal, a leading 0 octal, else decimal: /etc/system (system(4)).
    System,
    /// `0t` decimal, else hexadecimal: adb(1).
    Adb,
}

/// A whole number; none if the text is no such.
pub fn number(text: &str, form: Numbers) -> Option<u64> {
    let digits = |text: &str, base: u32| {
        let is_plain = !text.is_empty() && text.chars().all(|c| c.is_digit(base));
        u64::from_str_radix(text, base).ok().filter(|_| is_plain)
    };
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match form {
        Numbers::Decimal => digits(text, 10),
        Numbers::System => match (hexadecimal, text.strip_prefix('0')) {
            (Some(rest), _) => digits(rest, 16),
            (None, Some(rest)) if !rest.is_empty() => digits(rest, 8),
            _ => digits(text, 10),
        },
        Numbers::Adb => match (hexadecimal, text.strip_prefix("0t")) {
            (Some(rest), _) => digits(rest, 16),
            (None, Some(rest)) => digits(rest, 10),
            _ => digits(text, 16),
        },
    }
}

/// Bytes of a size with a letter: k, m, g, and `b` or `s` for 512 bytes; without a letter as many
/// times `plain`.
pub fn size(text: &str, plain: u64) -> Option<u64> {
    let count = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match text[count.len()..].to_ascii_lowercase().as_str() {
        "" => plain,
        "b" | "s" => SECTOR,
        "k" => KIB,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    number(count, Numbers::Decimal)?.checked_mul(scale)
}

/// The value of a tunable from the word that gives it; 0 for a word.
pub fn value_of(
    tunable: &Tunable,
    line: &Line,
    word: &LineWord,
    form: Numbers,
) -> Result<u64, LineFault> {
    let name = tunable.plain();
    let value = match tunable.unit {
        Unit::Flag | Unit::Text => return Ok(0),
        Unit::Word(known) => {
            if known.contains(&word.text.as_str()) {
                return Ok(0);
            }
            let what = format!("{name} takes {} ({})", known.join(", "), tunable.manual);
            return Err(line.fault(&word.at, what, format!("not '{}'", word.text)));
        }
        Unit::Size => size(&word.text, 1),
        _ => number(&word.text, form),
    };
    let refuse = || {
        let what = format!("{name} takes a whole number, {}", tunable.limits());
        let remedy = match size(&word.text, 1).zip(tunable.unit.bytes()) {
            Some((bytes, own)) if bytes.is_multiple_of(own) => {
                format!("{} are {}{}", amount(bytes), bytes / own, tunable.unit.name())
            }
            _ => format!("not '{}'", word.text),
        };
        line.fault(&word.at, what, remedy)
    };
    tunable.check(line, word, value.ok_or_else(refuse)?)
}

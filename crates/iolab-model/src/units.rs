//! Units as types: nanoseconds, bytes, 512-byte sectors.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Nanoseconds on a target's own clock, or a duration on it.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Ns(pub u64);

/// A number of bytes: a size, a length or an offset.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A 512-byte device unit, as in the kernel's block layer.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Sector(pub u64);

impl Ns {
    /// The end of time: later than every other instant.
    pub const MAX: Self = Self(u64::MAX);

    /// Whole microseconds; as all of these, [`Self::MAX`] at most.
    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// Whole milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// Whole seconds.
    pub const fn from_seconds(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// As seconds, for rates and for people.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// `self - earlier`, or zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Bytes {
    /// Bytes in a 4 KiB page, the page cache's unit on x86-64.
    pub const PAGE: Self = Self(4096);

    /// Rounded up to a multiple of `unit`, which must not be zero.
    #[must_use]
    pub const fn round_up(self, unit: Self) -> Self {
        Self(self.0.div_ceil(unit.0) * unit.0)
    }
}

impl Sector {
    /// Size of a sector.
    pub const SIZE: Bytes = Bytes(512);

    /// First byte of the sector.
    pub const fn start(self) -> Bytes {
        Bytes(self.0 * Self::SIZE.0)
    }
}

impl Add for Ns {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Ns {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Ns {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        debug_assert!(self >= other, "time went back: {self:?} - {other:?}");
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl fmt::Display for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1} us", self.0 as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} ms", self.0 as f64 / 1e6),
            _ => write!(f, "{:.2} s", self.0 as f64 / 1e9),
        }
    }
}

/// Suffix letters and their power of 1024.
const SUFFIXES: [(char, u32); 5] = [('b', 0), ('k', 1), ('m', 2), ('g', 3), ('t', 4)];

impl fmt::Display for Bytes {
    /// The shortest exact form: `4k`, `1g`, `4097`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &(suffix, power) in SUFFIXES.iter().rev().take(4) {
            let unit = 1_u64 << (10 * power);
            if self.0 != 0 && self.0.is_multiple_of(unit) {
                return write!(f, "{}{suffix}", self.0 / unit);
            }
        }
        write!(f, "{}", self.0)
    }
}

impl FromStr for Bytes {
    type Err = Error;

    /// `4096`, `4k`, `4K`, `4KiB`, `1g`: powers of 1024, as every storage tool reads them.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::BadSize { text: text.to_owned() };
        let lower = text.trim().to_ascii_lowercase();
        let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = lower[digits.len()..].trim();
        let power = match unit.strip_suffix("ib").unwrap_or(unit) {
            "" => 0,
            one if one.len() == 1 => {
                SUFFIXES.iter().find(|(s, _)| one.starts_with(*s)).ok_or_else(wrong)?.1
            }
            _ => return Err(wrong()),
        };
        let count: u64 = digits.parse().map_err(|_| wrong())?;
        count.checked_mul(1_u64 << (10 * power)).map(Bytes).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!("4k".parse::<Bytes>().unwrap(), Bytes(4096));
        assert_eq!("1GiB".parse::<Bytes>().unwrap(), Bytes(1 << 30));
        assert_eq!("512".parse::<Bytes>().unwrap(), Bytes(512));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "k", "4x", "-1", "0.5m", "4kk", "99999999999999999999", "17179869185g"] {
            assert!(text.parse::<Bytes>().is_err(), "{text:?} was accepted");
        }
    }

    proptest! {
        #[test]
        fn display_parses_back(n in 0_u64..1 << 50) {
            prop_assert_eq!(Bytes(n).to_string().parse::<Bytes>().unwrap(), Bytes(n));
        }
    }
}

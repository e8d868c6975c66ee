//! Tunables: a scheduler's sysfs files as one typed table per scheduler.

use serde::Serialize;

use crate::error::SimError;

/// Unit of a tunable, as sysfs counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "TunableUnit")]
pub enum Unit {
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Requests.
    #[serde(rename = "requests")]
    Requests,
    /// Sectors of 512 bytes.
    #[serde(rename = "sectors")]
    Sectors,
    /// KiB.
    #[serde(rename = "KiB")]
    KibiBytes,
    /// A plain number.
    #[serde(rename = "")]
    Count,
    /// 0 or 1.
    #[serde(rename = "0/1")]
    Switch,
}

impl Unit {
    /// As printed after a number.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Nanoseconds => "ns",
            Self::Requests => "requests",
            Self::Sectors => "sectors",
            Self::KibiBytes => "KiB",
            Self::Count => "",
            Self::Switch => "(0 or 1)",
        }
    }
}

/// Facts about a tunable without a scheduler at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct TunableInfo {
    /// Name of the sysfs file.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Default at HZ = 1000 on a rotational device.
    pub default: u64,
    /// Least value.
    pub min: u64,
    /// Greatest value.
    pub max: u64,
    /// One sentence.
    pub about: &'static str,
}

/// One row of a scheduler's table.
pub struct Tunable<S: 'static> {
    /// Facts about the tunable.
    pub info: TunableInfo,
    /// Reads the value back, truncated as the kernel does.
    pub get: fn(&S) -> u64,
    /// Sets it (the range was checked).
    pub set: fn(&mut S, u64),
}

/// A scheduler with a table.
pub trait Tuned: Sized + 'static {
    /// Every tunable.
    const TUNABLES: &'static [Tunable<Self>];
}

/// The table of some scheduler, whichever; every [`Tuned`] type has it.
pub trait Tunables {
    /// Every tunable.
    fn tunables(&self) -> Vec<TunableInfo>;

    /// Reads a tunable back.
    fn tunable(&self, name: &str) -> Result<u64, SimError>;

    /// Sets a tunable; unknown names and values out of range are errors.
    fn tune(&mut self, name: &str, value: u64) -> Result<(), SimError>;
}

impl<S: Tuned> Tunables for S {
    fn tunables(&self) -> Vec<TunableInfo> {
        S::TUNABLES.iter().map(|row| row.info).collect()
    }

    fn tunable(&self, name: &str) -> Result<u64, SimError> {
        row::<S>(name).map(|row| (row.get)(self))
    }

    fn tune(&mut self, name: &str, value: u64) -> Result<(), SimError> {
        let Tunable { info, set, .. } = row::<S>(name)?;
        if !(info.min..=info.max).contains(&value) {
            return Err(SimError::OutOfRange {
                name: name.to_owned(),
                value: value as f64,
                unit: info.unit.symbol().to_owned(),
                min: info.min as f64,
                max: info.max as f64,
            });
        }
        set(self, value);
        Ok(())
    }
}

fn row<S: Tuned>(name: &str) -> Result<&'static Tunable<S>, SimError> {
    S::TUNABLES.iter().find(|row| row.info.name == name).ok_or_else(|| SimError::UnknownName {
        kind: "tunable",
        name: name.to_owned(),
        known: S::TUNABLES.iter().map(|row| row.info.name.to_owned()).collect(),
    })
}

//! Interface of a knob, and the closed list of them.

use std::path::PathBuf;

use serde::Serialize;

use super::{ALL, scheduler};
use crate::error::{Error, Result};
use crate::machine::Machine;

/// Part of the machine that a knob belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each block device has its own.
    Device,
    /// Reason: there is one.
    Machine,
}

/// One knob of one device, or of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site<'a> {
    /// Kernel name of the device; none for a knob of the machine.
    pub device: Option<&'a str>,
    /// Name of the knob.
    pub knob: &'a str,
}

impl<'a> Site<'a> {
    /// The same device's other knob.
    pub fn other(self, knob: &'a str) -> Self {
        Self { knob, ..self }
    }

    /// A file in the device's `queue` folder.
    pub fn queue_file(self, file: &str) -> PathBuf {
        self.device_file(&format!("queue/{file}"))
    }

    /// A file in the device's folder.
    pub fn device_file(self, file: &str) -> PathBuf {
        let device = self.device.expect("a knob of a device is asked for with its device");
        PathBuf::from(format!("/sys/block/{device}/{file}"))
    }

    /// The error that `value` is not possible here.
    pub fn cannot_be(self, value: &str, reason: impl Into<String>) -> Error {
        Error::KnobValue {
            knob: self.knob.to_owned(),
            site: self.device.unwrap_or("this machine").to_owned(),
            value: value.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Texts about a knob and values that people may type; `iolab-agent names` hands it to the front
/// end.
#[derive(Debug, Default, Serialize)]
pub struct About {
    /// Meaning, in a few words, with the unit of its numbers.
    pub help: &'static str,
    /// A usual value and another one: what a comparison may try and the tests do.
    pub example: [String; 2],
    /// Names to choose from; where there are none it takes a whole number.
    pub choices: &'static [&'static str],
    /// Names that were choices once, each with what comes closest today.
    pub former_choices: &'static [(&'static str, &'static str)],
    /// Names that keep state, each with the longest time in ns after which it acts upon what it
    /// has seen: what is compared in slices needs slices of several times that.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub time_constants_ns: &'static [(&'static str, u64)],
    /// True if its numbers are codes that lie on no scale.
    pub are_codes: bool,
    /// Names and help of the settings that a row stands for, if it stands for many.
    #[serde(skip)]
    pub members: &'static [(&'static str, &'static str)],
}

/// A setting that is recorded before, verified after, and put back.
pub trait Knob: Sync {
    /// Texts about it for people.
    fn about(&self) -> About;

    /// Part of the machine that it belongs to.
    fn scope(&self) -> Scope;

    /// The file that is written.
    fn path(&self, site: Site) -> PathBuf;

    /// Refuses a value that the kernel would refuse, or silently change beyond recognition.
    fn check(&self, machine: &Machine, site: Site, value: &str) -> Result<()>;

    /// Value that is in effect; none if there is no such knob here or it cannot be known.
    fn read(&self, machine: &Machine, site: Site) -> Option<String> {
        machine.peek(self.path(site))
    }

    /// Puts a value into effect.
    fn write(&self, machine: &mut Machine, site: Site, value: &str) -> Result<()> {
        machine.write_knob(&self.path(site), value)
    }

    /// Value to restore if [`Knob::read`] cannot know it.
    fn presumed(&self, _machine: &Machine, _site: Site) -> Option<String> {
        None
    }

    /// Tell whether a switch of the scheduler gives it another value.
    fn is_reset_by_scheduler(&self) -> bool {
        false
    }

    /// Another name for the same setting; only one of them can be asked for.
    fn twin(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// Names that this row has on a device.
    fn names(&self, _machine: &Machine, _device: Option<&str>, row_name: &str) -> Vec<String> {
        vec![row_name.to_owned()]
    }
}

/// One row of the list.
pub struct Row {
    /// Name that people type; `SCHEDULER.TUNABLE` stands for many.
    pub name: &'static str,
    /// The knob.
    pub knob: &'static dyn Knob,
}

/// Declares the list from rows of `Row = "name" => knob`.
macro_rules! knobs {
    ($( $Row:ident = $name:literal => $knob:expr, )+) => {
        /// Every knob, in the order in which they are written.
        pub const ALL: &[$crate::knob::api::Row] =
            &[ $( $crate::knob::api::Row { name: $name, knob: &$knob }, )+ ];
    };
}
pub(super) use knobs;

/// The row of a knob, and its place in the order of writing.
pub fn find(name: &str) -> Result<(usize, &'static dyn Knob)> {
    const FAMILY: &str = "SCHEDULER.TUNABLE"; // The name of a row, not of a setting.
    let row_name = if is_tunable(name) { FAMILY } else { name };
    let place = ALL.iter().position(|row| row.name == row_name && name != FAMILY);
    let known = || ALL.iter().map(|row| row.name).collect::<Vec<_>>();
    place
        .map(|place| (place, ALL[place].knob))
        .ok_or_else(|| Error::unknown("knob", name, &known()))
}

/// Tell whether a name is that of a scheduler's own setting.
pub fn is_tunable(name: &str) -> bool {
    tunable_of(name).is_some()
}

/// `("bfq", "slice_idle")` of `bfq.slice_idle`.
pub fn tunable_of(name: &str) -> Option<(&str, &str)> {
    name.split_once('.')
        .filter(|(scheduler, tunable)| scheduler::KNOWN.contains(scheduler) && is_plain(tunable))
}

/// Tell whether a tunable is one file name, so that its path cannot leave the `iosched` folder.
fn is_plain(tunable: &str) -> bool {
    let is_known = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    !tunable.is_empty() && tunable.bytes().all(is_known)
}

//! `[[faults]]` of a stack file: which commands of which device fail, and how.

use std::ops::RangeInclusive;

use iolab_model::error::Errno;
use serde::{Deserialize, Serialize};

use super::VolumeSpec;
use crate::api::bio::{Bio, Operation};
use crate::error::SimError;

/// Ops that fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultOf {
    /// Reads.
    Read,
    /// Writes and discards.
    Write,
    /// Cache flushes.
    Flush,
    /// All of them.
    #[default]
    Any,
}

/// Error of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum FaultError {
    /// Input/output error.
    Eio,
    /// No space left on device: what thin provisioning answers when its pool is full.
    Enospc,
}

impl FaultError {
    /// As a number.
    pub const fn errno(self) -> Errno {
        match self {
            Self::Eio => Errno::EIO,
            Self::Enospc => Errno::ENOSPC,
        }
    }
}

/// `"FIRST..LAST"`, both included, or one sector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sectors(RangeInclusive<u64>);

impl TryFrom<String> for Sectors {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (first, last) = text.split_once("..").unwrap_or((&text, &text));
        let number = |word: &str| word.trim().parse::<u64>().ok();
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(format!(
                "sectors = \"{text}\" is no range of sectors: write FIRST..LAST, both included, as \
                 in \"1000..2000\""
            )),
        }
    }
}

impl From<Sectors> for String {
    fn from(sectors: Sectors) -> Self {
        let (first, last) = sectors.0.into_inner();
        if first == last { first.to_string() } else { format!("{first}..{last}") }
    }
}

/// Commands that fail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// Place of the device: `"1"` is member 1, `"1.0"` member 0 of that. Absent: the only device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Ops that fail.
    #[serde(default)]
    pub of: FaultOf,
    /// Only commands that touch these sectors of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sectors: Option<Sectors>,
    /// Number of the commands meant that go well first.
    #[serde(default)]
    pub after_ops: u64,
    /// Largest number of failures; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Share of those meant that fail, drawn with the trial's seed; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Error of the failing ops.
    pub error: FaultError,
}

impl FaultSpec {
    /// Tell whether a command is one of those meant.
    pub fn is_about(&self, bio: &Bio) -> bool {
        let is_kind = match self.of {
            FaultOf::Any => true,
            FaultOf::Read => bio.operation == Operation::Read,
            FaultOf::Write => matches!(bio.operation, Operation::Write | Operation::Discard),
            FaultOf::Flush => bio.operation == Operation::Flush,
        };
        let touches = |Sectors(range): &Sectors| {
            bio.sectors > 0 && bio.sector.0 <= *range.end() && *range.start() < bio.end().0
        };
        is_kind && self.sectors.as_ref().is_none_or(touches)
    }

    /// The rule in words.
    pub fn text(&self) -> String {
        let mut parts = vec![match self.of {
            FaultOf::Read => "reads".to_owned(),
            FaultOf::Write => "writes".to_owned(),
            FaultOf::Flush => "flushes".to_owned(),
            FaultOf::Any => "any command".to_owned(),
        }];
        if let Some(sectors) = &self.sectors {
            parts.push(format!("sectors {}", String::from(sectors.clone())));
        }
        if self.after_ops > 0 {
            parts.push(format!("after the first {}", self.after_ops));
        }
        if let Some(times) = self.times {
            parts.push(format!("at most {times}"));
        }
        if let Some(probability) = self.probability {
            parts.push(format!("probability {probability}"));
        }
        parts.join(", ")
    }

    /// Tell whether it is about the device at this place.
    pub(super) fn is_at(&self, place: &str) -> bool {
        self.device.as_deref().unwrap_or_default() == place
    }

    /// Fault of rule number `index` of a stack with these devices.
    fn check(&self, index: usize, places: &[String]) -> Result<(), SimError> {
        let wrong = |problem: String, remedy: String| {
            Err(SimError::Inconsistent {
                subject: format!("[[faults]] number {}", index + 1),
                problem,
                remedy,
            })
        };
        let place = self.device.clone().unwrap_or_default();
        if !places.contains(&place) {
            let known = places.join(", ");
            return match (&self.device, known.is_empty()) {
                (Some(_), true) => wrong(
                    format!("device = \"{place}\", but the stack has a single device"),
                    "leave `device` out".into(),
                ),
                (Some(_), false) => wrong(
                    format!("there is no device \"{place}\" in the volume"),
                    format!("name one of {known}"),
                ),
                (None, _) => wrong(
                    "the stack has several devices, and `device` names none".into(),
                    format!("name one of {known}"),
                ),
            };
        }
        if self.of == FaultOf::Flush && self.sectors.is_some() {
            let problem = "a flush has no sectors".into();
            return wrong(problem, "leave `sectors` out, or write another `of`".into());
        }
        match self.probability {
            Some(share) if !(share > 0.0 && share <= 1.0) => wrong(
                format!("probability = {share} is not above 0 and at most 1"),
                "write a share, as in 0.01".into(),
            ),
            _ => Ok(()),
        }
    }
}

/// Refuses rules that cannot be meant; `volume` is that of the stack.
pub(super) fn check(faults: &[FaultSpec], volume: Option<&VolumeSpec>) -> Result<(), SimError> {
    if faults.is_empty() {
        return Ok(());
    }
    let mut all = Vec::new();
    places(volume, "", &mut all);
    (0..).zip(faults).try_for_each(|(index, fault)| fault.check(index, &all))
}

/// Places of all devices under a volume, in order; a single device has none.
fn places(volume: Option<&VolumeSpec>, before: &str, list: &mut Vec<String>) {
    let Some(volume) = volume else { return list.push(before.to_owned()) };
    for index in 0..volume.members.min(super::MEMBERS_MAX) {
        let dot = if before.is_empty() { "" } else { "." };
        places(volume.member.volume.as_ref(), &format!("{before}{dot}{index}"), list);
    }
}

#[cfg(test)]
mod tests {
    use iolab_model::Seed;

    use crate::stack::{QueueOverrides, Stack};

    /// Refusal of a stack with these lines in front of its device or volume.
    fn refusal(faults: &str, below: &str) -> String {
        let text = format!("name = \"x\"\n{faults}\n{below}");
        let stack = match Stack::parse("x.toml", &text) {
            Ok(stack) => stack,
            Err(error) => return error.to_string(),
        };
        match stack.build(&QueueOverrides::default(), Seed(1)) {
            Ok(_) => "accepted".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    const SINGLE: &str = "[device]\nprofile = \"fixed-100us\"";
    const MIRROR: &str = "[volume]\nmembers = 2\nparameters = { layout = \"raid1\" }\n\
                          member.device.profile = \"fixed-100us\"";

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_remedy() {
        let cases = [
            ("error = \"EIO\"", SINGLE, "accepted"),
            ("device = \"1\"\nerror = \"ENOSPC\"", MIRROR, "accepted"),
            (
                "error = \"EIO\"",
                MIRROR,
                "[[faults]] number 1: the stack has several devices, and `device` \
              names none; name one of 0, 1",
            ),
            (
                "device = \"2\"\nerror = \"EIO\"",
                MIRROR,
                "there is no device \"2\" in the volume; \
              name one of 0, 1",
            ),
            (
                "device = \"0\"\nerror = \"EIO\"",
                SINGLE,
                "the stack has a single device; leave \
              `device` out",
            ),
            ("error = \"EIO\"\nsectors = \"9..3\"", SINGLE, "write FIRST..LAST, both included"),
            ("error = \"EBADF\"", SINGLE, "EIO"),
            ("error = \"EIO\"\nof = \"reed\"", SINGLE, "read"),
            ("error = \"EIO\"\nprobability = 0", SINGLE, "at most 1; write a share"),
            ("error = \"EIO\"\nof = \"flush\"\nsectors = \"1\"", SINGLE, "a flush has no sectors"),
            ("of = \"read\"", SINGLE, "error"),
        ];
        for (fault, below, part) in cases {
            let text = refusal(&format!("[[faults]]\n{fault}"), below);
            assert!(text.contains(part), "{fault}: {text}");
        }
    }

    #[test]
    fn a_stack_without_faults_is_written_as_before() {
        let stack = Stack::of_profile("fixed-100us").unwrap();
        assert!(!serde_json::to_string(&stack).unwrap().contains("faults"));
    }
}

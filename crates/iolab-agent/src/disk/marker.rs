//! Marker that iolab leaves at the begin of a device that it was allowed to erase.
//!
//! It says which device it was, when its serial was typed, and by which run, so that nobody
//! wonders. If that run closed the device itself, it says for which study, too, and what was left
//! on it, so that repeating or resuming this very study within a day need not ask again.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::identity::Identity;

const HEAD: &str = "iolab-device-marker-1\n";
/// Rule R5: repeats on the same device do not ask again for a day.
const VALID_S: u64 = 24 * 60 * 60;

/// The marker; the first block of a device, all else of its ends is zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    /// Serial of the device, as it was typed.
    pub serial: String,
    /// Its size.
    pub size_bytes: u64,
    /// Wall clock when the serial was typed.
    pub written_at_unix_s: u64,
    /// Run that wrote it.
    pub run: String,
    /// Note of what was left, and for which study; none if nobody may erase it without being asked.
    #[serde(default)]
    pub left: Option<LeftBehind>,
}

/// Note of a run that ended in order about what it left on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftBehind {
    /// Digest of the plan for which the serial was typed.
    pub study: String,
    /// Says which parts were sampled.
    pub seed: String,
    /// Digest of what is there.
    pub content: String,
}

impl Marker {
    /// Room that it takes.
    pub const BYTES: usize = 4096;

    /// A marker.
    pub fn new(serial: &str, size_bytes: u64, written_at_unix_s: u64, run: &str) -> Self {
        let (serial, run) = (serial.to_owned(), run.to_owned());
        Self { serial, size_bytes, written_at_unix_s, run, left: None }
    }

    /// The same, for whoever repeats the study.
    pub fn with_left(self, left: Option<LeftBehind>) -> Self {
        Self { left, ..self }
    }

    /// As it lies on the device.
    pub fn to_bytes(&self) -> Vec<u8> {
        let text = serde_json::to_string(self).expect("a marker has only text keys");
        let mut bytes = format!("{HEAD}{text}\n").into_bytes();
        assert!(bytes.len() <= Self::BYTES, "serials and runs are short");
        bytes.resize(Self::BYTES, 0);
        bytes
    }

    /// The marker at the begin of `bytes`, if there is a whole one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let block = bytes.get(..Self::BYTES)?.strip_prefix(HEAD.as_bytes())?;
        let length = block.iter().position(|&byte| byte == b'\n')?;
        let is_padded = block[length + 1..].iter().all(|&byte| byte == 0);
        is_padded.then(|| serde_json::from_slice(&block[..length]).ok())?
    }

    /// Note that must still be true if the marker speaks for `device` and `study` at `now`; a clock
    /// that ran back is not believed.
    pub fn allows(&self, device: &Identity, study: &str, now_unix_s: u64) -> Option<&LeftBehind> {
        let age = now_unix_s.checked_sub(self.written_at_unix_s);
        let is_it = self.serial == device.serial
            && self.size_bytes == device.size_bytes
            && age.is_some_and(|age| age < VALID_S);
        self.left.as_ref().filter(|left| is_it && !study.is_empty() && left.study == study)
    }
}

/// Seconds since 1970.
pub fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_speaks_for_one_device_one_study_and_one_day() {
        let identity = Identity::for_tests("S1", 1 << 30);
        let bare = Marker::new("S1", 1 << 30, 1_000, "run-1");
        assert_eq!(Marker::parse(&bare.to_bytes()), Some(bare.clone()));
        assert_eq!(bare.allows(&identity, "plan", 1_000), None, "it was not closed in order");
        let [study, seed, content] = ["plan", "seed", "0f"].map(str::to_owned);
        let marker = bare.clone().with_left(Some(LeftBehind { study, seed, content }));
        assert_eq!(Marker::parse(&marker.to_bytes()), Some(marker.clone()));
        let allows =
            |device: &Identity, study: &str, now| marker.allows(device, study, now).is_some();
        assert!(allows(&identity, "plan", 1_000) && allows(&identity, "plan", 999 + VALID_S));
        assert!(!allows(&identity, "plan", 1_000 + VALID_S), "a day is over");
        assert!(!allows(&identity, "plan", 999), "the clock ran back");
        assert!(!allows(&identity, "other", 1_000) && !allows(&identity, "", 1_000));
        assert!(!allows(&Identity::for_tests("S2", 1 << 30), "plan", 1_000));
        assert!(!allows(&Identity::for_tests("S1", 2 << 30), "plan", 1_000));
    }

    #[test]
    fn markers_of_earlier_versions_allow_nothing() {
        let mut old = b"iolab-device-marker-1\n".to_vec();
        old.extend(br#"{"serial":"S1","size_bytes":1,"written_at_unix_s":1,"run":"run-1"}"#);
        old.push(b'\n');
        old.resize(Marker::BYTES, 0);
        assert_eq!(Marker::parse(&old), Some(Marker::new("S1", 1, 1, "run-1")));
    }

    #[test]
    fn a_torn_marker_is_none() {
        let mut bytes = Marker::new("S1", 1, 1, "run-1").to_bytes();
        bytes[4_000] = 7;
        assert_eq!(Marker::parse(&bytes), None);
        assert_eq!(Marker::parse(b"iolab-device-marker-1\n{}"), None);
    }
}

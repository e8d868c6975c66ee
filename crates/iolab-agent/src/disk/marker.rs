//! What iolab leaves at the begin of a device that it was allowed to erase.
//!
//! It says which device it was, when, and by which run, so that repeating a study within a day need
//! not ask again, and so that nobody wonders.

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
    /// Wall clock.
    pub written_at_unix_s: u64,
    /// Who wrote it.
    pub run: String,
}

impl Marker {
    /// Room that it takes.
    pub const BYTES: usize = 4096;

    /// A marker.
    pub fn new(serial: &str, size_bytes: u64, written_at_unix_s: u64, run: &str) -> Self {
        Self { serial: serial.to_owned(), size_bytes, written_at_unix_s, run: run.to_owned() }
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

    /// Whether it speaks for `device` at `now`; a clock that ran back is not believed.
    pub fn allows(&self, device: &Identity, now_unix_s: u64) -> bool {
        let age = now_unix_s.checked_sub(self.written_at_unix_s);
        self.serial == device.serial
            && self.size_bytes == device.size_bytes
            && age.is_some_and(|age| age < VALID_S)
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
    fn it_speaks_for_one_device_and_one_day() {
        let identity = Identity::for_tests("S1", 1 << 30);
        let marker = Marker::new("S1", 1 << 30, 1_000, "run-1");
        assert_eq!(Marker::parse(&marker.to_bytes()), Some(marker.clone()));
        assert!(marker.allows(&identity, 1_000) && marker.allows(&identity, 1_000 + VALID_S - 1));
        assert!(!marker.allows(&identity, 1_000 + VALID_S), "a day is over");
        assert!(!marker.allows(&identity, 999), "the clock ran back");
        assert!(!marker.allows(&Identity::for_tests("S2", 1 << 30), 1_000));
        assert!(!marker.allows(&Identity::for_tests("S1", 2 << 30), 1_000));
    }

    #[test]
    fn a_torn_marker_is_none() {
        let mut bytes = Marker::new("S1", 1, 1, "run-1").to_bytes();
        bytes[4_000] = 7;
        assert_eq!(Marker::parse(&bytes), None);
        assert_eq!(Marker::parse(b"iolab-device-marker-1\n{}"), None);
    }
}

//! True if the user said so (rule R5): by the serial, for this device, and not by habit.

use std::fs::File;

use super::content::Verdict;
use super::identity::Identity;
use super::sample;
use crate::error::{Error, Result};

/// Phrase that a person must type: it differs from device to device.
pub fn phrase(device: &Identity) -> String {
    format!("ERASE {} {}", device.serial, device.model)
}

/// Refuses a device of which nobody has typed the serial, unless it `is_repeated`.
pub fn check(
    device: &Identity,
    node: &str,
    typed_serial: Option<&str>,
    is_repeated: bool,
) -> Result<()> {
    match typed_serial {
        Some(typed) if typed == device.serial => Ok(()),
        Some(typed) => Err(Error::refused(
            format!(
                "{node} is not the device with the serial '{typed}': it is {} {} of {} bytes",
                device.model, device.serial, device.size_bytes
            ),
            "look which device you mean: lsblk -o NAME,SERIAL,MODEL,SIZE; nothing was changed",
        )),
        None if is_repeated => Ok(()),
        None => Err(Error::refused(
            format!(
                "everything on {node} ({} {}) would be erased, and nobody has confirmed it",
                device.model, device.serial
            ),
            format!(
                "type the phrase at a terminal, or give --erase-serial {}; nothing was changed",
                device.serial
            ),
        )),
    }
}

/// Time at which the serial was typed for this very `study` on this very device, if that was within
/// a day and what was left on `held` is there unchanged, as far as it is sampled.
pub fn repeated(
    device: &Identity,
    held: &File,
    content: &Verdict,
    study: &str,
    now_unix_s: u64,
) -> Option<u64> {
    let Verdict::Marked(marker) = content else { return None };
    let left = marker.allows(device, study, now_unix_s)?;
    let found = sample::digest(held, device.size_bytes, &left.seed).ok()?;
    (found == left.content).then_some(marker.written_at_unix_s)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::super::marker::{LeftBehind, Marker};
    use super::*;

    #[test]
    fn only_the_serial_of_this_device_or_a_repeated_study_will_do() {
        let device = Identity::for_tests("S5GXNF0R", 1 << 40);
        assert_eq!(phrase(&device), "ERASE S5GXNF0R 990PRO");
        let ask = |typed, is_repeated| check(&device, "/dev/sdx", typed, is_repeated);
        ask(Some("S5GXNF0R"), false).unwrap();
        let error = ask(Some("S5GXNF0S"), false).unwrap_err();
        assert!(error.to_string().contains("S5GXNF0R") && error.hint().contains("lsblk"));
        let error = ask(None, false).unwrap_err();
        assert!(error.hint().contains("--erase-serial S5GXNF0R"), "{}", error.hint());
        for wrong in ["", "s5gxnf0r", "S5GXNF0R ", "yes", "*"] {
            assert!(ask(Some(wrong), false).is_err(), "{wrong:?}");
        }
        ask(None, true).unwrap();
        assert!(ask(Some("other"), true).is_err(), "what was typed counts more");
    }

    #[test]
    fn a_study_is_repeated_on_what_it_left_within_a_day() {
        let size = 96 << 20;
        let held = tempfile::tempfile().unwrap();
        held.set_len(size).unwrap();
        let device = Identity::for_tests("S5GXNF0R", size);
        let content = sample::digest(&held, size, "seed").unwrap();
        let left = LeftBehind { study: "plan".to_owned(), seed: "seed".to_owned(), content };
        let marker = Marker::new("S5GXNF0R", size, 100, "run-1").with_left(Some(left));
        let verdict = Verdict::Marked(marker);
        assert_eq!(repeated(&device, &held, &verdict, "plan", 200), Some(100), "when it was typed");
        assert_eq!(repeated(&device, &held, &verdict, "plan", 100 + 86_400), None, "a day later");
        assert_eq!(repeated(&device, &held, &verdict, "other", 200), None, "another study");
        assert_eq!(repeated(&device, &held, &Verdict::Blank, "plan", 200), None);
        held.write_all_at(b"precious", 9 << 20).unwrap();
        assert_eq!(repeated(&device, &held, &verdict, "plan", 200), None, "somebody wrote on it");
    }
}

//! Whether the user said so (rule R5): by the serial, for this device, and not by habit.

use super::content::Verdict;
use super::identity::Identity;
use crate::error::{Error, Result};

/// What a person must type: it differs from device to device.
pub fn phrase(device: &Identity) -> String {
    format!("ERASE {} {}", device.serial, device.model)
}

/// Refuses a device of which nobody has typed the serial, unless our marker is fresh.
pub fn check(
    device: &Identity,
    node: &str,
    typed_serial: Option<&str>,
    content: &Verdict,
    now_unix_s: u64,
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
        None if is_allowed_by_marker(device, content, now_unix_s) => Ok(()),
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

/// Whether a study of the last day was confirmed for this very device.
pub fn is_allowed_by_marker(device: &Identity, content: &Verdict, now_unix_s: u64) -> bool {
    matches!(content, Verdict::Marked(marker) if marker.allows(device, now_unix_s))
}

#[cfg(test)]
mod tests {
    use super::super::marker::Marker;
    use super::*;

    #[test]
    fn only_the_serial_of_this_device_or_a_fresh_marker_will_do() {
        let device = Identity::for_tests("S5GXNF0R", 1 << 40);
        assert_eq!(phrase(&device), "ERASE S5GXNF0R 990PRO");
        let blank = Verdict::Blank;
        let ask = |typed, content: &Verdict, now| check(&device, "/dev/sdx", typed, content, now);
        ask(Some("S5GXNF0R"), &blank, 0).unwrap();
        let error = ask(Some("S5GXNF0S"), &blank, 0).unwrap_err();
        assert!(error.to_string().contains("S5GXNF0R") && error.hint().contains("lsblk"));
        let error = ask(None, &blank, 0).unwrap_err();
        assert!(error.hint().contains("--erase-serial S5GXNF0R"), "{}", error.hint());
        for wrong in ["", "s5gxnf0r", "S5GXNF0R ", "yes", "*"] {
            assert!(ask(Some(wrong), &blank, 0).is_err(), "{wrong:?}");
        }
        let fresh = Verdict::Marked(Marker::new("S5GXNF0R", 1 << 40, 100, "run-1"));
        ask(None, &fresh, 200).unwrap();
        assert!(ask(None, &fresh, 100 + 86_400).is_err(), "a day later it is asked again");
        assert!(ask(Some("other"), &fresh, 200).is_err(), "what was typed counts more");
    }
}

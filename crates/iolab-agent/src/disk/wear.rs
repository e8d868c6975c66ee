//! Wear of a drive, as far as it says so without further tools (rule R11).
//!
//! Source: NVM Express base specification 2.0, 5.16.1.3 (SMART / Health log). Left out: ATA, whose
//! attributes differ by maker; such drives answer nothing.

use std::fs::File;
use std::path::Path;

use crate::machine::Machine;
use crate::sys;

/// Wear that a drive reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wear {
    /// Discs do not wear by writing.
    pub is_rotational: bool,
    /// Written by hosts in its life.
    pub written_bytes: Option<u64>,
    /// Share of its rated life that is used up, in percent.
    pub used_percent: Option<u8>,
}

/// Thousands of 512-byte units.
const UNIT_BYTES: u128 = 512_000;

/// Wear of the device `name`, of which `device` is open.
pub fn wear(machine: &Machine, name: &str, device: Option<&File>) -> Wear {
    let rotational = machine.peek(Path::new("/sys/block").join(name).join("queue/rotational"));
    let is_rotational = rotational.as_deref() == Some("1");
    let log = device.filter(|_| name.starts_with("nvme")).map(sys::nvme_health);
    match log {
        Some(Ok(log)) => Wear { is_rotational, ..parse(&log) },
        _ => Wear { is_rotational, ..Wear::default() },
    }
}

fn parse(log: &[u8; sys::NVME_HEALTH_BYTES]) -> Wear {
    let units = u128::from_le_bytes(log[48..64].try_into().expect("16 bytes"));
    Wear {
        is_rotational: false,
        written_bytes: u64::try_from(units.saturating_mul(UNIT_BYTES)).ok(),
        used_percent: Some(log[5]),
    }
}

impl Wear {
    /// Bytes that it is rated to write in its life: known once a percent of it is used up.
    pub fn rated_bytes(&self) -> Option<u64> {
        let percent = u64::from(self.used_percent.filter(|&percent| percent > 0)?);
        Some(self.written_bytes? / percent * 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rating_follows_from_what_was_written_and_used_up() {
        let mut log = [0; sys::NVME_HEALTH_BYTES];
        log[5] = 3;
        log[48..52].copy_from_slice(&35_156_250_u32.to_le_bytes());
        let found = parse(&log);
        assert_eq!(found.written_bytes, Some(18_000_000_000_000));
        assert_eq!(found.rated_bytes(), Some(600_000_000_000_000), "600 TBW");
        log[5] = 0;
        assert_eq!(parse(&log).rated_bytes(), None, "too new to tell");
    }
}

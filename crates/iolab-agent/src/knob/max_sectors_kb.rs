//! Largest request in KiB, up to what the hardware takes; 0 is the kernel's default.
//!
//! Some kernels clamp larger values silently, others refuse them; we refuse them always.

use std::path::PathBuf;

use super::api::{About, Knob, Scope, Site};
use super::common::check_range;
use crate::error::Result;
use crate::machine::Machine;

/// Smallest request: a page.
const MIN_KB: i64 = 4;

/// The row.
pub const KNOB: MaxSectorsKb = MaxSectorsKb;

/// Its type.
pub struct MaxSectorsKb;

impl Knob for MaxSectorsKb {
    fn about(&self) -> About {
        About {
            help: "largest request, KiB",
            example: ["1280", "64"].map(str::to_owned),
            ..About::default()
        }
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    fn path(&self, site: Site) -> PathBuf {
        site.queue_file("max_sectors_kb")
    }

    fn check(&self, machine: &Machine, site: Site, value: &str) -> Result<()> {
        if value == "0" {
            return Ok(());
        }
        let limit = machine.peek(site.queue_file("max_hw_sectors_kb"));
        let max = limit.and_then(|text| text.parse().ok()).unwrap_or(i64::from(u32::MAX));
        check_range(site, value, MIN_KB, max)
    }
}

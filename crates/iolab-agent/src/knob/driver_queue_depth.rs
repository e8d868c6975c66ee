//! Number of requests that the driver takes at once, below any scheduler.
//!
//! A shallow driver under a deep scheduler gives the scheduler something to sort; a loop device
//! (depth 128) otherwise swallows everything and all schedulers look like `none`. The kernel has
//! no file of its own for it: `nr_requests` under `none` is this depth, and it survives later
//! switches, unseen. Writing the number that is displayed changes nothing, therefore another one
//! goes first. The truth is in debugfs (`hctx0/tags`); without it the depth is written but not
//! verified. Source: Linux block/blk-mq.c (`blk_mq_update_nr_requests`), tried on Linux 6.18.

use std::path::PathBuf;

use super::api::{About, Knob, Scope, Site};
use super::common::check_range;
use super::{nr_requests, scheduler};
use crate::error::Result;
use crate::machine::Machine;

/// The row.
pub const KNOB: DriverQueueDepth = DriverQueueDepth;

/// Its type.
pub struct DriverQueueDepth;

impl Knob for DriverQueueDepth {
    fn about(&self) -> About {
        About {
            help: "requests the driver takes at once; small = a scheduler can sort",
            example: ["128", "4"].map(str::to_owned),
            ..About::default()
        }
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    fn path(&self, site: Site) -> PathBuf {
        nr_requests::KNOB.path(site)
    }

    fn check(&self, machine: &Machine, site: Site, value: &str) -> Result<()> {
        let max = full_depth(machine, site).unwrap_or(i64::from(u16::MAX));
        check_range(site, value, 1, max)
    }

    fn read(&self, machine: &Machine, site: Site) -> Option<String> {
        let tags = machine.peek(tags_of(site)?)?;
        let bitmap = tags.split_once("bitmap_tags:")?.1;
        bitmap.lines().find_map(|line| line.strip_prefix("depth=")).map(str::to_owned)
    }

    fn write(&self, machine: &mut Machine, site: Site, value: &str) -> Result<()> {
        if scheduler::active(machine, site.device.unwrap_or_default()).as_deref() != Some("none") {
            scheduler::KNOB.write(machine, site.other("scheduler"), "none")?;
        }
        let path = self.path(site);
        // What cannot be read may be the same, too.
        if machine.peek(&path).is_none_or(|shown| shown == value) {
            let depth: i64 = value.parse().unwrap_or(1);
            let other = if depth > 1 { depth - 1 } else { depth + 1 };
            machine.write_knob(&path, &other.to_string())?;
        }
        machine.write_knob(&path, value)?;
        // Where the depth cannot be seen a dry run must not see it either.
        if let Some(tags) = tags_of(site).filter(|tags| machine.peek(tags).is_some()) {
            machine.imagine(&tags, &format!("bitmap_tags:\ndepth={value}"));
        }
        Ok(())
    }

    fn presumed(&self, machine: &Machine, site: Site) -> Option<String> {
        full_depth(machine, site).map(|depth| depth.to_string())
    }
}

/// Path in debugfs that tells the depth.
fn tags_of(site: Site) -> Option<PathBuf> {
    let device = site.device?;
    Some(PathBuf::from(format!("/sys/kernel/debug/block/{device}/hctx0/tags")))
}

/// Depth that the device was made for.
fn full_depth(machine: &Machine, site: Site) -> Option<i64> {
    machine.peek(site.device_file("mq/0/nr_tags"))?.parse().ok()
}

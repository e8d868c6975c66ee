//! The I/O scheduler of a device: one of those that its `scheduler` file offers.
//!
//! A switch freezes the queue, drains it, and resets `nr_requests` and the tunables. Names of the
//! single-queue block layer, removed in Linux 5.0, are refused with what comes closest today: a
//! study that says `cfq` must not silently measure bfq.

use std::path::PathBuf;

use super::ALL;
use super::api::{About, Knob, Scope, Site};
use crate::error::{Result, nearest};
use crate::machine::Machine;

/// Schedulers of Linux that a tunable may be named after.
pub const KNOWN: &[&str] = &["none", "mq-deadline", "kyber", "bfq"];

/// Names before Linux 5.0, and what today's kernel offers instead.
const FORMER: &[(&str, &str)] =
    &[("noop", "none"), ("deadline", "mq-deadline"), ("cfq", "bfq"), ("anticipatory", "bfq")];

/// Longest times in ns after which they act upon what they have seen; `none` keeps nothing.
///
/// Linux 6.18: block/mq-deadline.c `read_expire`, HZ / 2 (writes wait longer only behind reads);
/// block/kyber-iosched.c, the timer of its latency buckets, HZ / 10; block/bfq-iosched.c
/// `bfq_wr_rt_max_time`, 300 ms (a slot of 125 ms is shorter; its raising of interactive queues,
/// 3 to 25 s, outlasts any slice: the record tells `low_latency`, which permits it).
const TIME_CONSTANTS_NS: &[(&str, u64)] =
    &[("mq-deadline", 500_000_000), ("kyber", 100_000_000), ("bfq", 300_000_000)];

/// The row.
pub const KNOB: Scheduler = Scheduler;

/// Its type.
pub struct Scheduler;

impl Knob for Scheduler {
    fn about(&self) -> About {
        About {
            help: "I/O scheduler of the devices under the testbed",
            example: ["none", "bfq"].map(str::to_owned),
            choices: KNOWN,
            former_choices: FORMER,
            time_constants_ns: TIME_CONSTANTS_NS,
            ..About::default()
        }
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    fn path(&self, site: Site) -> PathBuf {
        site.queue_file("scheduler")
    }

    fn check(&self, machine: &Machine, site: Site, value: &str) -> Result<()> {
        let offered = offered(machine, site.device.unwrap_or_default());
        let offered: Vec<&str> = offered.iter().map(String::as_str).collect();
        if offered.contains(&value) {
            return Ok(());
        }
        if let Some((_, today)) = FORMER.iter().find(|(former, _)| *former == value) {
            let reason = format!("it was removed in Linux 5.0; ask for '{today}' instead");
            return Err(site.cannot_be(value, reason));
        }
        let guess = nearest(value, &offered)
            .map(|name| format!("; did you mean '{name}'?"))
            .unwrap_or_default();
        let names = if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") };
        Err(site.cannot_be(value, format!("the device offers {names}{guess}")))
    }

    fn read(&self, machine: &Machine, site: Site) -> Option<String> {
        active(machine, site.device?)
    }

    fn write(&self, machine: &mut Machine, site: Site, value: &str) -> Result<()> {
        machine.write_knob(&self.path(site), value)?;
        for row in ALL.iter().filter(|row| row.knob.is_reset_by_scheduler()) {
            let is_family = !row.knob.about().members.is_empty();
            let folder = || site.queue_file("iosched");
            machine.forget(if is_family { folder() } else { row.knob.path(site.other(row.name)) });
        }
        Ok(())
    }
}

/// Scheduler that is active on a device; none if it has no choice.
pub fn active(machine: &Machine, device: &str) -> Option<String> {
    let text =
        machine.peek(Site { device: Some(device), knob: "scheduler" }.queue_file("scheduler"))?;
    let marked = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    Some(marked.unwrap_or(&text).to_owned())
}

/// Schedulers that a device offers.
pub fn offered(machine: &Machine, device: &str) -> Vec<String> {
    let path = Site { device: Some(device), knob: "scheduler" }.queue_file("scheduler");
    let text = machine.read_unchanged(path).unwrap_or_default();
    text.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned()).collect()
}

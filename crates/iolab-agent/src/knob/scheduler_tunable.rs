//! A scheduler's own setting, named `SCHEDULER.TUNABLE`; it applies only while that scheduler is
//! active.
//!
//! Accepted are the files that the active scheduler has, and whole numbers; times are stored in
//! jiffies by some kernels, so the value in effect may differ a little, which the record tells.

use std::path::PathBuf;

use super::api::{About, Knob, Scope, Site, tunable_of};
use super::common::{INT_MAX, check_range};
use super::scheduler;
use crate::error::{Result, nearest};
use crate::machine::Machine;

/// Those of Linux 6.18 that are documented (Documentation/block/), for the front end; a kernel may
/// have others, or lack some. The first one serves as the example.
const MEMBERS: &[(&str, &str)] = &[
    ("mq-deadline.read_expire", "mq-deadline: deadline of a read, ms"),
    ("mq-deadline.write_expire", "mq-deadline: deadline of a write, ms"),
    ("mq-deadline.prio_aging_expire", "mq-deadline: age at which a low priority is served, ms"),
    ("mq-deadline.fifo_batch", "mq-deadline: requests per batch"),
    ("mq-deadline.writes_starved", "mq-deadline: read batches before a write batch"),
    ("mq-deadline.front_merges", "mq-deadline: look for front merges, 0 or 1"),
    ("mq-deadline.async_depth", "mq-deadline: asynchronous requests in flight"),
    ("kyber.read_lat_nsec", "kyber: target latency of reads, ns"),
    ("kyber.write_lat_nsec", "kyber: target latency of synchronous writes, ns"),
    ("bfq.slice_idle", "bfq: idle wait for the next request of a queue, ms"),
    ("bfq.slice_idle_us", "bfq: the same in us"),
    ("bfq.low_latency", "bfq: favour interactive and soft real-time queues, 0 or 1"),
    ("bfq.strict_guarantees", "bfq: one request at a time, 0 or 1"),
    ("bfq.timeout_sync", "bfq: longest service of one queue, ms"),
    ("bfq.max_budget", "bfq: sectors per service, 0 = automatic"),
    ("bfq.fifo_expire_sync", "bfq: deadline of synchronous requests, ms"),
    ("bfq.fifo_expire_async", "bfq: deadline of asynchronous requests, ms"),
    ("bfq.back_seek_max", "bfq: longest backward seek, KiB"),
    ("bfq.back_seek_penalty", "bfq: cost of a backward seek, as a factor"),
];

/// The row.
pub const KNOB: SchedulerTunable = SchedulerTunable;

/// Its type.
pub struct SchedulerTunable;

impl Knob for SchedulerTunable {
    fn about(&self) -> About {
        About {
            help: "a setting of one scheduler",
            example: ["500", "100"].map(str::to_owned),
            members: MEMBERS,
            ..About::default()
        }
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    fn path(&self, site: Site) -> PathBuf {
        let (_, tunable) = tunable_of(site.knob).expect("the row was found by such a name");
        site.queue_file("iosched").join(tunable)
    }

    fn check(&self, machine: &Machine, site: Site, value: &str) -> Result<()> {
        let (scheduler, tunable) = tunable_of(site.knob).expect("the row was found by such a name");
        let files = machine.list(site.queue_file("iosched"));
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        // On paper the scheduler was switched, but its files are not there to be looked at.
        let can_look = !machine.is_dry_run()
            || is_active_on_disk(machine, site.device.unwrap_or_default(), scheduler);
        if can_look && !files.contains(&tunable) {
            let guess = nearest(tunable, &files)
                .map(|name| format!("; did you mean '{scheduler}.{name}'?"))
                .unwrap_or_default();
            let reason = format!("{scheduler} has only {}{guess}", files.join(", "));
            return Err(site.cannot_be(value, reason));
        }
        // Kyber's latencies are unsigned and longer than an int.
        let max = if scheduler == "kyber" { i64::MAX } else { INT_MAX };
        check_range(site, value, 0, max)
    }

    fn read(&self, machine: &Machine, site: Site) -> Option<String> {
        let (owner, _) = tunable_of(site.knob)?;
        let active = scheduler::active(machine, site.device?)?;
        (active == owner).then(|| machine.peek(self.path(site)))?
    }

    fn is_reset_by_scheduler(&self) -> bool {
        true
    }

    fn twin(&self, name: &str) -> Option<&'static str> {
        // Linux block/bfq-iosched.c: slice_idle in ms and slice_idle_us are views of one value.
        match name {
            "bfq.slice_idle" => Some("bfq.slice_idle_us"),
            "bfq.slice_idle_us" => Some("bfq.slice_idle"),
            _ => None,
        }
    }

    fn names(&self, machine: &Machine, device: Option<&str>, _row_name: &str) -> Vec<String> {
        let Some(device) = device else { return Vec::new() };
        let Some(active) = scheduler::active(machine, device) else { return Vec::new() };
        if !is_active_on_disk(machine, device, &active) {
            return Vec::new();
        }
        let folder = Site { device: Some(device), knob: "" }.queue_file("iosched");
        machine.list(folder).into_iter().map(|file| format!("{active}.{file}")).collect()
    }
}

/// Tell whether the tunables that can be seen are those of `scheduler`, also in a dry run.
fn is_active_on_disk(machine: &Machine, device: &str, scheduler: &str) -> bool {
    let path = Site { device: Some(device), knob: "scheduler" }.queue_file("scheduler");
    machine.read_unchanged(path).is_ok_and(|text| text.contains(&format!("[{scheduler}]")))
}

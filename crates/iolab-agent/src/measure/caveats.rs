//! Caveats for the reader of a phase's numbers: page cache, a generator at its limit, depth not
//! reached.

use iolab_drive::pump::Workplace;
use iolab_drive::record::{PhaseRecord, Warning};
use iolab_drive::submission::waiting;
use iolab_model::Target as _;
use iolab_real::Engine;
use iolab_workload::spec::{Phase, Tenant, Workload};

/// From this share of bytes that never reached the device a number is the page cache's.
const CACHE_SHARE: f64 = 0.5;
/// From this share of the time in the harness itself, the generator distorts the result.
const HARNESS_SHARE: f64 = 0.2;
/// From this share of the available CPU time, processor and memory are measured, not the device.
const CPU_SHARE: f64 = 0.9;
/// Below this share of the depth asked for, the queue was not what the study says.
const DEPTH_SHARE: f64 = 0.5;
/// Shorter timed regions are dominated by start-up and clock ticks.
const SHORT_NS: u64 = 20_000_000;

/// All caveats of a phase.
pub fn caveats(
    record: &PhaseRecord,
    (workload, phase): (&Workload, &Phase),
    place: &dyn Workplace,
) -> Vec<Warning> {
    [
        page_cache(record),
        generator(record),
        processor(record),
        depth(record, phase, place),
        waiting(workload, phase),
        kernel_threads(workload, phase),
        short(record),
        ignored(phase),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn page_cache(record: &PhaseRecord) -> Option<Warning> {
    if record.devices.is_empty() {
        return None;
    }
    let workers = || record.tenants.iter().flat_map(|tenant| &tenant.workers);
    let asked_read: u64 = workers().map(|w| w.read_bytes).sum();
    let asked_write: u64 = workers().map(|w| w.write_bytes).sum();
    // Somebody else may read from the same device: what storage gave to us alone counts, too.
    let device_read: u64 = record.devices.iter().map(|d| d.read_bytes).sum();
    let device_read = device_read.min(record.own_read_bytes.unwrap_or(u64::MAX));
    let device_write: u64 = record.devices.iter().map(|d| d.write_bytes).sum();
    let share = |asked: u64, device: u64| {
        (asked > 0).then(|| 1.0 - (device as f64 / asked as f64).min(1.0))
    };
    let read = share(asked_read, device_read).filter(|share| *share >= CACHE_SHARE);
    let write = share(asked_write, device_write).filter(|share| *share >= CACHE_SHARE);
    let message = match (read, write) {
        (Some(share), _) => format!(
            "{:.0} % of the bytes read came from the page cache, not from the device",
            share * 100.0
        ),
        (None, Some(share)) => format!(
            "{:.0} % of the bytes written were still in the page cache when the clock stopped",
            share * 100.0
        ),
        (None, None) => return None,
    };
    let hint = "to measure the device use direct I/O, or a cold cache and timed flushes";
    Some(Warning::new("page_cache", message, hint))
}

/// A stream is always buffered, whatever was asked for: said with its number, not in a manual.
fn ignored(phase: &Phase) -> Option<Warning> {
    (!phase.ignores.is_empty()).then(|| {
        Warning::new(
            "asked_in_vain",
            format!("{} has no {}: it ran without", phase.name, phase.ignores.join(", no ")),
            "compare it with buffered operations only, or leave it out",
        )
    })
}

/// Time in the harness itself, as a share of all workers' time.
fn generator(record: &PhaseRecord) -> Option<Warning> {
    let per_op = record.harness_ns_per_op?;
    let workers = || record.tenants.iter().flat_map(|tenant| &tenant.workers);
    let elapsed: u64 = workers().map(|w| w.elapsed_ns).sum();
    let ops: u64 = workers().map(|w| w.ops).sum();
    let share = per_op * ops as f64 / elapsed.max(1) as f64;
    (share >= HARNESS_SHARE).then(|| {
        Warning::new(
            "generator_bound",
            format!(
                "{:.0} % of the time was the workload generator's own ({per_op:.0} ns per op)",
                share * 100.0
            ),
            "use larger records, or read the number as a lower bound of what the target can do",
        )
    })
}

fn processor(record: &PhaseRecord) -> Option<Warning> {
    // Short regions cannot be judged: CPU time moves in ticks of up to 4 ms. Nothing is asked for
    // them, so that little lies between two phases of microseconds.
    if record.elapsed_ns < SHORT_NS {
        return None;
    }
    let workers: usize = record.tenants.iter().map(|tenant| tenant.workers.len()).sum();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let available = record.elapsed_ns as f64 * workers.min(cpus) as f64;
    let share = (record.cpu.user_ns + record.cpu.system_ns) as f64 / available.max(1.0);
    (share >= CPU_SHARE).then(|| {
        Warning::new(
            "cpu_bound",
            format!("the processors were busy {:.0} % of the time", share.min(1.0) * 100.0),
            "this measures processor and memory; a faster device would change nothing",
        )
    })
}

fn depth(record: &PhaseRecord, phase: &Phase, place: &dyn Workplace) -> Option<Warning> {
    for (index, (asked, tenant)) in phase.tenants.iter().zip(&record.tenants).enumerate() {
        let capabilities = place.of_tenant(index).capabilities();
        if asked.depth > capabilities.depth_max {
            return Some(Warning::new(
                "depth_clamped",
                format!(
                    "{}: depth {} was asked, this engine has at most {} in flight",
                    asked.name, asked.depth, capabilities.depth_max
                ),
                "use --engine io_uring for a queue",
            ));
        }
        let total = f64::from(asked.depth * asked.workers);
        if total > 1.0 && !asked.is_paced() && tenant.depth_reached_mean < total * DEPTH_SHARE {
            return Some(Warning::new(
                "depth_not_reached",
                format!(
                    "{}: {:.1} ops were in flight on average, {total:.0} were asked for",
                    asked.name, tenant.depth_reached_mean
                ),
                if asked.is_direct() {
                    "the generator or another tenant is the bottleneck"
                } else {
                    "buffered ops end when they are submitted; use --direct for a queue"
                },
            ));
        }
    }
    None
}

/// A thread that looks for submissions is work that another engine does not need.
fn kernel_threads(workload: &Workload, phase: &Phase) -> Option<Warning> {
    let engine = |tenant: &Tenant| workload.engine_of_tenant(phase, tenant).parse::<Engine>();
    let asks = |tenant: &&Tenant| engine(tenant).is_ok_and(Engine::has_submitter);
    let threads: u32 = phase.tenants.iter().filter(asks).map(|tenant| tenant.workers).sum();
    (threads > 0).then(|| {
        Warning::new(
            "sqpoll_cpu",
            format!(
                "{threads} kernel threads (iou-sqp-*) kept as many CPUs busy as they could get"
            ),
            "their time is in cpu_*_ns: compare it, too; each needs a CPU beside its worker's",
        )
    })
}

fn short(record: &PhaseRecord) -> Option<Warning> {
    (record.elapsed_ns < SHORT_NS).then(|| {
        Warning::new(
            "short_phase",
            format!("the timed region lasted only {:.1} ms", record.elapsed_ns as f64 / 1e6),
            "use a larger file, so that it lasts at least 20 ms",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_drive::coordinate::{PhaseOutcome, TenantOutcome};
    use iolab_drive::record::DeviceRecord;
    use iolab_drive::recorder::ClassHistograms;
    use iolab_drive::series::Series;
    use iolab_drive::verify::told::{Culprit, mismatches};
    use iolab_model::Ns;
    use iolab_model::op::Access;
    use iolab_workload::StreamReport;
    use iolab_workload::operation::OperationKind;

    fn phase(access: Access) -> Phase {
        let tenant = serde_json::json!({
            "name": "main", "workers": 3, "file": "data", "file_bytes": 4096,
            "io_size_bytes": 4096, "pattern": {"kind": "sequential"},
            "direction": {"kind": "read"}, "access": access, "opening": "existing"});
        let phase = serde_json::json!({"name": "read", "tenants": [tenant]});
        serde_json::from_value(phase).unwrap()
    }

    fn workload(engine: Engine) -> Workload {
        let workload = serde_json::json!({
            "version": 1, "name": "w", "engine": engine.name(), "seed": 1, "phases": []});
        serde_json::from_value(workload).unwrap()
    }

    fn record(asked: u64, device: u64) -> PhaseRecord {
        let worker = StreamReport {
            ops: 1000,
            bytes: asked,
            read_bytes: asked,
            elapsed_ns: 1_000_000_000,
            ..StreamReport::default()
        };
        let tenant = TenantOutcome {
            began_ns: 0,
            alike: 0,
            share: None,
            asked_ops: None,
            segments: Vec::new(),
            operations: Vec::new(),
            kv: None,
            slices: None,
            name: "main".into(),
            kind: OperationKind::Read,
            io_size_bytes: Some(4096),
            access: Some(Access::Plain),
            workers: vec![worker],
            service: ClassHistograms::default(),
            response: None,
            submissions: None,
            series: Series::new(Ns(1)),
            depth_reached_mean: 1.0,
        };
        let outcome = PhaseOutcome {
            name: "read".into(),
            started_ns: 1,
            elapsed_ns: 1_000_000_000,
            parent_ns: None,
            lost_workers: 0,
            lost_by: None,
            tenants: vec![tenant],
        };
        let mut record = PhaseRecord::new(outcome, &phase(Access::Plain), Access::Plain);
        record.devices.push(DeviceRecord { read_bytes: device, ..DeviceRecord::default() });
        record
    }

    #[test]
    fn bytes_that_never_reached_the_device_are_called_page_cache() {
        assert_eq!(page_cache(&record(1000, 990)), None);
        assert_eq!(page_cache(&record(1000, 4000)), None, "read-ahead is not a cache hit");
        let warning = page_cache(&record(1000, 20)).unwrap();
        assert!(warning.message.starts_with("98 %"), "{}", warning.message);
    }

    #[test]
    fn what_came_back_wrong_is_a_warning_per_block_and_not_more_than_eight() {
        let mut record = record(1, 1);
        assert_eq!(mismatches(&record, Culprit::Storage), Vec::new());
        let mismatch = iolab_workload::verify::Mismatch {
            file: "data.0".into(),
            offset_bytes: 4096,
            block_bytes: 4096,
            kind: "torn".into(),
            message: "file data.0, block of 4096 bytes at offset 4096: torn write".into(),
            kept: None,
        };
        record.tenants[0].workers[0].mismatches = vec![mismatch; 9];
        let warnings = mismatches(&record, Culprit::Storage);
        assert_eq!(warnings.len(), 8);
        assert_eq!(warnings[0].code, "verify_failed");
        assert!(warnings[0].message.starts_with("read: file data.0"), "{}", warnings[0].message);
    }

    #[test]
    fn a_busy_generator_says_so() {
        let mut record = record(1, 1);
        record.harness_ns_per_op = Some(100.0);
        assert_eq!(generator(&record), None, "0.1 ms of 1 s");
        record.harness_ns_per_op = Some(300_000.0);
        assert_eq!(generator(&record).unwrap().code, "generator_bound");
    }

    #[test]
    fn an_engine_with_a_price_says_so() {
        let (direct, plain) = (phase(Access::Direct), phase(Access::Plain));
        let [libaio, psync, sqpoll, ring] =
            [Engine::Libaio, Engine::Psync, Engine::IoUringSqpoll, Engine::IoUring].map(workload);
        assert_eq!(waiting(&libaio, &plain).unwrap().code, "libaio_buffered");
        assert_eq!(waiting(&libaio, &direct), None);
        assert_eq!(waiting(&psync, &plain), None);
        let warning = kernel_threads(&sqpoll, &direct).unwrap();
        assert!(warning.message.starts_with("3 kernel threads"), "{}", warning.message);
        assert_eq!(kernel_threads(&ring, &direct), None);
    }

    #[test]
    fn a_busy_processor_says_so() {
        let mut record = record(1, 1);
        assert_eq!(processor(&record), None);
        record.cpu.system_ns = 950_000_000;
        assert_eq!(processor(&record).unwrap().code, "cpu_bound");
    }
}

//! Stages: the recorded figures of btt, and laws that hold for every trace.

use std::collections::VecDeque;
use std::path::PathBuf;

use iolab_trace::event::{Action, Categories, Device};
use iolab_trace::format::blktrace::Reader;
use iolab_trace::ring::LostBefore;
use iolab_trace::stages::{By, Pairing, Report, Rules, Stage, btt, text};
use iolab_trace::{Event, Input};
use proptest::prelude::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/trace")
}

fn golden(name: &str, rules: Rules, by: By) -> Pairing {
    let inputs = ["0", "1"].map(|cpu| {
        let file = format!("{name}.blktrace.{cpu}");
        Input::new(file.clone(), std::fs::File::open(folder().join(file)).unwrap())
    });
    Pairing::of(&mut Reader::of_inputs(inputs.into()).unwrap(), rules, by).unwrap()
}

#[test]
fn golden_figures_of_btt_are_reproduced_to_the_printed_digit() {
    for name in ["syn", "nb"] {
        let recorded = std::fs::read_to_string(folder().join(format!("{name}.btt-A.txt"))).unwrap();
        assert_eq!(btt::text(&golden(name, Rules::Btt, By::Process), true), recorded, "{name}");
    }
    let short = std::fs::read_to_string(folder().join("syn.btt-X.avg")).unwrap();
    let ours = btt::text(&golden("syn", Rules::Btt, By::Process), false);
    assert!(ours.starts_with(&short), "{ours}");
}

/// btt loses the second part of a split bio: its D and C cover no whole bio. We do not.
#[test]
fn a_bio_that_is_split_is_two() {
    let rows = |rules| {
        let report = Report::of(&golden("nb", rules, By::Device));
        report.stages.iter().find(|row| row.stage == Stage::Q2C).unwrap().count
    };
    assert_eq!((rows(Rules::Btt), rows(Rules::Own)), (135, 137));
    let report = Report::of(&golden("nb", Rules::Own, By::Device));
    assert_eq!(report.devices[0].counts.splits, 1);
}

fn event(action: Action, time_ns: u64, sector: u64, sectors: u32) -> Event {
    Event {
        action,
        time_ns,
        sector,
        bytes: sectors * 512,
        categories: Categories::WRITE.with(Categories::of_action(action)),
        device: Device::new(8, 0),
        ..Event::default()
    }
}

/// Symptom: mkfs discarded a device of 2 GiB, and the summary told of gigabytes per second.
#[test]
fn what_is_discarded_is_neither_throughput_nor_anybodys_share() {
    let discard = |action, time_ns| Event {
        categories: Categories::DISCARD.with(Categories::of_action(action)),
        ..event(action, time_ns, 1 << 20, 1 << 16)
    };
    let events = [
        event(Action::Queued, 0, 64, 8),
        discard(Action::Queued, 1),
        discard(Action::Issued, 2),
        event(Action::Issued, 3, 64, 8),
        discard(Action::Completed, 4),
        event(Action::Completed, 1_000_000_000, 64, 8),
    ];
    let report = Report::of(&paired(&events, By::Direction));
    let device = &report.devices[0];
    assert_eq!((device.counts.completed.count, device.counts.transferred_bytes()), (2, 4096));
    let shares: Vec<(&str, f64)> =
        device.groups.iter().map(|row| (row.name.as_str(), row.bytes_share)).collect();
    assert_eq!(shares, [("discard", 0.0), ("write", 1.0)]);
    assert!(text::summary(&report).contains("device 8,0: 2.0 requests/s, 4.0 KiB/s"));
}

/// Symptom: of a bio of 2 MiB that the kernel split, no byte was "completed" by its process: the
/// trace point of a split has no length, as blktrace's action has.
#[test]
fn a_split_of_the_kernels_trace_point_has_no_length_and_is_one() {
    let mut split = event(Action::Split, 2, 64, 0);
    split.payload.extend_from_slice(&96_u64.to_be_bytes());
    let events = [
        event(Action::Queued, 1, 64, 64),
        split,
        event(Action::Got, 3, 64, 32),
        event(Action::Got, 4, 96, 32),
        event(Action::Issued, 5, 64, 32),
        event(Action::Issued, 6, 96, 32),
        event(Action::Completed, 7, 64, 32),
        event(Action::Completed, 9, 96, 32),
    ];
    let report = Report::of(&paired(&events, By::Process));
    let device = &report.devices[0];
    assert_eq!((device.counts.splits, device.counts.completed_unknown), (1, 0));
    let whole = report.stages.iter().find(|row| row.stage == Stage::Q2C).unwrap();
    assert_eq!((whole.count, device.outstanding.at_end), (2, 0));
}

/// Symptom: a recording of issues and completions had no stage at all and an idle device.
#[test]
fn without_bios_that_enter_a_request_begins_with_its_issue() {
    let steps: Vec<Step> = (1..40)
        .map(|n| Step {
            gap_ns: 50,
            sectors: 8,
            served_ns: 100 * n,
            is_merged: false,
            is_again: n % 7 == 0,
        })
        .collect();
    let all = simulated(&steps);
    let basic: Vec<Event> = all
        .iter()
        .filter(|event| {
            matches!(event.action, Action::Issued | Action::Requeued | Action::Completed)
        })
        .cloned()
        .collect();
    let (whole, part) =
        (Report::of(&paired(&all, By::Process)), Report::of(&paired(&basic, By::Process)));
    let row = |report: &Report, stage| report.stages.iter().find(|row| row.stage == stage).cloned();
    assert_eq!(row(&whole, Stage::D2C), row(&part, Stage::D2C));
    assert_eq!((row(&part, Stage::Q2C), row(&part, Stage::Q2D)), (None, None));
    let (whole, part) = (&whole.devices[0], &part.devices[0]);
    assert_eq!((part.in_flight.max, part.in_flight.at_end), (1, 0));
    assert_eq!(part.groups[0].completed, whole.groups[0].completed);
    assert_eq!(part.counts.completed_unknown + part.counts.forgotten, 0);
    let told = text::summary(&Report::of(&paired(&basic, By::Process)));
    assert!(
        told.contains("in the device (D2C) p50") && told.contains("queued     not known"),
        "{told}"
    );
    assert!(!told.contains("0 bios") && told.contains("in the queue not known"), "{told}");
}

/// Symptom: a disk that flushed its cache for a third of the time was idle, and a write of a flush
/// sequence was completed twice.
#[test]
fn flushes_are_a_stage_keep_the_device_busy_and_are_no_requests() {
    let flush = |action, time_ns| Event {
        categories: Categories::FLUSH.with(Categories::of_action(action)),
        bytes: 0,
        ..event(action, time_ns, 0, 0)
    };
    let end = Event { bytes: 0, ..event(Action::Completed, 9_000, 64, 0) };
    let events = [
        event(Action::Queued, 0, 64, 8),
        flush(Action::Issued, 100),
        flush(Action::Completed, 5_100),
        event(Action::Issued, 6_000, 64, 8),
        event(Action::Completed, 7_000, 64, 8),
        flush(Action::Issued, 7_100),
        flush(Action::Completed, 8_100),
        end,
    ];
    let report = Report::of(&paired(&events, By::Direction));
    let device = &report.devices[0];
    let counts = &device.counts;
    assert_eq!((counts.issued.count, counts.completed.count, counts.completed_unknown), (1, 1, 0));
    assert_eq!((counts.flushes_issued, counts.flushes_completed), (2, 2));
    let row = device.stages.iter().find(|row| row.stage == Stage::Flush).unwrap();
    assert_eq!((row.count, row.min_ns, row.max_ns), (2, 1_000, 5_000));
    assert_eq!((report.span_ns, device.idle_ns), (9_000, 9_000 - 5_000 - 1_000 - 1_000));
    assert_eq!(device.in_flight.at_end, 0);
    let told = text::summary(&report);
    assert!(
        told.contains("flushes    2 of the device's cache (0 bios asked for one): p50"),
        "{told}"
    );
}

/// Symptom: after a loss a queue of 32 was 467 deep.
#[test]
fn what_was_under_way_where_events_were_lost_is_given_up() {
    let gap = Event {
        payload: LostBefore::Count(60).message(0).into_bytes(),
        ..event(Action::Message, 5_000, 0, 0)
    };
    let events = [
        event(Action::Queued, 0, 64, 8),
        event(Action::Issued, 10, 64, 8),
        event(Action::Queued, 20, 128, 8),
        gap,
        event(Action::Completed, 6_000, 128, 8),
        event(Action::Queued, 7_000, 64, 8),
        event(Action::Issued, 7_100, 64, 8),
        event(Action::Completed, 8_000, 64, 8),
    ];
    let report = Report::of(&paired(&events, By::Device));
    let device = &report.devices[0];
    assert_eq!((report.gaps, device.counts.forgotten, device.counts.completed_unknown), (1, 2, 1));
    assert_eq!(
        (device.outstanding.at_end, device.in_flight.at_end, device.in_flight.max),
        (0, 0, 1)
    );
    let row = device.stages.iter().find(|row| row.stage == Stage::Q2C).unwrap();
    assert_eq!((row.count, row.max_ns), (1, 1_000));
    assert!(text::summary(&report).contains("events were lost at 1 place"));
}

#[test]
fn a_process_that_is_named_late_has_its_name() {
    let mut name = Event::default();
    name.set_process(7, b"dd");
    let mut asked = event(Action::Queued, 5, 64, 8);
    asked.pid = 7;
    let done = event(Action::Completed, 9, 64, 8);
    let report = Report::of(&paired(&[asked, name, done], By::Process));
    assert_eq!(report.devices[0].groups[0].name, "dd (7)");
}

#[test]
fn times_that_go_back_are_told() {
    let events = [event(Action::Queued, 50, 64, 8), event(Action::Completed, 20, 64, 8)];
    let report = Report::of(&paired(&events, By::Device));
    assert_eq!(report.times_back, 1);
    assert!(text::summary(&report).contains("the time goes back at 1 event"));
}

fn paired(events: &[Event], by: By) -> Pairing {
    let mut pairing = Pairing::new(Rules::Own, by);
    for event in events {
        pairing.add(event);
    }
    pairing.finish();
    pairing
}

/// A bio of a random load: when it comes, how long it is, how long each step takes, whether it is
/// merged behind the request before.
#[derive(Clone, Copy, Debug)]
struct Step {
    gap_ns: u64,
    sectors: u32,
    served_ns: u64,
    is_merged: bool,
    is_again: bool,
}

fn any_step() -> impl Strategy<Value = Step> {
    (0_u64..5_000, 1_u32..64, 1_u64..9_000, any::<bool>(), prop::bool::weighted(0.1)).prop_map(
        |(gap_ns, sectors, served_ns, is_merged, is_again)| Step {
            gap_ns,
            sectors,
            served_ns,
            is_merged,
            is_again,
        },
    )
}

struct Request {
    start: u64,
    sectors: u32,
    served_ns: u64,
    is_again: bool,
}

/// A device that serves requests in order, some of which were merged; some are put back once.
fn simulated(steps: &[Step]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut requests: VecDeque<(u64, Request)> = VecDeque::new();
    let (mut now, mut next) = (1_000_000, 0_u64);
    for step in steps {
        now += step.gap_ns;
        // A hole before each request, so that none is taken for the end of another one.
        let is_merged = step.is_merged && !requests.is_empty();
        let start = next + 8 * u64::from(!is_merged);
        next = start + u64::from(step.sectors);
        events.push(event(Action::Queued, now, start, step.sectors));
        match requests.back_mut() {
            Some((_, last)) if step.is_merged => {
                events.push(event(Action::BackMerged, now + 1, start, step.sectors));
                last.sectors += step.sectors;
            }
            _ => {
                events.push(event(Action::Got, now + 1, start, step.sectors));
                events.push(event(Action::Inserted, now + 2, start, step.sectors));
                let (served_ns, is_again) = (step.served_ns, step.is_again);
                let request = Request { start, sectors: step.sectors, served_ns, is_again };
                requests.push_back((now + 2, request));
            }
        }
    }
    let mut free = now + 10;
    for (ready, request) in requests {
        let mut begin = ready.max(free);
        if request.is_again {
            events.push(event(Action::Issued, begin, request.start, request.sectors));
            events.push(event(Action::Requeued, begin + 5, request.start, request.sectors));
            begin += 50;
        }
        events.push(event(Action::Issued, begin, request.start, request.sectors));
        free = begin + request.served_ns;
        events.push(event(Action::Completed, free, request.start, request.sectors));
    }
    events.sort_by_key(|event| event.time_ns);
    events
}

proptest! {
    /// Every byte that enters comes out, through as many stages as it entered; the integral of the
    /// depth is the sum of the times (Little's law), whatever the groups.
    #[test]
    fn bytes_are_conserved_and_littles_law_holds(
        steps in prop::collection::vec(any_step(), 1..120),
        by in prop::sample::select(By::ALL),
    ) {
        let pairing = paired(&simulated(&steps), by);
        let report = Report::of(&pairing);
        let device = &report.devices[0];
        let queued = device.counts.queued[1];
        prop_assert_eq!(queued.count, steps.len() as u64);
        prop_assert_eq!(queued.bytes, device.counts.completed.bytes);
        let again: u64 = device.counts.issued.bytes - queued.bytes;
        prop_assert_eq!(again > 0, device.counts.requeues > 0);
        if by != By::Device {
            let bytes: u64 = device.groups.iter().map(|group| group.completed.bytes).sum();
            prop_assert_eq!(bytes, queued.bytes);
        }
        let sum = |stage| report.stages.iter().find(|r| r.stage == stage).map_or(0, |r| r.sum_ns);
        let count = |stage| report.stages.iter().find(|r| r.stage == stage).map_or(0, |r| r.count);
        prop_assert_eq!(count(Stage::Q2C), queued.count);
        prop_assert_eq!(count(Stage::D2C), queued.count);
        prop_assert_eq!(count(Stage::Q2G) + count(Stage::Q2M), queued.count);
        let activity = &pairing.devices[0].activity;
        prop_assert_eq!(activity.outstanding.integral, u128::from(sum(Stage::Q2C)));
        prop_assert_eq!((activity.outstanding.now, activity.in_flight.now), (0, 0));
        let whole: f64 = device.series.iter()
            .map(|slice| slice.outstanding_mean * slice.length_ns as f64).sum();
        prop_assert!((whole - activity.outstanding.integral as f64).abs() <= 1e-6 * whole.max(1.0));
        if device.counts.requeues == 0 {
            // Q2D and D2C follow each other without a gap.
            prop_assert_eq!(sum(Stage::Q2D) + sum(Stage::D2C), sum(Stage::Q2C));
        }
        prop_assert_eq!(device.idle_ns, report.span_ns - activity.in_flight.busy_ns);
    }

    /// Events in any order, of any kind, with any numbers: no panic, and no more bios than came.
    #[test]
    fn any_events_are_counted(
        events in prop::collection::vec(
            (prop::sample::select(Action::ALL), 0_u64..50, 0_u64..40, 0_u32..9, 0_u32..3), 0..300,
        ),
        rules in prop::sample::select(vec![Rules::Own, Rules::Btt]),
    ) {
        let mut pairing = Pairing::new(rules, By::Process);
        for (action, time_ns, sector, sectors, pid) in events {
            let payload = vec![pid as u8; 8];
            pairing.add(&Event { pid, payload, ..event(action, time_ns, sector, sectors) });
        }
        pairing.finish();
        let report = Report::of(&pairing);
        for device in &report.devices {
            let queued: u64 = device.counts.queued.iter().map(|amount| amount.count).sum();
            let ended: u64 = device.groups.iter().map(|group| group.completed.count).sum();
            // Requests may begin with their issue, as long as no bio was seen to enter.
            let alone = if rules == Rules::Own { device.counts.issued.count } else { 0 };
            prop_assert!(ended <= queued + device.counts.splits + alone);
            prop_assert!(device.outstanding.at_end <= queued + device.counts.splits);
        }
        btt::text(&pairing, true);
    }
}

#[test]
fn two_bios_for_the_same_sectors_are_both_measured() {
    let events = [
        event(Action::Queued, 100, 8, 8),
        event(Action::Queued, 200, 8, 8),
        event(Action::Issued, 300, 8, 8),
        event(Action::Issued, 400, 8, 8),
        event(Action::Completed, 600, 8, 8),
        event(Action::Completed, 900, 8, 8),
    ];
    let report = Report::of(&paired(&events, By::Device));
    let whole = report.stages.iter().find(|row| row.stage == Stage::Q2C).unwrap();
    assert_eq!((whole.count, whole.sum_ns), (2, 500 + 700));
    assert_eq!(report.devices[0].in_flight.max, 2);
    assert_eq!(report.devices[0].counts.completed_unknown, 0);
}

#[test]
fn what_does_not_end_is_told_and_bounded() {
    let events: Vec<Event> =
        (0..100_000_u64).map(|n| event(Action::Queued, n, n * 16, 8)).collect();
    let report = Report::of(&paired(&events, By::Device));
    let device = &report.devices[0];
    assert_eq!(device.counts.forgotten + device.outstanding.at_end, 100_000);
    assert_eq!(device.outstanding.at_end, 32_768);
}

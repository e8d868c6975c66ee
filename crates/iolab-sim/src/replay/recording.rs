//! A recording: the block layer's trace events as CSV, and what is known of the queue as JSON.

use std::collections::BTreeMap;
use std::str::FromStr;

use iolab_model::priority::{Priority, PriorityClass};
use iolab_model::trace_event::Action;
use iolab_model::{Ns, Sector, TraceEvent};
use serde::Deserialize;

use super::one_head::DeviceModel;
use crate::api::bio::{Bio, BioId, Flags, Operation, ProcessId, Submitter};
use crate::api::scheduler::{Hz, SchedulerContext};
use crate::error::SimError;
use crate::queue::DEPTH_MAX;
use crate::sched::SchedulerKind;

const HEADER: &str = "ts_ns,event,sector,nr_sectors,rwbs,ioprio,pid,cpu";
/// Columns that traces have beyond recordings: number of the queue, number of the request on it
/// (empty if there is none yet), name of the trace point.
const MORE: &str = ",device,request,point";
/// Longest bio: its length in bytes has 32 bits (Linux `include/linux/blk_types.h`, `bvec_iter`).
const SECTORS_MAX: u32 = u32::MAX >> 9;
/// The letter of two requests that became one in recordings, which have no trace points.
const MERGED_IN_RECORDINGS: &str = "A";

/// The queue on which a recording was made; unknown fields are kept out of the way.
#[derive(Clone, Debug, Deserialize)]
pub struct Setup {
    /// The scheduler.
    pub scheduler: SchedulerKind,
    /// Its tunables, as sysfs showed them.
    #[serde(default)]
    pub tunables: BTreeMap<String, String>,
    /// Request slots.
    pub nr_requests: u32,
    /// Commands that the driver took at once.
    pub driver_queue_depth: u32,
    /// Tick rate.
    pub hz: u32,
    /// CPUs of the machine.
    pub cpus: u16,
    /// As the queue said.
    pub rotational: u8,
    /// Longest request.
    #[serde(default)]
    pub max_sectors_kb: Option<u32>,
    /// Model of the device, as far as it is known.
    #[serde(default)]
    pub device_model: Option<DeviceModel>,
}

impl Setup {
    /// Refuses what no queue has.
    fn check(&self, subject: &str) -> Result<(), SimError> {
        let numbers = [
            ("nr_requests", self.nr_requests, (1, DEPTH_MAX), "requests"),
            ("driver_queue_depth", self.driver_queue_depth, (1, DEPTH_MAX), "commands"),
            ("hz", self.hz, (100, 1000), "ticks/s"),
            ("cpus", u32::from(self.cpus), (1, 4096), "CPUs"),
        ];
        for (name, value, (min, max), unit) in numbers {
            if !(min..=max).contains(&value) {
                return Err(SimError::OutOfRange {
                    name: format!("{subject}: its description (.json): {name}"),
                    value: f64::from(value),
                    unit: unit.to_owned(),
                    min: f64::from(min),
                    max: f64::from(max),
                });
            }
        }
        // Some tunables are words; what they are called, the scheduler tells.
        let fresh = self.scheduler.attach(&self.context(Ns(0)));
        let is_number = |text: &str| text.parse::<u64>().is_ok();
        let broken =
            |(name, text): &(&String, &String)| fresh.tunable(name).is_ok() && !is_number(text);
        if let Some((name, text)) = self.tunables.iter().find(broken) {
            return Err(SimError::Syntax {
                subject: subject.to_owned(),
                problem: format!("its description (.json): tunable {name} = '{text}' is no number"),
            });
        }
        Ok(())
    }

    /// Facts that the scheduler was told when it was attached, at `attached`.
    pub(super) const fn context(&self, attached: Ns) -> SchedulerContext {
        SchedulerContext {
            is_rotational: self.rotational != 0,
            hz: Hz(self.hz),
            slots: self.nr_requests,
            depth: self.driver_queue_depth,
            cpus: self.cpus,
            attached,
        }
    }

    /// Tunables of the scheduler `kind` in this recording: those that somebody had changed, if it
    /// is the recorded one, then `wanted`.
    ///
    /// What shows its default was not written: writing some files has effects of its own, whatever
    /// the value (Linux block/bfq-iosched.c: `bfq_max_budget_store`, `bfq_timeout_sync_store`).
    pub(super) fn tunables_of(
        &self,
        kind: SchedulerKind,
        wanted: &BTreeMap<String, u64>,
    ) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        if kind == self.scheduler {
            let fresh = kind.attach(&self.context(Ns(0)));
            let recorded = self.tunables.iter();
            let recorded = recorded.filter_map(|(name, v)| Some((name.clone(), v.parse().ok()?)));
            let is_changed =
                |(name, value): &(String, u64)| fresh.tunable(name).ok() != Some(*value);
            all.extend(recorded.filter(is_changed));
        }
        all.extend(wanted.iter().map(|(name, &value)| (name.clone(), value)));
        all
    }
}

/// One trace event.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// From the first event.
    pub at: Ns,
    /// Action of the event.
    pub action: Action,
    /// The bio or request.
    pub bio: Bio,
}

/// All events in order.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The queue.
    pub setup: Setup,
    /// The events.
    pub rows: Vec<Row>,
}

impl Recording {
    /// Parses both files; `subject` names the CSV in errors.
    pub fn parse(subject: &str, csv: &str, setup_json: &str) -> Result<Self, SimError> {
        let syntax = |problem: String| SimError::Syntax { subject: subject.to_owned(), problem };
        let setup: Setup = serde_json::from_str(setup_json)
            .map_err(|error| syntax(format!("its description (.json): {error}")))?;
        setup.check(subject)?;
        let mut lines = csv.lines();
        let header = lines.next().unwrap_or_default();
        if header.strip_suffix(MORE).unwrap_or(header) != HEADER {
            return Err(syntax(format!("the first line must be {HEADER}")));
        }
        let parsed = lines.enumerate().filter(|(_, line)| !line.is_empty()).map(|(index, line)| {
            let wrong = |what| syntax(format!("line {}: `{line}` has {what}", index + 2));
            row(line).map_err(wrong)
        });
        let rows = parsed.collect::<Result<Vec<Row>, _>>()?;
        check(&rows).map_err(syntax)?;
        Ok(Self { setup, rows })
    }
}

/// Refuses what is no recording of a queue at work.
fn check(rows: &[Row]) -> Result<(), String> {
    if let Some(index) = rows.windows(2).position(|pair| pair[1].at < pair[0].at) {
        return Err(format!("line {}: earlier than the line before", index + 3));
    }
    for (action, name) in [(Action::Issued, "issue"), (Action::Completed, "completion")] {
        if !rows.iter().any(|row| row.action == action) {
            return Err(format!("has no {name} ({action}): record the block:* events of a run"));
        }
    }
    Ok(())
}

/// Trace events as CSV: the columns of recordings, then [`MORE`]; times count from the first event.
pub fn to_csv(events: &[TraceEvent]) -> String {
    let first = events.first().map_or(Ns(0), |event| event.at);
    let mut text = format!("{HEADER}{MORE}\n");
    for event in events {
        // The kernel's trace points tell the priority of requests only.
        let tells = matches!(event.action, Action::Inserted | Action::Issued | Action::Completed);
        let priority = if tells { format!("{:#06x}", event.priority) } else { String::new() };
        let TraceEvent { at, action, sector, sectors, process, cpu, device, .. } = event;
        let (ns, rwbs) = (at.since(first).0, event.rwbs());
        let request = if event.request > 0 { event.request.to_string() } else { String::new() };
        let (letter, point, sector) = (action.letter(), action.point(), sector.0);
        let line = format!(
            "{ns},{letter},{sector},{sectors},{rwbs},{priority},{process},{cpu},{device},{request},\
             {point}\n"
        );
        text.push_str(&line);
    }
    text
}

/// The event of a line; what is wrong with it otherwise.
fn row(line: &str) -> Result<Row, String> {
    fn number<T: FromStr>(text: &str, name: &str) -> Result<T, String> {
        text.parse().map_err(|_| format!("no {name} in '{text}'"))
    }
    let mut fields = line.split(',');
    let mut next = |name: &str| fields.next().ok_or_else(|| format!("no field {name}"));
    let at = Ns(number(next("ts_ns")?, "time in ns")?);
    let letter = next("event")?;
    let sector = Sector(number(next("sector")?, "sector")?);
    let sectors = number(next("nr_sectors")?, "number of sectors")?;
    if sectors > SECTORS_MAX {
        return Err(format!("{sectors} sectors: a request has {SECTORS_MAX} at most"));
    }
    let rwbs = next("rwbs")?;
    let (operation, flags) =
        operation(rwbs).ok_or_else(|| format!("no operation in '{rwbs}': R, W, D, F or N"))?;
    let packed = next("ioprio")?;
    let priority = priority(packed)
        .ok_or_else(|| format!("no I/O priority in '{packed}': 0x and hexadecimal digits"))?;
    let process = ProcessId(number(next("pid")?, "process id")?);
    let cpu = number(next("cpu")?, "CPU")?;
    // Without a trace point it is a line of a recording.
    let action = match (fields.nth(2), letter) {
        (Some(point), letter) => Action::of_point(point).filter(|a| a.letter() == letter),
        (None, MERGED_IN_RECORDINGS) => Some(Action::RequestMerged),
        (None, letter) => letter.parse().ok(),
    };
    let action = action.ok_or_else(|| format!("no known event '{letter}'"))?;
    let submitter = Submitter { process, priority, cpu };
    let bio = Bio { id: BioId(0), operation, sector, sectors, flags, submitter, segments: 0 };
    Ok(Row { at, action, bio })
}

/// The kernel's letters: an optional F (preflush), the operation, then flags.
fn operation(rwbs: &str) -> Option<(Operation, Flags)> {
    let (body, preflush) = match rwbs.strip_prefix('F') {
        Some(rest) if rest.starts_with(['R', 'W', 'D']) => (rest, Flags::PREFLUSH),
        _ => (rwbs, Flags::NONE),
    };
    let operation = match body.chars().next()? {
        'R' => Operation::Read,
        'W' => Operation::Write,
        'D' => Operation::Discard,
        'F' | 'N' => Operation::Flush,
        _ => return None,
    };
    let flags = body.chars().skip(1).fold(preflush, |all, letter| match letter {
        'F' => all.with(Flags::FUA),
        'S' => all.with(Flags::SYNC),
        'M' => all.with(Flags::META),
        _ => all,
    });
    Some((operation, flags))
}

/// Hexadecimal as the kernel packs it; empty where the trace point does not tell.
fn priority(text: &str) -> Option<Priority> {
    if text.is_empty() {
        return Some(Priority::default());
    }
    let packed = u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
    let class = match packed >> 13 {
        1 => PriorityClass::RealTime,
        2 => PriorityClass::BestEffort,
        3 => PriorityClass::Idle,
        _ => PriorityClass::None,
    };
    Some(Priority { class, level: (packed & 7) as u8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_event_is_named() {
        let setup = r#"{"scheduler":"none","nr_requests":4,"driver_queue_depth":4,"hz":250,
            "cpus":2,"rotational":1}"#;
        let text = format!("{HEADER}\n0,Q,8,8,RS,,1,0\n5,Z,8,8,RS,,1,0\n");
        let error = Recording::parse("x.csv", &text, setup).unwrap_err().to_string();
        assert_eq!(error, "x.csv: line 3: `5,Z,8,8,RS,,1,0` has no known event 'Z'");
    }

    #[test]
    fn a_field_or_a_description_that_cannot_be_is_named() {
        let setup = |hz: u32, tunables: &str| {
            format!(
                r#"{{"scheduler":"mq-deadline","nr_requests":4,"driver_queue_depth":4,"hz":{hz},
                "cpus":2,"rotational":1,"tunables":{tunables}}}"#
            )
        };
        let text = |line: &str| format!("{HEADER}\n0,Q,8,8,RS,,1,0\n{line}\n");
        let told = |line: &str, setup: &str| {
            Recording::parse("x", &text(line), setup).unwrap_err().to_string()
        };
        let good = setup(250, "{}");
        assert!(
            told("5,D,8,8,RS,0xZZ,1,0", &good)
                .ends_with("has no I/O priority in '0xZZ': 0x and hexadecimal digits")
        );
        assert!(told("5,D,8,4294967295,RS,,1,0", &good).ends_with("a request has 8388607 at most"));
        assert!(told("5,D,8", &good).ends_with("has no field nr_sectors"));
        assert_eq!(
            told("", &setup(0, "{}")),
            "x: its description (.json): hz = 0 ticks/s: must be 100 to 1000 ticks/s"
        );
        assert!(
            told("", &setup(250, r#"{"fifo_batch":"x"}"#))
                .ends_with("tunable fifo_batch = 'x' is no number")
        );
    }

    #[test]
    fn a_trace_is_read_back_and_recordings_as_before() {
        let event = TraceEvent {
            at: Ns(5),
            action: Action::RequestMerged,
            sector: Sector(8),
            sectors: 16,
            operation: iolab_model::trace_event::Operation::WRITE,
            process: 3,
            cpu: 1,
            priority: 0,
            device: 2,
            request: 7,
        };
        let text = to_csv(&[event]);
        assert_eq!(text, format!("{HEADER}{MORE}\n0,M,8,16,W,,3,1,2,7,rq_merge\n"));
        let line = text.lines().nth(1).unwrap();
        assert_eq!(row(line).unwrap().action, Action::RequestMerged);
        assert_eq!(row("0,M,8,16,W,,3,1,2,7,bio_backmerge").unwrap().action, Action::BackMerged);
        assert_eq!(row("0,A,8,16,W,,3,1").unwrap().action, Action::RequestMerged);
        assert_eq!(row("0,M,8,16,W,,3,1").unwrap().action, Action::BackMerged);
        assert!(row("0,A,8,16,W,,3,1,2,7,bio_remap").is_err(), "A is a remap, and there is none");
    }

    #[test]
    fn letters_and_priorities_are_read() {
        let row = row("7,D,204800,128,FWFS,0x2000,9,1").unwrap();
        assert_eq!(row.bio.operation, Operation::Write);
        assert!(row.bio.flags.contains(Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC)));
        assert_eq!(row.bio.submitter.priority.class, PriorityClass::RealTime);
    }
}

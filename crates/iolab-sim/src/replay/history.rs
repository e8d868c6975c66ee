//! From a stream of events, recorded or simulated: the life of every bio, and the figures by which
//! two streams are compared.

use std::collections::{BTreeMap, VecDeque};

use iolab_model::trace_event::{Action, Operation as Letters};
use iolab_model::{Ns, Sector, TraceEvent};
use serde::Serialize;

use super::places::ByPlace;
use super::recording::Row;
use crate::api::bio::{Bio, BioId, Flags, Operation, Priority, ProcessId, Submitter};
use crate::api::request::Direction;
use crate::sched::SchedulerKind;

/// A bio from its submission to its end.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// Bio that was asked for.
    pub bio: Bio,
    /// Time at which it was submitted.
    pub queued: Ns,
    /// Time at which it became a request, or part of one; if that took long (it waited for a slot),
    /// when it was submitted.
    pub entered: Ns,
    /// Time at which it ended; [`Ns::MAX`] if the recording ends before.
    pub completed: Ns,
}

/// A submission that takes longer has slept.
const ENTRY_MAX: Ns = Ns::from_us(100);

/// Direction of a bio.
pub const fn direction_of(bio: &Bio) -> Direction {
    if bio.operation.is_write() { Direction::Write } else { Direction::Read }
}

/// Every bio of a stream, in order of submission, with the last priority of its process.
pub fn lives(rows: &[Row]) -> Vec<Life> {
    let mut all: Vec<Life> = Vec::new();
    let mut open: BTreeMap<(Direction, Sector), VecDeque<usize>> = BTreeMap::new();
    // Trace points of bios tell no priority, those of requests do.
    let mut priorities: BTreeMap<(ProcessId, Direction), Priority> = BTreeMap::new();
    for row in rows {
        let direction = direction_of(&row.bio);
        if row.action == Action::Queued {
            open.entry((direction, row.bio.sector)).or_default().push_back(all.len());
            let (bio, queued) = (row.bio, row.at);
            all.push(Life { bio, queued, entered: queued, completed: Ns::MAX });
        }
        if matches!(row.action, Action::Inserted | Action::BackMerged | Action::FrontMerged)
            && let Some(&index) = open.get(&(direction, row.bio.sector)).and_then(VecDeque::back)
            && row.at.since(all[index].queued) < ENTRY_MAX
        {
            all[index].entered = row.at;
        }
        if row.action == Action::Inserted {
            priorities.insert((row.bio.submitter.process, direction), row.bio.submitter.priority);
        }
        if row.action != Action::Completed {
            continue;
        }
        let mut next = row.bio.sector;
        while next < row.bio.end() {
            let Some(list) = open.get_mut(&(direction, next)) else { break };
            let index = list.pop_front().expect("an empty list is removed");
            if list.is_empty() {
                open.remove(&(direction, next));
            }
            let end = all[index].bio.end();
            if end <= row.bio.end() {
                all[index].completed = row.at;
            } else {
                // A bio that was split: the rest is still under way.
                open.entry((direction, row.bio.end())).or_default().push_back(index);
            }
            next = end;
        }
    }
    for Life { bio, .. } in &mut all {
        if let Some(&priority) = priorities.get(&(bio.submitter.process, direction_of(bio))) {
            bio.submitter.priority = priority;
        }
    }
    all
}

/// Figures of one process in one direction.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ProcessFigures {
    /// Its number in the recording.
    pub process: u32,
    /// `read` or `write`.
    pub direction: &'static str,
    /// Requests that were issued.
    pub requests: u64,
    /// Mean time from insertion (without a scheduler: from allocation) to issue, in ns.
    pub wait_ns: f64,
    /// Its bytes over those of all.
    pub share: f64,
    /// Most bios that it had outstanding.
    pub outstanding: u64,
}

/// The figures of one stream.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Figures {
    /// Requests completed.
    pub requests: u64,
    /// Share of issues at or above the end of the previous issue.
    pub ascending: f64,
    /// Bios merged at the back or front of a request.
    pub merges: u64,
    /// Pairs of requests joined.
    pub joined: u64,
    /// Per process and direction, ordered.
    pub processes: Vec<ProcessFigures>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    requests: u64,
    wait: u64,
    sectors: u64,
    outstanding: u64,
    outstanding_max: u64,
}

#[derive(Default)]
struct Counter {
    accounts: BTreeMap<(ProcessId, Direction), Account>,
    waiting: ByPlace<(ProcessId, Ns)>,
    issues: u64,
    ascending: u64,
    issue_end: Option<Sector>,
    requests: u64,
    merges: u64,
    joined: u64,
}

impl Counter {
    fn follow(&mut self, row: &Row, is_inserted_at: Action) {
        let direction = direction_of(&row.bio);
        let key = (direction, row.bio.sector);
        match row.action {
            action if action == is_inserted_at => {
                self.waiting.add(key, (row.bio.submitter.process, row.at));
            }
            Action::BackMerged => self.merges += 1,
            Action::FrontMerged => {
                self.merges += 1;
                if let Some(waiting) = self.waiting.take_oldest((direction, row.bio.end())) {
                    self.waiting.add(key, waiting);
                }
            }
            Action::RequestMerged => {
                self.joined += 1;
                self.waiting.take_oldest(key);
            }
            Action::Issued => self.issue(row),
            Action::Completed => self.requests += 1,
            _ => {}
        }
    }

    fn issue(&mut self, row: &Row) {
        if let Some(end) = self.issue_end {
            self.issues += 1;
            self.ascending += u64::from(row.bio.sector >= end);
        }
        self.issue_end = Some(row.bio.end());
        let direction = direction_of(&row.bio);
        let Some((process, since)) = self.waiting.take_oldest((direction, row.bio.sector)) else {
            return;
        };
        let account = self.accounts.entry((process, direction)).or_default();
        account.requests += 1;
        account.wait += row.at.since(since).0;
    }

    /// Bytes and bios outstanding, from the lives of bios.
    fn count_bios(&mut self, lives: &[Life]) {
        let mut changes: Vec<(Ns, i64, usize)> = Vec::with_capacity(2 * lives.len());
        for (index, life) in lives.iter().enumerate() {
            changes.push((life.queued, 1, index));
            changes.push((life.completed, -1, index));
        }
        changes.sort_unstable();
        for (at, step, index) in changes {
            let bio = &lives[index].bio;
            let key = (bio.submitter.process, direction_of(bio));
            let account = self.accounts.entry(key).or_default();
            account.outstanding = account.outstanding.wrapping_add_signed(step);
            account.outstanding_max = account.outstanding_max.max(account.outstanding);
            if step < 0 && at < Ns::MAX {
                account.sectors += u64::from(bio.sectors);
            }
        }
    }
}

/// The figures of a stream made under `kind`.
pub fn figures(rows: &[Row], kind: SchedulerKind) -> Figures {
    // Without a scheduler nothing is inserted: a request waits from its allocation on.
    let is_inserted_at = if kind.is_elevator() { Action::Inserted } else { Action::Got };
    let mut counter = Counter::default();
    for row in rows {
        counter.follow(row, is_inserted_at);
    }
    counter.count_bios(&lives(rows));
    let sectors: u64 = counter.accounts.values().map(|account| account.sectors).sum();
    let of_process =
        |(&(process, direction), account): (&(ProcessId, Direction), &Account)| ProcessFigures {
            process: process.0,
            direction: ["read", "write"][direction.index()],
            requests: account.requests,
            wait_ns: account.wait as f64 / account.requests.max(1) as f64,
            share: account.sectors as f64 / sectors.max(1) as f64,
            outstanding: account.outstanding_max,
        };
    Figures {
        requests: counter.requests,
        ascending: counter.ascending as f64 / counter.issues.max(1) as f64,
        merges: counter.merges,
        joined: counter.joined,
        processes: counter.accounts.iter().map(of_process).collect(),
    }
}

/// A simulated event in the form of a recorded one; times are shifted to begin at `epoch`.
pub fn row_of(event: &TraceEvent, epoch: Ns) -> Row {
    let operation = match event.operation.0 & 3 {
        0 => Operation::Read,
        1 => Operation::Write,
        2 => Operation::Discard,
        _ => Operation::Flush,
    };
    let is_sync = event.operation.0 & Letters::SYNC.0 != 0;
    let submitter = Submitter {
        process: ProcessId(event.process),
        priority: Priority::default(),
        cpu: event.cpu,
    };
    let flags = if is_sync { Flags::SYNC } else { Flags::NONE };
    let (sector, sectors) = (event.sector, event.sectors);
    let bio = Bio { id: BioId(0), operation, sector, sectors, flags, submitter, segments: 0 };
    Row { at: event.at.since(epoch), action: event.action, bio }
}

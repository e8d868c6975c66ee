//! Cases of the block layer: requests after splitting and merging, what a device sees of a flush.

use std::collections::BTreeMap;

use iolab_model::{Ns, Sector};
use serde::Deserialize;

use super::run::Judgement;
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, Priority, PriorityClass, Submitter};
use crate::api::layer::{Info, Layer, WriteCache};
use crate::error::SimError;
use crate::queue::{
    BATCH_REQUESTS, BATCH_TIME, BlockQueue, QueueParameters, batch_limit, congested_off,
    congested_on,
};
use crate::sched::SchedulerKind;

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockCase {
    id: String,
    title: String,
    #[serde(default)]
    #[allow(dead_code, reason = "for readers of the file")]
    confidence: String,
    input: Option<serde_json::Value>,
    expect: Expect,
    #[serde(default)]
    #[allow(dead_code, reason = "for readers of the file")]
    why: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    op: Option<Operation>,
    sector: Option<u64>,
    n: Option<u32>,
    max_sectors_kb: Option<u32>,
    scheduler: Option<SchedulerKind>,
    #[serde(default)]
    plug: Vec<BioRow>,
    #[serde(default)]
    queued: Vec<BioRow>,
    bio: Option<BioRow>,
    #[serde(default)]
    bios: Vec<BioRow>,
    write_cache: Option<String>,
    fua: Option<u8>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BioRow {
    #[allow(dead_code, reason = "for readers of the file")]
    id: Option<String>,
    op: Operation,
    sector: u64,
    n: u32,
    prio_class: Option<PriorityClass>,
    prio: Option<u8>,
    #[serde(default)]
    fua: bool,
    #[serde(default)]
    preflush: bool,
}

/// A name that is none of these is taken for a constant, and judged as one.
#[derive(Clone, Debug, Default, Deserialize)]
struct Expect {
    requests: Option<Vec<Extent>>,
    plug_list: Option<Vec<Extent>>,
    scheduler_requests: Option<Vec<Extent>>,
    issued: Option<Vec<Extent>>,
    queued: Option<Vec<Extent>>,
    merged: Option<u64>,
    device_sees: Option<Sees>,
    #[serde(flatten)]
    constants: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Sees {
    One(Vec<String>),
    Many(Vec<Vec<String>>),
}

#[derive(Clone, Debug, Deserialize)]
struct Extent {
    sector: u64,
    n: u32,
}

/// A device that keeps everything it gets until it is asked to finish.
struct Sink {
    cache: WriteCache,
    depth: u32,
    held: Vec<BioId>,
    seen: std::rc::Rc<std::cell::RefCell<Vec<String>>>,
}

impl Layer for Sink {
    fn info(&self) -> Info {
        Info {
            capacity: Sector(1 << 40),
            depth: self.depth,
            is_rotational: false,
            write_cache: self.cache,
            max_sectors: u32::MAX,
            chunk_sectors: 0,
            can_discard: true,
        }
    }

    fn submit(&mut self, _: Ns, bio: &Bio) {
        let fua = if bio.flags.contains(Flags::FUA) { "(FUA)" } else { "" };
        let extent = format!("{}+{}", bio.sector.0, bio.sectors);
        self.seen.borrow_mut().push(match bio.operation {
            Operation::Flush => "FLUSH".to_owned(),
            Operation::Write => format!("WRITE{fua} {extent}"),
            Operation::Read | Operation::Discard => extent,
        });
        self.held.push(bio.id);
    }

    fn next_event(&self) -> Ns {
        if self.held.is_empty() { Ns::MAX } else { Ns(0) }
    }

    fn advance(&mut self, _: Ns, done: &mut Vec<Ended>) {
        done.extend(self.held.drain(..).map(Ended::ok));
    }
}

/// Runs a case and compares.
pub fn judge(case: &BlockCase) -> Result<Judgement, SimError> {
    let (expected, obtained) = match &case.input {
        None => constants(&case.expect),
        Some(serde_json::Value::Array(inputs)) => {
            let Some(Sees::Many(expected)) = &case.expect.device_sees else {
                return Err(unclear(case));
            };
            let obtained: Result<Vec<_>, _> =
                inputs.iter().map(|input| flushes(&parsed(case, input)?)).collect();
            (format!("{expected:?}"), format!("{:?}", obtained?))
        }
        Some(input) => one(&parsed(case, input)?, &case.expect)?,
    };
    Ok(Judgement {
        id: case.id.clone(),
        title: case.title.clone(),
        scheduler: "block layer".into(),
        is_ok: expected == obtained,
        expected,
        obtained,
    })
}

fn parsed(case: &BlockCase, input: &serde_json::Value) -> Result<Input, SimError> {
    Input::deserialize(input).map_err(|error| SimError::Syntax {
        subject: format!("block-layer case {}", case.id),
        problem: error.to_string(),
    })
}

fn unclear(case: &BlockCase) -> SimError {
    SimError::Inconsistent {
        subject: format!("block-layer case {}", case.id),
        problem: "input and expect do not belong together".into(),
        remedy: "follow one of the cases of the file that comes with iolab".into(),
    }
}

fn constants(expect: &Expect) -> (String, String) {
    // Linux 4.20 include/linux/blkdev.h: BLKDEV_MAX_RQ.
    let slots = 128;
    let known = BTreeMap::from([
        ("batch_requests", u64::from(BATCH_REQUESTS)),
        ("batch_time_ms", BATCH_TIME.0 / 1_000_000),
        ("batcher_limit", u64::from(batch_limit(slots))),
        ("congested_off_below", u64::from(congested_off(slots))),
        ("congested_on_at", u64::from(congested_on(slots))),
        ("pool_full_at", u64::from(slots)),
    ]);
    let named = |(name, _): (&String, &u64)| known.get_key_value(name.as_str());
    let obtained: BTreeMap<_, _> = expect.constants.iter().filter_map(named).collect();
    (format!("{:?}", expect.constants), format!("{obtained:?}"))
}

type Seen = std::rc::Rc<std::cell::RefCell<Vec<String>>>;

fn queue(input: &Input, depth: u32) -> Result<(BlockQueue, Seen), SimError> {
    let cache = match input.write_cache.as_deref() {
        Some("write through") => WriteCache::Through,
        Some(_) => WriteCache::Back { has_fua: input.fua == Some(1) },
        None => WriteCache::Back { has_fua: true },
    };
    let seen = Seen::default();
    let sink = Sink { cache, depth, held: Vec::new(), seen: Seen::clone(&seen) };
    let parameters = QueueParameters {
        scheduler: input.scheduler.unwrap_or(SchedulerKind::MqDeadline),
        nr_requests: Some(128),
        max_sectors_kb: input.max_sectors_kb,
        look_ahead: 0,
        wbt_lat_usec: Some(0),
        ..QueueParameters::default()
    };
    Ok((BlockQueue::new(Ns(0), &parameters, Box::new(sink))?, seen))
}

fn bio(index: usize, row: &BioRow) -> Bio {
    let flag = |is_set, flag| if is_set { flag } else { Flags::NONE };
    let priority =
        Priority { class: row.prio_class.unwrap_or_default(), level: row.prio.unwrap_or(4) };
    Bio {
        id: BioId(index as u32),
        operation: row.op,
        sector: Sector(row.sector),
        sectors: row.n,
        flags: flag(row.fua, Flags::FUA).with(flag(row.preflush, Flags::PREFLUSH)),
        submitter: Submitter { priority, ..Submitter::default() },
        segments: 0,
    }
}

fn extents(list: &[Extent]) -> String {
    let texts: Vec<String> = list.iter().map(|e| format!("{}+{}", e.sector, e.n)).collect();
    texts.join(" ")
}

/// Requests that the device gets, in order, when everything is dispatched.
fn drain(queue: &mut BlockQueue, seen: &Seen) -> Vec<String> {
    let mut done = Vec::new();
    while queue.next_event() != Ns::MAX {
        queue.advance(Ns(0), &mut done);
    }
    seen.borrow_mut().drain(..).collect()
}

fn one(input: &Input, expect: &Expect) -> Result<(String, String), SimError> {
    if let Some(Sees::One(expected)) = &expect.device_sees {
        return Ok((format!("{expected:?}"), format!("{:?}", flushes(input)?)));
    }
    if let Some(expected) = expect.merged {
        let mut merged = 0;
        for row in &input.bios {
            let (mut queue, _) = queue(input, 1)?;
            submit_all(&mut queue, input.queued.iter().chain([row]));
            merged += queue.accounting().merged.iter().sum::<u64>();
        }
        return Ok((expected.to_string(), merged.to_string()));
    }
    let (mut queue, seen) = queue(input, u32::MAX)?;
    if let (Some(op), Some(sector), Some(n)) = (input.op, input.sector, input.n) {
        let row = BioRow {
            id: None,
            op,
            sector,
            n,
            prio_class: None,
            prio: None,
            fua: false,
            preflush: false,
        };
        submit_all(&mut queue, [&row]);
    }
    let mut plug_list = String::new();
    if !input.plug.is_empty() {
        for (index, row) in input.plug.iter().enumerate() {
            queue.plug_bio(Ns(0), &bio(index, row));
        }
        let texts = queue.plug.iter().map(|&id| &queue.requests[id]);
        plug_list = texts
            .map(|request| format!("{}+{}", request.sector.0, request.sectors))
            .collect::<Vec<_>>()
            .join(" ");
        queue.unplug(Ns(0));
    }
    submit_all(&mut queue, input.queued.iter().chain(&input.bio));
    let mut dispatched = drain(&mut queue, &seen);
    let wanted = [&expect.requests, &expect.scheduler_requests, &expect.issued, &expect.queued];
    let wanted = wanted.into_iter().flatten().next().map(|list| extents(list));
    if expect.issued.is_none() {
        sort_like(&mut dispatched, wanted.as_deref().unwrap_or_default());
    }
    let obtained = dispatched.join(" ").replace("WRITE ", "");
    Ok(match &expect.plug_list {
        Some(list) => (
            format!("{}; {}", extents(list), wanted.unwrap_or_default()),
            format!("{plug_list}; {obtained}"),
        ),
        None => (wanted.unwrap_or_default(), obtained),
    })
}

/// The file lists what is queued, not the order of dispatch: brings equal sets into one order.
fn sort_like(obtained: &mut [String], expected: &str) {
    let order: Vec<&str> = expected.split(' ').collect();
    obtained.sort_by_key(|text| {
        let extent = text.trim_start_matches("WRITE ");
        order.iter().position(|known| *known == extent).unwrap_or(usize::MAX)
    });
}

fn submit_all<'a>(queue: &mut BlockQueue, rows: impl IntoIterator<Item = &'a BioRow>) {
    for (index, row) in rows.into_iter().enumerate() {
        queue.submit(Ns(0), &bio(index, row));
    }
}

fn flushes(input: &Input) -> Result<Vec<String>, SimError> {
    let by_default = BioRow {
        id: None,
        op: Operation::Write,
        sector: 0,
        n: 8,
        prio_class: None,
        prio: None,
        fua: true,
        preflush: true,
    };
    let (mut queue, seen) = queue(input, u32::MAX)?;
    submit_all(&mut queue, [input.bio.as_ref().unwrap_or(&by_default)]);
    Ok(drain(&mut queue, &seen))
}

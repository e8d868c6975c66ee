//! The suite that every [`Target`] must pass: null, memory, every real engine, every simulated
//! stack.
//!
//! It checks that completions match submissions exactly once, that sizes add up, that time never
//! goes back, that a full queue says busy, that a flush is answered after what it flushes, that
//! errors surface, that data come back, whatever the kind of handle, and that capabilities are
//! honest: what a target declines it declines aloud with `EOPNOTSUPP`. What it does not check:
//! speed, and crash consistency.

mod extra;
mod kinds;
mod runs;

use std::path::PathBuf;
use std::sync::Arc;

use crate::completion::Completion;
use crate::error::Errno;
use crate::op::{
    Access, Deallocation, Durability, Handle, LockKind, Op, OpenHow, PathId, Position, Submission,
    Token, Transfer, TransferFlags,
};
use crate::seed::Seed;
use crate::target::{Content, Lane, LaneRequest, Target};
use crate::units::{Bytes, Ns};

/// A promise that a target broke.
#[derive(Debug)]
pub struct Failure {
    /// Name of the check.
    pub check: &'static str,
    /// Observation, in words.
    pub detail: String,
}

const RECORD: Bytes = Bytes(4096);
const RECORDS: u64 = 64;
const FILE: Handle = Handle(0);

/// Reading and writing, the way a tenant gets that asks for nothing special.
fn read_write<T: Target>(target: &T) -> OpenHow {
    let can = target.capabilities();
    let has_default = can.has_plain || can.default_access != Access::Plain;
    OpenHow {
        access: if has_default { can.default_access } else { Access::Direct },
        durability: Durability::None,
        is_readable: true,
        is_writable: true,
        is_truncating: false,
        stream_buffer_bytes: Bytes(0),
        permissions: crate::op::Permissions::Group,
        write_life: crate::op::WriteLife::Unsaid,
        is_remembered: false,
    }
}

/// Runs every check on lanes of `target`; `directory` holds the files of targets that have files.
///
/// The answer is empty when the target conforms.
pub fn check<T: Target>(target: &T, directory: &std::path::Path) -> Vec<Failure> {
    let checks: [(&'static str, Check<T>); 20] = [
        ("every submission completes exactly once", exactly_once),
        ("a full queue says busy", busy_when_full),
        ("sizes add up, also at the end of the file", sizes),
        ("a flush is answered after what it flushes", flush),
        ("errors surface", errors),
        ("data come back", data),
        ("capabilities are honest", honest),
        ("an appending handle appends", append),
        ("vectored transfers move the same bytes", kinds::vectors),
        ("several calls move the same bytes as one", kinds::small_calls),
        ("a run is what its transfers are one by one", runs::runs),
        ("flags of transfers are obeyed or declined", kinds::flags),
        ("streams buffer and give back", kinds::streams),
        ("mapped files give back", kinds::mapped),
        ("locks are given and taken back", kinds::locks),
        ("allocating changes no byte", kinds::allocate),
        ("a range that was given back reads as zeros", extra::deallocate),
        ("a write to the end makes a file longer", extra::end),
        ("links and copies hold what their source held", extra::links),
        ("a store gives back what was put", extra::key_value),
    ];
    let run = |(index, (check, body)): (usize, &(&'static str, Check<T>))| {
        let paths: Vec<PathBuf> =
            (0..3).map(|i| directory.join(format!("conformance-{index}.{i}"))).collect();
        body(target, &paths).err().map(|detail| Failure { check, detail })
    };
    checks.iter().enumerate().filter_map(run).collect()
}

/// One promise: a target and the paths it may use, to what was seen instead.
type Check<T> = fn(&T, &[PathBuf]) -> Result<(), String>;

/// A lane under test with its own bookkeeping.
struct Probe<L: Lane> {
    lane: L,
    how: OpenHow,
    done: Vec<Completion>,
    clock: Ns,
}

impl<L: Lane> Probe<L> {
    fn open<T: Target<Lane = L>>(target: &T, paths: &[PathBuf]) -> Result<Self, String> {
        let depth = target.capabilities().depth_max.clamp(1, 8);
        let request = LaneRequest {
            worker: 0,
            depth,
            buffer_bytes: RECORD,
            content: Content::Incompressible,
            seed: Seed(7),
            priority: None,
            submitter_cpu: None,
            paths: Arc::from(paths.to_vec()),
        };
        let lane = target.open(&request).map_err(|e| e.to_string())?;
        Ok(Self { clock: lane.now(), lane, how: read_write(target), done: Vec::new() })
    }

    fn submission(&self, token: u32, op: Op) -> Submission {
        Submission { token: Token(token), intended: self.clock, is_timed: true, op }
    }

    /// Runs one op to its end.
    fn one(&mut self, op: Op) -> Result<Completion, String> {
        let submission = self.submission(0, op);
        self.clock = self.lane.now();
        let accepted = self.lane.submit_batch(self.clock, &[submission], &mut self.done);
        if accepted.total() != 1 {
            return Err(format!("{op:?} was not accepted by an idle lane"));
        }
        self.lane.reap(1, Ns::MAX, &mut self.done).map_err(|e| e.to_string())?;
        let completion = self.done.pop().ok_or_else(|| format!("{op:?} never completed"))?;
        self.check_time(&completion)?;
        self.done.is_empty().then_some(completion).ok_or_else(|| format!("{op:?} completed twice"))
    }

    fn ok(&mut self, op: Op) -> Result<Bytes, String> {
        self.one(op)?.outcome.map_err(|errno| format!("{op:?} failed with errno {}", errno.0))
    }

    fn fails(&mut self, op: Op, expected: &[Errno]) -> Result<(), String> {
        match self.one(op)?.outcome {
            Err(errno) if expected.contains(&errno) => Ok(()),
            other => Err(format!("{op:?} gave {other:?}, expected one of {expected:?}")),
        }
    }

    fn check_time(&mut self, completion: &Completion) -> Result<(), String> {
        let now = self.lane.now();
        let is_ordered = completion.submitted <= completion.completed
            && completion.completed <= now
            && self.clock <= now;
        self.clock = now;
        is_ordered.then_some(()).ok_or_else(|| format!("time went back: {completion:?} at {now:?}"))
    }

    /// Creates the first file, with room for `RECORDS` records if it is mapped.
    fn create(&mut self) -> Result<(), String> {
        self.ok(Op::Create { path: PathId(0), handle: FILE, how: self.how })?;
        if self.how.access == Access::Mapped {
            let length = Bytes(RECORDS * RECORD.0);
            self.ok(Op::Truncate { handle: FILE, length })?;
            self.ok(Op::Map { handle: FILE, length })?;
        }
        Ok(())
    }

    /// Creates the first file (where there are files) and fills it with `RECORDS` records.
    fn fill(&mut self, has_namespace: bool) -> Result<(), String> {
        if has_namespace {
            self.create()?;
        }
        for record in 0..RECORDS {
            self.ok(Op::write(FILE, Bytes(record * RECORD.0), RECORD))?;
        }
        Ok(())
    }
}

fn exactly_once<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let mut probe = Probe::open(target, paths)?;
    probe.fill(target.capabilities().has_namespace)?;
    let depth = target.capabilities().depth_max.clamp(1, 8);
    let mut free: Vec<u32> = (0..depth).collect();
    let (mut issued, mut ended) = (0_u64, 0_u64);
    let mut random = Seed(1).stream("conformance", 0);
    while ended < 500 {
        let batch: Vec<Submission> = free
            .drain(..)
            .map(|token| {
                let at = Bytes(random.below(RECORDS) * RECORD.0);
                probe.submission(token, Op::read(FILE, at, RECORD))
            })
            .collect();
        let now = probe.lane.now();
        let accepted = probe.lane.submit_batch(now, &batch, &mut probe.done).total();
        issued += accepted as u64;
        free.extend(batch[accepted..].iter().map(|s| s.token.0));
        probe.lane.kick().map_err(|e| e.to_string())?;
        probe.lane.reap(1, Ns::MAX, &mut probe.done).map_err(|e| e.to_string())?;
        for completion in std::mem::take(&mut probe.done) {
            probe.check_time(&completion)?;
            if completion.outcome != Ok(RECORD) {
                return Err(format!("a read gave {completion:?}"));
            }
            if free.contains(&completion.token.0) {
                return Err(format!("slot {:?} completed twice", completion.token));
            }
            free.push(completion.token.0);
            ended += 1;
        }
        if issued != ended + u64::from(probe.lane.in_flight()) {
            return Err(format!(
                "{issued} submitted, {ended} completed, {} in flight",
                probe.lane.in_flight()
            ));
        }
    }
    Ok(())
}

fn busy_when_full<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    if !target.capabilities().is_asynchronous {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    probe.fill(target.capabilities().has_namespace)?;
    let depth = target.capabilities().depth_max.clamp(1, 8);
    let batch: Vec<Submission> = (0..depth * 2)
        .map(|token| probe.submission(token % depth, Op::read(FILE, Bytes(0), RECORD)))
        .collect();
    let now = probe.lane.now();
    let accepted = probe.lane.submit_batch(now, &batch, &mut probe.done);
    if accepted.queued > depth as usize {
        return Err(format!("{} queued at depth {depth}", accepted.queued));
    }
    let in_flight = probe.lane.in_flight();
    probe.lane.reap(in_flight, Ns::MAX, &mut probe.done).map_err(|e| e.to_string())?;
    let ended = probe.done.len();
    (ended == accepted.total() && probe.lane.in_flight() == 0)
        .then_some(())
        .ok_or_else(|| format!("{} accepted, {ended} came back", accepted.total()))
}

fn sizes<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let capabilities = target.capabilities();
    let mut probe = Probe::open(target, paths)?;
    probe.fill(capabilities.has_namespace)?;
    let mut total = 0;
    for record in 0..RECORDS {
        total += probe.ok(Op::read(FILE, Bytes(record * RECORD.0), RECORD))?.0;
    }
    if total != RECORDS * RECORD.0 {
        return Err(format!("{total} bytes read of {}", RECORDS * RECORD.0));
    }
    if probe.how.access == Access::Mapped {
        return probe.fails(Op::read(FILE, Bytes(RECORDS * RECORD.0), RECORD), &[Errno::EINVAL]);
    }
    if capabilities.can_verify {
        let beyond = probe.ok(Op::read(FILE, Bytes(RECORDS * RECORD.0), RECORD))?;
        if beyond != Bytes(0) {
            return Err(format!("{beyond:?} read beyond the end"));
        }
        probe.ok(Op::Truncate { handle: FILE, length: Bytes(RECORD.0 + 512) })?;
        let tail = probe.ok(Op::read(FILE, RECORD, RECORD))?;
        if tail != Bytes(512) {
            return Err(format!("{tail:?} read of a 512-byte tail"));
        }
    }
    Ok(())
}

fn flush<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let mut probe = Probe::open(target, paths)?;
    probe.fill(target.capabilities().has_namespace)?;
    let write = probe.one(Op::write(FILE, Bytes(0), RECORD))?;
    for op in [Op::Fsync { handle: FILE }, Op::Fdatasync { handle: FILE }] {
        let sync = probe.one(op)?;
        if sync.outcome.is_err() || sync.completed < write.completed {
            return Err(format!("{sync:?} after {write:?}"));
        }
    }
    Ok(())
}

fn errors<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_namespace || can.keeps_nothing {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    probe.fails(Op::read(Handle(5), Bytes(0), RECORD), &[Errno::EBADF])?;
    probe.fails(Op::Open { path: PathId(1), handle: FILE, how: probe.how }, &[Errno::ENOENT])?;
    probe.fill(true)?;
    probe.fails(
        Op::Create { path: PathId(0), handle: Handle(1), how: probe.how },
        &[Errno::EEXIST],
    )?;
    probe.ok(Op::Stat { path: PathId(0) })?;
    probe.ok(Op::Rename { from: PathId(0), to: PathId(2) })?;
    probe.fails(Op::Stat { path: PathId(0) }, &[Errno::ENOENT])?;
    probe.ok(Op::Unlink { path: PathId(2) })?;
    probe.fails(Op::Unlink { path: PathId(2) }, &[Errno::ENOENT])?;
    probe.ok(Op::MakeDirectory { path: PathId(1) })?;
    probe.ok(Op::ReadDirectory { path: PathId(1) })?;
    probe.ok(Op::RemoveDirectory { path: PathId(1) })?;
    probe.ok(Op::Close { handle: FILE })?;
    probe.fails(Op::read(FILE, Bytes(0), RECORD), &[Errno::EBADF])
}

fn data<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    if !target.capabilities().can_verify {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    probe.create()?;
    let mut written = Vec::new();
    for record in 0..8 {
        let buffer = probe.lane.buffer(Token(0)).ok_or("no buffer, but data can be verified")?;
        buffer[100..108].copy_from_slice(&(record * 3 + 1_u64).to_le_bytes());
        probe.ok(Op::write(FILE, Bytes(record * RECORD.0), RECORD))?;
        written.push(probe.lane.buffer(Token(0)).ok_or("the buffer is gone")?.to_vec());
    }
    for record in (0..8_u64).rev() {
        probe.lane.buffer(Token(0)).ok_or("no buffer")?.fill(0);
        probe.ok(Op::read(FILE, Bytes(record * RECORD.0), RECORD))?;
        let read = probe.lane.buffer(Token(0)).ok_or("no buffer")?;
        if read != written[record as usize] {
            return Err(format!("record {record} came back different"));
        }
    }
    let pages_differ = written.windows(2).all(|pair| pair[0][..8] != pair[1][..8]);
    pages_differ.then_some(()).ok_or_else(|| "consecutive writes sent equal pages".to_owned())
}

fn honest<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let has = target.capabilities();
    let mut probe = Probe::open(target, paths)?;
    probe.fill(has.has_namespace)?;
    let at = Bytes(0);
    let key_value = Op::KeyValue { kind: crate::op::KeyValueKind::Get, key: 1, length: RECORD };
    let special = |vectors, flags| {
        let at = Position::At(at);
        Op::Write(Transfer { vectors, flags, ..Transfer::plain(FILE, at, RECORD) })
    };
    let transfer = Transfer::plain(FILE, Position::At(at), RECORD);
    let by_calls = Op::Write(Transfer { call_bytes: 512, ..transfer });
    let how = Deallocation::Punch;
    let deallocate = Op::Deallocate { handle: FILE, at, length: RECORD, how };
    let claims = [
        (has.has_vectors, special(2, TransferFlags::NONE)),
        (has.has_flags, special(1, TransferFlags::DATA_SYNC)),
        (has.has_small_calls, by_calls),
        (has.has_mapping, Op::Map { handle: FILE, length: RECORD }),
        (has.has_stream, Op::StreamRead { handle: FILE, length: RECORD }),
        (has.has_lock, Op::Lock { handle: FILE, kind: LockKind::Exclusive, at, length: RECORD }),
        (has.has_allocate, Op::Allocate { handle: FILE, at, length: RECORD, keeps_length: false }),
        (has.has_deallocate, deallocate),
        (has.has_end, Op::Write(Transfer { at: Position::End, ..transfer })),
        (has.has_links, Op::Link { from: PathId(0), to: PathId(2), is_symbolic: false }),
        (has.has_key_value, key_value),
        (has.has_namespace, Op::Stat { path: PathId(0) }),
    ];
    let accesses = [
        (has.has_plain, Access::Plain),
        (has.has_direct, Access::Direct),
        (has.has_append, Access::Append),
        (has.has_mapping, Access::Mapped),
        (has.has_stream, Access::Stdio),
    ];
    let open = |access| Op::Open {
        path: PathId(0),
        handle: Handle(1),
        how: OpenHow { access, ..read_write(target) },
    };
    let opens = accesses.map(|(is_claimed, access)| (is_claimed, open(access)));
    let opens = opens.into_iter().filter(|_| has.has_namespace);
    for (is_claimed, op) in claims.into_iter().chain(opens) {
        match (is_claimed, probe.one(op)?.outcome) {
            (false, Ok(_)) => return Err(format!("{op:?} worked, but is not claimed")),
            (false, Err(errno)) if errno != Errno::EOPNOTSUPP => {
                return Err(format!("{op:?} is declined with errno {}, not EOPNOTSUPP", errno.0));
            }
            (true, Err(Errno::EOPNOTSUPP)) => {
                return Err(format!("{op:?} is claimed, but not supported"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn append<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    let can = target.capabilities();
    if !can.has_append || can.keeps_nothing {
        return Ok(());
    }
    let mut probe = Probe::open(target, paths)?;
    probe.fill(true)?;
    let how = OpenHow { access: Access::Append, ..probe.how };
    probe.ok(Op::Open { path: PathId(0), handle: Handle(1), how })?;
    probe.ok(Op::Fsync { handle: FILE })?;
    probe.ok(Op::write(Handle(1), Bytes(0), RECORD))?;
    let length = probe.ok(Op::Stat { path: PathId(0) })?;
    let is_longer = length == Bytes((RECORDS + 1) * RECORD.0);
    is_longer.then_some(()).ok_or_else(|| format!("{length:?} long after appending a record"))
}

/// Panics with every broken promise; for use in tests.
pub fn assert_conforms<T: Target>(target: &T, directory: &std::path::Path) {
    let failures = check(target, directory);
    assert!(failures.is_empty(), "{} breaks its promises: {failures:#?}", target.name());
}

//! Orders of a lane about its files, and its findings.

use std::sync::Arc;

use iolab_model::target::{BytePattern, Content};
use iolab_workload::StreamReport;
use iolab_workload::program::Stage;
use iolab_workload::spec::{Phase, Tenant, Workload};
use iolab_workload::verify::{
    FilePlan, KeptBlock, Mismatch, SharedBook, Trust, Verify, file_identity, layout_step,
    phase_index, step_name, trust, unit, worker_step,
};

use super::block::{Fault, Generation, Place, SECTOR, stored_at, swap_header};

/// Mismatches that are described; the rest is counted.
const DESCRIBED_MAX: usize = 8;
/// Bytes of wrong blocks that a lane keeps.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Writer number of the layout, which is no worker of a phase.
const LAYOUT_WORKER: u16 = u16::MAX;

/// Verification as a lane is told of it.
#[derive(Clone, Debug)]
pub struct LanePlan {
    /// Headers or full.
    pub kind: Verify,
    /// Every transfer is this pattern, from its first byte on; absent: blocks have headers.
    pub pattern: Option<BytePattern>,
    /// Step of the workload in which it writes.
    pub step: u16,
    /// Its number among the writers of that step.
    pub writer: u16,
    /// Its files, by [`iolab_model::op::PathId`].
    pub files: Arc<[FilePlan]>,
    /// All files of the workload, to name those that a block says it is of.
    names: Vec<(u64, String)>,
    /// Steps, in words.
    steps: Vec<String>,
}

impl LanePlan {
    /// For the layout of `phase`; absent if nothing is verified.
    pub fn layout<'a>(
        workload: &Workload,
        phase: &Phase,
        names: impl Iterator<Item = &'a str>,
    ) -> Option<Self> {
        let step = layout_step(phase_index(workload, phase));
        // It reads nothing, so it needs to trust nothing.
        let files = names.map(|name| file_plan(workload, phase, name, Trust::default()));
        let files: Vec<FilePlan> = files.collect();
        workload
            .verification()
            .is_on()
            .then(|| Self::new(workload, (step, LAYOUT_WORKER), files.into()))
    }

    /// For worker `who` (index of its tenant, of itself, and its ordinal in the phase).
    pub fn worker(
        workload: &Workload,
        phase: usize,
        name: &str,
        who: (usize, u32, u32),
    ) -> Option<Self> {
        if !workload.verification().is_on() {
            return None;
        }
        let (tenant, worker, ordinal) = who;
        let trusted = trust(workload, phase, name, (tenant, worker));
        let file = file_plan(workload, &workload.phases[phase], name, trusted);
        Some(Self::new(workload, (worker_step(phase), ordinal as u16), Arc::from([file])))
    }

    /// For worker `who` of the programs of a phase (none: for its layout), which share what is
    /// known of their files; absent if nothing is verified.
    pub fn stage(
        workload: &Workload,
        phase: usize,
        stage: &Stage,
        who: Option<u32>,
    ) -> Option<Self> {
        let step = if who.is_some() { worker_step(phase) } else { layout_step(phase) };
        let writer = who.map_or(LAYOUT_WORKER, |ordinal| ordinal as u16);
        let files = stage.verified();
        (!files.is_empty()).then(|| Self::new(workload, (step, writer), files))
    }

    fn new(workload: &Workload, (step, writer): (u16, u16), files: Arc<[FilePlan]>) -> Self {
        let tenants = workload.phases.iter().flat_map(|phase| &phase.tenants);
        let mut names: Vec<String> = tenants.flat_map(Tenant::file_names).collect();
        names.sort();
        names.dedup();
        let names = names.into_iter().map(|name| (file_identity(workload.seed, &name), name));
        let steps = 0..layout_step(workload.phases.len());
        let steps = steps.map(|step| step_name(workload, step)).collect();
        let pattern = match workload.content {
            Content::Pattern(pattern) => Some(pattern),
            _ => None,
        };
        let (kind, names) = (workload.verification(), names.collect());
        Self { kind, pattern, step, writer, files, names, steps }
    }

    /// A write in words.
    fn write_name(&self, generation: Generation) -> String {
        let step = usize::from(generation.step());
        let Some(name) = self.steps.get(step) else {
            return format!("a write that never was (generation {:#x})", generation.0);
        };
        if generation.worker() == LAYOUT_WORKER {
            return name.clone();
        }
        let (worker, sequence) = (generation.worker(), generation.sequence());
        format!("write {sequence} of worker {worker} in {name}")
    }

    /// A block that is not what it should be, in words.
    pub fn mismatch(&self, file: &FilePlan, offset: u64, fault: &Wrong) -> Mismatch {
        let (kind, at, what) = self.describe(file, offset, fault);
        Mismatch {
            file: file.name.clone(),
            offset_bytes: offset + at as u64,
            block_bytes: file.unit.0,
            kind: kind.into(),
            message: format!(
                "file {}, block of {} bytes at offset {offset}: {what}",
                file.name, file.unit.0
            ),
            kept: None,
        }
    }

    /// A wrong block as it was read and as it should be; `own` is the last write that is known of.
    pub fn kept(
        (file, place): (&FilePlan, &Place),
        block: &[u8],
        wrong: &Wrong,
        own: Option<Generation>,
    ) -> KeptBlock {
        let expected = match wrong {
            Wrong::Stale { expected: Expected::Write(generation), .. }
            | Wrong::Block(Fault::Flipped { generation, .. }) => Some(*generation),
            Wrong::Block(Fault::Torn { sectors, .. }) => own.or(sectors[0]),
            Wrong::Stale { .. } | Wrong::Block(_) => own,
        };
        let stored = |mut bytes: Vec<u8>| {
            let header_at = file.blocks.header_at_bytes.0 as usize;
            if header_at > 0 {
                swap_header(&mut bytes, header_at);
            }
            digits(&bytes)
        };
        let composed = |generation| {
            let mut scratch = vec![0; block.len()];
            place.expect(block, &mut scratch, generation);
            scratch
        };
        KeptBlock {
            at_bytes: place.offset,
            received: stored(block.to_vec()),
            expected: expected.map(composed).map(stored),
        }
    }

    /// A transfer that is not of the pattern as it was read and as it should be.
    pub fn kept_pattern(offset: u64, read: &[u8], pattern: &BytePattern) -> KeptBlock {
        let mut expected = vec![0; read.len()];
        pattern.fill(&mut expected);
        KeptBlock { at_bytes: offset, received: digits(read), expected: Some(digits(&expected)) }
    }

    /// A transfer at `offset` of which byte `at` is not that of the pattern, in words.
    pub fn pattern_mismatch(
        &self,
        file: &FilePlan,
        (offset, read): (u64, &[u8]),
        (at, expected): (usize, u8),
    ) -> Mismatch {
        let (byte, got) = (offset + at as u64, read[at]);
        let is_empty = read.iter().all(|byte| *byte == 0);
        let kind = if is_empty { "zeros" } else { "flipped" };
        Mismatch {
            file: file.name.clone(),
            offset_bytes: byte,
            block_bytes: read.len() as u64,
            kind: kind.into(),
            message: format!(
                "file {}, {} bytes at offset {offset}: {kind}: byte {byte} is {got:#04x}, not \
                 {expected:#04x} of the pattern",
                file.name,
                read.len()
            ),
            kept: None,
        }
    }

    fn describe(
        &self,
        file: &FilePlan,
        offset: u64,
        wrong: &Wrong,
    ) -> (&'static str, usize, String) {
        match wrong {
            Wrong::Block(fault) => self.describe_fault(file, offset, fault),
            Wrong::Stale { found, expected } => {
                let expected = match expected {
                    Expected::Write(generation) => self.write_name(*generation),
                    Expected::Step(step) => {
                        let step = self.steps.get(usize::from(*step));
                        step.map_or_else(|| "a later phase".into(), String::clone)
                    }
                };
                let found = self.write_name(*found);
                let what = format!(
                    "stale data: it is of {found}, but {expected} has overwritten it since"
                );
                ("stale", 0, what)
            }
        }
    }

    fn describe_fault(
        &self,
        file: &FilePlan,
        offset: u64,
        fault: &Fault,
    ) -> (&'static str, usize, String) {
        match fault {
            Fault::Flipped { generation, at, expected, got, count } => {
                let at = stored_at(*at, file.blocks.header_at_bytes.0 as usize);
                let byte = offset + at as u64;
                let rest = if *count > 1 {
                    format!("; {count} bytes of the block are wrong, this is the first")
                } else {
                    String::new()
                };
                let write = self.write_name(*generation);
                let what = format!(
                    "flipped: byte {byte} is {got:#04x}, not {expected:#04x}{rest} (of {write})"
                );
                ("flipped", at, what)
            }
            Fault::Torn { sectors, at } => {
                let name = |sector: Option<Generation>| {
                    sector.map_or_else(|| "empty".into(), |found| self.write_name(found))
                };
                let before = name(sectors[..*at].iter().flatten().next().copied());
                let byte = offset + (at * SECTOR) as u64;
                let after = name(sectors[*at]);
                let what = format!(
                    "torn write: up to byte {byte} it is of {before}, from there on {after}"
                );
                ("torn", at * SECTOR, what)
            }
            Fault::Misplaced { file: other, offset: home, generation } => {
                let names = self.names.iter().map(|(identity, name)| (identity, name));
                let names = names.chain(self.files.iter().map(|own| (&own.identity, &own.name)));
                let known = { names }.find(|(identity, _)| *identity == other);
                let whose = match known {
                    _ if *other == file.identity => "this file".to_owned(),
                    Some((_, name)) => format!("file {name}"),
                    None => "a file of another trial".to_owned(),
                };
                let write = self.write_name(*generation);
                let what = if known.is_none() && *home == offset {
                    "misplaced: it is intact, but was written for this place of another file, or \
                     with another seed"
                        .to_owned()
                } else {
                    format!(
                        "misplaced: it is intact, but belongs to offset {home} of {whose} ({write})"
                    )
                };
                ("misplaced", 0, what)
            }
            Fault::Zeros => {
                ("zeros", 0, "only zeros: nothing was written there, or it is lost".into())
            }
            Fault::Foreign { start } => {
                let start: Vec<String> = start.iter().map(|byte| format!("{byte:02x}")).collect();
                let what = format!(
                    "foreign: nothing of what iolab wrote is there; it begins {}",
                    start.join(" ")
                );
                ("foreign", 0, what)
            }
        }
    }
}

fn file_plan(workload: &Workload, phase: &Phase, name: &str, trust: Trust) -> FilePlan {
    let mut tenants = phase.tenants.iter();
    let tenant = tenants.find(|tenant| tenant.file_names().any(|known| known == name));
    let stem = tenant.map_or(name, |tenant| tenant.file.as_str());
    let identity = file_identity(workload.seed, name);
    let (name, unit) = (name.to_owned(), unit(workload, stem));
    let blocks = tenant.map(|tenant| tenant.manner.verified).unwrap_or_default();
    FilePlan { name, identity, unit, blocks, trust, book: SharedBook::default() }
}

fn digits(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let both = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[digit as usize]));
    bytes.iter().flat_map(both).collect()
}

/// Fault of a block that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Block that is damaged, or of another place.
    Block(Fault),
    /// Block that is intact, but has been overwritten since.
    Stale {
        /// The write that it is of.
        found: Generation,
        /// Expected write.
        expected: Expected,
    },
}

/// Write that a block should be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This very write.
    Write(Generation),
    /// Nothing older than this step.
    Step(u16),
}

/// Findings of a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    first: Vec<Mismatch>,
    total: u64,
    kept_bytes: usize,
}

impl Findings {
    /// One more.
    pub fn add(&mut self, describe: impl FnOnce() -> Mismatch) {
        self.total += 1;
        if self.first.len() < DESCRIBED_MAX {
            self.first.push(describe());
        }
    }

    /// Keeps the block of the newest one, of so many bytes, as long as there is room for it.
    pub fn keep(&mut self, bytes: usize, block: impl FnOnce() -> KeptBlock) {
        if self.total as usize == self.first.len()
            && self.kept_bytes + 2 * bytes <= KEPT_BYTES_MAX
            && let Some(newest) = self.first.last_mut()
        {
            self.kept_bytes += 2 * bytes;
            newest.kept = Some(block());
        }
    }

    /// Those that are described, in the order in which they were found.
    pub fn first(&self) -> &[Mismatch] {
        &self.first
    }

    /// Writes them into a worker's report, where they say more than an errno.
    pub fn report(self, report: &mut StreamReport) {
        let Some(first) = self.first.first() else { return };
        let more = match self.total {
            1 => String::new(),
            2 => "; and 1 more block".into(),
            total => format!("; and {} more blocks", total - 1),
        };
        report.first_error =
            Some(format!("what was read is not what was written: {}{more}", first.message));
        report.errors = report.errors.max(1);
        report.mismatch_count = self.total;
        report.mismatches = self.first;
    }
}

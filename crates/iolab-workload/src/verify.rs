//! Content of a file that verification may expect: which writes it must hold, and how sure that is.
//!
//! It follows from the description of the workload alone. A phase that wrote every record of a
//! file leaves nothing older behind; several writers at once, or one that overtakes itself, may
//! leave blocks of which one part is of one write and the rest of another. Nothing is claimed that
//! does not follow. Left out: what a worker itself wrote in the phase that runs, which its lane
//! remembers.

use std::collections::BTreeMap;

use iolab_model::{Bytes, Error, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::program::FileSet;
use crate::spec::{Direction, Limit, Opening, Pattern, Phase, Tenant, Workload, is_default};

pub mod ledger;

pub use ledger::{Book, Books, FilePlan, Known, Meanwhile, RangeUse, SharedBook};

/// Largest unit of verification.
pub(crate) const UNIT_MAX: u64 = 4096;
/// Smallest one: a sector.
pub(crate) const UNIT_MIN: u64 = 512;

/// Comparison of what is read with what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Not at all.
    #[default]
    None,
    /// A header per block and a stamp per sector.
    Headers,
    /// Every byte.
    Full,
}

impl Verify {
    /// Tell whether anything is checked.
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// Bytes of the header of a block.
pub const HEADER_BYTES: u64 = 48;

/// Blocks in which a tenant's files are verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifiedBlocks {
    /// Bytes of a block, which divide all records of the file; absent: the largest power of two up
    /// to 4 KiB that does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Place of the header in a block; the bytes that were there are at its beginning.
    #[serde(default, skip_serializing_if = "is_default")]
    pub header_at_bytes: Bytes,
    /// A block that nobody is known to have written, and that looks like none of ours, is right: it
    /// may have been in the file before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub may_be_foreign: bool,
    /// The first wrong blocks are kept in the report, as they were read and as they should be.
    #[serde(default, skip_serializing_if = "is_default")]
    pub are_kept: bool,
}

/// A block that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeptBlock {
    /// Place of its first byte in the file.
    pub at_bytes: u64,
    /// Its bytes as they were read, in hexadecimal digits.
    pub received: String,
    /// Its bytes as they should be, in hexadecimal digits; absent: nothing says which write was to
    /// be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

/// Certainty about a file when a worker's timed region begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Nothing in it is older than this step; absent: parts may never have been written.
    pub floor: Option<u16>,
    /// True if another worker writes it at the same time.
    pub is_contended: bool,
    /// Earlier writers raced: a block may hold parts of several writes.
    pub may_be_mixed: bool,
}

/// A mismatch between what was written and what was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mismatch {
    /// Name of the file.
    pub file: String,
    /// First wrong byte, or the first byte of a block that is wrong as a whole.
    pub offset_bytes: u64,
    /// Bytes of the block that was checked.
    pub block_bytes: u64,
    /// `flipped`, `torn`, `misplaced`, `stale`, `zeros` or `foreign`.
    pub kind: String,
    /// All of it in words.
    pub message: String,
    /// The block itself, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptBlock>,
}

/// Step of the layout that precedes a phase; steps count upwards through a workload.
pub fn layout_step(phase: usize) -> u16 {
    (phase * 2) as u16
}

/// Step of a phase's workers.
pub fn worker_step(phase: usize) -> u16 {
    layout_step(phase) + 1
}

/// Ordinal of a phase in its workload; equal phases are told apart by identity, and one that was
/// changed for its target is known by its name.
pub fn phase_index(workload: &Workload, phase: &Phase) -> usize {
    let phases = &workload.phases;
    let is_itself = |known: &Phase| std::ptr::eq(known, phase);
    let found = phases.iter().position(is_itself);
    let equal = || phases.iter().rposition(|known| known == phase);
    let namesake = || phases.iter().position(|known| known.name == phase.name);
    found.or_else(equal).or_else(namesake).unwrap_or(0)
}

/// Bytes of all files of a workload, at most: what somebody needs who keeps their data.
pub fn bytes_of_files(workload: &Workload) -> Bytes {
    let mut longest = BTreeMap::<String, u64>::new();
    let tenants = workload.phases.iter().flat_map(|phase| &phase.tenants);
    for tenant in tenants.filter(|tenant| tenant.program.is_none()) {
        for name in tenant.file_names() {
            let bytes = longest.entry(name).or_default();
            *bytes = tenant.used_bytes().0.max(*bytes);
        }
    }
    let sets = workload.file_sets.iter().map(FileSet::bytes_max);
    Bytes(longest.into_values().chain(sets).fold(0, u64::saturating_add))
}

/// Name of a step, in words.
pub fn step_name(workload: &Workload, step: u16) -> String {
    let name = workload.phases.get(usize::from(step / 2)).map(|phase| phase.name.as_str());
    match name {
        Some(name) if step.is_multiple_of(2) => format!("the layout before {name}"),
        Some(name) => format!("the phase {name}"),
        None => format!("step {step}, which this workload has not"),
    }
}

/// Identity of a file: its name and the trial's seed.
pub fn file_identity(seed: Seed, name: &str) -> u64 {
    seed.stream(name, 0).next_u64()
}

/// Bytes of the blocks of a file: those that were asked for, or the largest power of two up to
/// 4 KiB that divides every record that any phase moves in it.
pub fn unit(workload: &Workload, file: &str) -> Bytes {
    let tenants = workload.phases.iter().flat_map(|phase| &phase.tenants);
    let users = || tenants.clone().filter(|tenant| tenant.file == file);
    if let Some(bytes) = users().filter_map(|tenant| tenant.manner.verified.bytes).min() {
        return bytes;
    }
    let sizes = users().map(|t| t.io_size_bytes.0);
    let powers = sizes.map(|size| 1_u64 << size.trailing_zeros().min(63));
    Bytes(powers.fold(UNIT_MAX, u64::min))
}

/// Refuses what cannot be verified.
pub(crate) fn check(workload: &Workload, phase: &Phase, tenant: &Tenant) -> Result<(), Error> {
    use iolab_model::op::Access;
    let wrong = |problem: String, remedy: &str| {
        Err(Error::BadWorkload {
            problem: format!("phase {}, tenant {}: {problem}", phase.name, tenant.name),
            remedy: remedy.to_owned(),
        })
    };
    if tenant.file_set.is_some() || matches!(tenant.direction, Direction::Update { .. }) {
        return wrong(
            "verify of updates or of many files".into(),
            "use verify = \"none\", or another pattern",
        );
    }
    let unit = unit(workload, &tenant.file);
    if unit.0 < UNIT_MIN {
        return wrong(
            format!("verify with records of {} bytes", tenant.io_size_bytes.0),
            "use records that are multiples of 512 bytes, or verify = \"none\"",
        );
    }
    if !unit.0.is_multiple_of(UNIT_MIN) || !tenant.io_size_bytes.0.is_multiple_of(unit.0) {
        return wrong(
            format!("verify of records of {} in blocks of {unit}", tenant.io_size_bytes),
            "use blocks of multiples of 512 bytes that divide the records of all who use the file",
        );
    }
    let header_at = tenant.manner.verified.header_at_bytes.0;
    let is_inside = header_at >= HEADER_BYTES && header_at.saturating_add(HEADER_BYTES) <= unit.0;
    if header_at > 0 && !is_inside {
        let problem = format!("a header at byte {header_at} of blocks of {unit}");
        return wrong(problem, "leave 48 bytes before it, and 48 bytes for itself");
    }
    let is_odd = |region: crate::spec::Region| {
        !region.from_bytes.0.is_multiple_of(unit.0) || !region.step_bytes.0.is_multiple_of(unit.0)
    };
    if tenant.region.is_some_and(is_odd) {
        let problem = format!("verify of a region that is no multiple of {unit}");
        return wrong(problem, "let it begin at a multiple of the record");
    }
    if tenant.access == Access::Append {
        return wrong(
            "verify of a file that is appended to".into(),
            "go through the page cache or use direct I/O",
        );
    }
    Ok(())
}

/// Certainty about file `name` for worker `index` of tenant `tenant` in a phase.
pub fn trust(workload: &Workload, phase: usize, name: &str, reader: (usize, u32)) -> Trust {
    let needed = workload.phases[phase].tenants.get(reader.0).map(|t| touched(t, reader.1));
    let needed = needed.unwrap_or((0, u64::MAX));
    let mut story = Story::default();
    for (step, earlier) in workload.phases[..phase].iter().enumerate() {
        story.lay_out(earlier, step, name);
        story.run(earlier, step, name, needed);
        if !earlier.keeps_files && writers_and_readers(earlier, name) > 0 {
            story = Story::default();
        }
    }
    let current = &workload.phases[phase];
    story.lay_out(current, phase, name);
    let is_me = |tenant: usize, worker: u32| (tenant, worker) == reader;
    let others = users(current, name)
        .filter(|(tenant, index, worker)| tenant.writes() && !is_me(*index, *worker));
    let is_contended = others.count() > 0;
    let expects_all =
        current.tenants.get(reader.0).is_some_and(|tenant| tenant.manner.expects_written);
    let floor = story.trust.floor.or_else(|| expects_all.then(|| layout_step(0)));
    Trust { floor, is_contended, ..story.trust }
}

/// A file's past, phase by phase.
#[derive(Default)]
struct Story {
    exists: bool,
    trust: Trust,
}

impl Story {
    fn lay_out(&mut self, phase: &Phase, index: usize, name: &str) {
        for (tenant, _, _) in users(phase, name) {
            match tenant.opening {
                Opening::Existing => {}
                // An existing file is left alone if it is large enough: nothing new is certain.
                Opening::Keep | Opening::LaidOut if self.exists => {}
                Opening::Create | Opening::New | Opening::Keep => {
                    *self = Self { exists: true, trust: Trust::default() }
                }
                Opening::LaidOut => {
                    let floor = Some(layout_step(index));
                    *self = Self { exists: true, trust: Trust { floor, ..Trust::default() } };
                }
            }
        }
    }

    fn run(&mut self, phase: &Phase, index: usize, name: &str, needed: (u64, u64)) {
        let writers = || users(phase, name).filter(|(tenant, _, _)| tenant.writes());
        let count = writers().count();
        if count == 0 {
            return;
        }
        let rewrites_all = writers().any(|(tenant, _, worker)| covers(tenant, worker, needed));
        if rewrites_all {
            self.trust.floor = Some(worker_step(index));
        }
        let races = count > 1
            || writers()
                .any(|(t, _, worker)| t.depth > 1 && !covers(t, worker, touched(t, worker)));
        self.trust.may_be_mixed = races || (self.trust.may_be_mixed && !rewrites_all);
    }
}

/// Every worker of a phase that uses file `name`, with the index of its tenant and its own.
fn users<'a>(
    phase: &'a Phase,
    name: &'a str,
) -> impl Iterator<Item = (&'a Tenant, usize, u32)> + 'a {
    let of_tenant = move |(index, tenant): (usize, &'a Tenant)| {
        (0..tenant.workers)
            .filter(move |worker| tenant.file_name(*worker) == name)
            .map(move |worker| (tenant, index, worker))
    };
    phase.tenants.iter().enumerate().flat_map(of_tenant)
}

fn writers_and_readers(phase: &Phase, name: &str) -> usize {
    users(phase, name).count()
}

/// Begin and end of the part of its file that a worker touches.
fn touched(tenant: &Tenant, worker: u32) -> (u64, u64) {
    let Some(region) = tenant.region else { return (0, tenant.used_bytes().0) };
    let from = region.begins_at(worker).0;
    let record = tenant.io_size_bytes.0.max(1);
    (from, from.saturating_add(region.bytes.0 / record * record))
}

/// Tell whether a worker of `tenant` is sure to write the part `needed`, each record once.
fn covers(tenant: &Tenant, worker: u32, needed: (u64, u64)) -> bool {
    let is_complete = matches!(
        tenant.pattern,
        Pattern::Sequential | Pattern::Reverse | Pattern::Permutation | Pattern::Shuffled
    );
    let (from, to) = touched(tenant, worker);
    is_complete
        && tenant.direction == Direction::Write
        && tenant.limit == Limit::Once
        && from <= needed.0
        && to >= needed.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::{IozoneRequest, iozone};

    fn workload(tests: &str, workers: u32) -> Workload {
        let request: IozoneRequest = serde_json::from_str(&format!(
            "{{\"tests\":[{tests}],\"file_bytes\":65536,\"io_size_bytes\":4096,\
             \"engine\":\"psync\",\"seed\":1,\"workers\":{workers},\"verify\":\"full\"}}"
        ))
        .unwrap();
        iozone(&request).unwrap()
    }

    #[test]
    fn a_phase_that_wrote_everything_leaves_nothing_older() {
        let workload = workload("\"write\",\"rewrite\",\"read\",\"random-write\"", 1);
        let floor = |phase| trust(&workload, phase, "iozone.0", (0, 0)).floor;
        assert_eq!(floor(0), None, "a new file is empty");
        assert_eq!(floor(1), Some(worker_step(0)));
        assert_eq!(floor(2), Some(worker_step(1)), "read expects what rewrite wrote");
    }

    #[test]
    fn a_region_that_was_written_in_full_is_known_to_who_reads_no_more_than_it() {
        let mut workload = workload("\"write\",\"read\"", 1);
        let region = |from: u64, bytes: u64| crate::spec::Region {
            from_bytes: Bytes(from),
            bytes: Bytes(bytes),
            step_bytes: Bytes(0),
        };
        let mut floor = |read: (u64, u64)| {
            workload.phases[0].tenants[0].region = Some(region(8192, 16384));
            workload.phases[1].tenants[0].region = Some(region(read.0, read.1));
            trust(&workload, 1, "iozone.0", (0, 0)).floor
        };
        assert_eq!(floor((8192, 16384)), Some(worker_step(0)));
        assert_eq!(floor((12288, 4096)), Some(worker_step(0)));
        assert_eq!(floor((4096, 8192)), None);
        assert_eq!(floor((8192, 20480)), None);
    }

    /// Before, the first one was taken for it, so that all that it wrote was told as wrong.
    #[test]
    fn a_phase_that_was_changed_for_its_target_is_known_by_its_name() {
        let workload = workload("\"write\",\"rewrite\",\"read\"", 1);
        let mut changed = workload.phases[1].clone();
        assert_eq!(phase_index(&workload, &changed), 1);
        changed.tenants[0].depth = 7;
        assert_eq!(phase_index(&workload, &changed), 1);
    }

    #[test]
    fn what_an_earlier_run_wrote_has_no_holes() {
        let mut workload = workload("\"read\"", 1);
        workload.phases[0].tenants[0].opening = Opening::Existing;
        assert_eq!(trust(&workload, 0, "iozone.0", (0, 0)).floor, None);
        workload.phases[0].tenants[0].manner.expects_written = true;
        assert_eq!(trust(&workload, 0, "iozone.0", (0, 0)).floor, Some(0));
    }

    #[test]
    fn a_pattern_that_may_skip_records_proves_nothing() {
        let mut workload = workload("\"write\",\"rewrite\",\"read\"", 1);
        workload.phases[1].tenants[0].pattern = Pattern::Uniform;
        let found = trust(&workload, 2, "iozone.0", (0, 0));
        assert_eq!((found.floor, found.may_be_mixed), (Some(worker_step(0)), false));
        workload.phases[1].tenants[0].depth = 4;
        assert!(trust(&workload, 2, "iozone.0", (0, 0)).may_be_mixed, "it may overtake itself");
    }

    #[test]
    fn writers_of_one_shared_file_race() {
        let mut workload = workload("\"write\",\"read\"", 2);
        for phase in &mut workload.phases {
            phase.tenants[0].is_file_shared = true;
        }
        assert!(trust(&workload, 0, "iozone", (0, 1)).is_contended);
        let later = trust(&workload, 1, "iozone", (0, 1));
        assert_eq!((later.is_contended, later.may_be_mixed), (false, true));
    }

    #[test]
    fn the_layout_is_the_oldest_that_can_be_there() {
        let workload = workload("\"read\",\"random-read\"", 1);
        assert_eq!(trust(&workload, 0, "iozone.0", (0, 0)).floor, Some(layout_step(0)));
        assert_eq!(trust(&workload, 1, "iozone.0", (0, 0)).floor, Some(layout_step(0)));
        assert_eq!(step_name(&workload, 0), "the layout before read");
    }

    #[test]
    fn the_unit_divides_every_record_of_the_file() {
        let mut workload = workload("\"write\",\"pwritev\"", 1);
        assert_eq!(unit(&workload, "iozone"), Bytes(4096));
        workload.phases[0].tenants[0].io_size_bytes = Bytes(6144);
        assert_eq!(unit(&workload, "iozone"), Bytes(2048));
        workload.phases[0].tenants[0].io_size_bytes = Bytes(1000);
        assert!(workload.check().unwrap_err().to_string().contains("multiples of 512"));
    }
}

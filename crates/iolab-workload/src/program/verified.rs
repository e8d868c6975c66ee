//! Verification in programs: which blocks their files have, and what cannot be verified.

use iolab_model::Bytes;

use super::amount::Amount;
use super::check::{Checker, Found};
use super::deed::Deed;
use super::files::Reuse;
use super::node::{Node, Positioned, WHOLE_PIECE};
use crate::spec::{Phase, Tenant, Workload};
use crate::verify::{Trust, UNIT_MAX, UNIT_MIN, VerifiedBlocks, Verify, layout_step};

/// Numbers that must be multiples of a block, of a step.
fn grains(node: &Node) -> Vec<u64> {
    if !node.does.has_range() && node.does != Deed::Truncate {
        return Vec::new();
    }
    let mut all = node.size_bytes.as_ref().map(Amount::corners).unwrap_or_default();
    if node.is_whole && node.size_bytes.is_none() {
        all.push(WHOLE_PIECE.0);
    }
    if let Some(at) = &node.at {
        all.extend(at.unit_bytes.iter().chain(&at.within_bytes).map(|bytes| bytes.0));
        all.extend([at.from_bytes.0, at.worker_step_bytes.0, at.plus_bytes.unsigned_abs()]);
        all.extend(at.course.as_ref().map(|course| course.skip_bytes.unsigned_abs()));
    }
    all
}

/// The largest power of two up to a block that divides all of them.
fn block_of(numbers: impl IntoIterator<Item = u64>) -> u64 {
    let powers = numbers.into_iter().filter(|number| *number > 0);
    powers.map(|number| 1 << number.trailing_zeros().min(63)).fold(UNIT_MAX, u64::min)
}

/// Bytes of the blocks of all files that programs work on.
pub fn verified_unit(workload: &Workload) -> Bytes {
    let tenants = workload.phases.iter().flat_map(|phase| &phase.tenants);
    let programs = tenants.filter_map(|tenant| tenant.program.as_ref());
    let of_program = |program: &super::Program| {
        let recorded = program.recorded.as_ref().and_then(|own| own.content.as_ref());
        let mut all: Vec<u64> = program.all_nodes().flat_map(grains).collect();
        all.extend(recorded.map(|content| content.grain_bytes.0));
        all
    };
    let sizes = workload.file_sets.iter().flat_map(|set| set.file_bytes.corners());
    Bytes(block_of(programs.flat_map(of_program).chain(sizes)))
}

/// Blocks of the files of a set that programs of `phase` work on, and what is certain of those that
/// nobody is known to have written: who leaves the files that are found may find anything in them.
pub(super) fn certainty(workload: &Workload, phase: &Phase, set: &str) -> (VerifiedBlocks, Trust) {
    let works_on = |tenant: &&Tenant| tenant.program.as_ref().is_some_and(|it| it.uses_set(set));
    let Some(user) = phase.tenants.iter().find(works_on) else { return Default::default() };
    let reuse = workload.file_sets.iter().find(|known| known.name == set).map(|own| own.reuse);
    let expects_all = user.manner.expects_written;
    let is_found = matches!(reuse, Some(Reuse::Found | Reuse::Kept | Reuse::Untouched));
    let blocks =
        VerifiedBlocks { may_be_foreign: is_found && !expects_all, ..user.manner.verified };
    (blocks, Trust { floor: expects_all.then(|| layout_step(0)), ..Trust::default() })
}

impl Checker<'_> {
    /// Refuses what cannot be verified, if anything is to be.
    pub(super) fn check_verified(&self) -> Found {
        let kind = self.workload.verification();
        if !kind.is_on() {
            return Ok(());
        }
        for (path, node) in self.program.nodes() {
            self.check_verified_step(&path, node, kind)?;
        }
        let recorded = self.program.recorded.as_ref().and_then(|own| own.content.as_ref());
        if recorded.is_some_and(|content| block_of([content.grain_bytes.0]) < UNIT_MIN) {
            let problem = "verification of places and lengths that are no multiples of 512 bytes";
            return self.wrong("recorded", problem, "leave verify out");
        }
        let mut sets = self.workload.file_sets.iter();
        let is_used = |name: &str| self.program.uses_set(name);
        let odd =
            sets.find(|set| is_used(&set.name) && block_of(set.file_bytes.corners()) < UNIT_MIN);
        match odd {
            Some(set) => {
                let problem = format!("verification of the files of {}", set.name);
                let remedy = "let their sizes be multiples of 512 bytes (round = 4096)";
                self.wrong("steps", problem, remedy)
            }
            None => Ok(()),
        }
    }

    fn check_verified_step(&self, path: &str, node: &Node, kind: Verify) -> Found {
        if matches!(node.does, Deed::Rename | Deed::Link | Deed::SymbolicLink | Deed::Copy) {
            let problem = format!("verification beside a step that does {}", node.does);
            return self.wrong(path, problem, "a block names its file: leave one of them out");
        }
        let own = node.verify.unwrap_or_default();
        if own.is_on() && own != kind {
            let problem = "verification of two kinds in one workload";
            return self.wrong(&format!("{path}.verify"), problem, "use `headers` or `full`");
        }
        let moves = matches!(node.does, Deed::Read | Deed::Write);
        let is_placed = node.positioned() == Positioned::At
            || node.is_whole && node.positioned() == Positioned::Current;
        if moves && !is_placed {
            let problem = "verification of a transfer at the handle's position or the end";
            return self.wrong(path, problem, "say where it is: at = { ... }, or is_whole = true");
        }
        if block_of(grains(node)) < UNIT_MIN {
            let problem = "verification of sizes or places that are no multiples of 512 bytes";
            return self.wrong(path, problem, "use multiples of 512 bytes");
        }
        Ok(())
    }
}

//! Space that the programs of a workload may take of a disk, known before anything is made.
//!
//! Everything is an upper bound by the workload's own words: as many files as there are names, each
//! as large as the largest; each step as large as it may be, each pass the costliest. Where no word
//! ends the writing but the clock, there is no bound, and that is said ([`Demand::written_bytes`]).

use std::collections::BTreeMap;

use iolab_model::{Bytes, Ns};
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::choice::WhenNone;
use super::deed::Deed;
use super::description::{Pace, Program};
use super::files::{FileSet, Fill, Reuse};
use super::node::{Node, Positioned};
use crate::spec::{Phase, Workload};

/// More than any disk: what has no bound.
const UNBOUNDED: u64 = u64::MAX;

/// A key and what a store notes of it, besides the value.
const KEY_BYTES: u64 = 32;

/// Space that the programs of a workload may take; streams are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// Space that their files take at the same time, without what grows for want of a bound.
    pub file_bytes: u64,
    /// True if they never take more than that.
    pub is_file_bound: bool,
    /// Written before anything is measured.
    pub laid_bytes: u64,
    /// Written while it is measured; absent: as much as fits into the time.
    pub written_bytes: Option<u64>,
    /// Read and written while it is measured; absent: as much as fits into the time.
    pub moved_bytes: Option<u64>,
    /// Length of all phases, as far as the clock ends them.
    pub time_ns: Ns,
    /// The part of `file_bytes` that lies in no place that a set names.
    pub main_bytes: u64,
    /// The part of it in each place that sets name. What grows may grow anywhere: it is in each.
    pub places: BTreeMap<String, u64>,
}

/// Largest cost of something.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    written: u64,
    moved: u64,
    /// By which files may become larger than their sets say.
    grown: u64,
}

impl Cost {
    fn each(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            written: of(self.written, other.written),
            moved: of(self.moved, other.moved),
            grown: of(self.grown, other.grown),
        }
    }

    fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    fn times(self, count: u64) -> Self {
        self.each(Self::default(), |one, _| one.saturating_mul(count))
    }
}

/// Facts that the sizes of steps depend on.
#[derive(Clone, Copy)]
struct Sizes<'a> {
    /// Nodes of the program.
    nodes: &'a [&'a Node],
    /// Of the largest file of each set.
    files: &'a BTreeMap<&'a str, u64>,
    /// Of the largest value of all key spaces.
    value: u64,
    workers: u64,
}

impl Sizes<'_> {
    /// Of the largest file that a step on a whole file may be about: of the set that it names, or
    /// of those that are opened into its slot; of all sets where that does not tell.
    fn whole(&self, node: &Node) -> u64 {
        let of = |name: &str| self.files.get(name).copied();
        let all = || self.files.values().copied().max().unwrap_or(0);
        // A name of one set may be that of a file of another one by then.
        let is_renamed = self.nodes.iter().any(|node| node.to_file.is_some());
        if is_renamed || node.does == Deed::Copy {
            return all();
        }
        let sets: Option<Vec<u64>> = if let Some(file) = &node.file {
            file.set.as_deref().map(|set| Vec::from_iter(of(set)))
        } else {
            let opens = |other: &&&Node| {
                matches!(other.does, Deed::Open | Deed::Create) && other.slot == node.slot
            };
            let set = |other: &&Node| of(other.file.as_ref()?.set.as_deref()?);
            self.nodes.iter().filter(opens).map(set).collect()
        };
        sets.and_then(|sets| sets.into_iter().max()).unwrap_or_else(all)
    }
}

/// Space that the programs of `workload` may take; `None` if it has none.
pub fn demand(workload: &Workload) -> Option<Demand> {
    let tenants = || workload.phases.iter().flat_map(|phase| &phase.tenants);
    tenants().find(|tenant| tenant.program.is_some())?;
    let most_of = |set: &'_ FileSet| set.file_bytes.most();
    let files: BTreeMap<&str, u64> =
        workload.file_sets.iter().map(|set| (set.name.as_str(), most_of(set))).collect();
    let mut done = Cost::default();
    for tenant in tenants() {
        let Some(program) = &tenant.program else { continue };
        let workers = u64::from(tenant.workers);
        let most = |amounts: &mut dyn Iterator<Item = u64>| amounts.max().unwrap_or(0);
        let all = program.nodes();
        let nodes: Vec<&Node> = all.iter().map(|(_, node)| *node).collect();
        let sizes = Sizes {
            nodes: &nodes,
            files: &files,
            value: most(&mut workload.key_spaces.iter().map(|space| space.value_bytes.most())),
            workers,
        };
        done = done.plus(of_worker(program, sizes).times(workers));
    }
    let mut found = Demand { is_file_bound: done.grown != UNBOUNDED, ..Demand::default() };
    found.file_bytes = if found.is_file_bound { done.grown } else { 0 };
    let grown = found.file_bytes;
    found.main_bytes = grown;
    for set in &workload.file_sets {
        let (files, laid) = of_set(set, workload, done.written);
        found.file_bytes = found.file_bytes.saturating_add(files);
        found.laid_bytes = found.laid_bytes.saturating_add(laid);
        let here = match &set.place {
            Some(place) => found.places.entry(place.clone()).or_insert(grown),
            None => &mut found.main_bytes,
        };
        *here = here.saturating_add(files);
    }
    for space in &workload.key_spaces {
        let record = space.value_bytes.most().saturating_add(KEY_BYTES);
        let bytes = space.records.saturating_mul(record);
        found.file_bytes = found.file_bytes.saturating_add(bytes);
        found.main_bytes = found.main_bytes.saturating_add(bytes);
        found.laid_bytes = found.laid_bytes.saturating_add(if space.is_loaded { 0 } else { bytes });
    }
    found.written_bytes = (done.written != UNBOUNDED).then_some(done.written);
    found.moved_bytes = (done.moved != UNBOUNDED).then_some(done.moved);
    found.time_ns = workload.phases.iter().fold(Ns(0), |sum, phase| Ns(sum.0 + longest(phase)));
    Some(found)
}

/// Nanoseconds until the clock ends a phase.
fn longest(phase: &Phase) -> u64 {
    let programs = phase.tenants.iter().filter_map(|tenant| tenant.program.as_ref());
    programs.filter_map(clock).max().unwrap_or(0)
}

/// Nanoseconds until the clock ends a program: at its limit, or with the last recorded operation.
fn clock(program: &Program) -> Option<u64> {
    let recorded = match (&program.pace, &program.recorded) {
        (Pace::Recorded { speed }, Some(recorded)) => recorded.content.as_ref().map(|content| {
            let passes = if program.limit.is_none() { Some(1) } else { program.limit.passes };
            let pass = content.duration_ns.0 as f64 / speed;
            passes.map_or(UNBOUNDED, |passes| (pass * passes as f64) as u64)
        }),
        _ => None,
    };
    let limit = program.limit.time_ns.map(|time| time.0);
    let both = limit.into_iter().chain(recorded.filter(|time| *time != UNBOUNDED));
    both.min()
}

/// Space of the files of a set, and what is written before the measuring.
fn of_set(set: &FileSet, workload: &Workload, written: u64) -> (u64, u64) {
    let uses = |phase: &&Phase| {
        let programs = phase.tenants.iter().filter_map(|tenant| tenant.program.as_ref());
        programs.into_iter().any(|program| program.uses_set(&set.name))
    };
    let phases = workload.phases.iter().filter(uses).count() as u64;
    if phases == 0 {
        return (0, 0);
    }
    let programs = workload.phases.iter().flat_map(|phase| &phase.tenants);
    let mut nodes = programs.filter_map(|tenant| tenant.program.as_ref()).flat_map(Program::nodes);
    let is_made = nodes.any(|(_, node)| node.does == Deed::Create);
    let each = set.file_bytes.most();
    let existing = (set.files as f64 * set.existing_percent / 100.0).round() as u64;
    let (full, laid) = if set.file_bytes.has_tail() {
        // The tail of a distribution is no size that all files have: they are drawn, with an eighth
        // and one of the largest added for another seed.
        let drawn = set.drawn(workload.seed);
        let most = |sizes: u64, count: u64| {
            (sizes + sizes / 8).saturating_add(each).min(count.saturating_mul(each))
        };
        let there = drawn.sizes.iter().zip(&drawn.exists).filter(|(_, exists)| **exists);
        let laid = most(there.map(|(size, _)| size).sum(), existing);
        (if is_made { most(drawn.sizes.iter().sum(), set.files) } else { laid }, laid)
    } else {
        let full = if is_made { set.files } else { existing }.saturating_mul(each);
        (full, existing.saturating_mul(each))
    };
    let layouts = if set.reuse == Reuse::Never { phases } else { 1 };
    match set.fill {
        Fill::Data => (full, laid.saturating_mul(layouts)),
        Fill::Allocated => (full, 0),
        Fill::Sparse => (full.min(written), 0),
    }
}

/// Cost of one worker from its first step to its last.
fn of_worker(program: &Program, sizes: Sizes) -> Cost {
    let recorded = program.recorded.as_ref().and_then(|recorded| recorded.content.as_ref());
    let pass = match recorded {
        Some(content) => {
            let (read, written) = (content.read_bytes.0, content.written_bytes.0);
            Cost { written, moved: read.saturating_add(written), grown: 0 }
        }
        None => of_all(&program.steps, sizes),
    };
    let whole = pass.times(passes(program));
    let (mut most_ops, limit) = (whole, &program.limit);
    let largest = largest(&program.steps, sizes);
    if let Some(ops) = limit.ops {
        most_ops = most_ops.each(largest.times(ops), u64::min);
    }
    if let Some(Bytes(bytes)) = limit.total_bytes {
        // The last one may go beyond the limit; what only allocates is not counted by it.
        let counted = Cost { written: bytes, moved: bytes, grown: bytes }.plus(largest);
        let moves = most_ops.each(counted, u64::min);
        let allocates = program.nodes().iter().any(|(_, node)| node.does == Deed::Allocate);
        most_ops = if allocates { Cost { grown: most_ops.grown, ..moves } } else { moves };
    }
    of_all(&program.before, sizes).plus(most_ops).plus(of_all(&program.after, sizes))
}

/// Tell whether a step goes through a part of a file.
fn is_served(node: &Node) -> bool {
    node.at.as_ref().is_some_and(|at| at.course.is_some())
}

/// Passes of a worker at most.
fn passes(program: &Program) -> u64 {
    let limit = &program.limit;
    if limit.is_none() {
        return 1;
    }
    let by_pace = limit.time_ns.map_or(UNBOUNDED, |time| {
        let seconds = time.0 as f64 / 1e9;
        match program.pace {
            Pace::Closed | Pace::Bytes { .. } | Pace::Directions { .. } | Pace::Recorded { .. } => {
                UNBOUNDED
            }
            Pace::Rate { passes_per_s } => (passes_per_s * seconds).ceil() as u64 + 1,
            Pace::Poisson { passes_per_s } => {
                // Six standard deviations above the mean.
                let mean = passes_per_s * seconds;
                (mean + 6.0 * mean.sqrt()).ceil() as u64 + 1
            }
            Pace::Bursts { passes, pause_ns } => {
                time.0.checked_div(pause_ns.0).map_or(UNBOUNDED, |bursts| (bursts + 1) * passes)
            }
        }
    });
    let by_count = limit.count.as_ref().map_or(UNBOUNDED, |count| {
        let is_always = |node: &&Node| {
            let file = node.file.as_ref();
            node.name() == count.id
                && node.every.is_none()
                && node.times.is_none()
                && file.is_none_or(|file| file.when_none != WhenNone::Skip)
        };
        program.steps.iter().find(is_always).map_or(UNBOUNDED, |_| count.ops)
    });
    limit.passes.unwrap_or(UNBOUNDED).min(by_pace).min(by_count)
}

fn of_all(nodes: &[Node], sizes: Sizes) -> Cost {
    nodes.iter().map(|node| of_node(node, sizes)).fold(Cost::default(), Cost::plus)
}

fn of_node(node: &Node, sizes: Sizes) -> Cost {
    let once = match node.does {
        Deed::Choose => {
            let each = node.steps.iter().map(|step| of_node(step, sizes));
            each.fold(Cost::default(), |a, b| a.each(b, u64::max))
        }
        Deed::Sequence | Deed::Repeat | Deed::Composite => of_all(&node.steps, sizes),
        _ => of_step(node, sizes),
    };
    let forever = if node.does == Deed::Repeat { UNBOUNDED } else { 1 };
    once.times(node.times.as_ref().map_or(forever, Amount::most))
}

/// The largest single operation.
fn largest(nodes: &[Node], sizes: Sizes) -> Cost {
    let each =
        nodes.iter().map(|node| largest(&node.steps, sizes).each(of_step(node, sizes), u64::max));
    each.fold(Cost::default(), |a, b| a.each(b, u64::max))
}

/// One operation, or one step on a whole file.
fn of_step(node: &Node, sizes: Sizes) -> Cost {
    let size = match &node.size_bytes {
        _ if node.is_whole => sizes.whole(node),
        Some(size) => size.most(),
        None => 0,
    };
    let value = node.size_bytes.as_ref().map_or(sizes.value, Amount::most);
    let count = node.count.as_ref().map_or(1, Amount::most);
    match node.does {
        Deed::Read => Cost { moved: size, ..Cost::default() },
        Deed::Write => {
            let grown = if grows(node, sizes) { size } else { 0 };
            Cost { written: size, moved: size, grown }
        }
        Deed::Copy => Cost { written: size, moved: size.saturating_mul(2), grown: size },
        // Of a file that is served no more than was laid out.
        Deed::Allocate if !is_served(node) => Cost { grown: size, ..Cost::default() },
        Deed::Get => Cost { moved: value, ..Cost::default() },
        Deed::Scan => Cost { moved: value.saturating_mul(count), ..Cost::default() },
        Deed::Put | Deed::Modify => {
            let record = value.saturating_add(KEY_BYTES);
            Cost { written: record, moved: record, grown: record }
        }
        _ => Cost::default(),
    }
}

/// Tell whether a write may make a file larger than its set says.
fn grows(node: &Node, sizes: Sizes) -> bool {
    if node.is_whole {
        return false;
    }
    if node.positioned() != Positioned::At {
        return true;
    }
    node.at.as_ref().is_some_and(|at| {
        let steps = at.worker_step_bytes.0.saturating_mul(sizes.workers.saturating_sub(1));
        let begin = at.from_bytes.0.saturating_add(steps);
        let end = at.within_bytes.map_or(begin, |within| begin.saturating_add(within.0));
        at.of.is_some() || end > sizes.whole(node)
    })
}

#[cfg(test)]
mod tests;

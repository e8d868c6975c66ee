//! State that the workers of a phase share: files that exist and files that do not, keys,
//! semaphores, flows, orders of places.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iolab_model::Bytes;
use iolab_model::op::PathId;
use iolab_model::seed::Stream;
use iolab_model::target::Content;

use super::code::Code;
use super::control::{Barrier, FlowState, Semaphore};
use super::description::Program;
use super::events::{Done, EventSource};
use super::files::{FileSet, Fill, Reuse};
use super::keys::KeyState;
use crate::spec::{Phase, Tenant, Workload};
use crate::verify::{Books, FilePlan, Verify};

/// A file of a set, or a directory beside its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// Index of the set.
    pub set: u32,
    /// Its number in the set's pool.
    pub number: u32,
}

/// State of the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Existing,
    Absent,
    /// Taken by a worker that makes, removes or renames it.
    Taken,
}

/// Numbers as bits, for looking for the next one fast.
#[derive(Debug)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn set(&mut self, number: u32, is_set: bool) {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if is_set {
            self.0[word] |= bit;
        } else {
            self.0[word] &= !bit;
        }
    }

    /// The first at or behind `number`, then from the front on.
    fn from(&self, number: u32) -> Option<u32> {
        let first = number as usize / 64;
        let above = self.0.get(first)? & (u64::MAX << (number % 64));
        let found = |word: usize, bits: u64| word as u32 * 64 + bits.trailing_zeros();
        if above != 0 {
            return Some(found(first, above));
        }
        let words = (first + 1..self.0.len()).chain(0..=first);
        words.into_iter().find(|word| self.0[*word] != 0).map(|word| found(word, self.0[word]))
    }
}

/// Names of one kind in a set, by what is known of them.
#[derive(Debug)]
pub(super) struct Pool {
    state: Vec<State>,
    existing: Vec<u32>,
    absent: Vec<u32>,
    /// The same names by their order.
    ordered_existing: Bits,
    ordered_absent: Bits,
    /// Place of each in its list.
    place: Vec<u32>,
    /// Operations under way on each.
    uses: Vec<u32>,
    /// Sum of the uses.
    all_uses: u64,
    next: u32,
    next_absent: u32,
}

impl Pool {
    fn new(exists: &[bool]) -> Self {
        let count = exists.len();
        let mut pool = Self {
            state: vec![State::Taken; count],
            existing: Vec::new(),
            absent: Vec::new(),
            ordered_existing: Bits::new(count),
            ordered_absent: Bits::new(count),
            place: vec![0; count],
            uses: vec![0; count],
            all_uses: 0,
            next: 0,
            next_absent: 0,
        };
        for (number, exists) in (0..).zip(exists) {
            pool.settle(number, *exists);
        }
        pool
    }

    /// Settle the existence of a name that was taken.
    pub(super) fn settle(&mut self, number: u32, exists: bool) {
        let (state, list, ordered) = if exists {
            (State::Existing, &mut self.existing, &mut self.ordered_existing)
        } else {
            (State::Absent, &mut self.absent, &mut self.ordered_absent)
        };
        self.state[number as usize] = state;
        self.place[number as usize] = list.len() as u32;
        list.push(number);
        ordered.set(number, true);
    }

    fn take(&mut self, number: u32) {
        let (list, ordered) = match self.state[number as usize] {
            State::Existing => (&mut self.existing, &mut self.ordered_existing),
            State::Absent => (&mut self.absent, &mut self.ordered_absent),
            State::Taken => return,
        };
        ordered.set(number, false);
        let place = self.place[number as usize] as usize;
        list.swap_remove(place);
        if let Some(moved) = list.get(place) {
            self.place[*moved as usize] = place as u32;
        }
        self.state[number as usize] = State::Taken;
    }

    fn is_free(&self, number: u32, is_alone: bool) -> bool {
        self.state[number as usize] == State::Existing
            && (!is_alone || self.uses[number as usize] == 0)
    }

    /// Any that exists; `is_alone`: and that nobody uses.
    fn any(&self, random: &mut Stream, is_alone: bool) -> Option<u32> {
        let count = self.existing.len() as u64;
        if count == 0 {
            return None;
        }
        let start = random.below(count);
        let tries = if is_alone { count } else { 1 };
        (0..tries)
            .map(|step| self.existing[((start + step) % count) as usize])
            .find(|number| self.is_free(*number, is_alone))
    }

    /// The first at or behind `number`, in steps of `step`, that exists.
    fn from(&self, number: u32, step: u32, is_alone: bool) -> Option<u32> {
        let count = self.state.len() as u32;
        if step == 1 && number < count {
            let first = self.ordered_existing.from(number)?;
            if self.is_free(first, is_alone) {
                return Some(first);
            }
        }
        let places = count.div_ceil(step.max(1));
        let mut number = number;
        for _ in 0..places {
            if number >= count {
                number %= step.max(1);
            }
            if number < count && self.is_free(number, is_alone) {
                return Some(number);
            }
            number += step.max(1);
        }
        None
    }

    /// Some name that does not exist.
    fn absent(&mut self, wanted: Wanted, random: &mut Stream) -> Option<u32> {
        match wanted {
            Wanted::This(number) => {
                (self.state[number as usize] == State::Absent).then_some(number)
            }
            Wanted::Next => {
                let found = self.ordered_absent.from(self.next_absent)?;
                self.next_absent = (found + 1) % self.state.len() as u32;
                Some(found)
            }
            Wanted::From(number, _) => self.ordered_absent.from(number),
            Wanted::Any => match self.absent.len() as u64 {
                0 => None,
                count => Some(self.absent[random.below(count) as usize]),
            },
        }
    }

    /// Tell whether some are held by others, so that waiting may help.
    fn has_taken(&self) -> bool {
        self.existing.len() + self.absent.len() < self.state.len() || self.all_uses > 0
    }
}

/// Purpose for which a step takes the file that it chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Name that must be there, and stays.
    Use,
    /// Name that must be there, and that no other worker may use.
    Remove,
    /// Name that must not be there.
    Make,
}

/// State that is asked for among the files of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Any.
    Any,
    /// The next in order.
    Next,
    /// From this number on, in such steps.
    From(u32, u32),
    /// This one and no other.
    This(u32),
}

/// A set of files in use.
#[derive(Debug)]
pub struct SetState {
    /// Its name.
    pub name: String,
    content: Option<Content>,
    first_path: u32,
    first_leaf: u32,
    /// Path of the directory of each file.
    parents: Vec<u32>,
    /// Path and number of the directories of its tree.
    directories: (u32, u32),
    files: Mutex<Pool>,
    leafs: Mutex<Pool>,
    sizes: Vec<AtomicU64>,
    /// Sizes as drawn.
    pub(super) nominal: Vec<u64>,
    pub(super) exists: Vec<bool>,
    /// Directories beside the tree that are there at the beginning.
    pub(super) leafs_exist: Vec<bool>,
    /// Number of workers that make its files.
    pub(super) makers: u32,
    pub(super) fill: Fill,
    /// State in which its files are found at the beginning of the phase.
    pub(super) making: Making,
    /// Its files lie beside others', in a directory of the user's perhaps.
    pub(super) is_flat: bool,
}

/// Preparation of the files of a set before a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Making {
    /// All files are made; no file is there.
    Fresh,
    /// All files are made; those that are there go first.
    Anew,
    /// Missing files are made.
    Found,
    /// The same, but what is longer stays so.
    Kept,
    /// Files that are there are looked for.
    Looked,
    /// All files must be there, and none is written.
    Untouched,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SetState {
    fn pool(&self, is_directory: bool) -> MutexGuard<'_, Pool> {
        locked(if is_directory { &self.leafs } else { &self.files })
    }

    /// Number of names of a kind.
    pub fn count(&self, is_directory: bool) -> u32 {
        (if is_directory { &self.leafs_exist } else { &self.exists }).len() as u32
    }

    /// Path of a file, or of a directory beside the tree.
    pub fn path(&self, number: u32, is_directory: bool) -> PathId {
        PathId(number + if is_directory { self.first_leaf } else { self.first_path })
    }

    /// Path of a directory of the tree, by its number.
    pub(super) fn directory(&self, number: u64) -> PathId {
        let (first, count) = self.directories;
        PathId(first + (number % u64::from(count)) as u32)
    }

    /// Number of directories of its tree.
    pub(super) fn directory_count(&self) -> u64 {
        u64::from(self.directories.1)
    }

    /// Path of the directory that a file lies in.
    pub(super) fn parent(&self, number: u32) -> PathId {
        PathId(self.parents[number as usize])
    }

    /// Paths of the directories of the tree, outer ones first.
    pub(super) fn tree(&self) -> impl Iterator<Item = PathId> + use<> {
        let (first, count) = self.directories;
        (first..first + count).map(PathId)
    }

    /// Size of a file, as far as its writers have said.
    pub fn size(&self, number: u32) -> u64 {
        self.sizes[number as usize].load(Ordering::Relaxed)
    }

    /// A file is so long now.
    pub fn resize(&self, number: u32, bytes: u64) {
        self.sizes[number as usize].store(bytes, Ordering::Relaxed);
    }

    /// A file is at least so long now.
    pub fn reach(&self, number: u32, bytes: u64) {
        self.sizes[number as usize].fetch_max(bytes, Ordering::Relaxed);
    }

    /// A file became longer by so much.
    pub fn lengthen(&self, number: u32, bytes: u64) {
        self.sizes[number as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes a file for a purpose. `Err(true)`: none now, but others hold some.
    pub(super) fn choose(
        &self,
        wanted: Wanted,
        purpose: Purpose,
        is_directory: bool,
        random: &mut Stream,
    ) -> Result<u32, bool> {
        let mut pool = self.pool(is_directory);
        let is_alone = purpose == Purpose::Remove;
        let found = match (wanted, purpose) {
            (_, Purpose::Make) => pool.absent(wanted, random),
            (Wanted::This(number), _) => pool.is_free(number, is_alone).then_some(number),
            (Wanted::Any, _) => pool.any(random, is_alone),
            (Wanted::From(number, step), _) => pool.from(number, step, is_alone),
            (Wanted::Next, _) => {
                let found = pool.from(pool.next, 1, is_alone);
                if let Some(number) = found {
                    pool.next = (number + 1) % pool.state.len() as u32;
                }
                found
            }
        };
        let Some(number) = found else { return Err(pool.has_taken()) };
        match purpose {
            Purpose::Use => {
                pool.uses[number as usize] += 1;
                pool.all_uses += 1;
            }
            Purpose::Remove | Purpose::Make => pool.take(number),
        }
        Ok(number)
    }

    /// An operation on a file has ended.
    pub(super) fn release(&self, number: u32, is_directory: bool) {
        let mut pool = self.pool(is_directory);
        if let Some(left) = pool.uses[number as usize].checked_sub(1) {
            pool.uses[number as usize] = left;
            pool.all_uses -= 1;
        }
    }

    /// Settle the existence of a name that was taken.
    pub(super) fn settle(&self, number: u32, is_directory: bool, exists: bool) {
        let mut pool = self.pool(is_directory);
        if pool.state[number as usize] == State::Taken {
            pool.settle(number, exists);
        }
    }

    /// Sets what was found before the phase.
    pub(super) fn found(&self, exists: &[bool], leafs: &[bool]) {
        *self.pool(false) = Pool::new(exists);
        *self.pool(true) = Pool::new(leafs);
    }

    /// Numbers of the files that exist.
    pub(super) fn existing(&self) -> Vec<u32> {
        let mut all = self.pool(false).existing.clone();
        all.sort_unstable();
        all
    }
}

/// State that the workers of a phase share.
#[derive(Debug)]
pub struct Stage {
    paths: Arc<[PathBuf]>,
    /// Every set that the phase uses.
    pub(super) sets: Vec<SetState>,
    pub(super) spaces: Vec<KeyState>,
    pub(super) semaphores: Vec<Semaphore>,
    pub(super) flows: Vec<FlowState>,
    pub(super) barriers: Vec<Barrier>,
    pub(super) sources: Vec<EventSource>,
    /// Counts of all workers.
    pub(super) done: Done,
    /// One per node of each program.
    pub(super) cursors: Vec<Vec<AtomicU64>>,
    codes: Vec<Option<Arc<Code>>>,
    /// Some tenant begins after another, or workers wait for each other.
    pub(super) has_turns: bool,
    /// Workers of each tenant whose timed region is not over.
    working: Vec<AtomicU32>,
    /// Nothing that is made stays: nothing is looked for either.
    pub(super) keeps_nothing: bool,
    /// Comparison of steps that do not say themselves how they compare what they read.
    pub(super) verify: Verify,
    /// Its files as lanes see them that verify; by path, empty if none do.
    verified: Arc<[FilePlan]>,
}

/// The programs of a phase, with their tenants.
fn programs(phase: &Phase) -> impl Iterator<Item = (&Tenant, &Program)> {
    phase.tenants.iter().filter_map(|tenant| tenant.program.as_ref().map(|own| (tenant, own)))
}

/// Names of the sets that a program mentions.
pub(super) fn sets_of(program: &Program) -> impl Iterator<Item = &str> + '_ {
    program.nodes().into_iter().flat_map(|(_, node)| {
        let locals = node.locals.iter().filter_map(|local| local.file.as_ref());
        let files = node.file.iter().chain(&node.to_file).chain(locals);
        files.filter_map(|file| file.set.as_deref()).collect::<Vec<_>>()
    })
}

impl Stage {
    /// State that the programs of `phase` need; `None` if it has none.
    ///
    /// The description must have been checked.
    pub fn of(workload: &Workload, phase: &Phase, directory: &Path) -> Option<Self> {
        programs(phase).next()?;
        let index = crate::verify::phase_index(workload, phase);
        let mut paths = Vec::new();
        let used = |set: &&FileSet| {
            programs(phase).any(|(_, own)| sets_of(own).any(|name| name == set.name))
        };
        let sets = workload.file_sets.iter().filter(used);
        let sets = sets.map(|set| set_state(set, (workload, index), &mut paths)).collect();
        let is_first =
            workload.phases[..index].iter().all(|phase| programs(phase).next().is_none());
        let spaces = workload.key_spaces.iter().map(|space| KeyState::new(space, is_first));
        let mut stage = Self {
            paths: paths.into_iter().map(|path| directory.join(path)).collect(),
            sets,
            spaces: spaces.collect(),
            semaphores: Semaphore::of(programs(phase).map(|(_, program)| program)),
            flows: FlowState::of(phase),
            barriers: Barrier::of(phase),
            sources: EventSource::of(programs(phase).map(|(_, program)| program)),
            done: Done::of(programs(phase).map(|(_, program)| program)),
            cursors: Vec::new(),
            codes: Vec::new(),
            has_turns: programs(phase)
                .any(|(_, own)| own.begins_after.is_some() || own.barriers().next().is_some()),
            working: phase.tenants.iter().map(|it| AtomicU32::new(it.workers)).collect(),
            keeps_nothing: false,
            verify: workload.verify,
            verified: Arc::default(),
        };
        for tenant in &phase.tenants {
            let code = tenant.program.as_ref().map(|program| Code::new(program, &stage));
            let nodes = code.as_ref().map_or(0, |code| code.flats.len());
            stage.cursors.push((0..nodes).map(|_| AtomicU64::new(0)).collect());
            stage.codes.push(code.map(Arc::new));
        }
        Some(stage)
    }

    /// Number of a barrier.
    pub(super) fn barrier(&self, name: Option<&String>) -> Option<usize> {
        self.barriers.iter().position(|known| Some(&known.name) == name)
    }

    /// Number of a source of events.
    pub(super) fn source(&self, name: &str) -> usize {
        self.sources.iter().position(|known| known.name == name).unwrap_or(0)
    }

    /// The same on a target that keeps neither data nor names.
    #[must_use]
    pub fn on(mut self, keeps_nothing: bool) -> Self {
        self.keeps_nothing = keeps_nothing;
        self
    }

    /// The same, with what is known of its files from earlier phases, if anything is verified.
    #[must_use]
    pub fn known_by(
        mut self,
        books: &Books,
        (workload, phase): (&Workload, &Phase),
        directory: &Path,
    ) -> Self {
        if workload.verification().is_on() {
            let unit = super::verified_unit(workload);
            let sets = self.sets.iter().map(|set| {
                let files = set.first_path as usize..set.first_path as usize + set.nominal.len();
                (files, super::verified::certainty(workload, phase, &set.name))
            });
            let sets: Vec<_> = sets.collect();
            let of_path = |path: usize| {
                let own = sets.iter().find(|(files, _)| files.contains(&path));
                own.map(|(_, certainty)| *certainty).unwrap_or_default()
            };
            let paths = (self.paths.as_ref(), directory);
            self.verified = books.files(paths, (workload.seed, unit), of_path);
        }
        self
    }

    /// Its files as lanes see them that verify.
    pub fn verified(&self) -> Arc<[FilePlan]> {
        Arc::clone(&self.verified)
    }

    /// The timed region of one of a tenant's workers is over.
    pub(super) fn leave(&self, tenant: usize) {
        self.working[tenant].fetch_sub(1, Ordering::AcqRel);
    }

    /// Tell whether the timed region of every worker of a tenant is over.
    pub(super) fn has_ended(&self, tenant: usize) -> bool {
        self.working[tenant].load(Ordering::Acquire) == 0
    }

    /// Every path that a program may name; [`PathId`] counts in this order.
    pub fn paths(&self) -> Arc<[PathBuf]> {
        Arc::clone(&self.paths)
    }

    /// Content of each path, as it is made: that of its set, if it has one, else the usual.
    pub fn contents(&self, usual: Content) -> impl Iterator<Item = Content> {
        let own = self.sets.iter().filter_map(|set| {
            let first = set.first_path as usize;
            set.content.map(|content| (first..first + set.nominal.len(), content))
        });
        let own: Vec<_> = own.collect();
        (0..self.paths.len()).map(move |path| {
            let found = own.iter().find(|(files, _)| files.contains(&path));
            found.map_or(usual, |(_, content)| *content)
        })
    }

    /// Bytes of the largest buffer that a worker of a tenant needs.
    pub fn buffer_bytes(&self, tenant: usize) -> Bytes {
        let values = self.spaces.iter().map(|space| Bytes(space.value_bytes().most()));
        let own = self.codes[tenant].as_ref().map(|code| code.program.buffer_bytes());
        values.chain(own).max().unwrap_or(Bytes(512))
    }

    /// The program of a tenant, ready to run.
    pub(super) fn code(&self, tenant: usize) -> Arc<Code> {
        Arc::clone(self.codes[tenant].as_ref().expect("only tenants with programs are asked for"))
    }
}

fn set_state(
    set: &FileSet,
    (workload, index): (&Workload, usize),
    paths: &mut Vec<PathBuf>,
) -> SetState {
    let drawn = set.drawn(workload.seed);
    let mut add = |names: &[String]| {
        let first = paths.len() as u32;
        paths.extend(names.iter().map(PathBuf::from));
        first
    };
    let directories = (add(&drawn.directories), drawn.directories.len() as u32);
    let known: BTreeMap<&str, u32> =
        drawn.directories.iter().map(String::as_str).zip(directories.0..).collect();
    let parent = |file: &String| file.rsplit_once('/').map_or(0, |(parent, _)| known[parent]);
    let parents = drawn.files.iter().map(parent).collect();
    let (first_path, first_leaf) = (add(&drawn.files), add(&drawn.leafs));
    let size = |(size, exists): (&u64, &bool)| AtomicU64::new(if *exists { *size } else { 0 });
    // It stays only if every phase in between kept its files.
    let uses =
        |phase: &Phase| programs(phase).any(|(_, own)| sets_of(own).any(|name| name == set.name));
    let earlier = &workload.phases[..index];
    let kept = earlier.iter().rev().take_while(|phase| phase.keeps_files);
    let is_there = kept.into_iter().any(uses);
    let making = match (set.reuse, is_there) {
        (Reuse::Untouched, _) => Making::Untouched,
        (Reuse::Found, false) => Making::Found,
        (Reuse::Kept, false) => Making::Kept,
        (_, false) => Making::Fresh,
        (Reuse::Never, true) => Making::Anew,
        (_, true) => Making::Looked,
    };
    SetState {
        name: set.name.clone(),
        content: set.content,
        parents,
        first_path,
        first_leaf,
        directories,
        files: Mutex::new(Pool::new(&drawn.exists)),
        leafs: Mutex::new(Pool::new(&drawn.leafs_exist)),
        sizes: drawn.sizes.iter().zip(&drawn.exists).map(size).collect(),
        nominal: drawn.sizes,
        exists: drawn.exists,
        leafs_exist: drawn.leafs_exist,
        makers: set.makers.max(1),
        fill: set.fill,
        making,
        is_flat: set.is_flat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::Seed;
    use proptest::prelude::*;

    proptest! {
        /// Pools stay sound for any sequence of calls: a name is in one list and the lists agree.
        #[test]
        fn pools_stay_sound(
            exists in prop::collection::vec(any::<bool>(), 1..40),
            steps in prop::collection::vec((0_u8..4, any::<bool>()), 0..200),
        ) {
            let mut random = Seed(1).stream("pool", 0);
            let set = SetState {
                name: "s".into(),
                content: None,
                parents: Vec::new(),
                first_path: 0,
                first_leaf: 0,
                directories: (0, 1),
                files: Mutex::new(Pool::new(&exists)),
                leafs: Mutex::new(Pool::new(&[])),
                sizes: exists.iter().map(|_| AtomicU64::new(0)).collect(),
                nominal: vec![0; exists.len()],
                exists: exists.clone(),
                leafs_exist: Vec::new(),
                makers: 1,
                fill: Fill::Data,
                making: Making::Fresh,
                is_flat: false,
            };
            let mut truth = exists.clone();
            for (kind, is_next) in steps {
                let purpose = [Purpose::Use, Purpose::Remove, Purpose::Make][usize::from(kind % 3)];
                let wanted = if is_next { Wanted::Next } else { Wanted::Any };
                let free = truth.iter().filter(|is| **is == (purpose != Purpose::Make)).count();
                if let Ok(number) = set.choose(wanted, purpose, false, &mut random) {
                    prop_assert_eq!(truth[number as usize], purpose != Purpose::Make);
                    let exists = purpose != Purpose::Remove;
                    if purpose == Purpose::Use {
                        set.release(number, false);
                    } else {
                        set.settle(number, false, exists);
                    }
                    truth[number as usize] = exists;
                } else {
                    prop_assert_eq!(free, 0);
                }
                let expected: Vec<u32> =
                    (0..).zip(&truth).filter(|(_, is)| **is).map(|(n, _)| n).collect();
                prop_assert_eq!(set.existing(), expected);
            }
        }
    }

    #[test]
    fn a_file_in_use_is_not_removed() {
        let mut random = Seed(1).stream("pool", 0);
        let pool = Mutex::new(Pool::new(&[true]));
        let set = SetState {
            name: "s".into(),
            content: None,
            parents: Vec::new(),
            first_path: 0,
            first_leaf: 0,
            directories: (0, 1),
            files: pool,
            leafs: Mutex::new(Pool::new(&[])),
            sizes: vec![AtomicU64::new(0)],
            nominal: vec![0],
            exists: vec![true],
            leafs_exist: Vec::new(),
            makers: 1,
            fill: Fill::Data,
            making: Making::Fresh,
            is_flat: false,
        };
        assert_eq!(set.choose(Wanted::Any, Purpose::Use, false, &mut random), Ok(0));
        assert_eq!(set.choose(Wanted::Any, Purpose::Remove, false, &mut random), Err(true));
        set.release(0, false);
        assert_eq!(set.choose(Wanted::Any, Purpose::Remove, false, &mut random), Ok(0));
        assert_eq!(set.choose(Wanted::Any, Purpose::Use, false, &mut random), Err(true));
        set.settle(0, false, false);
        assert_eq!(set.choose(Wanted::Any, Purpose::Use, false, &mut random), Err(false));
    }
}

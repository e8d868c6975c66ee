//! Files that a worker serves: several transfers on one, then on the next, until all are used up.

use std::collections::BTreeSet;

use iolab_model::Bytes;
use iolab_model::op::{Advice, Deallocation, Handle, Op, OpenHow, Position, Transfer};

use super::super::code::{Chosen, Flat};
use super::super::course::{Chance, Stretch};
use super::super::deed::Deed;
use super::super::draw;
use super::super::pick::Pick;
use super::super::stage::FileId;
use super::ProgramWorker;
use super::choose::Held;
use super::job::{Job, Meaning};
use super::leaf::{Begun, how};
use crate::group::GroupState;

/// Choice of the file of a set that is served.
#[derive(Clone, Debug, Default)]
pub(super) struct Serving {
    current: Option<u32>,
    /// Transfers on it that are left.
    left: u64,
    /// Files that were picked so far.
    turn: u64,
    used_up: BTreeSet<u32>,
}

/// Calls before the first transfer of a pass on a file.
#[derive(Clone, Copy, Debug)]
struct Again {
    /// The file is flushed.
    is_flushed: bool,
    /// Its cached pages are dropped.
    drops_cache: bool,
    /// The file is removed and made anew.
    is_renewed: bool,
}

impl<G: GroupState> ProgramWorker<'_, G> {
    /// The calls of a transfer on the file that is served.
    pub(super) fn served(&mut self, node: usize, flat: &Flat, job: &mut Job) -> Result<(), Begun> {
        let Some(chosen) = &flat.file else { return Err(Begun::Nothing) };
        let size = flat.node.size_bytes.as_ref();
        let wanted = size.map_or(0, |amount| amount.draw(&mut self.random));
        let (file, (at, length), again) = loop {
            let Some(file) = self.serve(chosen) else { return Err(Begun::NoMore) };
            match self.on_course(node, flat, file, wanted) {
                Some((found, again)) => break (file, found, again),
                None => self.use_up(chosen.set, file.number),
            }
        };
        self.handle_of(flat, Held { id: file, is_held: false }, job);
        let (handle, length, opens) = (Handle(job.handle), Bytes(length), job.open.is_some());
        let (vectors, flags) = (flat.node.vectors.max(1), flat.node.flags);
        let position = Position::At(Bytes(at));
        let is_unchecked = self.is_unchecked(&flat.node);
        let plain = Transfer::plain(handle, position, length);
        let is_of_kernel_thread = self.is_of_kernel_thread();
        let transfer = Transfer { vectors, flags, is_unchecked, is_of_kernel_thread, ..plain };
        job.lock = self.lock_of(flat.node.does);
        let op = match flat.node.does {
            Deed::Read => Op::Read(transfer),
            Deed::Write => Op::Write(transfer),
            Deed::Truncate => Op::Truncate { handle, length: Bytes(at) },
            Deed::Allocate => {
                let keeps_length = flat.node.keeps_length;
                Op::Allocate { handle, at: Bytes(at), length, keeps_length }
            }
            does => {
                let is_hole = does == Deed::Punch;
                let how = if is_hole { Deallocation::Punch } else { Deallocation::Discard };
                Op::Deallocate { handle, at: Bytes(at), length, how }
            }
        };
        // Whoever opens the file has not used it before.
        if !opens {
            self.prepare_pass(again, flat, (file, handle), job);
        }
        match flat.node.does {
            _ if opens => {}
            Deed::Write => job.meaning = Meaning::Reaches(at + length.0),
            Deed::Allocate if !flat.node.keeps_length => {
                job.meaning = Meaning::Reaches(at + length.0);
            }
            Deed::Truncate => job.meaning = Meaning::Length(at),
            _ => {}
        }
        Self::then(job, op);
        Ok(())
    }

    /// The calls before the first transfer of a pass on an open file.
    fn prepare_pass(
        &self,
        again: Again,
        flat: &Flat,
        (file, handle): (FileId, Handle),
        job: &mut Job,
    ) {
        // They are taken from the end.
        if again.is_renewed {
            let set = &self.stage.sets[file.set as usize];
            let path = set.path(file.number, false);
            let how = OpenHow { is_remembered: set.is_flat, ..how(&flat.node) };
            set.resize(file.number, 0);
            job.before.push(Op::Create { path, handle, how });
            job.before.push(Op::Unlink { path });
            job.before.push(Op::Close { handle });
        } else if again.drops_cache {
            job.before.push(Op::Advise { handle, advice: Advice::DontNeed });
        }
        if again.is_flushed {
            job.before.push(Op::Fsync { handle });
        }
    }

    /// The file that is served now; `None`: all are used up.
    fn serve(&mut self, chosen: &Chosen) -> Option<FileId> {
        let choice = &chosen.choice;
        let count = self.stage.sets[chosen.set].count(false);
        let (first, step) = if choice.is_own { (self.index, self.workers) } else { (0, 1) };
        let own = u64::from(count.saturating_sub(first).div_ceil(step.max(1)));
        let serving = self.picked.serving.entry(chosen.set).or_default();
        let id = |number| FileId { set: chosen.set as u32, number };
        if let Some(number) = serving.current.filter(|_| serving.left > 0) {
            serving.left -= 1;
            return Some(id(number));
        }
        if serving.used_up.len() as u64 >= own {
            return None;
        }
        let pick = choice.pick.as_ref().unwrap_or(&Pick::Sequential);
        let start = pick.next((own, own), serving.turn, &mut self.random, self.key);
        serving.turn += 1;
        let numbers = (0..own).map(|ahead| first + ((start + ahead) % own) as u32 * step);
        let number = numbers.into_iter().find(|number| !serving.used_up.contains(number))?;
        serving.current = Some(number);
        serving.left = if choice.stay == 0 { u64::MAX } else { choice.stay - 1 };
        Some(id(number))
    }

    fn use_up(&mut self, set: usize, number: u32) {
        let serving = self.picked.serving.entry(set).or_default();
        serving.used_up.insert(number);
        serving.left = 0;
    }

    /// Place and length of the next transfer of a step in a file, and what comes before it; `None`:
    /// the file is used up.
    fn on_course(
        &mut self,
        node: usize,
        flat: &Flat,
        file: FileId,
        wanted: u64,
    ) -> Option<((u64, u64), Again)> {
        let at = flat.node.at.as_ref()?;
        let course = at.course.as_ref()?;
        let set = &self.stage.sets[file.set as usize];
        let size = set.size(file.number).max(set.nominal[file.number as usize]);
        let from = at.from_bytes.0 + at.worker_step_bytes.0 * u64::from(self.index);
        let unit = at.unit_bytes.map_or(flat.unit, |unit| unit.0).max(1);
        let bytes = at.within_bytes.map_or(size.saturating_sub(from), |within| within.0);
        let pick = at.pick.as_ref().unwrap_or(&Pick::Sequential);
        let key = draw::scatter(u64::from(file.number), u64::MAX, self.key)
            .wrapping_add(u64::from(self.index) << 40);
        let way = self.picked.ways.entry((node, file)).or_default();
        let map = self.picked.maps.entry(file).or_default();
        let mut chance = Chance { random: &mut self.random, key };
        let stretch = Stretch { from, bytes, unit };
        let found = way.next((course, pick), (stretch, wanted), map, &mut chance)?;
        let is_begun_again = map.take_begun_again();
        let again = Again {
            is_flushed: is_begun_again && course.flushes,
            drops_cache: is_begun_again && course.drops_cache,
            is_renewed: is_begun_again && course.renews,
        };
        Some((found, again))
    }
}

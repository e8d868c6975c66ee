//! A session of alternating slices: all treatments on files that were made once.
//!
//! Each worker of each cell (a treatment's phase) is a thread with a lane of its own, which keeps
//! its file open from the first slice to the last and sleeps while others have theirs. One
//! coordinator says who is next. Knobs are the parent's business: it is asked before a slice of a
//! treatment that has others than the one before.
//!
//! On devices made alike (twins) each cell has workers on every device. In a block every device
//! keeps the knobs of one treatment, and the cells of a treatment work where its knobs are; from
//! block to block the knobs move on by one device, so that a unit has each on each.
//!
//! Where a cell reads through the page cache, the pages of its files are dropped before each of its
//! slices, and its workers take the device's read-ahead of that moment.
//!
//! Left out: workers that are processes, programs, sets of files, and files of the user's own.

mod cast;
mod columns;
mod order;
mod washout;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use iolab_drive::clock::monotonic;
use iolab_drive::coordinate::Observer;
use iolab_drive::pump::{Seat, SliceCount, SliceDriver, SliceLength, Turn, lay_out, run_slices};
use iolab_drive::recorder::ClassHistograms;
use iolab_model::{Erased, Error, Ns, Target};
use iolab_real::{Engine, EngineVisitor};

use self::cast::{Cast, CastMember};
use self::columns::{Place, add, truncate};
use self::washout::Washout;
use super::child::{pin, print};
use super::observer::PhaseObserver;
use super::request::Request;
use super::slices::{Sliced, Table};
use super::waits::wait_for_line;
use crate::protocol::{
    ChosenBy, MeasureLine, PairsRecord, PairsSlices, PairsSpec, PairsUnit, Progress,
};
use crate::semaphores::Passed;

/// Operations that a slice should hold.
const OPS_MIN: u64 = 20;
/// A slice is so many tenths of a change of knobs long at least.
const SWITCH_TENTHS: u64 = 25;
/// Each cell is tried so long before the first unit.
const PILOT: Duration = Duration::from_millis(100);
/// Changes of knobs that are timed before the first unit, for each treatment.
const SWITCHES_TRIED: u32 = 3;
/// Reason of a session that was interrupted.
pub const INTERRUPTED: &str = "interrupted";
const TOLD_EVERY: Duration = Duration::from_millis(500);

/// News of a worker for the coordinator.
enum News {
    Done(SliceCount),
    Recorded(Box<ClassHistograms>),
    Failed(String),
}

/// The worker's end of the wire.
struct Wire {
    index: usize,
    turns: Receiver<Turn>,
    news: Sender<(usize, News)>,
}

impl SliceDriver for Wire {
    fn next(&mut self, count: Option<SliceCount>) -> Turn {
        if let Some(count) = count {
            // Who does not listen any more has ended, and so does the worker.
            let _ = self.news.send((self.index, News::Done(count)));
        }
        self.turns.recv().unwrap_or(Turn::End)
    }

    fn collect(&mut self, service: ClassHistograms) {
        let _ = self.news.send((self.index, News::Recorded(Box::new(service))));
    }
}

/// One worker's life, on the target that its engine's name stands for.
struct Living<'a, 'b>(&'b Seat<'a>, &'b Path, Option<&'b Table>, Wire);

impl EngineVisitor for Living<'_, '_> {
    type Output = Result<(), Error>;

    fn visit<T: Target + Sync>(self, target: &T) -> Self::Output {
        let Self(seat, directory, table, mut wire) = self;
        match table {
            Some(table) => run_slices(seat, &Sliced::new(target, table), directory, &mut wire),
            None => run_slices(seat, target, directory, &mut wire),
        }
    }
}

/// Makes the files of one device, all of them at once.
struct LayingOut<'a, 'b, 'c>(&'b Cast, &'b Path, Option<&'b Table>, &'c mut PhaseObserver<'a>);

impl EngineVisitor for LayingOut<'_, '_, '_> {
    type Output = Result<iolab_drive::pump::Laid, Error>;

    fn visit<T: Target + Sync>(self, target: &T) -> Self::Output {
        let Self(cast, directory, table, observer) = self;
        let all = &cast.everything;
        let what = (all, &all.phases[0], None);
        match table {
            Some(table) => {
                let sliced = Sliced::new(target, table);
                lay_out(Erased::new(&sliced), what, directory, observer)
            }
            None => lay_out(Erased::new(target), what, directory, observer),
        }
    }
}

/// End of a session.
pub struct SessionEnd {
    /// Record of the session; none if it failed.
    pub record: Option<PairsRecord>,
    /// Reason why it was stopped or failed.
    pub why: Option<String>,
    /// The observer's warnings.
    pub warnings: Vec<iolab_drive::record::Warning>,
}

/// Runs the session that `spec` asks for.
///
/// # Errors
///
/// A request that cannot be alternated; a file that cannot be made.
pub fn run(request: &Request, spec: &PairsSpec, began: Instant) -> Result<SessionEnd, Error> {
    let directories = directories_of(request);
    let cast = Cast::of(spec, directories.len())?;
    let table = request.device.as_ref();
    let table = table.map(|device| Table::new(device, &request.directory, &cast.everything));
    let table = table.transpose()?;
    let all = &cast.everything.phases[0];
    let mut observer = PhaseObserver::new(request, all, began, false);
    for directory in &directories {
        let laying_out = LayingOut(&cast, directory, table.as_ref(), &mut observer);
        let laid = cast.everything.engine.parse::<Engine>()?.visit(laying_out)?;
        if laid == iolab_drive::pump::Laid::Stopped {
            let why = observer.stopped_because.clone();
            return Ok(SessionEnd { record: None, why, warnings: observer.warnings });
        }
    }
    let (news, heard) = channel();
    let actors = cast.actors();
    let ended = std::thread::scope(|scope| {
        let mut turns = Vec::new();
        for (index, actor) in actors.iter().enumerate() {
            let (sender, receiver) = channel();
            turns.push(sender);
            let wire = Wire { index, turns: receiver, news: news.clone() };
            let (news, table) = (news.clone(), table.as_ref());
            let directory = directories[actor.place].as_path();
            scope.spawn(move || {
                pin(&actor.seat);
                let life = Living(&actor.seat, directory, table, wire);
                let lived = actor.engine.visit(life);
                if let Err(error) = lived {
                    let _ = news.send((index, News::Failed(error.to_string())));
                }
            });
        }
        let washout = Washout::of(&cast, &directories);
        let mut session = Session::new(spec, (&cast, &actors, washout), (turns, heard));
        let ended = session.run(request, &mut observer);
        observer.warnings.extend(session.washout.warnings());
        ended
        // The senders go with the session, which ends every worker.
    });
    let (record, why) = match ended {
        Ok((record, why)) => (Some(record), why),
        Err(why) => (None, Some(why)),
    };
    Ok(SessionEnd { record, why, warnings: observer.warnings })
}

/// Directories of the files on each of the devices made alike.
fn directories_of(request: &Request) -> Vec<PathBuf> {
    [&request.directory].into_iter().chain(&request.twins).cloned().collect()
}

/// The coordinator.
struct Session<'a> {
    spec: &'a PairsSpec,
    cast: &'a Cast,
    actors: &'a [CastMember<'a>],
    turns: Vec<Sender<Turn>>,
    heard: Receiver<(usize, News)>,
    /// The treatment whose knobs are in effect, by device.
    now_at: Vec<Option<usize>>,
    /// Devices whose knobs were changed, and which nobody has used since.
    unsettled: Vec<bool>,
    /// Pages dropped before slices.
    washout: Washout,
}

/// The length of slices, and what it follows from.
struct Chosen {
    length: SliceLength,
    by: ChosenBy,
    switch_cost_ns: u64,
    per_block: u32,
}

impl<'a> Session<'a> {
    fn new(
        spec: &'a PairsSpec,
        (cast, actors, washout): (&'a Cast, &'a [CastMember<'a>], Washout),
        (turns, heard): (Vec<Sender<Turn>>, Receiver<(usize, News)>),
    ) -> Self {
        let (now_at, unsettled) = (vec![None; cast.places()], vec![false; cast.places()]);
        Self { spec, cast, actors, turns, heard, now_at, unsettled, washout }
    }

    fn run(
        &mut self,
        request: &Request,
        observer: &mut PhaseObserver<'_>,
    ) -> Result<(PairsRecord, Option<String>), String> {
        observer.starting();
        let chosen = self.choose()?;
        let began = monotonic();
        let mut record = self.record(&chosen);
        let mut told = Instant::now();
        for unit in 0..self.spec.units {
            if self.is_time_over(&record) {
                break;
            }
            let kept = record.slices.unit.len();
            let unit_began = monotonic();
            let is_whole = self.unit((unit, began), &chosen, &mut record.slices, observer)?;
            if !is_whole {
                // Who was stopped while knobs changed does not know yet why.
                observer.should_stop();
                truncate(&mut record.slices, kept);
                break;
            }
            record.elapsed_ns = monotonic().since(began).0;
            record.units.push(PairsUnit {
                began_ns: unit_began.since(began).0,
                elapsed_ns: monotonic().since(unit_began).0,
                service: self.collect()?,
            });
            if told.elapsed() >= TOLD_EVERY {
                told = Instant::now();
                print(&MeasureLine::Progress(Progress {
                    trial: Some(request.trial.clone()),
                    phase: "slices".to_owned(),
                    message: format!("{} balanced units", unit + 1),
                    share: Some(f64::from(unit + 1) / f64::from(self.spec.units)),
                    ..Progress::default()
                }));
            }
        }
        observer.ended();
        Ok((record, observer.stopped_because.clone()))
    }

    /// A record without units.
    fn record(&self, chosen: &Chosen) -> PairsRecord {
        PairsRecord {
            slice_ns: chosen.length.slice.0,
            chosen_by: chosen.by,
            washout_ns: chosen.length.washout.0,
            switch_cost_ns: chosen.switch_cost_ns,
            places: self.cast.exchanged() as u32,
            settle_ns: self.spec.settle_ns,
            knobs: Vec::new(),
            slices_per_unit: chosen.per_block * self.cast.exchanged() as u32,
            elapsed_ns: 0,
            cells: self.cast.told(),
            units: Vec::new(),
            slices: PairsSlices::default(),
        }
    }

    /// Tell whether the next unit, if it takes as long as those before, would end too late.
    fn is_time_over(&self, record: &PairsRecord) -> bool {
        let done = record.units.len() as u64;
        let next = record.elapsed_ns + record.elapsed_ns / done.max(1);
        self.spec.time_ns > 0 && done > 0 && next > self.spec.time_ns
    }

    /// One balanced unit of a session that `began` then; answers whether it was complete.
    fn unit(
        &mut self,
        (unit, began): (u32, Ns),
        chosen: &Chosen,
        slices: &mut PairsSlices,
        observer: &mut PhaseObserver<'_>,
    ) -> Result<bool, String> {
        let size = order::Size {
            phases: self.cast.phases(),
            treatments: self.spec.treatments.len(),
            per_block: chosen.per_block,
            places: self.cast.exchanged(),
        };
        for block in order::of_unit(self.spec.seed, unit, size) {
            for (phase, treatment) in block.turns {
                if observer.should_stop() {
                    return Ok(false);
                }
                if !self.make_ready(treatment, block.shift)? {
                    return Ok(false);
                }
                let cell = self.cast.cell(treatment, phase);
                let device = self.cast.place(treatment, block.shift);
                let counts = self.slice(cell, device, chosen.length)?;
                let moved = counts.iter().flatten().map(|count| count.bytes).sum();
                let looked = self.washout.after(cell, device, moved);
                looked.map_err(|error| error.to_string())?;
                for (tenant, counts) in counts.into_iter().enumerate() {
                    add(slices, Place { unit, cell, tenant, device }, &counts, began);
                }
            }
        }
        Ok(true)
    }

    /// Lets the workers of a cell have a slice on a device; what they did, by tenant.
    fn slice(
        &mut self,
        cell: usize,
        place: usize,
        length: SliceLength,
    ) -> Result<Vec<Vec<SliceCount>>, String> {
        let range = self.cast.range(cell, place);
        self.washout.before(cell, place).map_err(|error| error.to_string())?;
        let is_unsettled = std::mem::take(&mut self.unsettled[place]);
        let settle = if is_unsettled { Ns(self.spec.settle_ns) } else { Ns(0) };
        let length = SliceLength { washout: length.washout.max(settle), ..length };
        for index in range.clone() {
            self.turns[index].send(Turn::Slice(length)).map_err(|_| self.epitaph())?;
        }
        let mut counts = vec![Vec::new(); self.cast.tenants(cell)];
        for _ in range {
            match self.heard.recv() {
                Ok((index, News::Done(count))) => {
                    counts[self.actors[index].seat.tenant_index].push(count);
                }
                Ok((_, News::Failed(why))) => return Err(why),
                Ok((_, News::Recorded(_))) | Err(_) => return Err(self.epitaph()),
            }
        }
        Ok(counts)
    }

    /// Records of every worker since it was asked last, by cell and tenant.
    fn collect(&self) -> Result<Vec<Vec<ClassHistograms>>, String> {
        let count = self.cast.cells();
        let empty = |cell| vec![ClassHistograms::default(); self.cast.tenants(cell)];
        let mut found: Vec<_> = (0..count).map(empty).collect();
        for turns in &self.turns {
            turns.send(Turn::Collect).map_err(|_| self.epitaph())?;
        }
        for _ in &self.turns {
            match self.heard.recv() {
                Ok((index, News::Recorded(service))) => {
                    let actor = &self.actors[index];
                    found[actor.cell][actor.seat.tenant_index].merge(&service);
                }
                Ok((_, News::Failed(why))) => return Err(why),
                Ok((_, News::Done(_))) | Err(_) => return Err(self.epitaph()),
            }
        }
        Ok(found)
    }

    /// Reason why a worker does not listen any more.
    fn epitaph(&self) -> String {
        let failed = self.heard.try_iter().find_map(|(_, news)| match news {
            News::Failed(why) => Some(why),
            News::Done(_) | News::Recorded(_) => None,
        });
        failed.unwrap_or_else(|| "a worker ended without saying why".into())
    }

    /// Has the parent put the knobs of a treatment into effect where it works in such a block;
    /// answers whether they are: not if somebody wants the session to end.
    fn make_ready(&mut self, treatment: usize, shift: usize) -> Result<bool, String> {
        let wanted = match self.cast.places() {
            1 => vec![treatment],
            _ => self.cast.assignment(shift),
        };
        let knobs = |index: usize| &self.spec.treatments[index].knobs;
        let is_other = |(now, next): (&Option<usize>, &usize)| match now {
            Some(now) => knobs(*now) != knobs(*next),
            None => self.spec.is_switching(),
        };
        let others: Vec<bool> = self.now_at.iter().zip(&wanted).map(is_other).collect();
        self.now_at = wanted.iter().copied().map(Some).collect();
        if others.iter().all(|is_other| !is_other) {
            return Ok(true);
        }
        for (unsettled, is_other) in self.unsettled.iter_mut().zip(others) {
            *unsettled |= is_other;
        }
        print(&MeasureLine::Switch { treatments: wanted });
        wait_for_line().map(|passed| passed == Passed::Together)
    }

    /// The same before the first unit, where an end leaves nothing.
    fn try_ready(&mut self, treatment: usize, shift: usize) -> Result<(), String> {
        if self.make_ready(treatment, shift)? { Ok(()) } else { Err(INTERRUPTED.into()) }
    }

    /// Tries every cell and every change of knobs, and chooses the length of slices.
    fn choose(&mut self) -> Result<Chosen, String> {
        let switch_cost_ns = self.time_switches()?;
        let (mut slowest_ns, mut lasted_ns) = (0, 0);
        let pilot_ns = PILOT.as_nanos() as u64;
        let pilot = SliceLength { slice: Ns(pilot_ns), washout: Ns(0) };
        for cell in 0..self.cast.cells() {
            let treatment = self.cast.treatment(cell);
            self.try_ready(treatment, 0)?;
            let mut longest_ns = pilot_ns;
            for counts in self.slice(cell, self.cast.place(treatment, 0), pilot)? {
                let per_op =
                    counts.iter().map(|count| (count.end_ns - count.begin_ns) / count.ops.max(1));
                slowest_ns = per_op.max().unwrap_or(0).max(slowest_ns);
                let lengths = counts.iter().map(|count| count.end_ns - count.begin_ns);
                longest_ns = lengths.max().unwrap_or(0).max(longest_ns);
            }
            lasted_ns += longest_ns;
        }
        self.collect()?;
        let spec = self.spec;
        let places = self.cast.exchanged() as u64;
        // Twins are exchanged once a block: that costs no slice anything.
        let changes = if spec.is_switching() && places == 1 { switch_cost_ns } else { 0 };
        let (slice_ns, by) = slice_of(spec, slowest_ns, changes);
        let length = SliceLength { slice: Ns(slice_ns), washout: Ns(spec.washout_ns) };
        // A flush, or an operation that outlasts its slice, makes each turn longer than asked.
        let cells = self.cast.cells() as u64;
        let lasting = (slice_ns as f64 * lasted_ns as f64 / (pilot_ns * cells) as f64) as u64;
        let turn = lasting + spec.washout_ns + changes;
        let per_block = spec.unit_ns / places / (turn * cells).max(1);
        let least = if places == 1 { 2 } else { 1 };
        Ok(Chosen { length, by, switch_cost_ns, per_block: per_block.clamp(least, 4096) as u32 })
    }

    /// Mean cost of a change of knobs, of all twins together; 0 if there are none.
    fn time_switches(&mut self) -> Result<u64, String> {
        if !self.spec.is_switching() {
            return Ok(0);
        }
        let turns: Vec<(usize, usize)> = match self.cast.places() {
            1 => (0..self.spec.treatments.len()).map(|treatment| (treatment, 0)).collect(),
            places => (0..places).map(|shift| (0, shift)).collect(),
        };
        // The first time, each one is checked and noted in the journal.
        for (treatment, shift) in &turns {
            self.try_ready(*treatment, *shift)?;
        }
        let began = Instant::now();
        for (treatment, shift) in turns.iter().cycle().take(turns.len() * SWITCHES_TRIED as usize) {
            self.try_ready(*treatment, *shift)?;
        }
        let tried = u64::from(SWITCHES_TRIED) * turns.len() as u64;
        Ok(began.elapsed().as_nanos() as u64 / tried)
    }
}

/// Length of a slice and what decided it.
fn slice_of(spec: &PairsSpec, slowest_ns: u64, switch_cost_ns: u64) -> (u64, ChosenBy) {
    let asked = [
        (spec.slice_min_ns, ChosenBy::Shortest),
        (slowest_ns * OPS_MIN, ChosenBy::Operations),
        (switch_cost_ns * SWITCH_TENTHS / 10, ChosenBy::Switches),
    ];
    let most = asked.into_iter().reduce(|a, b| if b.0 > a.0 { b } else { a });
    match most {
        Some((wanted, by)) if wanted <= spec.slice_max_ns => (wanted, by),
        _ => (spec.slice_max_ns, ChosenBy::Longest),
    }
}

#[cfg(test)]
mod tests;

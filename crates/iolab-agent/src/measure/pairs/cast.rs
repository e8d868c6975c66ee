//! Workers of a session of slices: every worker of every cell, on files that all share.

use std::collections::BTreeSet;
use std::ops::Range;

use iolab_drive::pump::{Seat, is_flushed, seats};
use iolab_model::op::Access;
use iolab_model::{Error, Ns};
use iolab_real::Engine;
use iolab_workload::Workload;
use iolab_workload::operation::Nature;
use iolab_workload::spec::{Direction, FsyncPolicy, Limit, Opening, Phase, Tenant, WorkersAs};

use crate::protocol::{PairsCell, PairsSpec, PairsTenant};

/// Longer than any session.
const FOR_EVER: Ns = Ns(1 << 62);

/// The treatments of a session, as standing work.
pub struct Cast {
    workloads: Vec<Workload>,
    /// All tenants of all cells as one phase: the files that are made.
    pub everything: Workload,
    /// Places where the workers of each cell on each device begin among all, with the end behind.
    begins: Vec<usize>,
    /// Of each treatment, which set of knobs it has.
    groups: Vec<usize>,
    /// Devices made alike.
    places: usize,
    /// The device of each treatment, where each has a file system of its own; else empty.
    own_places: Vec<usize>,
}

/// A worker, and where it belongs.
pub struct CastMember<'a> {
    /// Index of its cell.
    pub cell: usize,
    /// Index of its device.
    pub place: usize,
    /// Seat of the worker.
    pub seat: Seat<'a>,
    /// Engine of its calls to the kernel.
    pub engine: Engine,
}

impl Cast {
    /// Understands the treatments of `spec`, on so many devices made alike.
    pub fn of(spec: &PairsSpec, places: usize) -> Result<Self, Error> {
        let read = |treatment: &crate::protocol::PairsTreatment| -> Result<Workload, Error> {
            let mut workload = treatment.workload.clone();
            workload.workers_as = WorkersAs::Threads;
            workload.phases.iter_mut().try_for_each(stand)?;
            workload.check()?;
            for engine in workload.phases.iter().flat_map(|phase| workload.engines_of(phase)) {
                engine.parse::<Engine>()?;
            }
            Ok(workload)
        };
        let workloads = spec.treatments.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = workloads.first() else { return Err(wrong("no treatment".into())) };
        let names = |workload: &Workload| -> Vec<String> {
            workload.phases.iter().map(|phase| phase.name.clone()).collect()
        };
        if workloads.iter().any(|other| names(other) != names(first)) {
            return Err(wrong("treatments whose phases differ".into()));
        }
        let mut everything = first.clone();
        everything.phases.truncate(1);
        let tenants = workloads.iter().flat_map(|w| &w.phases).flat_map(|p| &p.tenants);
        everything.phases[0].tenants = tenants.cloned().collect();
        check_files(&everything.phases[0])?;
        let mut begins = vec![0];
        for phase in workloads.iter().flat_map(|workload| &workload.phases) {
            let workers: u32 = phase.tenants.iter().map(|tenant| tenant.workers).sum();
            for _ in 0..places {
                begins.push(begins.last().copied().unwrap_or(0) + workers as usize);
            }
        }
        let groups = groups_of(spec);
        let own_places: Vec<usize> = spec.treatments.iter().filter_map(|it| it.place).collect();
        if !own_places.is_empty() && spec.images.len() != places {
            return Err(wrong(format!("{} images on {places} devices", spec.images.len())));
        }
        let sets = 1 + groups.iter().max().copied().unwrap_or(0);
        if places > 1 && sets != places && own_places.is_empty() {
            return Err(wrong(format!("{sets} sets of knobs on {places} devices")));
        }
        Ok(Self { workloads, everything, begins, groups, places, own_places })
    }

    /// Devices made alike.
    pub fn places(&self) -> usize {
        self.places
    }

    /// Devices that every treatment has in turn, one block of a unit each; 1: it keeps its own.
    pub fn exchanged(&self) -> usize {
        if self.own_places.is_empty() { self.places } else { 1 }
    }

    /// The device of a treatment in a block.
    pub fn place(&self, treatment: usize, shift: usize) -> usize {
        if let Some(own) = self.own_places.get(treatment) {
            return *own;
        }
        (self.groups[treatment] + shift) % self.places
    }

    /// For each device the first treatment that has it in a block.
    pub fn assignment(&self, shift: usize) -> Vec<usize> {
        let first = |place| (0..self.workloads.len()).find(|it| self.place(*it, shift) == place);
        (0..self.places).map(|place| first(place).expect("every device has a set")).collect()
    }

    /// Phases of each treatment.
    pub fn phases(&self) -> usize {
        self.workloads[0].phases.len()
    }

    /// Cells in all.
    pub fn cells(&self) -> usize {
        self.workloads.len() * self.phases()
    }

    /// Index of a cell.
    pub fn cell(&self, treatment: usize, phase: usize) -> usize {
        treatment * self.phases() + phase
    }

    /// The treatment of a cell.
    pub fn treatment(&self, cell: usize) -> usize {
        cell / self.phases()
    }

    fn phase(&self, cell: usize) -> &Phase {
        &self.workloads[self.treatment(cell)].phases[cell % self.phases()]
    }

    /// Tenants of a cell.
    pub fn tenants(&self, cell: usize) -> usize {
        self.phase(cell).tenants.len()
    }

    /// Tell whether the slices of a cell end with an fsync.
    pub fn is_flushed(&self, cell: usize) -> bool {
        self.phase(cell).tenants.iter().any(is_flushed)
    }

    /// Files that a cell reads or writes through the page cache, each once.
    pub fn buffered_files(&self, cell: usize) -> BTreeSet<String> {
        let tenants = self.phase(cell).tenants.iter();
        tenants.filter(|it| it.access == Access::Plain).flat_map(Tenant::file_names).collect()
    }

    /// Bytes of those files.
    pub fn buffered_bytes(&self, cell: usize) -> u64 {
        let tenants = self.phase(cell).tenants.iter().filter(|it| it.access == Access::Plain);
        tenants.map(|it| it.file_bytes.0 * it.file_names().count() as u64).sum()
    }

    /// Indices of the workers of a cell on a device.
    pub fn range(&self, cell: usize, place: usize) -> Range<usize> {
        let index = cell * self.places + place;
        self.begins[index]..self.begins[index + 1]
    }

    /// All workers, cell by cell, and device by device in each.
    pub fn actors(&self) -> Vec<CastMember<'_>> {
        let mut found = Vec::new();
        for cell in 0..self.cells() {
            let workload = &self.workloads[self.treatment(cell)];
            let phase = self.phase(cell);
            let engine = |seat: &Seat<'_>| -> Engine {
                let name = workload.engine_of_tenant(phase, seat.tenant);
                name.parse().expect("its name was parsed before")
            };
            for place in 0..self.places {
                let of_cell = seats(workload, phase, None).into_iter();
                let of_seat = |seat| CastMember { cell, place, seat, engine: engine(&seat) };
                found.extend(of_cell.map(of_seat));
            }
        }
        found
    }

    /// The cells for the record.
    pub fn told(&self) -> Vec<PairsCell> {
        let tell = |cell: usize| {
            let phase = self.phase(cell);
            let nature = Nature::of_phase(phase);
            let tenant = |tenant: &Tenant| {
                let nature = Nature::of_tenant(tenant);
                PairsTenant {
                    name: tenant.name.clone(),
                    kind: nature.kind,
                    io_size_bytes: nature.io_size_bytes,
                    access: nature.access,
                }
            };
            PairsCell {
                treatment: self.treatment(cell),
                name: phase.name.clone(),
                kind: nature.kind,
                io_size_bytes: nature.io_size_bytes,
                access: nature.access,
                tenants: phase.tenants.iter().map(tenant).collect(),
            }
        };
        (0..self.cells()).map(tell).collect()
    }
}

/// Of each treatment the number of its set of knobs, in the order of the treatments.
fn groups_of(spec: &PairsSpec) -> Vec<usize> {
    let mut sets: Vec<&std::collections::BTreeMap<String, String>> = Vec::new();
    let mut groups = Vec::new();
    for treatment in &spec.treatments {
        let known = sets.iter().position(|set| **set == treatment.knobs);
        groups.push(known.unwrap_or(sets.len()));
        if known.is_none() {
            sets.push(&treatment.knobs);
        }
    }
    groups
}

fn wrong(problem: String) -> Error {
    let remedy = "compare whole trials: design = \"trials\"";
    Error::BadWorkload { problem, remedy: remedy.to_owned() }
}

/// Makes standing work of a phase: on laid-out files, without an end of its own.
fn stand(phase: &mut Phase) -> Result<(), Error> {
    phase.is_stonewalled = false;
    phase.cuts_ns.clear();
    phase.pause_after_ns = Ns(0);
    for tenant in &mut phase.tenants {
        let is_flushed = is_flushed(tenant);
        let is_buffered = tenant.access == Access::Plain && tenant.direction != Direction::Read;
        let why = if is_buffered && !is_flushed {
            Some("writes through the page cache without an fsync inside the time (fsync = timed)")
        } else if tenant.access == Access::Mapped {
            Some("mapped files")
        } else if !matches!(tenant.access, Access::Direct | Access::Plain) {
            Some("streams of the C library")
        } else if tenant.opening == Opening::Create || tenant.opening == Opening::New {
            Some("new files")
        } else if tenant.program.is_some() || tenant.file_set.is_some() {
            Some("work on many files")
        } else if !is_flushed && !matches!(tenant.fsync, FsyncPolicy::None | FsyncPolicy::After) {
            Some("flushes")
        } else if tenant.rate_ops_per_s.is_some() {
            Some("a limited rate")
        } else {
            None
        };
        if let Some(why) = why {
            return Err(wrong(format!("{why} in alternating slices ({})", phase.name)));
        }
        tenant.opening = Opening::LaidOut;
        // It stands for ever: the fsync at its end is made at the end of each slice.
        tenant.fsync = if is_flushed { FsyncPolicy::Timed } else { FsyncPolicy::None };
        tenant.limit = Limit::Time { duration_ns: FOR_EVER };
        tenant.begins_ns = Ns(0);
        tenant.primes_first_record = false;
        tenant.is_close_timed = false;
    }
    Ok(())
}

/// Refuses files of one name and two sizes: whoever is second would find one of the first.
fn check_files(all: &Phase) -> Result<(), Error> {
    let mut sizes = std::collections::BTreeMap::new();
    for tenant in &all.tenants {
        for name in tenant.file_names() {
            if *sizes.entry(name.clone()).or_insert(tenant.file_bytes) != tenant.file_bytes {
                return Err(wrong(format!("the file {name} in two sizes")));
            }
        }
    }
    Ok(())
}

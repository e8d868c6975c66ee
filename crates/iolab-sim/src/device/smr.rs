//! A drive-managed shingled disk: what is not written in order goes to a cache of tracks first and
//! is put into its band later, band by band.
//!
//! Models the cache as a log at the outer diameter of a disk, bands that can only be rewritten as a
//! whole (read, merge, write in order), streams that fill a band from its start without the cache,
//! cleaning after a pause of the host, and blocking cleaning when the cache is full. Leaves out:
//! the drive's own journal of the map, guard tracks, that reads of a band under cleaning wait, and
//! where in the log room comes free (the log goes round).
//!
//! Source: Aghayev and Desnoyers, "Skylight: a window on shingled disk operation" (FAST 2015).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use iolab_model::{Ns, Sector};

use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, ProcessId, Status, Submitter};
use crate::api::layer::{Info, Layer};
use crate::error::SimError;
use crate::profile::Profile;

/// Longest piece in which a band is read and written, 1 MiB.
const PIECE: u64 = 2_048;

/// Reason why a bio was sent below.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// Part of the host's command.
    Host(usize),
    /// Part of the band that is cleaned.
    Clean,
}

/// A host's command under way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    id: BioId,
    pieces: u32,
    status: Status,
}

/// Band that is being cleaned.
#[derive(Clone, Copy, Debug)]
struct Cleaning {
    band: u64,
    /// Next sector of the band to read, then to write.
    at: u64,
    is_writing: bool,
}

#[derive(Clone, Copy, Debug)]
struct Parameters {
    cache: u64,
    band: u64,
    extents_max: usize,
    idle_delay: Ns,
}

/// A shingled disk.
pub struct Smr {
    parameters: Parameters,
    below: Box<dyn Layer>,
    info: Info,
    /// Extents in the cache: start to (end, place in the cache).
    map: BTreeMap<u64, (u64, u64)>,
    /// Bands with data in the cache, longest waiting first.
    bands: VecDeque<u64>,
    dirty_bands: BTreeSet<u64>,
    /// Cache sectors in use, and where the log goes on.
    used: u64,
    cursor: u64,
    /// Next sector of the stream that fills each band of late, most recent last.
    streams: VecDeque<u64>,
    sent: Vec<Purpose>,
    free: Vec<u32>,
    pending: Vec<Pending>,
    free_pending: Vec<usize>,
    held: VecDeque<Bio>,
    cleaning: Option<Cleaning>,
    active: u32,
    last_host: Ns,
    finished: Vec<Ended>,
    scratch: Vec<Ended>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cached: u64,
    streamed: u64,
    cleaned_bands: u64,
    cleaned: u64,
    held: u64,
}

impl Smr {
    /// Streams that the drive follows at a time.
    const STREAMS: usize = 8;

    /// As a profile of kind `smr` says, on the disk that it names as `inner`.
    pub fn from_profile(profile: &Profile, below: Box<dyn Layer>) -> Result<Self, SimError> {
        let reader = profile.reader();
        let below_info = below.info();
        let cache = reader.count("cache", "sectors", (PIECE, 1 << 40))?;
        let band = reader.count("band", "sectors", (PIECE, 1 << 30))?;
        let parameters = Parameters {
            cache,
            band,
            extents_max: reader.count("cache_extents", "extents", (1, 1 << 24))? as usize,
            idle_delay: reader.duration("idle_delay", "ms")?,
        };
        reader.finish()?;
        let rest = below_info.capacity.0.saturating_sub(cache) / band * band;
        if rest == 0 {
            return Err(SimError::Inconsistent {
                subject: format!("profile {}", profile.name),
                problem: format!("a cache of {cache} sectors leaves no band on the disk inside"),
                remedy: "make the cache or the bands smaller".to_owned(),
            });
        }
        Ok(Self {
            parameters,
            below,
            info: Info { capacity: Sector(rest), ..below_info },
            map: BTreeMap::new(),
            bands: VecDeque::new(),
            dirty_bands: BTreeSet::new(),
            used: 0,
            cursor: 0,
            streams: VecDeque::new(),
            sent: Vec::new(),
            free: Vec::new(),
            pending: Vec::new(),
            free_pending: Vec::new(),
            held: VecDeque::new(),
            cleaning: None,
            active: 0,
            last_host: Ns(0),
            finished: Vec::new(),
            scratch: Vec::new(),
            counts: Counts::default(),
        })
    }

    fn send(&mut self, now: Ns, purpose: Purpose, what: (Operation, Flags), (at, end): (u64, u64)) {
        let (operation, flags) = what;
        let id = self.free.pop().unwrap_or_else(|| {
            self.sent.push(purpose);
            self.sent.len() as u32 - 1
        });
        self.sent[id as usize] = purpose;
        self.active += u32::from(matches!(purpose, Purpose::Host(_)));
        let bio = Bio {
            id: BioId(id),
            operation,
            sector: Sector(at),
            sectors: (end - at) as u32,
            flags,
            submitter: Submitter::default(),
            segments: 0,
        };
        self.below.submit(now, &bio);
    }

    fn begin(&mut self, id: BioId) -> usize {
        let pending = Pending { id, pieces: 0, status: Ok(()) };
        if let Some(index) = self.free_pending.pop() {
            self.pending[index] = pending;
            return index;
        }
        self.pending.push(pending);
        self.pending.len() - 1
    }

    fn piece(&mut self, now: Ns, index: usize, bio: &Bio, range: (u64, u64)) {
        self.pending[index].pieces += 1;
        self.send(now, Purpose::Host(index), (bio.operation, bio.flags), range);
    }

    /// Drops what the cache has of a range.
    fn forget(&mut self, start: u64, end: u64) {
        while let Some((&at, &(to, place))) = self.map.range(..end).next_back() {
            if to <= start {
                return;
            }
            self.map.remove(&at);
            if to > end {
                self.map.insert(end, (to, place + (end - at)));
            }
            if at < start {
                self.map.insert(at, (start, place));
                return;
            }
        }
    }

    /// Place of a sector below the cache, in its band.
    const fn home(&self, sector: u64) -> u64 {
        self.parameters.cache + sector
    }

    fn write(&mut self, now: Ns, bio: &Bio) {
        let (start, end) = (bio.sector.0, bio.end().0);
        let stream = self.streams.iter().position(|&next| next == start);
        let is_new = start % self.parameters.band == 0;
        if stream.is_some() || is_new {
            self.stream(now, bio, stream);
            return;
        }
        let length = end - start;
        let is_full = self.used + length > self.parameters.cache
            || self.map.len() >= self.parameters.extents_max;
        if is_full {
            self.counts.held += 1;
            self.held.push_back(*bio);
            return;
        }
        if self.cursor + length > self.parameters.cache {
            self.cursor = 0;
        }
        self.forget(start, end);
        self.map.insert(start, (end, self.cursor));
        let band = start / self.parameters.band;
        if self.dirty_bands.insert(band) {
            self.bands.push_back(band);
        }
        self.used += length;
        self.counts.cached += length;
        let index = self.begin(bio.id);
        let at = self.cursor;
        self.cursor += length;
        self.piece(now, index, bio, (at, at + length));
    }

    /// Writes that fill a band in order go where they belong.
    fn stream(&mut self, now: Ns, bio: &Bio, known: Option<usize>) {
        let (start, end) = (bio.sector.0, bio.end().0);
        if let Some(index) = known {
            self.streams.remove(index);
        } else if self.streams.len() >= Self::STREAMS {
            self.streams.pop_front();
        }
        self.streams.push_back(end);
        self.forget(start, end);
        self.counts.streamed += end - start;
        let index = self.begin(bio.id);
        let range = (self.home(start), self.home(end));
        self.piece(now, index, bio, range);
    }

    fn read(&mut self, now: Ns, bio: &Bio) {
        let (mut at, end) = (bio.sector.0, bio.end().0);
        let index = self.begin(bio.id);
        while at < end {
            let cached = self.map.range(..=at).next_back().map(|(&from, &to)| (from, to));
            let found = cached.filter(|&(_, (to, _))| to > at);
            let next = self.map.range(at + 1..end).next().map_or(end, |(&from, _)| from);
            let (range, until) = match found {
                Some((from, (to, place))) => {
                    let until = to.min(end);
                    ((place + (at - from), place + (until - from)), until)
                }
                None => ((self.home(at), self.home(next)), next),
            };
            self.piece(now, index, bio, range);
            at = until;
        }
    }

    /// Goes on with the band that is cleaned, or begins with another.
    fn clean(&mut self, now: Ns) {
        let is_wanted = !self.held.is_empty()
            || (self.active == 0 && now.since(self.last_host) >= self.parameters.idle_delay);
        let Some(cleaning) = self.cleaning else {
            if is_wanted && let Some(band) = self.bands.pop_front() {
                let at = band * self.parameters.band;
                self.cleaning = Some(Cleaning { band, at, is_writing: false });
                self.clean_piece(now);
            }
            return;
        };
        let end = (cleaning.band + 1) * self.parameters.band;
        if cleaning.at < end {
            return self.clean_piece(now);
        }
        let at = cleaning.band * self.parameters.band;
        if cleaning.is_writing {
            self.cleaned(at, end);
            self.cleaning = None;
            self.retry(now);
            self.clean(now);
        } else {
            self.cleaning = Some(Cleaning { at, is_writing: true, ..cleaning });
            self.clean_piece(now);
        }
    }

    fn clean_piece(&mut self, now: Ns) {
        let Some(cleaning) = &mut self.cleaning else { return };
        let end = (cleaning.at + PIECE).min((cleaning.band + 1) * self.parameters.band);
        let operation = if cleaning.is_writing { Operation::Write } else { Operation::Read };
        let at = cleaning.at;
        cleaning.at = end;
        let range = (self.home(at), self.home(end));
        self.send(now, Purpose::Clean, (operation, Flags::NONE), range);
    }

    /// The band has its data: the cache needs them no longer.
    fn cleaned(&mut self, start: u64, end: u64) {
        self.forget(start, end);
        self.dirty_bands.remove(&(start / self.parameters.band));
        // Room of the log comes free as what lies in it does.
        self.used = self.map.iter().map(|(&from, &(to, _))| to - from).sum();
        self.counts.cleaned_bands += 1;
        self.counts.cleaned += end - start;
    }

    fn retry(&mut self, now: Ns) {
        for _ in 0..self.held.len() {
            let Some(bio) = self.held.pop_front() else { return };
            self.write(now, &bio);
        }
    }

    fn ended(&mut self, now: Ns, Ended { id, status }: Ended) {
        let purpose = self.sent[id.0 as usize];
        self.free.push(id.0);
        match purpose {
            Purpose::Clean => self.clean(now),
            Purpose::Host(index) => {
                self.active -= 1;
                self.last_host = now;
                let pending = &mut self.pending[index];
                pending.pieces -= 1;
                pending.status = pending.status.and(status);
                if pending.pieces == 0 {
                    self.finished.push(Ended { id: pending.id, status: pending.status });
                    self.free_pending.push(index);
                }
            }
        }
    }

    /// Instant at which idle cleaning begins.
    fn idle_at(&self) -> Ns {
        let has_work = self.active == 0 && self.cleaning.is_none() && !self.bands.is_empty();
        if has_work { self.last_host + self.parameters.idle_delay } else { Ns::MAX }
    }
}

impl Layer for Smr {
    fn info(&self) -> Info {
        self.info
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        self.last_host = now;
        match bio.operation {
            Operation::Read => self.read(now, bio),
            Operation::Write if bio.sectors > 0 => {
                self.write(now, bio);
                self.clean(now);
            }
            _ => {
                let index = self.begin(bio.id);
                self.piece(now, index, bio, (bio.sector.0, bio.end().0));
            }
        }
    }

    fn next_event(&self) -> Ns {
        self.below.next_event().min(self.idle_at())
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        if self.below.next_event() <= now {
            let mut ended = core::mem::take(&mut self.scratch);
            self.below.advance(now, &mut ended);
            for one in ended.drain(..) {
                self.ended(now, one);
            }
            self.scratch = ended;
            if !self.finished.is_empty() {
                done.append(&mut self.finished);
                return;
            }
        }
        if self.idle_at() <= now {
            self.clean(now);
        }
    }

    fn exited(&mut self, now: Ns, process: ProcessId) {
        self.below.exited(now, process);
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let bytes = |name: &str, sectors: u64| (name.to_owned(), (sectors * 512) as f64);
        let mut all = vec![
            bytes("smr_cached_bytes", self.counts.cached),
            bytes("smr_streamed_bytes", self.counts.streamed),
            bytes("smr_cleaned_bytes", self.counts.cleaned),
            ("smr_cleaned_bands".to_owned(), self.counts.cleaned_bands as f64),
            ("smr_held_writes".to_owned(), self.counts.held as f64),
        ];
        all.extend(self.below.counters());
        all
    }
}

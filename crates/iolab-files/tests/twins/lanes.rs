//! Several processes at work on one file at the same time: nobody finds what could not be there.

use iolab_files::api::file_system::FileSystem;
use iolab_model::Bytes;
use iolab_model::error::Errno;
use iolab_model::op::{Access, Advice, Deallocation, Handle, Op, OpenHow, Position, Transfer};

use super::chance::Chance;
use super::history::{History, SECTOR, content};
use super::mounted::Mounted;

const LANES: u64 = 3;
const FILE: u64 = 3 << 20;
const NAME: &str = "shared";
const PLAIN: Handle = Handle(0);
const DIRECT: Handle = Handle(1);

/// Places of a file that processes work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Places {
    /// Pieces of their own, between those of the others; each a page, a block, or several.
    Apart,
    /// Smaller pieces of their own, through the cache alone.
    InOnePage,
    /// The same ones, in whole pages and blocks.
    Shared,
}

/// An op on its way.
enum Doing {
    Read { at: u64, since: u64 },
    Write { number: u32, at: u64, length: u64 },
    Other,
}

/// A file system and a file that several processes have open.
pub struct Lanes {
    mounted: Mounted,
    chance: Chance,
    history: History,
    places: Places,
    /// Bytes of a piece.
    piece: u64,
    has_direct: bool,
    doing: Vec<Option<(Op, Doing)>>,
    writes: u32,
}

impl Lanes {
    pub fn new(file_system: Box<dyn FileSystem>, seed: u64) -> Self {
        let facts = file_system.facts();
        let mut chance = Chance(seed);
        let unit = u64::from(facts.cache_unit_bytes.max(facts.block_bytes).max(4096));
        let mut places =
            [Places::Apart, Places::InOnePage, Places::Shared][chance.below(3) as usize];
        if facts.clusters.is_some_and(|clusters| clusters.bypass.all) {
            // Everything goes past the cache, but what is mapped.
            places = Places::Apart;
        }
        let piece = match places {
            Places::Apart => (unit << chance.below(4)).min(FILE / 8).max(unit),
            Places::InOnePage => 512 << chance.below(3),
            Places::Shared => unit,
        };
        let mut mounted = Mounted::new(file_system, 2 << 20);
        mounted.scatter(seed);
        let how =
            |access| OpenHow { access, is_readable: true, is_writable: true, ..OpenHow::default() };
        mounted.open(NAME, PLAIN.0, how(Access::Plain), true);
        let mut first = content(1, FILE as usize);
        mounted.ask(Op::write(PLAIN, Bytes(0), Bytes(FILE)), None, &mut first).unwrap();
        for _ in 1..LANES {
            let lane = mounted.add_lane();
            mounted.open_by(lane, NAME, PLAIN, how(Access::Plain)).unwrap();
        }
        for lane in 0..LANES as u32 {
            let map = Op::Map { handle: PLAIN, length: Bytes(FILE) };
            mounted.ask_by(lane, map, None).unwrap();
        }
        let mut open = |lane| mounted.open_by(lane, NAME, DIRECT, how(Access::Direct)).is_ok();
        let has_direct = places != Places::InOnePage && (0..LANES as u32).all(&mut open);
        let doing = (0..LANES).map(|_| None).collect();
        let history = History::new(FILE as usize / SECTOR, 1);
        Self { mounted, chance, history, places, piece, has_direct, doing, writes: 1 }
    }

    /// Lets every lane do so many ops; the first difference in words.
    pub fn go(&mut self, ops: u32) -> Result<(), String> {
        let mut left = ops * LANES as u32;
        loop {
            for lane in 0..LANES as u32 {
                if left > 0 && self.doing[lane as usize].is_none() && self.chance.below(3) > 0 {
                    left -= 1;
                    self.begin(lane)?;
                }
            }
            for (lane, outcome, found) in self.mounted.ended() {
                self.end(lane, outcome, &found)?;
            }
            let is_idle = self.doing.iter().all(Option::is_none);
            if left == 0 && is_idle {
                return self.whole_file();
            }
            if !self.mounted.happens() && !is_idle {
                return Err("an op does not end".into());
            }
        }
    }

    fn whole_file(&mut self) -> Result<(), String> {
        self.mounted.ask(Op::SyncAll, None, &mut []).map_err(|e| format!("sync: {}", e.0))?;
        self.mounted.machine.drop_caches();
        let since = self.history.tick();
        let mut found = vec![0; FILE as usize];
        let read = Op::read(PLAIN, Bytes(0), Bytes(FILE));
        self.mounted.ask(read, None, &mut found).map_err(|e| format!("read: {}", e.0))?;
        self.compare(0, &found, since).map_err(|what| format!("in the end {what}"))
    }

    fn compare(&self, at: u64, found: &[u8], since: u64) -> Result<(), String> {
        match self.history.wrong(at, found, since) {
            Some((byte, id)) => {
                let places = self.places;
                Err(format!("byte {byte} is of write {id}, or of none ({places:?})"))
            }
            None => Ok(()),
        }
    }

    /// A range that a lane works on.
    fn range(&mut self, lane: u32) -> (u64, u64) {
        if self.places == Places::Shared {
            let count = 1 + self.chance.below(8);
            let first = self.chance.below((FILE / self.piece).saturating_sub(count).max(1));
            return (first * self.piece, (count * self.piece).min(FILE - first * self.piece));
        }
        let pieces = FILE / self.piece / LANES;
        let first = (self.chance.below(pieces) * LANES + u64::from(lane)) * self.piece;
        let sectors = self.piece / SECTOR as u64;
        let from = self.chance.below(sectors);
        let count = 1 + self.chance.below(sectors - from);
        (first + from * SECTOR as u64, count * SECTOR as u64)
    }

    fn begin(&mut self, lane: u32) -> Result<(), String> {
        let is_direct = self.has_direct && self.chance.below(3) == 0;
        let handle = if is_direct { DIRECT } else { PLAIN };
        let (at, length) = self.range(lane);
        let transfer = Transfer::plain(handle, Position::At(Bytes(at)), Bytes(length));
        let touch =
            |is_write| Op::Touch { handle: PLAIN, at: Bytes(at), length: Bytes(length), is_write };
        let clear = |how| Op::Deallocate { handle, at: Bytes(at), length: Bytes(length), how };
        let advise = |advice| Op::Advise { handle: PLAIN, advice };
        let op = match self.chance.below(25) {
            0..8 => Op::Read(transfer),
            8..15 => Op::Write(transfer),
            15 => Op::Fsync { handle: PLAIN },
            16 => advise(Advice::DontNeed),
            17 => advise(Advice::WillNeed),
            18 => Op::SyncAll,
            19 => clear(Deallocation::Punch),
            20 => clear(Deallocation::Zero),
            21 | 22 => touch(false),
            _ => touch(true),
        };
        self.writes += 1;
        let (number, mut id, mut buffer) = (self.writes, 0, vec![0xee; length as usize]);
        let doing = match op {
            Op::Write(_) | Op::Touch { is_write: true, .. } => {
                id = number;
                buffer = content(id, length as usize);
                Doing::Write { number, at, length }
            }
            Op::Deallocate { .. } => Doing::Write { number, at, length },
            Op::Read(_) | Op::Touch { .. } => Doing::Read { at, since: self.history.tick() },
            _ => Doing::Other,
        };
        match self.mounted.begin(lane, op, buffer) {
            Ok(()) => {}
            Err(Errno::EOPNOTSUPP) if matches!(op, Op::Deallocate { .. }) => return Ok(()),
            Err(errno) => return Err(format!("{op:?}: {}", errno.0)),
        }
        if let Doing::Write { .. } = doing {
            self.history.begins(number, id, (at, length));
        }
        self.doing[lane as usize] = Some((op, doing));
        Ok(())
    }

    fn end(&mut self, lane: u32, outcome: Result<u64, Errno>, found: &[u8]) -> Result<(), String> {
        let Some((op, doing)) = self.doing[lane as usize].take() else {
            return Err("an op has ended twice".into());
        };
        outcome.map_err(|errno| format!("{op:?}: {}", errno.0))?;
        match doing {
            Doing::Write { number, at, length } => {
                self.history.ends(number, (at, length));
                Ok(())
            }
            Doing::Read { at, since } => {
                self.compare(at, found, since).map_err(|what| format!("lane {lane} {op:?}: {what}"))
            }
            Doing::Other => Ok(()),
        }
    }
}

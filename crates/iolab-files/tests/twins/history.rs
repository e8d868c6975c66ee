//! Writes that a sector may hold, when several processes write to it at the same time.

/// Size of a sector.
pub const SECTOR: usize = 512;

/// A write to a sector.
#[derive(Clone, Copy, Debug)]
struct Version {
    /// Its content.
    id: u32,
    /// Its number among all writes, also those that clear.
    number: u32,
    begin: u64,
    /// Time of its end; `u64::MAX` until then.
    end: u64,
}

/// All writes to the sectors of a file that may still be seen.
pub struct History {
    now: u64,
    sectors: Vec<Vec<Version>>,
}

/// Content of a write: its number, over and over; 0: zeros.
pub fn content(id: u32, length: usize) -> Vec<u8> {
    id.to_le_bytes().into_iter().cycle().take(length).collect()
}

fn is_of(id: u32, bytes: &[u8]) -> bool {
    let number = id.to_le_bytes();
    bytes.chunks(number.len()).all(|part| part == number)
}

impl History {
    /// Every sector holds what write `id` wrote.
    pub fn new(sectors: usize, id: u32) -> Self {
        Self { now: 1, sectors: vec![vec![Version { id, number: id, begin: 0, end: 0 }]; sectors] }
    }

    /// Time; it passes with each look.
    pub const fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// A write to a range begins.
    pub fn begins(&mut self, number: u32, id: u32, (at, length): (u64, u64)) {
        let begin = self.tick();
        for sector in Self::range(at, length) {
            self.sectors[sector].push(Version { id, number, begin, end: u64::MAX });
        }
    }

    /// A write has ended: what ended before it began is not to be seen again.
    pub fn ends(&mut self, number: u32, (at, length): (u64, u64)) {
        let now = self.tick();
        for sector in Self::range(at, length) {
            let versions = &mut self.sectors[sector];
            if let Some(own) = versions.iter_mut().find(|own| own.number == number) {
                own.end = now;
            }
        }
    }

    /// First byte of a range that no write which may be seen has written, and its content; the
    /// reader began at `since`.
    pub fn wrong(&self, at: u64, found: &[u8], since: u64) -> Option<(usize, u32)> {
        Self::range(at, found.len() as u64).zip(found.chunks(SECTOR)).find_map(|(sector, bytes)| {
            let versions = &self.sectors[sector];
            // Over when the reader began: nothing that ended before it began is seen any more.
            let over = versions.iter().filter(|one| one.end < since).map(|one| one.begin).max();
            let seen =
                versions.iter().find(|one| one.end >= over.unwrap_or(0) && is_of(one.id, bytes));
            let id = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
            seen.is_none().then_some((sector * SECTOR, id))
        })
    }

    fn range(at: u64, length: u64) -> std::ops::Range<usize> {
        at as usize / SECTOR..(at + length) as usize / SECTOR
    }
}

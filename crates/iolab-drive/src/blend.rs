//! Data of which a known share can be de-duplicated or compressed, made before each write.
//!
//! A lane around a lane fills the buffers that are written ([`Content::Prepared`]). Each granule of
//! a file is cut into up to five parts, in this order: what other files have at the same place,
//! what every granule of every file has, what every granule of this file has, zeros, and bytes that
//! are never written again. The clock is read again after composing, so that the times of ops leave
//! it out; the elapsed time does not. Left out: transfers at a file's own position, which no
//! workload makes, and records larger than a lane's buffer.
//!
//! [`Content::Prepared`]: iolab_model::target::Content::Prepared

use iolab_model::op::{Op, Position, Submission, Token};
use iolab_model::seed::Stream;
use iolab_model::target::Blend;
use iolab_model::{Accepted, Bytes, Completion, Error, Lane, Ns, Seed};

/// Data are made in pieces of this size: the smallest transfer of a device.
const SECTOR: usize = 512;
/// Parts of a large granule consist of whole pages, the unit in which storage looks for equals.
const PAGE: u64 = Bytes::PAGE.0;
/// Granules from this size on have parts of whole pages.
const PAGED_FROM: u64 = 4 * PAGE;

/// Content of a sector of a granule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Across,
    Everywhere,
    Within,
    Zero,
    Unique,
}

/// Ends of the parts of a granule.
#[derive(Clone, Copy, Debug)]
struct Parts {
    granule: u64,
    ends: [(Part, u64); 4],
}

impl Parts {
    fn new(blend: &Blend) -> Self {
        let granule = blend.granule_bytes.0.max(SECTOR as u64);
        let unit = if granule >= PAGED_FROM { PAGE } else { SECTOR as u64 };
        let shares = [
            (Part::Across, blend.across_percent),
            (Part::Everywhere, blend.everywhere_percent),
            (Part::Within, blend.within_percent),
            (Part::Zero, blend.zero_percent),
        ];
        let mut sum = 0;
        let ends = shares.map(|(part, percent)| {
            sum += u64::from(percent);
            let end = (granule * sum.min(100) + 50 * unit) / (100 * unit) * unit;
            (part, end.min(granule))
        });
        Self { granule, ends }
    }

    fn at(&self, offset: u64) -> Part {
        let inside = offset % self.granule;
        self.ends.iter().find(|(_, end)| inside < *end).map_or(Part::Unique, |(part, _)| *part)
    }
}

/// Makes the data of one worker.
#[derive(Debug)]
pub struct Composer {
    parts: Parts,
    seed: Seed,
    /// Of each file: what it has alone.
    files: Vec<Seed>,
    unique: Stream,
}

impl Composer {
    /// A composer for files of these names; `unique` is a stream that nobody else has.
    pub fn new<'a>(blend: &Blend, names: impl Iterator<Item = &'a str>, unique: Stream) -> Self {
        let own = |name: &str| Seed(blend.seed.stream(name, u64::from(blend.skew)).next_u64());
        Self { parts: Parts::new(blend), seed: blend.seed, files: names.map(own).collect(), unique }
    }

    /// Fills `bytes`, which will be written at `at` of a file.
    pub fn compose(&mut self, file: usize, at: u64, bytes: &mut [u8]) {
        let sector = SECTOR as u64;
        let mut done = 0;
        while done < bytes.len() {
            let offset = at + done as u64;
            let (first, skipped) = (offset - offset % sector, (offset % sector) as usize);
            let length = (SECTOR - skipped).min(bytes.len() - done);
            let mut made = [0; SECTOR];
            self.sector(file, first, &mut made);
            bytes[done..done + length].copy_from_slice(&made[skipped..skipped + length]);
            done += length;
        }
    }

    fn sector(&mut self, file: usize, at: u64, made: &mut [u8; SECTOR]) {
        let inside = at % self.parts.granule / SECTOR as u64;
        match self.parts.at(at) {
            Part::Across => self.seed.stream("across", at / SECTOR as u64).fill(made),
            Part::Everywhere => self.seed.stream("everywhere", inside).fill(made),
            Part::Within => {
                let own = self.files.get(file).copied().unwrap_or(self.seed);
                own.stream("within", inside).fill(made);
            }
            Part::Zero => {}
            Part::Unique => self.unique.fill(made),
        }
    }
}

/// A lane that composes what is written.
pub struct BlendingLane<L> {
    inner: L,
    composer: Composer,
    /// File of each open handle.
    handles: Vec<usize>,
}

impl<L: Lane> BlendingLane<L> {
    /// A lane around `inner`.
    pub fn new(inner: L, composer: Composer) -> Self {
        Self { inner, composer, handles: Vec::new() }
    }

    fn prepare(&mut self, token: Token, op: &Op) {
        match *op {
            Op::Open { path, handle, .. } | Op::Create { path, handle, .. } => {
                let index = handle.0 as usize;
                if self.handles.len() <= index {
                    self.handles.resize(index + 1, 0);
                }
                self.handles[index] = path.0 as usize;
            }
            Op::Write(transfer) => {
                let file = self.handles.get(transfer.handle.0 as usize).copied().unwrap_or(0);
                let Position::At(at) = transfer.at else { return };
                let buffer = self.inner.buffer(token);
                let bytes = buffer.and_then(|b| b.get_mut(..transfer.length.0 as usize));
                if let Some(bytes) = bytes {
                    self.composer.compose(file, at.0, bytes);
                }
            }
            _ => {}
        }
    }
}

impl<L: Lane> Lane for BlendingLane<L> {
    fn now(&self) -> Ns {
        self.inner.now()
    }

    fn submit_batch(
        &mut self,
        _: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        for submission in batch {
            self.prepare(submission.token, &submission.op);
        }
        let now = self.inner.now();
        self.inner.submit_batch(now, batch, done)
    }

    fn kick(&mut self) -> Result<(), Error> {
        self.inner.kick()
    }

    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        self.inner.reap(min, until, done)
    }

    fn in_flight(&self) -> u32 {
        self.inner.in_flight()
    }

    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        self.inner.buffer(token)
    }

    fn sleep_until(&mut self, instant: Ns) {
        self.inner.sleep_until(instant);
    }

    fn time_submissions(&mut self, group: u32) {
        self.inner.time_submissions(group);
    }

    fn submission_ns(&self, token: Token) -> Ns {
        self.inner.submission_ns(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const GRANULE: u64 = 64 << 10;
    const FILE: usize = 1 << 20;

    fn blend(across: u8, everywhere: u8, within: u8, zero: u8) -> Blend {
        Blend {
            granule_bytes: Bytes(GRANULE),
            across_percent: across,
            everywhere_percent: everywhere,
            within_percent: within,
            zero_percent: zero,
            seed: Seed(7),
            skew: 0,
        }
    }

    /// Two files, written in records of 20 kB, which are no part of a granule.
    fn files(blend: &Blend) -> [Vec<u8>; 2] {
        let names = ["a", "b"];
        let mut composer = Composer::new(blend, names.into_iter(), Seed(1).stream("unique", 0));
        [0, 1].map(|file| {
            let mut bytes = vec![0xff; FILE];
            for (index, record) in bytes.chunks_mut(20 << 10).enumerate() {
                composer.compose(file, index as u64 * (20 << 10), record);
            }
            bytes
        })
    }

    fn pages(bytes: &[u8]) -> Vec<&[u8]> {
        bytes.chunks(PAGE as usize).collect()
    }

    fn distinct(bytes: &[u8]) -> usize {
        pages(bytes).into_iter().collect::<BTreeSet<_>>().len()
    }

    fn common(one: &[u8], other: &[u8]) -> usize {
        pages(one).iter().zip(pages(other)).filter(|(a, b)| **a == *b).count()
    }

    #[test]
    fn nothing_repeats_where_nothing_shall() {
        let [a, b] = files(&blend(0, 0, 0, 0));
        assert_eq!((distinct(&a), common(&a, &b)), (256, 0));
    }

    #[test]
    fn each_part_repeats_where_it_shall() {
        // 16 pages per granule, 16 granules: a quarter is 4 pages of each granule.
        let [a, b] = files(&blend(25, 0, 0, 0));
        assert_eq!((distinct(&a), common(&a, &b)), (256, 64), "across files, not within");
        let [a, b] = files(&blend(0, 25, 0, 0));
        assert_eq!((distinct(&a), common(&a, &b)), (192 + 4, 64), "across and within");
        let [a, b] = files(&blend(0, 0, 25, 0));
        assert_eq!((distinct(&a), common(&a, &b)), (192 + 4, 0), "within, not across");
        let [a, _] = files(&blend(0, 0, 0, 25));
        let zeros = pages(&a).iter().filter(|page| page.iter().all(|byte| *byte == 0)).count();
        assert_eq!(zeros, 64);
    }

    #[test]
    fn a_seed_and_a_skew_make_other_data() {
        let base = blend(50, 0, 50, 0);
        let [a, _] = files(&base);
        let [other, _] = files(&Blend { seed: Seed(8), ..base });
        assert_eq!(common(&a, &other), 0);
        let [skewed, _] = files(&Blend { skew: 3, ..base });
        assert_eq!(common(&a, &skewed), 128, "only what files share stays the same");
    }

    #[test]
    fn small_granules_have_parts_of_sectors() {
        let parts = Parts::new(&Blend { granule_bytes: Bytes(4096), ..blend(50, 0, 0, 0) });
        assert_eq!((parts.at(2047), parts.at(2048)), (Part::Across, Part::Unique));
    }
}

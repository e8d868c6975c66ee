//! Data of which a known share can be de-duplicated or compressed, made before each write.
//!
//! A lane around a lane fills the buffers that are written ([`Content::Prepared`]). Each granule of
//! a file is cut into up to five parts, in this order: what other files have at the same place,
//! what every granule of every file has, what every granule of this file has, zeros, and bytes that
//! are never written again. The clock is read again after composing, so that the times of ops leave
//! it out; the elapsed time does not. Left out: records larger than a lane's buffer.
//!
//! [`Content::Prepared`]: iolab_model::target::Content::Prepared

use iolab_model::op::{Handle, Op, Position, Submission, Token, Transfer};
use iolab_model::seed::Stream;
use iolab_model::target::{Blend, BytePattern, Content};
use iolab_model::{Accepted, Bytes, Completion, Error, Lane, Ns, Seed};

/// Data are made in pieces of this size: the smallest transfer of a device.
const SECTOR: usize = 512;
/// Parts of a small granule consist of such pieces: half of 512 bytes are zeros, if half are asked
/// for.
const GRAIN: u64 = 8;
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
    /// Length of a piece that can be compressed, and of the zeros in it.
    chunk: (u64, u64),
}

impl Parts {
    fn new(blend: &Blend) -> Self {
        let granule = blend.granule_bytes.0.max(SECTOR as u64);
        let unit = if granule >= PAGED_FROM { PAGE } else { GRAIN };
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
        let chunk = blend.chunk_bytes.0;
        let zeros = chunk * u64::from(blend.chunk_zero_percent.min(100)) / 100;
        Self { granule, ends, chunk: (chunk, zeros) }
    }

    /// Part at a byte, and how many bytes of it follow.
    fn at(&self, offset: u64) -> (Part, u64) {
        let inside = offset % self.granule;
        let found = self.ends.iter().find(|(_, end)| inside < *end);
        let (part, end) = found.map_or((Part::Unique, self.granule), |(part, end)| (*part, *end));
        let left = end - inside;
        let (chunk, zeros) = self.chunk;
        if zeros == 0 {
            return (part, left);
        }
        let inside = offset % chunk;
        if inside < zeros {
            (Part::Zero, (zeros - inside).min(left))
        } else {
            (part, (chunk - inside).min(left))
        }
    }
}

/// Way to make the data of some files.
#[derive(Debug)]
enum Making {
    Parts(Parts, Seed),
    Zero,
    Pattern(BytePattern),
}

impl Making {
    /// Nothing equal in what a lane would make itself, or nobody does.
    fn new(content: &Content) -> Self {
        match content {
            Content::Blend(blend) => Self::Parts(Parts::new(blend), blend.seed),
            Content::Zero => Self::Zero,
            Content::Pattern(pattern) => Self::Pattern(*pattern),
            Content::Incompressible | Content::Prepared => {
                Self::Parts(Parts::new(&Blend::UNIQUE), Blend::UNIQUE.seed)
            }
        }
    }
}

/// Makes the data of one worker.
#[derive(Debug)]
pub struct Composer {
    /// Each way once.
    makings: Vec<Making>,
    /// Of each file: its making, and the root of what it has alone.
    files: Vec<(u16, Seed)>,
    unique: Stream,
}

impl Composer {
    /// A composer for files of these names and contents; `unique` is a stream that nobody else
    /// has.
    pub fn new<N: AsRef<str>>(files: impl Iterator<Item = (N, Content)>, unique: Stream) -> Self {
        let mut known: Vec<Content> = Vec::new();
        let of_file = |(name, content): (N, Content)| {
            let index = known.iter().position(|one| *one == content).unwrap_or_else(|| {
                known.push(content);
                known.len() - 1
            });
            let blend = if let Content::Blend(blend) = content { blend } else { Blend::UNIQUE };
            let own = blend.seed.stream(name.as_ref(), u64::from(blend.skew)).next_u64();
            (index as u16, Seed(own))
        };
        let files = files.map(of_file).collect();
        Self { makings: known.iter().map(Making::new).collect(), files, unique }
    }

    /// A composer of one content for whatever files there are, which have nothing alone.
    pub fn alike(content: &Content, unique: Stream) -> Self {
        Self { makings: vec![Making::new(content)], files: Vec::new(), unique }
    }

    /// Fills `bytes`, which will be written at `at` of a file.
    pub fn compose(&mut self, file: usize, at: u64, bytes: &mut [u8]) {
        let (making, own) = self.files.get(file).copied().unwrap_or((0, Seed(0)));
        let (parts, shared) = match self.makings.get(usize::from(making)) {
            Some(Making::Parts(parts, shared)) => (*parts, *shared),
            Some(Making::Pattern(pattern)) => return pattern.fill(bytes),
            Some(Making::Zero) | None => return bytes.fill(0),
        };
        let sector = SECTOR as u64;
        let mut done = 0;
        while done < bytes.len() {
            let offset = at + done as u64;
            let (first, skipped) = (offset - offset % sector, (offset % sector) as usize);
            let (part, left) = parts.at(offset);
            let length = (SECTOR - skipped).min(bytes.len() - done).min(left as usize);
            let mut made = [0; SECTOR];
            self.sector(part, (parts.granule, shared, own), first, &mut made);
            bytes[done..done + length].copy_from_slice(&made[skipped..skipped + length]);
            done += length;
        }
    }

    fn sector(
        &mut self,
        part: Part,
        (granule, shared, own): (u64, Seed, Seed),
        at: u64,
        made: &mut [u8; SECTOR],
    ) {
        let inside = at % granule / SECTOR as u64;
        match part {
            Part::Across => shared.stream("across", at / SECTOR as u64).fill(made),
            Part::Everywhere => shared.stream("everywhere", inside).fill(made),
            Part::Within => own.stream("within", inside).fill(made),
            Part::Zero => {}
            Part::Unique => self.unique.fill(made),
        }
    }
}

/// A file behind a handle.
#[derive(Clone, Copy, Debug, Default)]
struct Opened {
    file: usize,
    /// Its own position. One that is only appended to is taken to have been empty.
    position: u64,
}

/// A lane that composes what is written.
pub struct BlendingLane<L> {
    inner: L,
    composer: Composer,
    handles: Vec<Opened>,
}

impl<L: Lane> BlendingLane<L> {
    /// A lane around `inner`.
    pub fn new(inner: L, composer: Composer) -> Self {
        Self { inner, composer, handles: Vec::new() }
    }

    fn opened(&mut self, handle: Handle) -> &mut Opened {
        let index = handle.0 as usize;
        if self.handles.len() <= index {
            self.handles.resize(index + 1, Opened::default());
        }
        &mut self.handles[index]
    }

    /// Place of a transfer in its file, whose position it moves on.
    fn place(&mut self, transfer: &Transfer) -> (usize, u64) {
        let opened = self.opened(transfer.handle);
        let at = match transfer.at {
            Position::At(at) => at.0,
            Position::Current | Position::End => {
                let at = opened.position;
                opened.position += transfer.length.0;
                at
            }
        };
        (opened.file, at)
    }

    fn prepare(&mut self, token: Token, op: &Op) {
        match op {
            Op::Open { path, handle, .. } | Op::Create { path, handle, .. } => {
                *self.opened(*handle) = Opened { file: path.0 as usize, position: 0 };
            }
            Op::Read(transfer) => {
                self.place(transfer);
            }
            Op::Write(transfer) => {
                let (file, at) = self.place(transfer);
                let buffer = self.inner.buffer(token);
                let bytes = buffer.and_then(|b| b.get_mut(..transfer.length.0 as usize));
                if let Some(bytes) = bytes {
                    self.composer.compose(file, at, bytes);
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
            chunk_bytes: Bytes(0),
            chunk_zero_percent: 0,
            seed: Seed(7),
            skew: 0,
        }
    }

    /// Two files, written in records of 20 kB, which are no part of a granule.
    fn files(blend: &Blend) -> [Vec<u8>; 2] {
        let names = ["a", "b"];
        let files = names.into_iter().map(|name| (name, Content::Blend(*blend)));
        let mut composer = Composer::new(files, Seed(1).stream("unique", 0));
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

    fn zeros_of(bytes: &[u8]) -> usize {
        bytes.iter().map(|byte| usize::from(*byte == 0)).sum()
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
    fn files_of_several_contents_have_each_its_own() {
        let pattern = BytePattern::of(b"ab").unwrap();
        let half = Content::Blend(blend(0, 0, 0, 50));
        let contents = [Content::Zero, Content::Pattern(pattern), half, Content::Incompressible];
        let files = contents.iter().map(|content| ("f", *content));
        let mut composer = Composer::new(files, Seed(1).stream("unique", 0));
        let made = [0, 1, 2, 3].map(|file| {
            let mut bytes = vec![0xff; GRANULE as usize];
            composer.compose(file, 0, &mut bytes);
            bytes
        });
        assert!(made[0].iter().all(|byte| *byte == 0));
        assert!(made[1].chunks(2).all(|part| part == b"ab"));
        let zeros = |bytes: &[u8]| pages(bytes).iter().filter(|page| **page == [0; 4096]).count();
        assert_eq!((zeros(&made[2]), zeros(&made[3])), (8, 0));
    }

    #[test]
    fn small_granules_are_cut_inside_of_sectors() {
        let parts = Parts::new(&Blend { granule_bytes: Bytes(4096), ..blend(50, 0, 0, 0) });
        assert_eq!((parts.at(2047), parts.at(2048)), ((Part::Across, 1), (Part::Unique, 2048)));
        let small = Blend { granule_bytes: Bytes(512), ..blend(0, 0, 0, 70) };
        let [a, _] = files(&small);
        let zeros = zeros_of(&a) as f64 / a.len() as f64;
        assert!((zeros - 0.7).abs() < 0.01, "{zeros}");
        // Equal pages can be compressed like others.
        let both = Blend { chunk_bytes: Bytes(512), chunk_zero_percent: 30, ..blend(0, 0, 25, 0) };
        let [a, _] = files(&both);
        assert_eq!(distinct(&a), 192 + 4);
        assert!(pages(&a).iter().all(|page| (1200..1300).contains(&zeros_of(page))));
    }
}

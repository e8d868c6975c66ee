//! One client's choices: which operation comes next, on which key, with which fields.

use iolab_model::Seed;
use iolab_model::seed::Stream;

use super::codec::{Fields, append_expected, append_random, write_key};
use super::description::{KvAction, KvLength, KvOrder, KvWork};
use super::generate::{self, Lengths, Zipfian};
use super::stage::KvStage;

/// Fields of a record that an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldChoice {
    /// All of them.
    All,
    /// One.
    One(u32),
}

/// An operation on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvRequest {
    /// Read fields.
    Read(FieldChoice),
    /// Write fields.
    Update(FieldChoice),
    /// Put a record that was not there.
    Insert,
    /// Read so many records from the key on.
    Scan(u32, FieldChoice),
    /// Read fields, then write fields.
    ReadModifyWrite(FieldChoice, FieldChoice),
}

/// Operations in the order in which they are weighed.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

/// Draws of lengths.
#[derive(Debug)]
enum Length {
    Constant(u64),
    Uniform(u64, u64),
    Zipfian(u64, Zipfian),
    Histogram(Lengths),
}

impl Length {
    fn of(length: &KvLength) -> Self {
        match length {
            KvLength::Constant { length } => Self::Constant(*length),
            KvLength::Uniform { from, to } => Self::Uniform(*from, to - from + 1),
            KvLength::Zipfian { from, to } => Self::Zipfian(*from, Zipfian::new(to - from + 1)),
            KvLength::Histogram { part_bytes, counts } => {
                Self::Histogram(Lengths::new(*part_bytes, counts))
            }
        }
    }

    #[inline]
    fn draw(&self, random: &mut Stream) -> u64 {
        match self {
            Self::Constant(length) => *length,
            Self::Uniform(from, count) => from + random.below(*count),
            Self::Zipfian(from, zipfian) => from + zipfian.draw(random),
            Self::Histogram(lengths) => lengths.draw(random),
        }
    }
}

/// Draws of keys.
#[derive(Debug)]
enum Order {
    Uniform { from: u64, count: u64 },
    Zipfian { from: u64, keys: u64, zipfian: Zipfian },
    Latest(Zipfian),
    Hotspot { from: u64, count: u64, hot: u64, share: f64 },
    Exponential(f64),
    Sequential { from: u64, count: u64 },
}

impl Order {
    fn of(work: &KvWork) -> Self {
        let (from, count) = (work.insert_start, work.insert_count.max(1));
        let (mix, records) = (work.mix, work.known_records());
        match work.order {
            KvOrder::Uniform => Self::Uniform { from, count },
            KvOrder::Zipfian => {
                let keys = generate::scattered_keys(count, work.operation_count, mix.insert);
                Self::Zipfian { from, keys, zipfian: Zipfian::scattered() }
            }
            KvOrder::Latest if work.action == KvAction::Load => Self::Uniform { from, count },
            KvOrder::Latest => Self::Latest(Zipfian::new(records - 1)),
            KvOrder::Hotspot { data_fraction, ops_fraction } => {
                let hot = (count as f64 * data_fraction) as u64;
                Self::Hotspot { from, count, hot, share: ops_fraction }
            }
            KvOrder::Exponential { percentile, fraction } => {
                Self::Exponential(generate::gamma(percentile, records, fraction))
            }
            KvOrder::Sequential => Self::Sequential { from, count },
        }
    }

    /// A key number that is in the store.
    #[inline]
    fn draw(&mut self, stage: &KvStage, random: &mut Stream) -> u64 {
        let last = stage.last();
        loop {
            let number = match self {
                Self::Uniform { from, count } => *from + random.below(*count),
                Self::Zipfian { from, keys, zipfian } => {
                    *from + generate::scattered(zipfian.draw(random), *keys)
                }
                Self::Latest(zipfian) => {
                    zipfian.grow(last);
                    last - zipfian.draw(random).min(last)
                }
                Self::Hotspot { from, count, hot, share } => {
                    let is_hot = random.unit() < *share;
                    let (begin, size) = if is_hot { (0, *hot) } else { (*hot, *count - *hot) };
                    *from + begin + if size == 0 { 0 } else { random.below(size) }
                }
                Self::Exponential(gamma) => {
                    let back = generate::exponential(*gamma, random);
                    if back > last as f64 {
                        continue;
                    }
                    return last - back as u64;
                }
                Self::Sequential { from, count } => *from + stage.next_read() % *count,
            };
            if number <= last {
                return number;
            }
        }
    }
}

/// One client.
#[derive(Debug)]
pub struct KvClient {
    work: KvWork,
    fields: Fields,
    random: Stream,
    content: Stream,
    kinds: Vec<(Kind, f64)>,
    order: Order,
    field_length: Length,
    scan_length: Length,
    key: Vec<u8>,
}

impl KvClient {
    /// Client number `index`; what it draws follows from the seed.
    pub fn new(work: &KvWork, seed: Seed, index: u32) -> Self {
        let mix = work.mix;
        let weights = [
            (Kind::Read, mix.read),
            (Kind::Update, mix.update),
            (Kind::Insert, mix.insert),
            (Kind::Scan, mix.scan),
            (Kind::ReadModifyWrite, mix.read_modify_write),
        ];
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let kinds = weights.into_iter().filter(|(_, weight)| *weight > 0.0);
        Self {
            work: work.clone(),
            fields: Fields::new(&work.field_prefix, work.field_count),
            random: seed.stream("records", u64::from(index)),
            content: seed.stream("values", u64::from(index)),
            kinds: kinds.map(|(kind, weight)| (kind, weight / sum)).collect(),
            order: Order::of(work),
            field_length: Length::of(&work.field_length),
            scan_length: Length::of(&work.scan_length),
            key: Vec::with_capacity(64),
        }
    }

    /// Names of the fields.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The key of the last request.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The next request, and the number of its key.
    #[inline]
    pub fn next(&mut self, stage: &KvStage) -> (KvRequest, u64) {
        let kind = self.kind();
        let (request, number) = match kind {
            Kind::Insert => (KvRequest::Insert, stage.fresh()),
            Kind::Read => (KvRequest::Read(self.read_fields()), self.drawn_key(stage)),
            Kind::Update => (KvRequest::Update(self.written_fields()), self.drawn_key(stage)),
            Kind::Scan => {
                let number = self.drawn_key(stage);
                let count = self.scan_length.draw(&mut self.random);
                (KvRequest::Scan(count as u32, self.read_fields()), number)
            }
            Kind::ReadModifyWrite => {
                let number = self.drawn_key(stage);
                let fields = (self.read_fields(), self.written_fields());
                (KvRequest::ReadModifyWrite(fields.0, fields.1), number)
            }
        };
        self.set_key(number);
        (request, number)
    }

    /// Takes the key of a number.
    #[inline]
    pub fn set_key(&mut self, number: u64) {
        let form = (self.work.is_hashed, self.work.zero_padding as usize);
        write_key(&mut self.key, number, form);
    }

    fn drawn_key(&mut self, stage: &KvStage) -> u64 {
        self.order.draw(stage, &mut self.random)
    }

    fn kind(&mut self) -> Kind {
        let [(only, _)] = self.kinds[..] else {
            let mut value = self.random.unit();
            for (kind, share) in &self.kinds {
                if value < *share {
                    return *kind;
                }
                value -= share;
            }
            // Shares add up to 1 but for rounding.
            return self.kinds.last().expect("something has a weight").0;
        };
        only
    }

    fn read_fields(&mut self) -> FieldChoice {
        if self.work.reads_all_fields { FieldChoice::All } else { self.one_field() }
    }

    fn written_fields(&mut self) -> FieldChoice {
        if self.work.writes_all_fields { FieldChoice::All } else { self.one_field() }
    }

    fn one_field(&mut self) -> FieldChoice {
        FieldChoice::One(self.random.below(u64::from(self.work.field_count)) as u32)
    }

    /// Makes values for fields, as a record of these.
    #[inline]
    pub fn write_fields(&mut self, which: FieldChoice, record: &mut Vec<u8>) {
        record.clear();
        let indices = match which {
            FieldChoice::All => 0..self.fields.count(),
            FieldChoice::One(index) => index..index + 1,
        };
        let Self { fields, content, field_length, work, key, .. } = self;
        for index in indices {
            let length = field_length.draw(content) as usize;
            let name = fields.name(index);
            fields.append(record, index, |to| {
                if work.is_verified {
                    append_expected(to, key, name, length);
                } else {
                    append_random(to, length, content);
                }
            });
        }
    }

    /// Bytes of a whole record as [`KvClient::write_fields`] would make it, without making it.
    pub fn record_bytes(&mut self) -> u64 {
        let Self { fields, content, field_length, .. } = self;
        let field = |index| fields.bytes(index, field_length.draw(content));
        (0..fields.count()).map(field).sum()
    }

    /// A pause before an insert is tried again, in seconds: around the one that was asked for.
    pub fn retry_pause_s(&mut self) -> f64 {
        self.work.retry_interval_s * (0.8 + 0.4 * self.random.unit())
    }

    /// A number in [0, 1), for its first turn.
    pub fn unit(&mut self) -> f64 {
        self.random.unit()
    }

    /// Its work.
    pub fn work(&self) -> &KvWork {
        &self.work
    }
}

//! Random numbers as other programs draw them: the C library's, or those of a file.
//!
//! A program that takes its places, names and sizes from one sequence does the same again on the
//! same numbers, and so does whoever follows its rules. The numbers are those of glibc's rand(3)
//! (the additive feedback generator of random(3) with 31 words of state), or given one by one and
//! used from the front again. Left out: other C libraries' generators.

use iolab_model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Words of state, and the distance of the second one that is added (random(3), type 3).
const STATE: usize = 31;
const NEAR: usize = 3;
/// Numbers that are thrown away at the beginning: ten for each word.
const WARM_UP: usize = 10 * STATE;
/// A ticket that this divides is an update as well (bonnie++ 2.00, traced).
const UPDATE_EVERY: u32 = 10;
/// Given numbers at most: they are repeated in each phase.
pub const GIVEN_MAX: usize = 1 << 16;

/// Source of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// rand(3) after srand(3).
    CLibrary {
        /// The seed.
        seed: u32,
    },
    /// Values, repeated in order.
    Given {
        /// At least one, none above 2^31.
        values: Vec<u32>,
    },
}

/// The numbers of a run: first a ticket for each seek, then what the sets of files need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Draws {
    /// Source of the numbers.
    pub source: Source,
    /// Number of tickets; what follows them begins behind.
    pub tickets: u64,
}

impl Draws {
    /// Fault and advice.
    pub fn problem(&self) -> Option<(String, &'static str)> {
        match &self.source {
            Source::Given { values } if values.is_empty() || values.len() > GIVEN_MAX => {
                let problem = format!("{} random numbers", values.len());
                Some((problem, "give 1 to 65536 of them"))
            }
            _ => None,
        }
    }

    /// The numbers behind the tickets.
    pub fn behind_tickets(&self) -> Numbers {
        let mut numbers = Numbers::new(&self.source);
        numbers.skip(self.tickets);
        numbers
    }

    /// The tickets of worker `index` of `workers`, to whom they are dealt in turn.
    pub fn dealt(&self, index: u32, workers: u32, records: u64) -> Tickets {
        let mut numbers = Numbers::new(&self.source);
        numbers.skip(u64::from(index));
        Tickets {
            numbers,
            records,
            between: u64::from(workers) - 1,
            is_first: true,
            is_update: false,
        }
    }

    /// Number of tickets that worker `index` of `workers` gets.
    pub fn share(&self, index: u32, workers: u32) -> u64 {
        let (index, workers) = (u64::from(index), u64::from(workers));
        self.tickets / workers + u64::from(index < self.tickets % workers)
    }
}

/// Numbers in the order in which they are drawn.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// The generator's words, and which is the oldest.
    CLibrary {
        /// State.
        words: [u32; STATE],
        /// The oldest.
        oldest: usize,
    },
    /// Given ones, and which is next.
    Given {
        /// All.
        values: Vec<u32>,
        /// The next.
        next: usize,
    },
}

impl Numbers {
    /// From the first one on.
    pub fn new(source: &Source) -> Self {
        let seed = match source {
            Source::Given { values } => return Self::Given { values: values.clone(), next: 0 },
            Source::CLibrary { seed } => *seed,
        };
        // The seeds of the words are Lehmer's sequence, modulo 2^31 - 1; a seed of 0 counts as 1.
        let mut words = [0; STATE];
        let mut word = i64::from(seed.max(1).cast_signed());
        for place in &mut words {
            *place = (word as i32).cast_unsigned();
            word = (16_807 * word) % 2_147_483_647;
            if word < 0 {
                word += 2_147_483_647;
            }
        }
        let mut numbers = Self::CLibrary { words, oldest: NEAR };
        numbers.skip(WARM_UP as u64);
        numbers
    }

    /// The next one.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        match self {
            Self::CLibrary { words, oldest } => {
                let near = (*oldest + STATE - NEAR) % STATE;
                words[*oldest] = words[*oldest].wrapping_add(words[near]);
                let number = words[*oldest] >> 1;
                *oldest = (*oldest + 1) % STATE;
                number
            }
            Self::Given { values, next } => {
                let number = values[*next];
                *next = (*next + 1) % values.len();
                number
            }
        }
    }

    /// A number below `end`, as programs of that time make one: not quite evenly.
    pub fn below(&mut self, end: u64) -> u64 {
        u64::from(self.draw()) % end
    }

    /// A size from `least` to `most`; none is drawn where they are the same.
    pub fn size(&mut self, (least, most): (Bytes, Bytes)) -> Bytes {
        match most.0 - least.0 {
            0 => least,
            span => Bytes(least.0 + self.below(span + 1)),
        }
    }

    fn skip(&mut self, count: u64) {
        match self {
            Self::Given { values, next } => {
                *next = ((*next as u64 + count) % values.len() as u64) as usize;
            }
            Self::CLibrary { .. } => (0..count).for_each(|_| {
                self.draw();
            }),
        }
    }
}

/// One worker's tickets.
#[derive(Clone, Debug)]
pub struct Tickets {
    numbers: Numbers,
    records: u64,
    between: u64,
    is_first: bool,
    is_update: bool,
}

impl Tickets {
    /// The record of the next ticket.
    pub fn next_record(&mut self) -> u64 {
        if !std::mem::replace(&mut self.is_first, false) {
            self.numbers.skip(self.between);
        }
        let ticket = self.numbers.draw();
        // An update is marked by its sign there, and zero has none.
        self.is_update = ticket != 0 && ticket.is_multiple_of(UPDATE_EVERY);
        u64::from(ticket) % self.records
    }

    /// Tell whether the last ticket was an update.
    pub fn is_update(&self) -> bool {
        self.is_update
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seed: u32) -> Vec<u32> {
        let mut numbers = Numbers::new(&Source::CLibrary { seed });
        (0..3).map(|_| numbers.draw()).collect()
    }

    #[test]
    fn numbers_are_those_of_the_c_library() {
        // glibc 2.36: srand(1); rand() three times, and so on.
        assert_eq!(first(1), [1_804_289_383, 846_930_886, 1_681_692_777]);
        assert_eq!(first(0), first(1));
        assert_eq!(first(0x8000_0005), [902_410_239, 292_943_431, 1_491_539_546]);
        assert_eq!(first(u32::MAX), [254_925_627, 1_205_188_300, 366_127_624]);
        assert_eq!(first(42), [71_876_166, 708_592_740, 1_483_128_881]);
        assert_eq!(first(7)[0], 0x3e52_dff5, "the first ticket of a traced run");
    }

    #[test]
    fn given_numbers_come_again() {
        let source = Source::Given { values: vec![5, 6, 7] };
        let mut numbers = Numbers::new(&source);
        assert_eq!([(); 5].map(|()| numbers.draw()), [5, 6, 7, 5, 6]);
        let draws = Draws { source, tickets: 4 };
        assert_eq!(draws.behind_tickets().draw(), 6);
        assert!(Draws { source: Source::Given { values: vec![] }, tickets: 0 }.problem().is_some());
    }

    #[test]
    fn all_tickets_are_dealt_in_turn() {
        let values: Vec<u32> = (10..30).collect();
        let draws = Draws { source: Source::Given { values }, tickets: 11 };
        let mut seen = Vec::new();
        for index in 0..3 {
            let mut tickets = draws.dealt(index, 3, 100);
            let of_one = (0..draws.share(index, 3)).map(|_| {
                let record = tickets.next_record();
                assert_eq!(tickets.is_update(), record.is_multiple_of(10));
                record
            });
            seen.push(of_one.collect::<Vec<_>>());
        }
        assert_eq!(seen, [vec![10, 13, 16, 19], vec![11, 14, 17, 20], vec![12, 15, 18]]);
    }
}

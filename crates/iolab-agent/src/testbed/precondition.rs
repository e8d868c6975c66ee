//! Bringing a drive into the state in which it will be used, before anything is measured.
//!
//! A fresh solid-state drive is faster than it will ever be again. `fill` writes the whole device
//! once in order, `fill2x` twice (SNIA Solid State Storage Performance Test Specification 2.0,
//! workload independent preconditioning), `random` goes on with random 4 KiB writes in rounds until
//! five in a row are steady, at most 25 (its steady state). A round ends early when it has written
//! its share of what was promised, so that a small or fast drive has its five rounds, too. Left
//! out: purging, which is the user's to do with the drive's own command; queue depths other than
//! [`WRITERS`].

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::control::{Control, Urgency};
use crate::error::{Error, Result};
use crate::protocol::{Precondition, Progress};

/// Work that was done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Written in all.
    pub written_bytes: u64,
    /// Random writes per second of each round.
    pub rounds: Vec<f64>,
    /// True if the last rounds were steady.
    pub is_steady: bool,
}

/// SNIA PTS 2.0, 2.1.24: rounds of the measurement window.
const WINDOW: usize = 5;
/// Between its rounds.
const INTERVALS: usize = WINDOW - 1;
/// SNIA PTS 2.0, 7: rounds after which one gives up.
const ROUNDS_MAX: usize = 25;
/// SNIA PTS 2.0, 2.1.24: range of the window, as a share of its average.
const RANGE_MAX: f64 = 0.20;
/// SNIA PTS 2.0, 2.1.24: rise of the fitted line from the first round of the window to its last, as
/// a share of the average.
const RISE_MAX: f64 = 0.10;
/// Random writes in flight.
const WRITERS: u64 = 16;
/// Random writes go on for as many bytes as were written in order: what a plan can promise.
const RANDOM_DRIVES_MAX: u64 = 2;

const FILL_BYTES: usize = 1 << 20;
const RANDOM_BYTES: usize = 4096;
const LOOK: Duration = Duration::from_millis(50);

/// The part of a device that may be written.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Its first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
}

/// At most so many bytes are written to a device of this room.
pub fn bytes_max(how: Precondition, room: Room) -> u64 {
    let random = if how == Precondition::Random { RANDOM_DRIVES_MAX } else { 0 };
    (how.passes() + random) * (room.end - room.start)
}

/// Does it; `device` is open for direct I/O.
pub fn run(
    how: Precondition,
    (device, room): (&File, Room),
    round: Duration,
    control: &mut dyn Control,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for pass in 0..how.passes() {
        fill(device, room, control, (pass, how.passes()))?;
        outcome.written_bytes += room.end - room.start;
    }
    if how == Precondition::Random {
        let limit = outcome.written_bytes + RANDOM_DRIVES_MAX * (room.end - room.start);
        while outcome.rounds.len() < ROUNDS_MAX
            && !is_steady(&outcome.rounds)
            && outcome.written_bytes < limit
        {
            tell(control, "random writes", outcome.rounds.len() as f64 / ROUNDS_MAX as f64);
            let began = Instant::now();
            let budget = round_budget(&outcome, limit) / RANDOM_BYTES as u64;
            let seed = outcome.rounds.len() as u64;
            let writes = write_randomly(device, room, (round, budget, seed), control)?;
            outcome.rounds.push(writes as f64 / began.elapsed().as_secs_f64());
            outcome.written_bytes += writes * RANDOM_BYTES as u64;
        }
        outcome.is_steady = is_steady(&outcome.rounds);
    }
    device.sync_all().map_err(|error| Error::io("flush", "the device", error))?;
    Ok(outcome)
}

/// Bytes that the next round may write: what is left is shared among the rounds of a full window,
/// so that a window gets full however small or fast the drive is.
fn round_budget(outcome: &Outcome, limit: u64) -> u64 {
    let missing = WINDOW.saturating_sub(outcome.rounds.len()).max(1) as u64;
    (limit - outcome.written_bytes) / missing
}

/// SNIA PTS 2.0, 2.1.24: the last rounds neither spread nor drift.
pub fn is_steady(rounds: &[f64]) -> bool {
    let Some(first) = rounds.len().checked_sub(WINDOW) else { return false };
    let window = &rounds[first..];
    let mean = window.iter().sum::<f64>() / WINDOW as f64;
    let range = window.iter().copied().fold(f64::MIN, f64::max)
        - window.iter().copied().fold(f64::MAX, f64::min);
    let centre = (WINDOW as f64 - 1.0) / 2.0;
    let offsets = || (0..WINDOW).map(|index| index as f64 - centre);
    let slope = offsets().zip(window).map(|(x, y)| x * y).sum::<f64>()
        / offsets().map(|x| x * x).sum::<f64>();
    mean > 0.0 && range <= RANGE_MAX * mean && (slope * INTERVALS as f64).abs() <= RISE_MAX * mean
}

fn tell(control: &mut dyn Control, message: &str, share: f64) {
    control.progress(Progress {
        phase: "precondition".to_owned(),
        message: message.to_owned(),
        share: Some(share),
        ..Progress::default()
    });
}

fn fill(
    device: &File,
    room: Room,
    control: &mut dyn Control,
    (pass, passes): (u64, u64),
) -> Result<()> {
    let mut buffer = Buffer::new(FILL_BYTES, pass + 1);
    let mut told = Instant::now();
    let mut at = room.start;
    while at < room.end {
        if control.urgency() > Urgency::Calm {
            return Err(Error::Interrupted);
        }
        let length = (room.end - at).min(FILL_BYTES as u64) as usize;
        let bytes = buffer.stamped(length);
        device.write_all_at(bytes, at).map_err(|error| Error::io("fill", "the device", error))?;
        at += length as u64;
        if told.elapsed() > Duration::from_secs(1) {
            told = Instant::now();
            let done = (at - room.start) as f64 / (room.end - room.start) as f64;
            tell(control, "filling the device", (pass as f64 + done) / passes as f64);
        }
    }
    Ok(())
}

/// One round; answers how many writes it made, at most `budget`.
fn write_randomly(
    device: &File,
    room: Room,
    (round, budget, seed): (Duration, u64, u64),
    control: &mut dyn Control,
) -> Result<u64> {
    let (count, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let slots = (room.end - room.start) / RANDOM_BYTES as u64;
    let work = |writer: u64| -> std::io::Result<()> {
        let mut buffer = Buffer::new(RANDOM_BYTES, seed * WRITERS + writer + 1);
        while !is_over.load(Ordering::Relaxed) && count.fetch_add(1, Ordering::Relaxed) < budget {
            let slot = buffer.next_random() % slots;
            let at = room.start + slot * RANDOM_BYTES as u64;
            device.write_all_at(buffer.stamped(RANDOM_BYTES), at)?;
        }
        Ok(())
    };
    let mut is_stopped = false;
    let outcome = thread::scope(|scope| {
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || work(writer))).collect();
        let began = Instant::now();
        while began.elapsed() < round && writers.iter().any(|writer| !writer.is_finished()) {
            is_stopped |= control.urgency() > Urgency::Calm;
            if is_stopped {
                break;
            }
            thread::sleep(LOOK.min(round));
        }
        is_over.store(true, Ordering::Relaxed);
        let ended = writers.into_iter().map(|writer| writer.join().expect("writers do not panic"));
        ended.collect::<std::io::Result<Vec<()>>>()
    });
    outcome.map_err(|error| Error::io("write to", "the device", error))?;
    if is_stopped {
        return Err(Error::Interrupted);
    }
    Ok(count.into_inner().min(budget))
}

/// Aligned bytes that nothing compresses, of which no two pages are equal.
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    state: u64,
}

impl Buffer {
    const PAGE: usize = 4096;

    fn new(length: usize, seed: u64) -> Self {
        let bytes = vec![0; length + Self::PAGE];
        let start = bytes.as_ptr().align_offset(Self::PAGE);
        let mut buffer = Self { bytes, start, state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 };
        for place in (start..start + length).step_by(8) {
            let word = buffer.next_random().to_le_bytes();
            buffer.bytes[place..place + 8].copy_from_slice(&word);
        }
        buffer
    }

    /// Xorshift64* (Vigna 2016).
    fn next_random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn stamped(&mut self, length: usize) -> &[u8] {
        for place in (self.start..self.start + length).step_by(Self::PAGE) {
            let word = self.next_random().to_le_bytes();
            self.bytes[place..place + 8].copy_from_slice(&word);
        }
        &self.bytes[self.start..self.start + length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::LineReader;

    struct Calm;

    impl Control for Calm {
        fn progress(&mut self, _params: Progress) {}

        fn urgency(&mut self) -> Urgency {
            Urgency::Calm
        }

        fn wait(&mut self, _readers: &mut [&mut LineReader], _timeout: Duration) {}
    }

    #[test]
    fn steady_means_neither_spread_nor_drift() {
        assert!(!is_steady(&[100.0; 4]), "the window is not full");
        assert!(is_steady(&[500.0, 100.0, 101.0, 99.0, 100.0, 100.0]), "only the last five count");
        assert!(!is_steady(&[100.0, 100.0, 125.0, 100.0, 100.0]), "25 % range");
        assert!(is_steady(&[100.0, 100.0, 115.0, 100.0, 100.0]), "15 % range, no slope");
        assert!(!is_steady(&[106.0, 103.0, 100.0, 97.0, 94.0]), "3 % per round drift");
        assert!(is_steady(&[102.0, 101.0, 100.0, 99.0, 98.0]), "1 % per round is allowed");
        // Five rounds span four intervals: 2.4 % per round are 9.6 %, 2.6 % are 10.4 %.
        assert!(is_steady(&[104.8, 102.4, 100.0, 97.6, 95.2]), "9.6 % over the window");
        assert!(!is_steady(&[105.2, 102.6, 100.0, 97.4, 94.8]), "10.4 % over the window");
        assert!(!is_steady(&[0.0; 5]), "nothing was written");
    }

    #[test]
    fn everything_between_the_ends_is_written_and_nothing_else() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(12 << 20).unwrap();
        let room = Room { start: 1 << 20, end: 11 << 20 };
        for (how, passes) in [(Precondition::Fill, 1), (Precondition::Fill2x, 2)] {
            let outcome = run(how, (&file, room), Duration::ZERO, &mut Calm).unwrap();
            assert_eq!(outcome.written_bytes, passes * (10 << 20));
            assert_eq!(bytes_max(how, room), outcome.written_bytes);
        }
        let mut bytes = vec![0; 12 << 20];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let is_zero = |range: std::ops::Range<usize>| bytes[range].iter().all(|&byte| byte == 0);
        assert!(is_zero(0..1 << 20) && is_zero(11 << 20..12 << 20));
        assert!((1..11).all(|mib| !is_zero((mib << 20)..(mib << 20) + 4096)));
    }

    #[test]
    fn a_drive_that_one_round_could_fill_is_judged_by_five() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 << 20).unwrap();
        let room = Room { start: 1 << 20, end: 3 << 20 };
        let outcome =
            run(Precondition::Random, (&file, room), Duration::from_secs(60), &mut Calm).unwrap();
        assert!(outcome.rounds.len() >= WINDOW, "{outcome:?}");
        assert!(outcome.written_bytes <= bytes_max(Precondition::Random, room), "{outcome:?}");
        assert_eq!(outcome.is_steady, is_steady(&outcome.rounds));
    }

    #[test]
    fn random_writes_end_when_steady_or_when_their_budget_is_spent() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 << 20).unwrap();
        let room = Room { start: 1 << 20, end: 3 << 20 };
        let outcome =
            run(Precondition::Random, (&file, room), Duration::from_millis(2), &mut Calm).unwrap();
        assert!(outcome.written_bytes <= bytes_max(Precondition::Random, room), "{outcome:?}");
        assert!((WINDOW..=ROUNDS_MAX).contains(&outcome.rounds.len()), "{outcome:?}");
        assert_eq!(outcome.is_steady, is_steady(&outcome.rounds));
        let mut begin = vec![0; 1 << 20];
        file.read_exact_at(&mut begin, 0).unwrap();
        assert!(begin.iter().all(|&byte| byte == 0));
    }
}

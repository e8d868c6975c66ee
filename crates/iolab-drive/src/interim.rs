//! Interim results: counts of workers that still work, as often as somebody wants to see them.
//!
//! A worker writes what it has counted so far into a file of its own, which nobody else writes and
//! which has no name in any directory; the coordinator reads it. That works for threads and for
//! processes, and no worker waits for anybody. A worker tells only where an op has ended: one that
//! waits for storage keeps what it told before.
//!
//! A file has two halves that are written in turn, and a head that says which is valid: a reader
//! that comes in between finds the older half whole.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use iolab_model::Ns;
use iolab_workload::StreamReport;
use iolab_workload::program::OperationCount;
use iolab_workload::spec::Phase;

use crate::coordinate::{PhaseOutcome, WorkerOutcome, assemble};
use crate::recorder::{ClassHistograms, Recorder};
use crate::series::Series;

/// Bytes of the head: place of the valid half and its length.
const HEAD_BYTES: u64 = 16;
/// Places of the halves; the file is sparse.
const HALVES: [u64; 2] = [4096, 1 << 30];
/// Most bytes that are read of a half.
const HALF_BYTES_MAX: u64 = 64 << 20;
/// Time after which all workers that do not wait for storage have told.
const GRACE: Ns = Ns::from_ms(20);

/// Files of the workers of a phase, in their order, and the time between two interim results.
#[derive(Debug)]
pub struct Board {
    every: Ns,
    has_times: bool,
    files: Vec<File>,
}

impl Board {
    /// A board of empty files, one per worker.
    ///
    /// # Panics
    ///
    /// `every` is no time.
    pub fn new(every: Ns, has_times: bool, files: Vec<File>) -> Self {
        assert!(every.0 > 0, "time passes between two results");
        Self { every, has_times, files }
    }

    /// The part of worker number `ordinal`; absent: it cannot be opened, and the worker tells
    /// nothing.
    pub fn telling(&self, ordinal: u32, tenant: usize) -> Option<Telling> {
        let file = self.files.get(ordinal as usize)?.try_clone().ok()?;
        let (every, has_times) = (self.every, self.has_times);
        Some(Telling { file, tenant, every, has_times, next: None, half: 0 })
    }

    /// The newest results of all workers that have told any.
    pub fn read(&self) -> Vec<WorkerOutcome> {
        self.files.iter().filter_map(newest).collect()
    }
}

fn newest(file: &File) -> Option<WorkerOutcome> {
    let mut head = [0; HEAD_BYTES as usize];
    file.read_exact_at(&mut head, 0).ok()?;
    let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
    let (at, length) = (number(0), number(8));
    if !HALVES.contains(&at) || length > HALF_BYTES_MAX {
        return None;
    }
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, at).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A worker's way to tell.
#[derive(Debug)]
pub struct Telling {
    file: File,
    tenant: usize,
    every: Ns,
    has_times: bool,
    next: Option<Ns>,
    half: usize,
}

impl Telling {
    /// The timed region begins, if it has not yet.
    pub fn begin(&mut self, now: Ns) {
        self.next.get_or_insert(now + self.every);
    }

    /// Tell whether it is time.
    #[inline]
    pub fn is_due(&self, now: Ns) -> bool {
        self.next.is_some_and(|next| now >= next)
    }

    /// Writes down what was counted until `now`.
    #[cold]
    pub fn tell(&mut self, outcome: &WorkerOutcome, now: Ns) {
        let Some(next) = self.next else { return };
        let passed = now.since(next).0 / self.every.0 + 1;
        self.next = Some(Ns(next.0 + passed * self.every.0));
        let Ok(text) = serde_json::to_vec(outcome) else { return };
        self.half = 1 - self.half;
        let at = HALVES[self.half];
        let mut head = [0; HEAD_BYTES as usize];
        head[..8].copy_from_slice(&at.to_le_bytes());
        head[8..].copy_from_slice(&(text.len() as u64).to_le_bytes());
        // Whoever cannot write tells nothing: the results at the end are complete all the same.
        let _ = self.file.write_all_at(&text, at).and_then(|()| self.file.write_all_at(&head, 0));
    }

    /// Results of a worker that still works, from its recorder.
    pub fn outcome(
        &self,
        (report, operations): (StreamReport, Vec<OperationCount>),
        recorder: &Recorder,
    ) -> WorkerOutcome {
        let brief = ClassHistograms::default();
        let has = self.has_times;
        WorkerOutcome {
            tenant: self.tenant,
            report,
            service: if has { recorder.service.clone() } else { brief },
            response: recorder.response.clone().filter(|_| has),
            submissions: recorder.submissions.clone().filter(|_| has),
            series: if has {
                recorder.series.clone()
            } else {
                Series::new(Ns(recorder.series.interval_ns))
            },
            segments: if has { recorder.segments.clone().into_parts() } else { Vec::new() },
            operations,
        }
    }
}

/// The coordinator's way to hear.
#[derive(Debug)]
pub struct Hearing {
    next: Ns,
    every: Ns,
}

impl Hearing {
    /// A phase whose workers were released at `now`.
    pub fn since(now: Ns, board: &Board) -> Self {
        Self { next: now + board.every + GRACE, every: board.every }
    }

    /// Results so far of `phase`, if it is time for them.
    pub fn look(
        &mut self,
        now: Ns,
        board: &Board,
        phase: &Phase,
        interval: Ns,
    ) -> Option<PhaseOutcome> {
        if now < self.next {
            return None;
        }
        let passed = now.since(self.next).0 / self.every.0 + 1;
        self.next = Ns(self.next.0 + passed * self.every.0);
        // Who has not told is at work: nobody is known to be lost.
        Some(PhaseOutcome { lost_workers: 0, ..assemble(phase, board.read(), interval) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(ops: u64) -> WorkerOutcome {
        let report = StreamReport { ops, ..StreamReport::default() };
        WorkerOutcome::new(0, report, Recorder::new(1, Ns(1000), None))
    }

    fn board(files: usize) -> Board {
        let files = (0..files).map(|_| tempfile::tempfile().unwrap()).collect();
        Board::new(Ns(1000), true, files)
    }

    #[test]
    fn the_newest_whole_result_is_read_whatever_is_being_written() {
        let board = board(2);
        let mut telling = board.telling(1, 0).unwrap();
        assert!(board.read().is_empty(), "nobody has told anything");
        telling.begin(Ns(0));
        telling.tell(&outcome(7), Ns(1000));
        assert_eq!(board.read().iter().map(|one| one.report.ops).collect::<Vec<_>>(), [7]);
        // The other half is torn: the head still names the first one.
        board.files[1].write_all_at(b"{\"tenant\":", HALVES[0]).unwrap();
        assert_eq!(board.read()[0].report.ops, 7);
        telling.tell(&outcome(9), Ns(2000));
        assert_eq!(board.read()[0].report.ops, 9);
        // A head that names nothing valid is no result.
        board.files[1].write_all_at(&[0xff; 16], 0).unwrap();
        assert!(board.read().is_empty());
    }

    #[test]
    fn a_worker_that_comes_late_tells_once_and_keeps_the_grid_of_times() {
        let board = board(1);
        let mut telling = board.telling(0, 0).unwrap();
        assert!(!telling.is_due(Ns(u64::MAX)), "its timed region has not begun");
        telling.begin(Ns(500));
        telling.begin(Ns(900));
        assert!(!telling.is_due(Ns(1499)));
        assert!(telling.is_due(Ns(1500)));
        telling.tell(&outcome(1), Ns(4700));
        assert!(!telling.is_due(Ns(5499)));
        assert!(telling.is_due(Ns(5500)));
        assert!(board.telling(1, 0).is_none());
    }

    #[test]
    fn results_without_times_are_short() {
        let mut recorder = Recorder::new(1, Ns(1000), None);
        recorder.begin(Ns(0));
        recorder.count(iolab_model::op::OpClass::Read, Ns(0), Ns(10), 4096);
        let of = |has_times| {
            let board = Board::new(Ns(1), has_times, vec![tempfile::tempfile().unwrap()]);
            let telling = board.telling(0, 0).unwrap();
            telling.outcome((StreamReport::default(), Vec::new()), &recorder)
        };
        assert_eq!(of(true).service.read.unwrap().count(), 1);
        let brief = of(false);
        assert!(brief.service.read.is_none() && brief.series.ops.is_empty());
    }
}

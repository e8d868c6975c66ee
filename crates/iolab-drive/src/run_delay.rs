//! Time for which the calling thread waited for a CPU, as the kernel's scheduler counts it.
//!
//! It is exact, where stolen ticks and load averages are coarse, and costs a thread that measures
//! two reads of a small file, both outside of its timed region. The file stays open: a name below
//! `/proc` costs more than what it tells, and what is done before a phase of microseconds leaves
//! its traces in the caches.
//!
//! Source: Linux Documentation/scheduler/sched-stats.rst, `/proc/PID/schedstat`.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use nix::unistd::{Pid, gettid};

const FILE: &str = "/proc/thread-self/schedstat";
/// Longer than three numbers.
const LONGEST: usize = 96;

thread_local! {
    /// The file and the thread that it tells of: a process that was forked inherits its parent's.
    static OPENED: RefCell<Option<(Pid, File)>> = const { RefCell::new(None) };
}

/// Time in ns that this thread has spent ready to run and not running, since it began; none where
/// the kernel does not count it.
pub fn run_delay_ns() -> Option<u64> {
    let mut text = [0; LONGEST];
    let length = OPENED.with_borrow_mut(|opened| {
        let me = gettid();
        let known = opened.take().filter(|(thread, _)| *thread == me);
        let (_, file) = opened.insert(match known {
            Some(known) => known,
            None => (me, File::open(FILE).ok()?),
        });
        file.read_at(&mut text, 0).ok()
    })?;
    parse(str::from_utf8(text.get(..length)?).ok()?)
}

/// Reads `time on the CPU, time waiting for it, number of slices`; a thread that runs and has no
/// slice is not counted. Its time on the CPU may be 0 until its first tick.
fn parse(text: &str) -> Option<u64> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let waited = numbers.nth(1)?.ok()?;
    let slices = numbers.next()?.ok()?;
    (slices > 0).then_some(waited)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file stays open, and a new thread must not be told of an old one.
    #[test]
    fn each_thread_hears_of_itself() {
        let here = run_delay_ns();
        assert!(run_delay_ns() >= here, "time does not go back");
        let child = || std::thread::spawn(run_delay_ns).join().unwrap();
        assert_eq!(child().is_some(), here.is_some());
        let thread = || OPENED.with_borrow(|opened| opened.as_ref().map(|(thread, _)| *thread));
        assert_eq!(thread(), here.map(|_| gettid()));
    }

    #[test]
    fn the_second_number_counts_unless_nothing_does() {
        assert_eq!(parse("2067892 31415 12\n"), Some(31_415));
        assert_eq!(parse("0 77 1\n"), Some(77), "before the first tick");
        assert_eq!(parse("0 0 0\n"), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse("1 x 2"), None);
    }
}

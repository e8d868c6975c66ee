//! Time for which the calling thread waited for a CPU, as the kernel's scheduler counts it.
//!
//! It is exact, where stolen ticks and load averages are coarse, and costs a thread that measures
//! two reads of a small file, both outside of its timed region.
//!
//! Source: Linux Documentation/scheduler/sched-stats.rst, `/proc/PID/schedstat`.

const FILE: &str = "/proc/thread-self/schedstat";

/// Time in ns that this thread has spent ready to run and not running, since it began; none where
/// the kernel does not count it.
pub fn run_delay_ns() -> Option<u64> {
    parse(&std::fs::read_to_string(FILE).ok()?)
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

    #[test]
    fn the_second_number_counts_unless_nothing_does() {
        assert_eq!(parse("2067892 31415 12\n"), Some(31_415));
        assert_eq!(parse("0 77 1\n"), Some(77), "before the first tick");
        assert_eq!(parse("0 0 0\n"), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse("1 x 2"), None);
    }
}

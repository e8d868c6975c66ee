//! `CLOCK_MONOTONIC` through the vDSO, and a lane's own clock, which may cost half of that.
//!
//! A [`LaneClock`] reads the processor's time stamp counter where the kernel itself keeps time by
//! it, and so trusts it to be the same on all processors and not to stand still; and it looks at
//! the vDSO once per millisecond, for a new anchor. Elsewhere it is the vDSO. The counter is read
//! without a fence: it may run ahead of loads that are still under way, by less than those take.
//! Source: the kernel's `Documentation/virt/kvm/x86/timekeeping.rst`, and `current_clocksource` of
//! sysfs(5).

use std::cell::Cell;
use std::sync::{Mutex, OnceLock, PoisonError};

use iolab_model::Ns;

/// Now, without a system call.
#[inline]
pub fn monotonic() -> Ns {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec; the call cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Ns(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Sleeps until `instant`; the last 60 us are spent polling, because a timer wakes up late.
pub fn sleep_until(instant: Ns) {
    const POLL: u64 = 60_000;
    loop {
        let left = instant.since(monotonic()).0;
        if left == 0 {
            return;
        }
        if left > POLL {
            std::thread::sleep(std::time::Duration::from_nanos(left - POLL));
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Keeps the processor busy for `duration`.
pub fn burn(duration: Ns) {
    let until = monotonic() + duration;
    while monotonic() < until {
        std::hint::spin_loop();
    }
}

/// Ticks that an anchor is good for: about a millisecond of any processor.
const ANCHORED_TICKS: u64 = 1 << 21;
/// Nanoseconds over which the length of a tick is measured before it is used.
const MEASURED_NS: u64 = 2_000_000;
/// By more than this no anchor may be off; if one is, the length of a tick has changed.
const OFF_NS: u64 = 2_000;

/// A moment by both clocks.
#[derive(Clone, Copy, Debug)]
struct Moment {
    ticks: u64,
    ns: u64,
}

impl Moment {
    /// Now. Both clocks are read within as few ticks as three attempts allow.
    fn now() -> Self {
        let attempt = || {
            let before = ticks();
            let ns = monotonic().0;
            let between = ticks().wrapping_sub(before);
            (between, Self { ticks: before.wrapping_add(between / 2), ns })
        };
        let found = [attempt(), attempt(), attempt()];
        found.into_iter().min_by_key(|(between, _)| *between).expect("there were three").1
    }
}

/// The monotonic clock as one lane reads it: never backwards, and within two microseconds of
/// [`monotonic`] as long as ticks are even; if they step, for no longer than an anchor is good.
#[derive(Debug)]
pub struct LaneClock {
    /// True if ticks can be trusted at all; otherwise it is [`monotonic`].
    is_kept: bool,
    /// Since when the length of a tick is measured.
    first: Cell<Moment>,
    anchor: Cell<Moment>,
    /// Nanoseconds per tick, times 2^32.
    scale: Cell<u64>,
    /// Ticks from the anchor on in which it is good; 0 before the length of a tick is known.
    good_ticks: Cell<u64>,
    latest: Cell<u64>,
}

/// Since when this process has measured how long a tick is, and how long it was found to be: a lane
/// that had to find out for itself would do so in the timed region.
static MEASURED: Mutex<Option<(Moment, u64)>> = Mutex::new(None);

impl Default for LaneClock {
    fn default() -> Self {
        Self::new()
    }
}

impl LaneClock {
    /// A clock that knows how long a tick is; the first one of a process waits until it does.
    pub fn new() -> Self {
        let is_kept = is_kept_by_ticks();
        let mut measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, scale) = *measured.get_or_insert_with(|| (Moment::now(), 0));
        let left = MEASURED_NS.saturating_sub(monotonic().0.saturating_sub(first.ns));
        if is_kept && left > 0 {
            std::thread::sleep(std::time::Duration::from_nanos(left));
        }
        let now = Moment::now();
        let clock = Self {
            is_kept,
            first: Cell::new(first),
            anchor: Cell::new(now),
            scale: Cell::new(scale),
            good_ticks: Cell::new(0),
            latest: Cell::new(now.ns),
        };
        clock.settle(now);
        *measured = Some((clock.first.get(), clock.scale.get()));
        clock
    }

    /// Begins to measure how long a tick is, so that the first clock need not wait for it.
    pub fn begin() {
        let mut measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
        measured.get_or_insert_with(|| (Moment::now(), 0));
    }

    /// Now.
    #[inline]
    pub fn now(&self) -> Ns {
        if !self.is_kept {
            return monotonic();
        }
        let since = ticks().wrapping_sub(self.anchor.get().ticks);
        let ns = if since < self.good_ticks.get() { self.after(since) } else { self.look() };
        self.latest.set(ns.max(self.latest.get()));
        Ns(self.latest.get())
    }

    /// Time so many ticks after the anchor.
    #[inline]
    fn after(&self, ticks: u64) -> u64 {
        self.anchor.get().ns + ((ticks * self.scale.get()) >> 32)
    }

    /// Reads the real clock and, once it is known how long a tick is, drops an anchor.
    #[cold]
    fn look(&self) -> u64 {
        if self.good_ticks.get() == 0 {
            let ns = monotonic().0;
            if ns.saturating_sub(self.first.get().ns) < MEASURED_NS {
                return ns;
            }
        }
        let now = Moment::now();
        let since = now.ticks.wrapping_sub(self.anchor.get().ticks);
        let is_near = self.good_ticks.get() > 0 && since < 4 * ANCHORED_TICKS;
        let is_off = is_near && self.after(since).abs_diff(now.ns) > OFF_NS;
        if is_off {
            self.begin_anew(now);
        } else {
            self.settle(now);
        }
        self.anchor.set(now);
        now.ns
    }

    /// Trusts ticks if they are what they were, or measures anew.
    fn settle(&self, now: Moment) {
        match self.scale_until(now) {
            Some(scale) => {
                self.scale.set(scale);
                self.good_ticks.set(ANCHORED_TICKS);
            }
            None => self.begin_anew(now),
        }
    }

    fn begin_anew(&self, now: Moment) {
        self.first.set(now);
        self.scale.set(0);
        self.good_ticks.set(0);
    }

    /// Length of a tick since it is measured, unless that is not what it was: then ticks have
    /// stepped (the machine slept, or moved), or have another length.
    fn scale_until(&self, now: Moment) -> Option<u64> {
        let first = self.first.get();
        let (ns, ticks) = (now.ns.saturating_sub(first.ns), now.ticks.wrapping_sub(first.ticks));
        // No tick is longer than 256 ns, or `after` would overflow.
        let is_sane = ticks > ns >> 8;
        let scale = ((u128::from(ns) << 32) / u128::from(ticks.max(1))) as u64;
        let known = self.scale.get();
        let is_known = known == 0 || scale.abs_diff(known) <= known >> 10;
        (is_sane && is_known).then_some(scale)
    }
}

/// The time stamp counter, or 0 where there is none.
#[inline]
fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction; Linux lets every process use it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// Tell whether the kernel keeps time by what [`ticks`] reads.
fn is_kept_by_ticks() -> bool {
    static KEPT: OnceLock<bool> = OnceLock::new();
    *KEPT.get_or_init(|| {
        let name = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        cfg!(target_arch = "x86_64")
            && std::fs::read_to_string(name).is_ok_and(|source| source.trim() == "tsc")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks for so long at both clocks; how far the lane's was outside of two readings of the
    /// other around it, at most.
    fn off_ns(clock: &LaneClock, ns: u64) -> u64 {
        let (begin, mut latest, mut off) = (monotonic().0, 0, 0);
        loop {
            let (before, seen, after) = (monotonic().0, clock.now().0, monotonic().0);
            assert!(seen >= latest, "{seen} after {latest}");
            latest = seen;
            off = off.max(before.saturating_sub(seen)).max(seen.saturating_sub(after));
            if after - begin > ns {
                return off;
            }
        }
    }

    #[test]
    fn a_lane_reads_the_monotonic_clock() {
        let clock = LaneClock::new();
        let off = off_ns(&clock, 50_000_000);
        std::thread::sleep(std::time::Duration::from_millis(30));
        let later = off_ns(&clock, 50_000_000);
        assert!(off.max(later) <= 2 * OFF_NS, "off by {off} and {later} ns");
        assert_eq!(clock.good_ticks.get() > 0, clock.is_kept, "and uses ticks where it can");
    }

    /// Issue 14, point 17: phases shorter than that had the slower clock for all of their time.
    #[test]
    fn a_clock_need_not_measure_what_the_process_knows() {
        let first = LaneClock::new();
        assert_eq!(first.good_ticks.get() > 0, first.is_kept, "it waited until it knew");
        let begin = monotonic().0;
        let second = LaneClock::new();
        assert!(monotonic().0 - begin < MEASURED_NS, "and no other one waits");
        assert_eq!(second.good_ticks.get() > 0, second.is_kept);
        assert!(off_ns(&second, 1_000_000) <= OFF_NS);
    }

    #[test]
    fn ticks_that_step_or_change_are_found_out() {
        type Upset = fn(&LaneClock);
        let upsets: [(&str, Upset); 4] = [
            ("longer", |clock| clock.scale.set(clock.scale.get() * 2)),
            ("shorter", |clock| clock.scale.set(clock.scale.get() / 2)),
            ("far on", |clock| stepped(clock, 0_u64.wrapping_sub(3_000_000_000))),
            ("begun anew", |clock| stepped(clock, ticks())),
        ];
        for (name, upset) in upsets {
            let clock = LaneClock::new();
            off_ns(&clock, 10_000_000);
            let before = clock.now();
            upset(&clock);
            let begin = monotonic().0;
            while monotonic().0 - begin < 10_000_000 {
                assert!(clock.now() >= before, "{name}");
            }
            assert!(off_ns(&clock, 10_000_000) <= 2 * OFF_NS, "{name}");
        }
    }

    #[test]
    fn a_small_step_back_is_no_jump() {
        let clock = LaneClock::new();
        off_ns(&clock, 10_000_000);
        stepped(&clock, 3_000);
        assert!(off_ns(&clock, 5_000_000) <= 2 * OFF_NS);
    }

    /// Everything it knows of ticks lies so many ticks later: they have stepped back.
    fn stepped(clock: &LaneClock, by: u64) {
        for moment in [&clock.first, &clock.anchor] {
            let Moment { ticks, ns } = moment.get();
            moment.set(Moment { ticks: ticks.wrapping_add(by), ns });
        }
    }
}

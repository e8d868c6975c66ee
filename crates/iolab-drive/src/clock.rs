//! The monotonic clock as `Ns`.

use iolab_model::Ns;
use nix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`: one call through the vDSO, no system call.
///
/// # Panics
///
/// Never on Linux: the call can only fail for a clock that does not exist.
#[inline]
pub fn monotonic() -> Ns {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    Ns(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Sleeps until `instant`; the last 60 us are spent polling, because a timer wakes up late.
pub fn sleep_until(instant: Ns) {
    const POLL: Ns = Ns::from_us(60);
    loop {
        let left = instant.since(monotonic());
        if left.0 == 0 {
            return;
        }
        if left > POLL {
            std::thread::sleep(std::time::Duration::from_nanos(left.0 - POLL.0));
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

//! `CLOCK_MONOTONIC` through the vDSO.

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

//! The tick counter: cfq of 4.1 knows no finer time.
//!
//! Source: Linux 4.1 (`jiffies`). Signed here, so that "a second before the start" has a number.

use iolab_model::Ns;

use crate::api::scheduler::Hz;

/// An instant or a duration in clock ticks.
pub(super) type Tick = i64;

/// Nanoseconds to ticks and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Ticks per second.
    pub hz: Hz,
    /// The present.
    pub now: Tick,
    length: u64,
    /// Nanosecond at which `now` began.
    began: u64,
}

impl Clock {
    /// A clock that shows 0.
    pub fn new(hz: Hz) -> Self {
        Self { hz, now: 0, length: hz.tick().0, began: 0 }
    }

    /// Sets the present; the division is only made when the tick has changed.
    pub fn set(&mut self, now: Ns) {
        if now.0.wrapping_sub(self.began) >= self.length {
            self.now = (now.0 / self.length) as Tick;
            self.began = self.now as u64 * self.length;
        }
    }

    /// The instant at which a tick begins; the end of time if there is no such instant.
    pub fn instant(&self, tick: Tick) -> Ns {
        Ns((tick.max(0) as u64).saturating_mul(self.length))
    }

    /// Tell whether at least `ticks` have passed since the tick of `earlier`.
    pub fn has_passed(&self, earlier: Ns, ticks: Tick) -> bool {
        let limit = self.now.saturating_sub(ticks).saturating_add(1);
        limit > 0 && earlier.0 < (limit as u64).saturating_mul(self.length)
    }

    /// Ticks per second.
    pub fn second(&self) -> Tick {
        Tick::from(self.hz.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_floored_to_ticks() {
        let mut clock = Clock::new(Hz(250));
        clock.set(Ns::from_us(7_999));
        assert_eq!(clock.now, 1);
        clock.set(Ns::from_us(8_000));
        assert_eq!(clock.now, 2);
        assert_eq!(clock.instant(3), Ns::from_ms(12));
        // Tick 0 to tick 2 are two ticks, whatever the nanoseconds say; tick 1 to tick 2 is one.
        assert!(clock.has_passed(Ns::from_us(3_999), 2));
        assert!(!clock.has_passed(Ns::from_us(4_000), 2));
        assert!(!clock.has_passed(Ns(0), 3));
    }
}

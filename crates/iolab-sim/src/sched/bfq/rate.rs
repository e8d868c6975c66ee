//! The device's peak rate, estimated from dispatches and completions.
//!
//! A window of about a second collects sectors dispatched; its rate counts if the requests were
//! mostly sequential, or if it is higher than the old estimate, and is blended in by a weight that
//! grows with sequentiality and length. From the rate follow the budget ceiling (what can be
//! transferred in one slot) and how long interactive processes stay raised.
//!
//! Source of the constants: Linux block/bfq-iosched.c, `BFQ_RATE_*`, `ref_rate`,
//! `ref_wr_duration`.

use crate::api::request::Request;

use super::queue::Ticks;
use super::state::{Bfq, MS};

/// Rates are sectors per microsecond, times 2^16.
const SHIFT: u32 = 16;
const MIN_SAMPLES: u64 = 32;
const MIN_WINDOW: u64 = 300 * MS;
const TARGET_WINDOW: u64 = 1_000 * MS;

/// A pause that ends a window.
const LONG_PAUSE: u64 = 100 * MS;

/// Think times below this count as none.
// Linux block/bfq-iosched.c: BFQ_MIN_TT.
pub(super) const SHORT_TIME: u64 = 2 * MS;

/// Distance in sectors from which on a request is far from its predecessor.
// Linux block/bfq-iosched.c: BFQQ_SEEK_THR.
const FAR: u64 = 800;

/// Size in sectors from which on distance does not matter on flash.
// Linux block/bfq-iosched.c: BFQQ_SECT_THR_NONROT.
pub(super) const LARGE_ON_FLASH: u32 = 64;

/// The estimate and the window in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeakRate {
    /// The estimate.
    pub(super) rate: u64,
    /// Reference rate, and seconds of raising at that rate.
    reference_rate: u64,
    reference_ms: u64,
    first_dispatch: u64,
    last_dispatch: u64,
    samples: u64,
    sequential: u64,
    sectors: u64,
    largest: u64,
    window: u64,
}

impl PeakRate {
    /// Nothing measured yet: two thirds of the reference.
    pub(super) const fn new(is_rotational: bool) -> Self {
        let (reference_rate, reference_ms) =
            if is_rotational { (14_000, 7_000) } else { (33_000, 2_500) };
        Self {
            rate: reference_rate * 2 / 3,
            reference_rate,
            reference_ms,
            first_dispatch: 0,
            last_dispatch: 0,
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: 0,
            window: 0,
        }
    }

    /// Starts a window with a request (or with the next one dispatched).
    const fn restart(&mut self, now: u64, sectors: Option<u32>) {
        if let Some(sectors) = sectors {
            self.last_dispatch = now;
            self.first_dispatch = now;
            self.samples = 1;
            self.sequential = 0;
            self.sectors = sectors as u64;
            self.largest = sectors as u64;
        } else {
            self.samples = 0;
        }
    }

    /// Ends a window; true if the estimate changed.
    fn close(&mut self, last_completion: u64) -> bool {
        if self.samples < MIN_SAMPLES || self.window < MIN_WINDOW {
            return false;
        }
        self.window = self.window.max(last_completion.saturating_sub(self.first_dispatch));
        let rate = (self.sectors << SHIFT) / (self.window / 1_000);
        let is_mixed = self.sequential < (3 * self.samples) >> 2;
        if (is_mixed && rate <= self.rate) || rate > 20 << SHIFT {
            return false;
        }
        let weight = (9 * self.sequential) / self.samples;
        let weight = (weight * self.window / TARGET_WINDOW).min(8);
        let divisor = 10 - weight;
        self.rate = (self.rate * (divisor - 1) / divisor + rate / divisor).max(1);
        true
    }
}

impl Bfq {
    /// Tell whether a request is far from where the last one ended (0: no last one).
    pub(super) const fn is_far(&self, last_end: u64, request: &Request) -> bool {
        let distance = if last_end == 0 { 0 } else { request.sector.0.abs_diff(last_end) };
        distance > FAR && (self.device.is_rotational || request.sectors < LARGE_ON_FLASH)
    }

    /// Sectors that the device transfers in one slot at its peak rate.
    pub(super) const fn budget_of_rate(&self) -> u64 {
        let ms = self.hz.ms_of_ticks(self.settings.timeout as u64);
        (self.rate.rate * 1_000 * ms) >> SHIFT
    }

    /// Time for which an interactive process stays raised: longer on slow devices, 3 to 25 s.
    pub(super) fn raising_duration(&self) -> Ticks {
        let product = self.rate.reference_rate * self.hz.ticks_of_ms(self.rate.reference_ms);
        let ticks = (product / self.rate.rate) as Ticks;
        ticks.clamp(self.ticks_of(3_000), self.ticks_of(25_000))
    }

    /// A request leaves for the device.
    pub(super) fn observe_dispatch(&mut self, request: &Request, is_in_service: bool) {
        let now = self.now;
        if self.rate.samples == 0 {
            self.rate.restart(now, Some(request.sectors));
        } else if now - self.rate.last_dispatch > LONG_PAUSE && self.device.in_flight == 0 {
            self.close_window(Some(request.sectors));
        } else {
            self.sample_dispatch(request);
            if self.rate.window >= TARGET_WINDOW {
                self.close_window(Some(request.sectors));
            }
        }
        self.device.last_position = request.end();
        if is_in_service {
            self.device.service_position = request.end();
        }
        self.rate.last_dispatch = now;
    }

    fn sample_dispatch(&mut self, request: &Request) {
        let is_prompt =
            self.device.in_flight > 0 || self.now - self.device.last_completion < SHORT_TIME;
        let is_near = !self.is_far(self.device.last_position.0, request);
        let rate = &mut self.rate;
        rate.samples += 1;
        rate.sequential += u64::from(is_prompt && is_near);
        let sectors = u64::from(request.sectors);
        rate.sectors += sectors;
        let largest = if rate.samples.is_multiple_of(32) { 0 } else { rate.largest };
        rate.largest = largest.max(sectors);
        rate.window = self.now - rate.first_dispatch;
    }

    /// A request came back (the time of the last completion is still that of the one before).
    pub(super) fn observe_completion(&mut self) {
        let us = (self.now - self.device.last_completion) / 1_000;
        // Less than a million sectors per second although the device had time: a slow phase.
        let is_slow =
            us > SHORT_TIME / 1_000 && (self.rate.largest << SHIFT) / us < 1 << (SHIFT - 10);
        if is_slow {
            self.close_window(None);
        }
    }

    fn close_window(&mut self, sectors: Option<u32>) {
        if self.rate.close(self.device.last_completion) && self.settings.user_max_budget == 0 {
            self.max_budget = self.budget_of_rate();
        }
        self.rate.restart(self.now, sectors);
    }
}

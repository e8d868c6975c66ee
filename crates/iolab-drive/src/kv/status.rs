//! Lines about the progress, as YCSB writes them; the time of day before them is for whoever prints
//! them.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use iolab_workload::kv::hdr::Hdr;
use iolab_workload::kv::{KvCounts, KvMeasured, KvStage};

use crate::coordinate::Observer;

/// Percentiles that are told, as YCSB's head does.
const PERCENTILES: [(&str, f64); 5] =
    [("50", 50.0), ("90", 90.0), ("99", 99.0), ("99.9", 99.9), ("99.99", 99.99)];

/// Lines of a phase.
pub struct Progress<'a> {
    measured: &'a KvMeasured,
    stage: &'a KvStage,
    live: &'a [Mutex<KvCounts>],
    /// Operations that are to be done; 0: until the time is over.
    wanted: u64,
    began: Option<Instant>,
    told: Duration,
    told_done: u64,
}

impl<'a> Progress<'a> {
    /// Of a phase with so many operations.
    pub fn new(
        measured: &'a KvMeasured,
        stage: &'a KvStage,
        live: &'a [Mutex<KvCounts>],
        wanted: u64,
    ) -> Self {
        let told = Duration::ZERO;
        Self { measured, stage, live, wanted, began: None, told, told_done: 0 }
    }

    /// The first line.
    pub fn begin(&mut self) -> Option<String> {
        let is_wanted = self.measured.status_s > 0.0;
        self.began = Some(Instant::now());
        is_wanted.then(|| self.line(Duration::ZERO, false))
    }

    /// The next line, if it is due.
    pub fn due(&mut self) -> Option<String> {
        let elapsed = self.began?.elapsed();
        let next = self.told.as_secs_f64() + self.measured.status_s;
        let is_due = self.measured.status_s > 0.0 && elapsed.as_secs_f64() >= next;
        is_due.then(|| self.line(elapsed, false))
    }

    /// The last line.
    pub fn end(&mut self) -> Option<String> {
        let elapsed = self.began?.elapsed();
        (self.measured.status_s > 0.0).then(|| self.line(elapsed, true))
    }

    fn line(&mut self, elapsed: Duration, is_last: bool) -> String {
        let done = self.stage.done();
        let mut line = format!("{} sec: {done} operations; ", elapsed.as_secs());
        let since = elapsed.checked_sub(self.told.min(elapsed)).unwrap().as_secs_f64();
        if done > 0 && since > 0.0 {
            let rate = (done - self.told_done) as f64 / since;
            let _ = write!(line, "{} current ops/sec; ", decimals(rate));
        }
        if !is_last && self.wanted > 0 {
            let left_s = if done == 0 {
                0.0
            } else {
                self.wanted.saturating_sub(done) as f64 * elapsed.as_secs_f64() / done as f64
            };
            let _ = write!(line, "est completion in {} ", duration(left_s));
        }
        let mut sum = KvCounts::new(self.measured);
        for one in self.live {
            let mut one = one.lock().unwrap_or_else(PoisonError::into_inner);
            sum.merge(&one);
            one.clear();
        }
        let has_means = self.measured.ms_parts > 0 || self.measured.window_ms > 0;
        for (series, hdr) in sum.told() {
            let _ = if has_means {
                write!(line, "[{series} AverageLatency(us)={}] ", decimals(hdr.mean()))
            } else {
                write!(line, "[{series}: {}] ", told(hdr))
            };
        }
        (self.told, self.told_done) = (elapsed, done);
        line
    }
}

fn told(hdr: &Hdr) -> String {
    let (count, max, min) = (hdr.count(), hdr.max(), hdr.min());
    let mut text = format!("Count={count}, Max={max}, Min={min}, Avg={}", decimals(hdr.mean()));
    for (name, percent) in PERCENTILES {
        let _ = write!(text, ", {name}={}", hdr.percentile(percent));
    }
    text
}

/// A number with at most two decimals.
fn decimals(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A time as YCSB estimates it: the two largest units that are not zero.
fn duration(seconds: f64) -> String {
    let whole = seconds.ceil() as u64;
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let mut left = whole;
    let mut parts = Vec::new();
    for (size, name) in units {
        let count = left / size;
        left %= size;
        if count > 0 && parts.len() < 2 {
            let plural = if count > 1 && name != "second" { "s" } else { "" };
            parts.push(format!("{count} {name}{plural}"));
        }
    }
    if parts.is_empty() { "0 second".into() } else { parts.join(" ") }
}

/// An observer that also tells about the progress.
pub struct Telling<'a, O> {
    pub inner: &'a mut O,
    pub progress: Progress<'a>,
    pub tell: &'a dyn Fn(String),
}

impl<O: Observer> Observer for Telling<'_, O> {
    fn laid_out(&mut self) {
        self.inner.laid_out();
    }

    fn starting(&mut self) {
        self.inner.starting();
    }

    fn should_stop(&mut self) -> bool {
        self.progress.due().into_iter().for_each(self.tell);
        self.inner.should_stop()
    }

    fn released(&mut self) {
        self.inner.released();
        self.progress.begin().into_iter().for_each(self.tell);
    }

    fn ended(&mut self) {
        self.inner.ended();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_short() {
        assert_eq!((decimals(3300.0), decimals(16_977.934)), ("3300".into(), "16977.93".into()));
        assert_eq!((decimals(0.5), decimals(120.0)), ("0.5".into(), "120".into()));
        let texts = [0.0, 1.2, 61.0, 7200.0, 90_061.0].map(duration);
        let expected = ["0 second", "2 second", "1 minute 1 second", "2 hours", "1 day 1 hour"];
        assert_eq!(texts, expected);
    }
}

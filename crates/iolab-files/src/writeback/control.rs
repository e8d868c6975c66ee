//! `DirtyControl`: dirty throttling by pauses since Linux 3.2, by writing oneself before.
//!
//! Source: Linux mm/page-writeback.c (`balance_dirty_pages`, of 6.12 and of 2.6.32).

use std::collections::BTreeMap;

use iolab_model::Ns;

use crate::api::make::Kernel;
use crate::api::write_back::{BackingId, DirtyView, Pause, TaskId, Throttle, VmSettings};

use super::limits::{DirtyLimits, ONE, Shared};
use super::pace::{HZ, INTERVAL, POLL_PAGES, Pace, TICK, pause_max, pause_min, poll_pages};

/// Writers pause since this version.
const PAUSES_SINCE: Kernel = Kernel::new(3, 2);
/// Pages between two looks while the device is above its share: 32 KiB.
const EXCEEDED_PAGES: u64 = 8;
/// Period after which completions count half: 3 s.
const SHARE_PERIOD: Ns = Ns(3_000_000_000);
/// Pages that an old kernel's writer has dirtied between two looks, at most.
const OLD_LOOK_PAGES_MAX: u64 = 1024;
/// Step in which an old kernel's writer waits above the limit.
const OLD_WAIT: Ns = Ns(100_000_000);

/// A task that dirties pages.
#[derive(Clone, Copy, Debug)]
struct Dirtier {
    dirtied: u64,
    /// Dirtied pages after which it looks.
    poll: u64,
    /// End of its last pause, in ticks; perhaps in the future.
    paused_at: u64,
    /// The pause that it comes from was paid: it goes on.
    has_paid: bool,
    /// Has written pages itself (old kernels).
    has_written: bool,
}

impl Default for Dirtier {
    fn default() -> Self {
        Self { dirtied: 0, poll: POLL_PAGES, paused_at: 0, has_paid: false, has_written: false }
    }
}

/// A device.
#[derive(Clone, Copy, Debug, Default)]
struct Backing {
    pace: Pace,
    /// Ticks of the last look at bandwidth and rate.
    stamp: u64,
    dirtied: u64,
    dirtied_at_stamp: u64,
    written: u64,
    written_at_stamp: u64,
    /// Completions that count for its share.
    share: u64,
    is_exceeded: bool,
}

/// Dirty throttling.
#[derive(Clone, Debug)]
pub struct DirtyControl {
    settings: VmSettings,
    cpus: u64,
    pauses: bool,
    tasks: BTreeMap<TaskId, Dirtier>,
    devices: Vec<Backing>,
    /// Hard limit, and the ticks of its last change.
    hard: u64,
    hard_stamp: u64,
    /// Start of the period of shares.
    share_since: Ns,
    /// Pages that all tasks have dirtied since one looked, and how many make the next one look.
    unseen: u64,
    unseen_max: u64,
    /// Ticks that writers have slept, all together.
    slept: Ns,
}

impl DirtyControl {
    /// Throttling with these settings.
    pub fn new(settings: VmSettings, cpus: u32, kernel: Kernel) -> Self {
        Self {
            settings,
            cpus: u64::from(cpus.max(1)),
            pauses: kernel >= PAUSES_SINCE,
            tasks: BTreeMap::new(),
            devices: Vec::new(),
            hard: 0,
            hard_stamp: 0,
            share_since: Ns(0),
            unseen: 0,
            unseen_max: u64::MAX,
            slept: Ns(0),
        }
    }

    /// Time that writers have slept, all together.
    pub const fn slept(&self) -> Ns {
        self.slept
    }

    fn device(&mut self, id: BackingId) -> &mut Backing {
        let index = usize::from(id.0);
        if self.devices.len() <= index {
            self.devices.resize(index + 1, Backing::default());
        }
        &mut self.devices[index]
    }

    /// Completions of long ago count less.
    fn age_shares(&mut self, now: Ns) {
        while now.0 >= self.share_since.0 + SHARE_PERIOD.0 {
            self.share_since.0 += SHARE_PERIOD.0;
            let mut rest = 0;
            for device in &mut self.devices {
                device.share /= 2;
                rest += device.share;
            }
            if rest == 0 {
                self.share_since = now;
                return;
            }
        }
    }

    /// The hard limit follows the threshold: upwards at once, downwards slowly.
    fn follow(&mut self, ticks: u64, threshold: u64, dirty: u64) {
        if self.hard < threshold {
            self.hard = threshold;
            self.hard_stamp = ticks;
            return;
        }
        if ticks >= self.hard_stamp + INTERVAL {
            self.hard_stamp = ticks;
            let floor = threshold.max(dirty);
            self.hard -= self.hard.saturating_sub(floor) >> 5;
        }
    }

    fn shared(&self, id: BackingId, limits: DirtyLimits, view: &DirtyView) -> Shared {
        let device = self.devices.get(usize::from(id.0)).copied().unwrap_or_default();
        let total: u64 = self.devices.iter().map(|device| device.share).sum();
        let part = limits.threshold * device.share / total.max(1);
        Shared {
            limits,
            hard: self.hard.max(limits.threshold),
            dirty: view.dirty,
            device_dirty: view.device_dirty,
            device_threshold: part,
            bandwidth: device.pace.smooth,
        }
    }

    fn update(&mut self, ticks: u64, id: BackingId, ratio: Option<(u64, bool)>) {
        let device = self.device(id);
        let elapsed = ticks.saturating_sub(device.stamp);
        if elapsed < INTERVAL {
            return;
        }
        let (written, dirtied) =
            (device.written - device.written_at_stamp, device.dirtied - device.dirtied_at_stamp);
        device.pace.observe(written, elapsed);
        if let Some((ratio, is_below)) = ratio {
            device.pace.adjust(dirtied, elapsed, ratio, is_below);
        }
        device.stamp = ticks;
        device.written_at_stamp = device.written;
        device.dirtied_at_stamp = device.dirtied;
    }

    fn pause(&mut self, now: Ns, task: TaskId, to: BackingId, view: &DirtyView) -> Pause {
        let ticks = now.0 / TICK.0;
        self.age_shares(now);
        let limits = DirtyLimits::new(&self.settings, view.dirtyable);
        self.unseen_max = (limits.threshold / (32 * self.cpus)).max(16);
        let one = self.tasks.entry(task).or_default();
        if core::mem::take(&mut one.has_paid) {
            return Pause::Go;
        }
        if view.dirty <= limits.free_run() {
            one.paused_at = ticks;
            one.dirtied = 0;
            one.poll = poll_pages(view.dirty, limits.threshold);
            self.device(to).is_exceeded = false;
            return Pause::Go;
        }
        self.follow(ticks, limits.threshold, view.dirty);
        let shared = self.shared(to, limits, view);
        let ratio = shared.ratio();
        self.device(to).is_exceeded =
            view.device_dirty > shared.device_threshold && view.dirty > limits.threshold;
        let is_below = view.dirty < limits.set_point(shared.hard);
        self.update(ticks, to, Some((ratio, is_below)));
        let pace = self.device(to).pace;
        let task_rate = pace.rate * ratio / ONE;
        let most = pause_max(pace.smooth, view.device_dirty);
        let (pages, least) = pause_min(pace.smooth, most, task_rate, pace.rate);
        let one = self.tasks.entry(task).or_default();
        let answer = one.pay(ticks, task_rate, (pages, least, most));
        if let Pause::Sleep(time) = answer {
            self.slept += time;
        }
        answer
    }

    /// Kernels up to 3.1: a writer above the limits writes one and a half times what it dirtied.
    fn write_oneself(&mut self, task: TaskId, view: &DirtyView) -> Pause {
        let limits = DirtyLimits::new(&self.settings, view.dirtyable);
        self.unseen_max = (limits.threshold / (32 * self.cpus)).clamp(16, OLD_LOOK_PAGES_MAX);
        let one = self.tasks.entry(task).or_default();
        one.poll = self.unseen_max;
        let dirtied = core::mem::take(&mut one.dirtied);
        let has_written = core::mem::take(&mut one.has_written);
        if view.dirty <= limits.free_run() {
            return Pause::Go;
        }
        if !has_written {
            one.has_written = true;
            let pages = dirtied.max(EXCEEDED_PAGES);
            return Pause::Write((pages + pages / 2).min(OLD_LOOK_PAGES_MAX));
        }
        if view.dirty > limits.threshold {
            self.slept += OLD_WAIT;
            return Pause::Sleep(OLD_WAIT);
        }
        Pause::Go
    }
}

impl Dirtier {
    /// Pause for the pages dirtied since the last one.
    fn pay(&mut self, now: u64, rate: u64, (pages, least, most): (u64, u64, u64)) -> Pause {
        let sleep = |ticks: u64| Pause::Sleep(Ns(ticks * TICK.0));
        if rate == 0 {
            self.paused_at = now + most;
            self.dirtied = 0;
            self.poll = pages;
            return sleep(most);
        }
        let period = (HZ * self.dirtied / rate) as i64;
        let gone = if self.paused_at == 0 { 0 } else { now as i64 - self.paused_at as i64 };
        let pause = period - gone;
        if pause < least as i64 {
            if pause < -(HZ as i64) {
                self.paused_at = now;
                self.dirtied = 0;
            } else if period > 0 {
                self.paused_at += period as u64;
                self.dirtied = 0;
            } else if self.poll <= self.dirtied {
                self.poll += self.dirtied;
            }
            return Pause::Go;
        }
        let excess = (pause - most as i64).max(0).min(most as i64) as u64;
        let pause = (pause as u64).min(most);
        self.paused_at = now + excess + pause;
        self.dirtied = 0;
        self.poll = pages.max(1);
        self.has_paid = true;
        sleep(pause)
    }
}

impl Throttle for DirtyControl {
    fn dirtied(&mut self, _: Ns, task: TaskId, to: BackingId, pages: u64) -> bool {
        let device = self.device(to);
        device.dirtied += pages;
        let is_exceeded = device.is_exceeded;
        self.unseen += pages;
        let one = self.tasks.entry(task).or_default();
        one.dirtied += pages;
        let poll = if is_exceeded { one.poll.min(EXCEEDED_PAGES) } else { one.poll };
        if one.dirtied >= poll || self.unseen >= self.unseen_max {
            self.unseen = 0;
            return true;
        }
        false
    }

    fn look(&mut self, now: Ns, task: TaskId, to: BackingId, view: &DirtyView) -> Pause {
        if self.pauses { self.pause(now, task, to, view) } else { self.write_oneself(task, view) }
    }

    fn written(&mut self, now: Ns, to: BackingId, pages: u64) {
        self.age_shares(now);
        let ticks = now.0 / TICK.0;
        let device = self.device(to);
        // A device that was idle starts a new interval.
        if device.written == device.written_at_stamp && ticks > device.stamp + HZ {
            device.stamp = ticks;
            device.dirtied_at_stamp = device.dirtied;
        }
        device.written += pages;
        device.share += pages;
        self.update(ticks, to, None);
    }

    fn wants_background(&self, view: &DirtyView) -> bool {
        view.dirty > DirtyLimits::new(&self.settings, view.dirtyable).background
    }

    fn bandwidth(&self, of: BackingId) -> (u64, u64) {
        let pace =
            self.devices.get(usize::from(of.0)).map_or(Pace::default(), |device| device.pace);
        // Before the first writer was slowed down the limit is what it starts with.
        (pace.smooth, if self.hard == 0 { self.unseen_hard() } else { self.hard })
    }
}

impl DirtyControl {
    fn unseen_hard(&self) -> u64 {
        if self.unseen_max == u64::MAX { u64::MAX / 16 } else { self.unseen_max * 32 * self.cpus }
    }
}

#[cfg(test)]
mod tests;

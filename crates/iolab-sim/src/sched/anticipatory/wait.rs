//! Choice between waiting for a process and going on with what is there.
//!
//! Source: Linux 2.6.32 block/as-iosched.c (behaviour and constants).

use super::history::Ticks;
use super::{Anticipatory, Kind, Status};
use crate::api::bio::ProcessId;
use crate::api::request::{Request, RequestId, Requests};

/// Linux 2.6.32 block/as-iosched.c: how far away is close, without having waited.
const CLOSE_SECTORS: u64 = 8192;
/// Linux 2.6.32 block/as-iosched.c: after so long everything is close.
const CLOSE_MS_MAX: u64 = 20;

impl Anticipatory {
    /// Tell whether another process's sync request is as good as what is hoped for.
    fn is_close(&mut self, now: Ticks, process: ProcessId, candidate: &Request) -> bool {
        let waited = if self.status == Status::Off || !self.is_awaited_finished {
            0
        } else {
            (now - self.wait_start) as u64
        };
        if waited > self.wait_expire || waited > CLOSE_MS_MAX * u64::from(self.hz.0) / 1_000 {
            return true;
        }
        let delta = CLOSE_SECTORS << waited;
        let (last, next) = (self.last_sector[self.batch.kind as usize].0, candidate.sector.0);
        if last <= next + delta / 2 && next <= last + delta {
            return true;
        }
        let new_mean = self.history.new_seek_mean();
        let seek = self.history.process(process).seek;
        let mean = if seek.samples == 0 { new_mean } else { seek.mean };
        mean > last.abs_diff(next)
    }

    /// Tell whether there is no point in waiting (any longer) for a process, given the best request
    /// at hand.
    pub(super) fn must_go_on(
        &mut self,
        requests: &Requests,
        now: Ticks,
        (awaited, candidate): (ProcessId, Option<RequestId>),
    ) -> bool {
        let entry = candidate.map(|id| *self.entries.get(id));
        if entry.is_some_and(|entry| entry.process == awaited)
            || self.is_awaited_finished && now - self.wait_start >= self.wait_expire as Ticks
        {
            return true;
        }
        let process = *self.history.process(awaited);
        if process.queued > 0 || process.dispatched > 0 {
            return true;
        }
        let is_unknown = process.think.samples == 0;
        if let (Some(id), Some(Kind::Sync)) = (candidate, entry.map(|entry| entry.kind))
            && self.is_close(now, awaited, &requests[id])
        {
            if process.has_exited {
                if is_unknown {
                    self.history.raise_exit_probability();
                }
                self.history.lower_no_cooperation();
            }
            let span = (requests[id].sector, requests[id].end());
            self.history.sample(awaited, now, self.hz, span);
            return true;
        }
        if process.has_exited {
            if is_unknown {
                self.history.raise_exit_probability();
            }
            if self.history.no_cooperation > 128 {
                return true;
            }
        }
        if is_unknown {
            self.history.new_think_mean() > self.wait_expire
                || self.history.exit_probability * self.history.no_cooperation > 128 * 256
        } else {
            process.think.mean > self.wait_expire
        }
    }

    pub(super) fn may_wait(
        &mut self,
        requests: &Requests,
        now: Ticks,
        candidate: Option<RequestId>,
    ) -> bool {
        let Some(awaited) = self.awaited.filter(|_| self.status != Status::Finished) else {
            return false;
        };
        !self.must_go_on(requests, now, (awaited, candidate))
    }
}

//! Runs: what [`Lane::run`] does beside the same transfers one by one.

use std::path::PathBuf;

use super::{FILE, Probe, RECORD, RECORDS};
use crate::completion::Completion;
use crate::error::Errno;
use crate::op::{Access, Handle, Op, Position, Token, Transfer};
use crate::target::{Lane, Run, RunEnd, Target};
use crate::units::{Bytes, Ns};

const CLOSED: Handle = Handle(5);

/// Records in the order given; what is known of each end.
struct Records<'a, const WRITES: bool> {
    handle: Handle,
    rest: std::slice::Iter<'a, u64>,
    /// Time at which [`Run::next`] was asked last.
    asked: Ns,
    ended: usize,
    broken: Option<String>,
}

impl<const WRITES: bool> Run for Records<'_, WRITES> {
    const WRITES: bool = WRITES;

    fn next(&mut self, now: Ns) -> Option<Transfer> {
        if now < self.asked {
            self.broken = Some(format!("time went back from {:?} to {now:?}", self.asked));
        }
        self.asked = now;
        let record = self.rest.next()?;
        Some(Transfer::plain(self.handle, Position::At(Bytes(record * RECORD.0)), RECORD))
    }

    fn ended(&mut self, submitted: Ns, completed: Ns, length: Bytes) {
        if submitted != self.asked || completed < submitted || length != RECORD {
            self.broken = Some(format!(
                "asked at {:?}, submitted at {submitted:?}, completed at {completed:?}, {length:?}",
                self.asked
            ));
        }
        self.ended += 1;
    }
}

impl<L: Lane> Probe<L> {
    /// Makes a run; answers how many transfers ended in it, and the one that did not.
    fn runs<const WRITES: bool>(
        &mut self,
        handle: Handle,
        records: &[u64],
    ) -> Result<(usize, Option<Completion>), String> {
        let now = self.lane.now();
        let (rest, ended) = (records.iter(), 0);
        let mut run = Records::<WRITES> { handle, rest, asked: now, ended, broken: None };
        let end = self.lane.run(now, &mut run);
        self.clock = self.lane.now();
        match (run.broken, end) {
            (Some(broken), _) => Err(broken),
            (None, RunEnd::Over(at)) if at < run.asked || at > self.clock => {
                Err(format!("over at {at:?}, asked last at {:?}, now {:?}", run.asked, self.clock))
            }
            (None, RunEnd::Over(_)) => Ok((run.ended, None)),
            (None, RunEnd::FellShort(_, completion)) if completion.submitted != run.asked => {
                Err(format!("{completion:?} was asked for at {:?}", run.asked))
            }
            (None, RunEnd::FellShort(_, completion)) => {
                self.check_time(&completion)?;
                Ok((run.ended, Some(completion)))
            }
        }
    }
}

/// Transfers of a run move the same bytes; the first that does not end whole ends it.
pub(super) fn runs<T: Target>(target: &T, paths: &[PathBuf]) -> Result<(), String> {
    if !target.takes_runs() {
        return Ok(());
    }
    let can = target.capabilities();
    let mut probe = Probe::open(target, paths)?;
    probe.fill(can.has_namespace)?;
    let order = [9, 3, 60, 3, 0];
    for ended in [probe.runs::<true>(FILE, &order)?, probe.runs::<false>(FILE, &order)?] {
        if ended != (order.len(), None) {
            return Err(format!("{} transfers ended in a run as {ended:?}", order.len()));
        }
    }
    if can.can_verify {
        // The last transfer of the run leaves its bytes in the buffer.
        probe.runs::<true>(FILE, &order)?;
        let written = probe.held();
        probe.forget();
        probe.ok(Op::read(FILE, Bytes(0), RECORD))?;
        if probe.held() != written {
            return Err("a run wrote other bytes than are read".into());
        }
        probe.forget();
        probe.runs::<false>(FILE, &order)?;
        if probe.held() != written {
            return Err("a run read other bytes than were written".into());
        }
        let beyond = match probe.how.access {
            Access::Mapped => Err(Errno::EINVAL),
            _ => Ok(Bytes(0)),
        };
        let found = probe.runs::<false>(FILE, &[1, RECORDS, 2])?;
        let is_first = |end: Completion| end.token == Token(0) && end.outcome == beyond;
        if found.0 != 1 || !found.1.is_some_and(is_first) {
            return Err(format!("a run beyond the end of the file ended as {found:?}"));
        }
    }
    if can.has_namespace && !can.keeps_nothing {
        let found = probe.runs::<false>(CLOSED, &[0])?;
        let is_declined = matches!(found, (0, Some(end)) if end.outcome == Err(Errno::EBADF));
        return is_declined.then_some(()).ok_or_else(|| format!("on no file a run gave {found:?}"));
    }
    Ok(())
}

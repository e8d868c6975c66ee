//! A device that answers that it is busy while it holds so many commands.
//!
//! The queue above has more tags than the device has places, as happens where a host adapter serves
//! several drives or a target shares its queue: the device refuses (`QUEUE FULL` of a SCSI target,
//! `BLK_STS_RESOURCE` of a driver), the request is put back and offered again after the next
//! completion. Left out: that Linux lowers the device's queue depth after repeated refusals
//! (drivers/scsi/scsi.c, `scsi_track_queue_full`), and initiators beside this one.
//!
//! Source: SCSI Architecture Model 5 (T10), status TASK SET FULL; Linux 6.18 block/blk-mq.c
//! (`blk_mq_dispatch_rq_list`, behaviour).

use iolab_model::{Ns, TraceEvent};

use crate::api::bio::{Bio, Ended, ProcessId};
use crate::api::layer::{Incident, Info, Layer};

/// Busy from a number of commands on.
pub struct Busy {
    below: Box<dyn Layer>,
    limit: u32,
    in_flight: u32,
}

impl Busy {
    /// `below`, which takes `limit` commands at once and no more.
    pub const fn new(below: Box<dyn Layer>, limit: u32) -> Self {
        Self { below, limit, in_flight: 0 }
    }
}

impl Layer for Busy {
    fn info(&self) -> Info {
        self.below.info()
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        assert!(self.in_flight < self.limit, "the layer above has not asked whether it is busy");
        self.in_flight += 1;
        self.below.submit(now, bio);
    }

    fn next_event(&self) -> Ns {
        self.below.next_event()
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        let before = done.len();
        self.below.advance(now, done);
        self.in_flight -= (done.len() - before) as u32;
    }

    fn is_busy(&self) -> bool {
        self.in_flight >= self.limit
    }

    fn exited(&mut self, now: Ns, process: ProcessId) {
        self.below.exited(now, process);
    }

    fn age(&mut self) {
        self.below.age();
    }

    fn record_events(&mut self, queues: &mut u16) {
        self.below.record_events(queues);
    }

    fn take_events(&mut self, events: &mut Vec<TraceEvent>) {
        self.below.take_events(events);
    }

    fn incidents(&self, list: &mut Vec<Incident>) {
        self.below.incidents(list);
    }

    fn counters(&self) -> Vec<(String, f64)> {
        self.below.counters()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use iolab_model::Sector;
    use iolab_model::trace_event::Action;

    use super::*;
    use crate::api::bio::{BioId, Flags, Operation, Submitter};
    use crate::device::fixed::Fixed;
    use crate::queue::{BlockQueue, QueueParameters};
    use crate::sched::SchedulerKind;

    /// (most commands at the device at once, requeues) of 40 reads that arrive together.
    fn load(scheduler: SchedulerKind, limit: Option<u32>, together: u32) -> (u32, usize) {
        let mut device: Box<dyn Layer> = Box::new(Fixed::new(Ns::from_us(100), 32, true));
        if let Some(limit) = limit {
            device = Box::new(Busy::new(device, limit));
        }
        let parameters = QueueParameters { scheduler, ..QueueParameters::default() };
        let mut queue = BlockQueue::new(Ns(0), &parameters, device).unwrap();
        queue.record_events(&mut 0);
        for id in 0..40 {
            let sector = Sector(u64::from(id) * 1_000);
            let (flags, submitter) = (Flags::NONE, Submitter::default());
            let at = Ns(u64::from(id / together) * 1_000_000);
            while queue.next_event() <= at {
                let now = queue.next_event();
                queue.advance(now, &mut Vec::new());
            }
            let operation = Operation::Read;
            let bio =
                Bio { id: BioId(id), operation, sector, sectors: 8, flags, submitter, segments: 0 };
            queue.submit(at, &bio);
        }
        while queue.next_event() != Ns::MAX {
            let now = queue.next_event();
            queue.advance(now, &mut Vec::new());
        }
        let mut events = Vec::new();
        queue.take_events(&mut events);
        let (mut here, mut most) = (0_u32, 0);
        for event in &events {
            here += u32::from(event.action == Action::Issued);
            here -= u32::from(event.action == Action::Completed);
            most = most.max(here);
        }
        let ended = events.iter().filter(|event| event.action == Action::Completed);
        assert_eq!(ended.map(|event| event.sector).collect::<BTreeSet<_>>().len(), 40);
        let requeued = events.iter().filter(|event| event.action == Action::Requeued);
        (most, requeued.count())
    }

    #[test]
    fn requeues_come_from_load_alone() {
        for &scheduler in SchedulerKind::ALL {
            let (most, requeues) = load(scheduler, Some(4), 40);
            assert!(most == 4 && requeues > 0, "{scheduler}: {most} at once, {requeues} requeues");
            assert_eq!(load(scheduler, Some(4), 4).1, 0, "{scheduler}: never more than fit");
            assert_eq!(load(scheduler, None, 40).1, 0, "{scheduler}: no limit, no requeue");
        }
    }
}

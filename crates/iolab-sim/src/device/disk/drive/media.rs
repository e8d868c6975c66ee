//! The drive's use of the mechanism: reads, writes, read-ahead.

use iolab_model::Ns;

use super::super::mechanism::Pass;
use super::super::parameters::QueuedWriteLoss;
use super::super::queue::Command;
use super::super::read_cache::Lookup;
use super::super::statistics::Service;
use super::super::write_cache::Extent;
use super::{Disk, Feed, ReadAhead, Task};

impl Disk {
    /// Brings the read-ahead up to now.
    pub(super) fn update_read_ahead(&mut self, now: Ns) {
        if let Some(ahead) = &mut self.read_ahead {
            let before = ahead.pass.sector;
            self.mechanism.run_until(&mut ahead.pass, now, ahead.limit);
            self.statistics.read_ahead += ahead.pass.sector - before;
            self.read_cache.extend(ahead.segment, ahead.pass.sector);
            self.mechanism.settle_on(&ahead.pass.place);
        }
    }

    pub(super) fn stop_read_ahead(&mut self, now: Ns) {
        self.update_read_ahead(now);
        self.read_ahead = None;
    }

    /// A write makes what was read stale, and stops a read-ahead that runs into it.
    pub(super) fn invalidate(&mut self, now: Ns, extent: Extent) {
        if let Some(ahead) = self.read_ahead {
            let from = self.read_cache.segment(ahead.segment).start;
            if from < extent.end && extent.start < ahead.limit {
                self.stop_read_ahead(now);
            }
        }
        self.read_cache.invalidate(extent.start, extent.end);
    }

    /// Reads that start in here are served by the running read-ahead; where the drive reads ahead
    /// for others that wait, only as long as it does.
    pub(super) fn stream(&self) -> Option<(u64, u64)> {
        let ahead = self.read_ahead.as_ref().filter(|ahead| ahead.pass.sector < ahead.limit)?;
        let stream = (self.read_cache.segment(ahead.segment).start, ahead.limit);
        let is_over = self.parameters.read_ahead_least > 0 && ahead.pass.sector >= ahead.least;
        // What waits for a place soon after it is the same stream.
        let near = (stream.0, stream.1 + self.parameters.segment_sectors);
        (!is_over || !self.queue.has_other(near)).then_some(stream)
    }

    /// Moves the heads and waits for the first sector.
    fn position(&mut self, at: Ns, start: u64, is_write: bool, service: &mut Service) -> Pass {
        let place = self.mechanism.geometry.place(start);
        service.has_moved |= place.cylinder != self.mechanism.cylinder;
        service.seek = self.mechanism.travel(place.cylinder, place.head, is_write);
        let ready = at + Ns(service.seek);
        service.rotation = self.mechanism.wait(ready, self.mechanism.geometry.angle_of(&place));
        Pass { sector: start, time: ready + Ns(service.rotation), place, is_write }
    }

    /// Positions and writes. Data that are not there in time cost a revolution.
    pub(super) fn write_media(
        &mut self,
        now: Ns,
        service: &mut Service,
        extent: Extent,
        feed: Feed,
    ) {
        let at = now + Ns(service.overhead);
        let mut pass = self.position(at, extent.start, true, service);
        let period = self.mechanism.geometry.period().0;
        while pass.time < feed.filled {
            service.rotation += period;
            pass.time += Ns(period);
        }
        let begun = pass.time;
        self.mechanism.run_to(&mut pass, extent.end);
        service.transfer = pass.time.since(begun).0;
        while pass.time < feed.all {
            service.rotation += period;
            pass.time += Ns(period);
        }
        self.mechanism.settle_on(&pass.place);
    }

    pub(super) fn start_write(&mut self, now: Ns, command: &Command) {
        self.stop_read_ahead(now);
        let extent = Extent { start: command.start, end: command.end };
        let follows = self
            .last_write
            .is_some_and(|(at, end)| at == command.start && end == now && command.arrived < end);
        let after = command.before.write();
        let overhead = self.parameters.overhead_write[after];
        let mut service = Service { overhead, ..Service::default() };
        if follows && self.parameters.queued_write_loss != QueuedWriteLoss::Exact {
            self.follow(extent, &mut service);
        } else {
            let begun = now + Ns(self.parameters.write_data[after]);
            let feed = self.feed(begun.max(self.bus_free), extent);
            self.bus_free = feed.all;
            self.write_media(now, &mut service, extent, feed);
        }
        service.bus = self.parameters.completion_write[after];
        self.run(now, &service, Task::Write(command.id, extent.end - extent.start));
        self.last_write = Some((extent.end, now + service.total()));
    }

    /// Arrival of the data of a write that begin to come at an instant.
    fn feed(&self, begun: Ns, extent: Extent) -> Feed {
        let sectors = extent.end - extent.start;
        let least = self.parameters.write_prefill.of(sectors);
        let sector = self.parameters.bus_sector_write;
        Feed { filled: begun + Ns(least * sector), all: begun + Ns(sectors * sector) }
    }

    /// A contiguous write that was queued: the loss that the parameter says, then the sustained
    /// media rate with track skew (cylinder skew is neglected).
    fn follow(&mut self, extent: Extent, service: &mut Service) {
        let geometry = &self.mechanism.geometry;
        let zone = geometry.zone(extent.start);
        let (track, skew) = (u64::from(zone.track_sectors), u64::from(zone.track_skew));
        let period = geometry.period().0;
        let sectors = extent.end - extent.start;
        service.transfer = sectors * period * (track + skew) / (track * track);
        if self.parameters.queued_write_loss == QueuedWriteLoss::Uniform {
            service.rotation = self.losses.below(period);
        } else {
            // The overhead hides behind the transfer before.
            service.overhead = service.overhead.saturating_sub(service.transfer);
        }
        let last = geometry.place(extent.end - 1);
        self.mechanism.settle_on(&last);
    }

    pub(super) fn start_read(&mut self, now: Ns, command: &Command, stream: Option<(u64, u64)>) {
        let serves = |(from, to): (u64, u64)| from <= command.start && command.start < to;
        if stream.is_some_and(serves) && self.read_ahead.is_some() {
            return self.read_from_stream(now, command);
        }
        self.stop_read_ahead(now);
        let mut start = command.start;
        let mut segment = None;
        if let Lookup::Partial(index) = self.read_cache.lookup(start, command.end) {
            start = self.read_cache.segment(index).end;
            segment = Some(index);
            self.statistics.hit += start - command.start;
            self.statistics.partial_hits += 1;
        }
        segment = segment.or_else(|| self.read_cache.continued(start));
        let mut service = Service { overhead: self.parameters.overhead_read, ..Service::default() };
        let mut pass = self.position(now + Ns(service.overhead), start, false, &mut service);
        let begun = pass.time;
        self.mechanism.run_to(&mut pass, command.end);
        service.transfer = pass.time.since(begun).0;
        self.mechanism.settle_on(&pass.place);
        service.bus = self.bus_after(command.end - start, service.transfer);
        self.wait_for_bus(now, command.end - start, &mut service);
        self.statistics.media_read += command.end - start;
        if self.read_cache.is_on() {
            self.keep_and_read_ahead(command, segment, start, pass);
        }
        self.run(now, &service, Task::Read(command.id));
    }

    /// Bus time after the media transfer: the last sector, or more if the bus starts late or is
    /// slower than the media.
    const fn bus_after(&self, sectors: u64, transfer: u64) -> u64 {
        let one = self.parameters.bus_sector;
        let begun = ((transfer * self.parameters.bus_watermark) >> 20) + self.parameters.bus_start;
        let rest = (begun + sectors * one).saturating_sub(transfer);
        (if rest > one { rest } else { one }) + self.parameters.completion_read
    }

    /// The data of a read use the bus when nothing else does.
    fn wait_for_bus(&mut self, now: Ns, sectors: u64, service: &mut Service) {
        let (data, after) = (sectors * self.parameters.bus_sector, self.parameters.completion_read);
        let begin = (now + service.total()).since(Ns(data + after));
        if self.bus_free > now {
            service.bus += self.bus_free.since(begin).0;
        }
        let end = (now + service.total()).since(Ns(after));
        self.bus_taken = (end.since(Ns(data)), end);
    }

    /// Keeps what was read and goes on reading.
    fn keep_and_read_ahead(
        &mut self,
        command: &Command,
        segment: Option<usize>,
        start: u64,
        pass: Pass,
    ) {
        let index = segment.unwrap_or_else(|| self.read_cache.allocate(start, command.end));
        self.read_cache.extend(index, command.end);
        self.read_cache.touch(index);
        if segment.is_some() || !self.parameters.is_read_ahead_sequential {
            // What other segments hold behind it is no end of the stream.
            let held = self.read_cache.held_until(command.end);
            let limit = self.read_cache.limit(command.start, held);
            let limit = limit.min(self.mechanism.geometry.sectors());
            let sequential = if segment.is_some() { self.parameters.read_ahead_least } else { 0 };
            let least = (command.end + sequential).min(limit);
            self.read_ahead = Some(ReadAhead { segment: index, pass, limit, least });
        }
    }

    /// The wanted sectors are passing under the head: wait for the last one.
    fn read_from_stream(&mut self, now: Ns, command: &Command) {
        let Some(ahead) = &mut self.read_ahead else { return };
        let limit = self.read_cache.limit(command.start, command.end);
        ahead.limit = ahead.limit.max(limit.min(self.mechanism.geometry.sectors()));
        let before = ahead.pass.sector;
        self.mechanism.run_to(&mut ahead.pass, command.end);
        self.statistics.read_ahead += ahead.pass.sector - before;
        self.read_cache.extend(ahead.segment, ahead.pass.sector);
        self.read_cache.touch(ahead.segment);
        let sectors = command.end - command.start;
        let hit = self.parameters.overhead_hit[command.before.hit()];
        let one = self.parameters.bus_sector;
        let media = ahead.pass.time.since(now + Ns(hit)).0;
        let bus = (sectors * one).saturating_sub(media).max(one) + self.parameters.completion_read;
        let mut service = Service { overhead: hit, transfer: media, bus, ..Service::default() };
        self.wait_for_bus(now, sectors, &mut service);
        self.statistics.hit += sectors;
        self.statistics.partial_hits += 1;
        self.run(now, &service, Task::Read(command.id));
    }
}

//! Events of a simulated queue as those of a device, in the file of recorded ones.
//!
//! A simulated queue has the number of its place in the stack; its device is of a major number
//! that no driver has. Left out, because the simulator has none: records numbered by CPU, cgroups,
//! errors of completions, the wall clock.

use std::collections::BTreeSet;

use iolab_model::TraceEvent;
use iolab_model::trace_event::{Action as Simulated, Operation, kernel_thread};

use crate::error::Error;
use crate::event::{Action, Categories, Device, Event};
use crate::native::Writer;
use crate::source::Facts;

/// Major number of simulated devices (Linux Documentation/admin-guide/devices.txt: 240 to 254 are
/// for local and experimental use; of those, btt takes 253 and 254 for devices that only map).
pub const MAJOR: u32 = 240;

/// Device of a queue of a stack.
pub const fn device_of(queue: u16) -> Device {
    Device::new(MAJOR, queue as u32)
}

/// Name of a queue of a stack, as a kernel name would be.
pub fn name_of(queue: u16) -> String {
    format!("sim{queue}")
}

const fn action_of(action: Simulated) -> Action {
    match action {
        Simulated::Queued => Action::Queued,
        Simulated::Got => Action::Got,
        Simulated::Inserted => Action::Inserted,
        Simulated::Issued => Action::Issued,
        Simulated::Completed => Action::Completed,
        Simulated::BackMerged => Action::BackMerged,
        Simulated::FrontMerged => Action::FrontMerged,
        Simulated::RequestMerged => Action::Joined,
        Simulated::Plugged => Action::Plugged,
        Simulated::Unplugged => Action::Unplugged,
        Simulated::Split => Action::Split,
        Simulated::Requeued => Action::Requeued,
    }
}

fn categories_of(operation: Operation) -> Categories {
    let kind = match operation.0 & 3 {
        0 => Categories::READ,
        1 => Categories::WRITE,
        2 => Categories::DISCARD.with(Categories::WRITE),
        _ => Categories::FLUSH,
    };
    let flags = [
        (Operation::PREFLUSH, Categories::FLUSH),
        (Operation::FUA, Categories::FUA),
        (Operation::SYNC, Categories::SYNC),
        (Operation::META, Categories::META),
    ];
    let set = flags.iter().filter(|(flag, _)| operation.0 & flag.0 != 0);
    set.fold(kind, |all, (_, category)| all.with(*category))
}

/// Makes `event` what a tracer of the kernel would have recorded of a simulated one.
pub fn read(simulated: &TraceEvent, event: &mut Event) {
    event.clear();
    event.action = action_of(simulated.action);
    event.categories = categories_of(simulated.operation).with(Categories::of_action(event.action));
    event.time_ns = simulated.at.0;
    event.device = device_of(simulated.device);
    event.pid = simulated.process;
    event.cpu = u32::from(simulated.cpu);
    match event.action {
        // A plug has no sectors; it tells how many requests were in it.
        Action::Plugged => return,
        Action::Unplugged => {
            event.payload.extend_from_slice(&simulated.request.to_be_bytes());
            return;
        }
        // The kernel's trace points tell the priority of requests only.
        Action::Inserted | Action::Issued | Action::Completed => {
            event.priority = simulated.priority;
        }
        _ => {}
    }
    event.sector = simulated.sector.0;
    event.bytes = simulated.sectors.saturating_mul(512);
    if event.action == Action::Split {
        event.payload.extend_from_slice(&event.end().to_be_bytes());
    }
}

/// A file of simulated events that grows; what it has for the file waits in a buffer.
pub struct SimulatedFile {
    writer: Writer,
    buffer: Vec<u8>,
    named: BTreeSet<u32>,
    event: Event,
    is_basic: bool,
    events: u64,
}

impl SimulatedFile {
    /// Begins a file for the queues of a stack.
    ///
    /// `facts` are kept in its head; `is_basic` leaves out all but issues and completions.
    ///
    /// # Errors
    /// [`Error::Write`] if zstd refuses.
    pub fn begin(facts: &Facts, queues: u16, is_basic: bool) -> Result<Self, Error> {
        let mut facts = facts.clone();
        let devices = (0..queues).map(|queue| (format!("device {}", device_of(queue)), queue));
        facts.extend(devices.map(|(fact, queue)| (fact, name_of(queue))));
        let mut buffer = Vec::new();
        let writer = Writer::new(&facts, &mut buffer)?;
        let (named, event) = (BTreeSet::new(), Event::default());
        Ok(Self { writer, buffer, named, event, is_basic, events: 0 })
    }

    /// Adds events, which must not be earlier than those before.
    ///
    /// # Errors
    /// [`Error::Write`] if zstd refuses.
    pub fn add(&mut self, events: &[TraceEvent]) -> Result<(), Error> {
        for simulated in events {
            read(simulated, &mut self.event);
            let is_basic = matches!(self.event.action, Action::Issued | Action::Completed);
            if self.is_basic && !is_basic {
                continue;
            }
            if self.named.insert(simulated.process) {
                let name = kernel_thread::name(simulated.process);
                let mut note = Event::default();
                note.set_process(simulated.process, name.as_bytes());
                (note.time_ns, note.cpu) = (self.event.time_ns, self.event.cpu);
                self.writer.push(&note, &mut self.buffer)?;
                self.events += 1;
            }
            self.writer.push(&self.event, &mut self.buffer)?;
            self.events += 1;
        }
        Ok(())
    }

    /// Events added so far, notes included.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Bytes that are to be written next; the caller empties it.
    pub const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Ends the file; the last bytes of it.
    ///
    /// # Errors
    /// [`Error::Write`] if zstd refuses.
    pub fn finish(mut self) -> Result<Vec<u8>, Error> {
        self.writer.finish(&mut self.buffer)?;
        Ok(self.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::{Ns, Sector};

    fn simulated(action: Simulated, operation: Operation) -> TraceEvent {
        TraceEvent {
            at: Ns(7),
            action,
            sector: Sector(100),
            sectors: 8,
            operation,
            process: 3,
            cpu: 1,
            priority: 0x4004,
            device: 2,
            request: 5,
        }
    }

    #[test]
    fn letters_are_those_of_the_simulator() {
        let flags = [Operation::SYNC, Operation::FUA, Operation::META, Operation::PREFLUSH];
        for kind in [Operation::READ, Operation::WRITE, Operation::DISCARD] {
            for bits in 0..16_u8 {
                let set = (0..4).filter(|bit| bits >> bit & 1 != 0).map(|bit| flags[bit]);
                let told = simulated(Simulated::Queued, set.fold(kind, Operation::with));
                let mut event = Event::default();
                read(&told, &mut event);
                let (letters, length) = event.letters();
                assert_eq!(&letters[..length], told.rwbs().as_bytes());
            }
        }
    }

    #[test]
    fn a_split_tells_where_the_rest_begins_and_a_plug_how_many_it_held() {
        let mut event = Event::default();
        read(&simulated(Simulated::Split, Operation::WRITE), &mut event);
        assert_eq!((event.sector, event.bytes, event.number()), (100, 4096, 108));
        read(&simulated(Simulated::Unplugged, Operation::WRITE), &mut event);
        assert_eq!((event.sector, event.bytes, event.number()), (0, 0, 5));
        assert_eq!(event.device.to_string(), "240,2");
    }
}

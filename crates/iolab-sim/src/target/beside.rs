//! Several stacks beside each other as one layer: each has a range of sectors of its own.
//!
//! They share nothing but time. Left out: processes that one of them would have to tell another of.

use iolab_model::{Ns, Sector, TraceEvent};

use crate::api::bio::{Bio, Ended, ProcessId};
use crate::api::layer::{Incident, Info, Layer, WriteCache};

/// A stack with its range.
struct Part {
    /// In front of its counters and messages; empty for the first one.
    name: String,
    from: Sector,
    layer: Box<dyn Layer>,
}

/// Stacks beside each other.
pub struct Beside {
    parts: Vec<Part>,
}

impl Beside {
    /// A layer of `first` alone, whose range begins at sector 0.
    pub fn new(first: Box<dyn Layer>) -> Self {
        Self { parts: vec![Part { name: String::new(), from: Sector(0), layer: first }] }
    }

    /// Adds a stack behind all others, at a multiple of `unit`; returns where its range begins.
    pub fn add(&mut self, name: &str, layer: Box<dyn Layer>, unit: Sector) -> Sector {
        let from = Sector(self.end().0.next_multiple_of(unit.0));
        self.parts.push(Part { name: format!("place.{name}."), from, layer });
        from
    }

    fn end(&self) -> Sector {
        let ends = self.parts.iter().map(|part| part.from.0 + part.layer.info().capacity.0);
        Sector(ends.max().unwrap_or(0))
    }

    fn part(&mut self, sector: Sector) -> &mut Part {
        let index = self.parts.partition_point(|part| part.from <= sector).max(1) - 1;
        &mut self.parts[index]
    }
}

impl Layer for Beside {
    /// Facts of the first stack, as far as all of them keep it.
    fn info(&self) -> Info {
        let mut info = self.parts[0].layer.info();
        for part in &self.parts[1..] {
            let own = part.layer.info();
            info.depth = info.depth.min(own.depth);
            info.max_sectors = info.max_sectors.min(own.max_sectors);
            info.can_discard &= own.can_discard;
            if info.write_cache == WriteCache::Through {
                info.write_cache = own.write_cache;
            }
        }
        info.capacity = self.end();
        info
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        let part = self.part(bio.sector);
        let sector = Sector(bio.sector.0 - part.from.0);
        part.layer.submit(now, &Bio { sector, ..*bio });
    }

    fn next_event(&self) -> Ns {
        self.parts.iter().map(|part| part.layer.next_event()).min().unwrap_or(Ns::MAX)
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        for part in self.parts.iter_mut().filter(|part| part.layer.next_event() <= now) {
            part.layer.advance(now, done);
        }
    }

    fn exited(&mut self, now: Ns, process: ProcessId) {
        for part in &mut self.parts {
            part.layer.exited(now, process);
        }
    }

    fn age(&mut self) {
        for part in &mut self.parts {
            part.layer.age();
        }
    }

    fn record_events(&mut self, queues: &mut u16) {
        for part in &mut self.parts {
            part.layer.record_events(queues);
        }
    }

    fn take_events(&mut self, events: &mut Vec<TraceEvent>) {
        for part in &mut self.parts {
            part.layer.take_events(events);
        }
    }

    fn incidents(&self, list: &mut Vec<Incident>) {
        for part in &self.parts {
            let first = list.len();
            part.layer.incidents(list);
            for incident in &mut list[first..] {
                incident.message.insert_str(0, &part.name);
            }
        }
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let own = |part: &Part| {
            let named = |(name, value)| (format!("{}{name}", part.name), value);
            part.layer.counters().into_iter().map(named).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::bio::{BioId, Flags, Operation, Submitter};
    use crate::device::fixed::Fixed;

    #[test]
    fn each_stack_has_its_own_range_and_its_own_speed() {
        let fixed = |us| Box::new(Fixed::new(Ns::from_us(us), 1, false)) as Box<dyn Layer>;
        let mut beside = Beside::new(fixed(100));
        let unit = Sector(7);
        let from = beside.add("log", fixed(30), unit);
        assert!(from.0 >= 1 << 40 && from.0.is_multiple_of(unit.0));
        assert!(beside.info().capacity > from);
        let bio = |id, sector| Bio {
            id: BioId(id),
            operation: Operation::Read,
            sector,
            sectors: 8,
            flags: Flags::SYNC,
            submitter: Submitter {
                process: ProcessId(1),
                priority: iolab_model::Priority::default(),
                cpu: 0,
            },
            segments: 0,
        };
        beside.submit(Ns(0), &bio(0, Sector(0)));
        beside.submit(Ns(0), &bio(1, from));
        let mut done = Vec::new();
        for expected in [(30, 1), (100, 0)] {
            let now = beside.next_event();
            assert_eq!(now, Ns::from_us(expected.0));
            beside.advance(now, &mut done);
            assert_eq!(done.pop().map(|ended| ended.id), Some(BioId(expected.1)));
        }
        assert_eq!(beside.next_event(), Ns::MAX);
    }
}

//! Processors: each does one thing after the other.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use iolab_model::Ns;

use crate::api::bio::Submitter;

/// Processors of a simulated machine; clones share them.
///
/// Without a number each process has a processor of its own, as on a machine with more of them than
/// workers.
#[derive(Clone, Debug, Default)]
pub struct ProcessorClocks {
    count: usize,
    free: Rc<RefCell<FreeFrom>>,
}

/// Times from which processors are free.
#[derive(Debug, Default)]
struct FreeFrom {
    /// Of the processors with the lowest numbers: those of workers.
    low: Vec<Ns>,
    /// Of all others: threads of the kernel have the highest numbers.
    high: BTreeMap<usize, Ns>,
}

/// Numbers of processors below this lie side by side.
const LOW_MAX: usize = 1 << 16;

impl FreeFrom {
    fn of(&mut self, index: usize) -> &mut Ns {
        if index >= LOW_MAX {
            return self.high.entry(index).or_insert(Ns(0));
        }
        if self.low.len() <= index {
            self.low.resize(index + 1, Ns(0));
        }
        &mut self.low[index]
    }
}

impl ProcessorClocks {
    /// So many processors; 0 is one for each process.
    pub fn new(count: u16) -> Self {
        Self { count: usize::from(count), free: Rc::default() }
    }

    /// Occupies the processor of a submitter from `now`, or from when it is free; answers the end.
    pub fn charge(&self, submitter: Submitter, now: Ns, cost: Ns) -> Ns {
        let process = submitter.process.0 as usize;
        let index = if self.count == 0 { process } else { process % self.count };
        let mut free = self.free.borrow_mut();
        let from = free.of(index);
        *from = (*from).max(now) + cost;
        *from
    }

    /// Time that the processors are busy between two instants with what they were given by the
    /// first one, all together.
    pub fn busy(&self, from: Ns, until: Ns) -> Ns {
        let free = self.free.borrow();
        let all = free.low.iter().chain(free.high.values());
        Ns(all.map(|&clock| clock.min(until).since(from).0).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::bio::ProcessId;

    fn of(process: u32) -> Submitter {
        Submitter { process: ProcessId(process), ..Submitter::default() }
    }

    #[test]
    fn workers_of_one_processor_wait_for_each_other() {
        let one = ProcessorClocks::new(1);
        assert_eq!(one.charge(of(1), Ns(100), Ns(10)), Ns(110));
        assert_eq!(one.clone().charge(of(2), Ns(100), Ns(10)), Ns(120));
        let own = ProcessorClocks::new(0);
        assert_eq!(own.charge(of(1), Ns(100), Ns(10)), Ns(110));
        assert_eq!(own.charge(of(2), Ns(100), Ns(10)), Ns(110));
        assert_eq!(own.charge(of(u32::MAX), Ns(100), Ns(10)), Ns(110), "a thread of the kernel");
        assert_eq!(own.charge(of(u32::MAX), Ns(100), Ns(10)), Ns(120));
    }
}

//! Processors: each does one thing after the other.

use std::cell::RefCell;
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
    free: Rc<RefCell<Vec<Ns>>>,
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
        if free.len() <= index {
            free.resize(index + 1, Ns(0));
        }
        free[index] = free[index].max(now) + cost;
        free[index]
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
    }
}

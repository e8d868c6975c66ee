//! State that the workers of a phase share: gates they pass together, and the flag that stops them.
//!
//! Workers arrive at a gate and wait until it is open. Who opens it is not their business: a
//! coordinator in real time (shared-memory atomics, because workers may be processes), the last to
//! arrive in simulation ([`CellGroup`]).

use core::cell::Cell;

/// A point that all workers of a phase pass together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The timed region begins.
    Start = 0,
    /// The timed region is over; counters are read before anybody flushes or closes.
    End = 1,
}

impl Gate {
    /// All gates in the order in which they are passed.
    pub const ALL: [Self; 2] = [Self::Start, Self::End];
}

/// Shared state of the workers of one phase.
pub trait GroupState {
    /// Says that one worker has reached `gate`; once per worker and gate.
    fn arrive(&self, gate: Gate);

    /// Tell whether workers may pass `gate`.
    fn is_open(&self, gate: Gate) -> bool;

    /// Raises the stop flag (stonewall, time limit, interruption).
    fn stop(&self);

    /// Tell whether the stop flag is up.
    fn is_stopped(&self) -> bool;
}

impl<G: GroupState + ?Sized> GroupState for &G {
    fn arrive(&self, gate: Gate) {
        (**self).arrive(gate);
    }
    fn is_open(&self, gate: Gate) -> bool {
        (**self).is_open(gate)
    }
    fn stop(&self) {
        (**self).stop();
    }
    fn is_stopped(&self) -> bool {
        (**self).is_stopped()
    }
}

/// Group state for workers that share a thread: gates open when everybody has arrived.
#[derive(Debug)]
pub struct CellGroup {
    workers: u32,
    arrived: [Cell<u32>; Gate::ALL.len()],
    is_stopped: Cell<bool>,
}

impl CellGroup {
    /// A group of `workers` workers.
    pub fn new(workers: u32) -> Self {
        Self { workers, arrived: Default::default(), is_stopped: Cell::new(false) }
    }
}

impl GroupState for CellGroup {
    fn arrive(&self, gate: Gate) {
        let cell = &self.arrived[gate as usize];
        cell.set(cell.get() + 1);
    }

    fn is_open(&self, gate: Gate) -> bool {
        self.arrived[gate as usize].get() >= self.workers
    }

    fn stop(&self) {
        self.is_stopped.set(true);
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.get()
    }
}

//! Completion of an op, as it comes back from a lane.

use crate::error::Errno;
use crate::op::Token;
use crate::units::{Bytes, Ns};

/// The outcome of an op: how much was done, or why not.
pub type Outcome = Result<Bytes, Errno>;

/// An op that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Slot of the submission; free again.
    pub token: Token,
    /// Time at which the lane took it, on the target's clock.
    pub submitted: Ns,
    /// Time at which its end was seen, on the target's clock; never before `submitted`.
    pub completed: Ns,
    /// Bytes moved (0 for ops that move none; less than asked only at the end of the file).
    pub outcome: Outcome,
}

impl Completion {
    /// Service time.
    #[inline]
    pub const fn service(&self) -> Ns {
        self.completed.since(self.submitted)
    }
}

//! Means that several engines have, by engine.

use super::Engine;

impl Engine {
    /// Tell whether completions are polled for at the device.
    pub const fn is_polled(self) -> bool {
        matches!(
            self,
            Self::IoUringPoll
                | Self::IoUringFixedPoll
                | Self::IoUringSqpollPoll
                | Self::IoUringFixedSqpollPoll
        )
    }

    /// Tell whether a thread of the kernel submits for each worker.
    pub const fn has_submitter(self) -> bool {
        matches!(
            self,
            Self::IoUringSqpoll
                | Self::IoUringFixedSqpoll
                | Self::IoUringSqpollPoll
                | Self::IoUringFixedSqpollPoll
        )
    }

    /// Tell whether it has what several other engines have each: what hinders one of them hinders
    /// it.
    pub const fn is_combined(self) -> bool {
        matches!(
            self,
            Self::IoUringFixedSqpoll
                | Self::IoUringFixedPoll
                | Self::IoUringSqpollPoll
                | Self::IoUringFixedSqpollPoll
        )
    }
}

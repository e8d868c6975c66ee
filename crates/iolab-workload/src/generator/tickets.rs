//! Tickets that were drawn as another program draws them, see [`crate::draws`].

use super::{AnyGenerator, Generator, Records};
use crate::draws::Tickets;

impl Records for Tickets {
    #[inline]
    fn next(&mut self) -> u64 {
        self.next_record()
    }
}

impl Generator {
    /// The order of one worker's tickets.
    pub fn of_tickets(tickets: Tickets) -> Self {
        Self(AnyGenerator::Tickets(tickets))
    }

    /// Tell whether the last ticket was an update; `None` of all others, who do not know.
    #[inline]
    pub fn is_update(&self) -> Option<bool> {
        match &self.0 {
            AnyGenerator::Tickets(tickets) => Some(tickets.is_update()),
            _ => None,
        }
    }
}

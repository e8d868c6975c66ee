//! Times between the steps of a request, by its first sector: what `blkparse -t` appends.

use std::collections::BTreeMap;

use crate::event::{Action, Device, Event};

/// Requests that are remembered at once; the one with the lowest sector is forgotten first.
const TRACKED_MAX: usize = 1 << 16;

/// Times of the steps in nanoseconds.
#[derive(Clone, Copy, Default)]
struct Track {
    got: Option<u64>,
    inserted: Option<u64>,
    issued: Option<u64>,
}

/// Requests on their way.
#[derive(Default)]
pub struct Tracks {
    open: BTreeMap<(Device, u64), Track>,
}

impl Tracks {
    /// Time since the step before, in nanoseconds, if the event ends one.
    pub fn step(&mut self, event: &Event) -> Option<u64> {
        if event.is_packet() {
            return None;
        }
        let (key, now) = ((event.device, event.sector), event.time_ns);
        let since = |before: Option<u64>| before.map(|before| now.saturating_sub(before));
        match event.action {
            Action::Got => {
                self.entry(key).got = Some(now);
                None
            }
            Action::Inserted => {
                let track = self.entry(key);
                track.inserted = Some(now);
                since(track.got)
            }
            Action::FrontMerged => {
                let track = self.open.remove(&(event.device, event.end()))?;
                self.open.insert(key, track);
                None
            }
            Action::Issued => {
                let track = self.open.get_mut(&key)?;
                track.issued = Some(now);
                let has_step = event.categories.has(crate::event::Categories::FS);
                since(track.inserted).filter(|_| has_step)
            }
            Action::Completed => since(self.open.remove(&key)?.issued),
            _ => None,
        }
    }

    fn entry(&mut self, key: (Device, u64)) -> &mut Track {
        if self.open.len() >= TRACKED_MAX && !self.open.contains_key(&key) {
            self.open.pop_first();
        }
        self.open.entry(key).or_default()
    }
}

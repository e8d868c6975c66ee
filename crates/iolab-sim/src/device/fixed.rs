//! A device that takes the same time for everything.
//!
//! The reference for schedulers and for the speed of the simulator itself: no mechanics, no cache,
//! a number of commands in parallel.

use iolab_model::{Ns, Sector};

use crate::Calendar;
use crate::api::bio::{Bio, BioId, Ended};
use crate::api::layer::{Info, Layer, WriteCache};
use crate::error::SimError;
use crate::profile::Profile;

/// Fixed latency, `depth` commands at once.
#[derive(Debug)]
pub struct Fixed {
    info: Info,
    latency: Ns,
    finishing: Calendar<BioId>,
}

impl Fixed {
    /// A device of the given latency.
    pub fn new(latency: Ns, depth: u32, is_rotational: bool) -> Self {
        let info = Info {
            capacity: Sector(1 << 40),
            depth,
            is_rotational,
            write_cache: WriteCache::Through,
            max_sectors: u32::MAX,
            chunk_sectors: 0,
            can_discard: true,
        };
        Self { info, latency, finishing: Calendar::default() }
    }

    /// As a profile says.
    pub fn from_profile(profile: &Profile) -> Result<Self, SimError> {
        let reader = profile.reader();
        let latency = reader.duration("latency", "us")?;
        let depth = reader.count("depth", "commands", (1, 65_536))? as u32;
        let is_rotational = reader.switch("is_rotational")?;
        let capacity = reader.count("capacity", "sectors", (1, 1 << 50))?;
        reader.finish()?;
        let mut device = Self::new(latency, depth, is_rotational);
        device.info.capacity = Sector(capacity);
        Ok(device)
    }
}

impl Layer for Fixed {
    fn info(&self) -> Info {
        self.info
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        self.finishing.plan(now + self.latency, bio.id);
    }

    fn next_event(&self) -> Ns {
        self.finishing.next_event()
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        while let Some((_, id)) = self.finishing.take_due(now) {
            done.push(Ended::ok(id));
        }
    }
}

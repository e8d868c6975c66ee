//! A virtual machine's disk: a delay station around any device.
//!
//! Models what a request costs in the adapter, the hypervisor and the host's file: a lognormal
//! delay of given mean and variation plus a time per byte, at a number of servers; then, unless the
//! host's cache answers, the device inside. Leaves out: the size of the host's cache (it always
//! hits), its write-back (a flush costs the delay only), other guests. Source:
//! `docs/reference/devices/guest.md`.

use std::collections::VecDeque;

use iolab_model::{Ns, Seed};

use crate::Calendar;
use crate::api::bio::{Bio, Ended, Operation, ProcessId};
use crate::api::layer::{Info, Layer, WriteCache};
use crate::device::lognormal::Lognormal;
use crate::error::SimError;
use crate::profile::Profile;

/// Cost of the virtual stack.
#[derive(Clone, Copy, Debug)]
pub struct GuestParameters {
    /// Mean delay of reads and of everything else.
    pub delay: [Ns; 2],
    /// Time per KiB of reads and of writes, in picoseconds.
    pub transfer_ps_per_kib: [u64; 2],
    /// Coefficient of variation of the delay.
    pub variation: f64,
    /// Requests worked on at a time.
    pub servers: u32,
    /// The host's memory answers; the device inside is not asked.
    pub has_host_cache: bool,
    /// Requests that the adapter takes.
    pub depth: u32,
    /// Rotation, as the guest is told about the disk.
    pub is_rotational: bool,
}

/// A delay station around a device.
pub struct Guest {
    parameters: GuestParameters,
    inner: Box<dyn Layer>,
    delay: Lognormal,
    idle_servers: u32,
    waiting: VecDeque<Bio>,
    /// Requests at the servers.
    station: Calendar<Bio>,
    /// Requests that wait for room in the device inside.
    held: VecDeque<Bio>,
    inner_depth: u32,
    inner_used: u32,
    finishing: Calendar<Ended>,
    requests: u64,
    bytes: u64,
    busy: Ns,
    inner_done: Vec<Ended>,
}

impl Guest {
    /// As a profile of kind `guest` says, around the device that it names as `inner`; `instance`
    /// names the random stream.
    pub fn from_profile(
        profile: &Profile,
        inner: Box<dyn Layer>,
        seed: Seed,
        instance: &str,
    ) -> Result<Self, SimError> {
        let reader = profile.reader();
        let transfer = |name| -> Result<u64, SimError> {
            Ok((reader.number(name, "us/KiB", (0.0, 1e6))? * 1e6).round() as u64)
        };
        let parameters = GuestParameters {
            delay: [reader.duration("read_delay", "us")?, reader.duration("write_delay", "us")?],
            transfer_ps_per_kib: [transfer("read_transfer")?, transfer("write_transfer")?],
            variation: reader.number("variation", "", (0.0, 10.0))?,
            servers: reader.count("servers", "", (1, 4_096))? as u32,
            has_host_cache: reader.switch("host_cache")?,
            depth: reader.count("queue_depth", "commands", (1, 65_536))? as u32,
            is_rotational: reader.switch("is_rotational")?,
        };
        reader.finish()?;
        Ok(Self::new(parameters, inner, seed, instance))
    }

    /// A guest's disk; `instance` names the random stream.
    pub fn new(
        parameters: GuestParameters,
        inner: Box<dyn Layer>,
        seed: Seed,
        instance: &str,
    ) -> Self {
        let random = seed.stream(&format!("guest/{instance}"), 0);
        let inner_depth = inner.info().depth;
        Self {
            parameters,
            inner,
            delay: Lognormal::new(parameters.variation, random),
            idle_servers: parameters.servers,
            waiting: VecDeque::new(),
            station: Calendar::default(),
            held: VecDeque::new(),
            inner_depth,
            inner_used: 0,
            finishing: Calendar::default(),
            requests: 0,
            bytes: 0,
            busy: Ns(0),
            inner_done: Vec::new(),
        }
    }

    fn serve_waiting(&mut self, now: Ns) {
        while self.idle_servers > 0 {
            let Some(bio) = self.waiting.pop_front() else { return };
            self.idle_servers -= 1;
            let kind = usize::from(bio.operation.is_write());
            let moved = match bio.operation {
                Operation::Read | Operation::Write => u64::from(bio.sectors) * 512,
                Operation::Discard | Operation::Flush => 0,
            };
            self.requests += 1;
            self.bytes += moved;
            let per_kib = u128::from(self.parameters.transfer_ps_per_kib[kind]);
            // Picoseconds per KiB times bytes: 1024 * 1000 of them are a nanosecond.
            let transfer = Ns(((u128::from(moved) * per_kib + 512_000) / 1_024_000) as u64);
            let time = self.delay.draw(self.parameters.delay[kind]) + transfer;
            self.busy += time;
            self.station.plan(now + time, bio);
        }
    }

    fn send_held(&mut self, now: Ns) {
        while self.inner_used < self.inner_depth {
            let Some(bio) = self.held.pop_front() else { return };
            self.inner_used += 1;
            self.inner.submit(now, &bio);
        }
    }
}

impl Layer for Guest {
    fn info(&self) -> Info {
        let write_cache = if self.parameters.has_host_cache {
            // The host's memory is volatile to the guest, and a flush is offered.
            WriteCache::Back { has_fua: false }
        } else {
            self.inner.info().write_cache
        };
        Info {
            depth: self.parameters.depth,
            is_rotational: self.parameters.is_rotational,
            write_cache,
            ..self.inner.info()
        }
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        self.waiting.push_back(*bio);
        self.serve_waiting(now);
    }

    fn next_event(&self) -> Ns {
        self.station.next_event().min(self.finishing.next_event()).min(self.inner.next_event())
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        let before = done.len();
        while let Some((_, ended)) = self.finishing.take_due(now) {
            done.push(ended);
        }
        if done.len() > before {
            return;
        }
        if self.inner.next_event() <= now {
            let mut inner_done = std::mem::take(&mut self.inner_done);
            self.inner.advance(now, &mut inner_done);
            self.inner_used -= inner_done.len() as u32;
            for ended in inner_done.drain(..) {
                self.finishing.plan(now, ended);
            }
            self.inner_done = inner_done;
        }
        while let Some((_, bio)) = self.station.take_due(now) {
            self.idle_servers += 1;
            if self.parameters.has_host_cache {
                self.finishing.plan(now, Ended::ok(bio.id));
            } else {
                self.held.push_back(bio);
            }
        }
        self.serve_waiting(now);
        self.send_held(now);
    }

    fn age(&mut self) {
        self.inner.age();
    }

    fn exited(&mut self, now: Ns, process: ProcessId) {
        self.inner.exited(now, process);
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let mut counters = vec![
            ("guest_requests".to_owned(), self.requests as f64),
            ("guest_bytes".to_owned(), self.bytes as f64),
            ("guest_server_busy_ns".to_owned(), self.busy.0 as f64),
        ];
        counters.extend(self.inner.counters());
        counters
    }
}

#[cfg(test)]
mod tests;

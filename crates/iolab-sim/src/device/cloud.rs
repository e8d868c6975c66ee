//! A block device behind a network, as clouds rent it: its latency is that of the network and the
//! service, its rates are limits that were bought.
//!
//! Models a lognormal latency per operation, a transfer rate per operation, and two buckets of
//! credits (operations, bytes) that fill at the bought rate and may be emptied faster, at the burst
//! rate. An operation longer than a unit counts as several. Leaves out: other tenants, losses of
//! the network, the limits of the machine that has the volume. Writes are durable when they end.
//!
//! Source: Amazon EBS, "General Purpose SSD volumes" (burst bucket of gp2, rates of gp3).

use iolab_model::{Ns, Sector, Seed};

use super::lognormal::Lognormal;
use crate::Calendar;
use crate::api::bio::{Bio, Ended, Operation};
use crate::api::layer::{Info, Layer, WriteCache};
use crate::error::SimError;
use crate::profile::{Profile, Reader};

/// A rate with a bucket of credits for bursts; amounts are in thousandths.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// Amount per second that the bucket earns, and that it can always pay.
    rate: u64,
    /// Most per second while there are credits.
    burst_rate: u64,
    /// Credits.
    balance: u64,
    balance_max: u64,
    /// Time up to which credits were counted.
    counted: Ns,
    /// Time from which the next operation may begin.
    free: Ns,
    /// Operations that were held at the bought rate.
    exhausted: u64,
}

impl Limit {
    const MILLI: u64 = 1_000;

    fn read(reader: &Reader<'_>, name: &str, units: [&str; 2]) -> Result<Self, SimError> {
        let rate = reader.number(&format!("{name}_rate"), units[0], (1.0, 1e12))?;
        let burst_rate = reader.number(&format!("{name}_burst_rate"), units[0], (rate, 1e12))?;
        let credits = reader.number(&format!("{name}_credits"), units[1], (0.0, 1e15))?;
        let milli = |value: f64| (value * Self::MILLI as f64).round() as u64;
        let balance = milli(credits);
        Ok(Self {
            rate: milli(rate),
            burst_rate: milli(burst_rate),
            balance,
            balance_max: balance,
            counted: Ns(0),
            free: Ns(0),
            exhausted: 0,
        })
    }

    /// Pays for an operation; answers the instant from which it may go on.
    fn pay(&mut self, now: Ns, amount: u64) -> Ns {
        let begun = now.max(self.free);
        let cost = u128::from(amount * Self::MILLI);
        let earned =
            u128::from(begun.since(self.counted).0) * u128::from(self.rate) / 1_000_000_000;
        self.counted = begun;
        self.balance = self.balance_max.min(self.balance.saturating_add(earned as u64));
        let can_burst = u128::from(self.balance) >= cost;
        let rate = if can_burst { self.burst_rate } else { self.rate };
        self.exhausted += u64::from(!can_burst);
        if can_burst {
            self.balance -= cost as u64;
        } else {
            // What is earned while it waits is what it pays with.
            self.counted = begun + Ns((cost * 1_000_000_000 / u128::from(rate)) as u64);
        }
        self.free = begun + Ns((cost * 1_000_000_000 / u128::from(rate)) as u64);
        begun
    }
}

/// A rented block device.
#[derive(Debug)]
pub struct Cloud {
    info: Info,
    /// Mean latency of reads and of everything else.
    latency: [Ns; 2],
    delay: Lognormal,
    /// Bytes per second of one operation.
    transfer_rate: u64,
    /// Bytes that count as one operation.
    unit: u64,
    operations: Limit,
    bytes: Limit,
    starting: Calendar<Bio>,
    finishing: Calendar<Ended>,
    counts: [u64; 2],
}

impl Cloud {
    /// As a profile says; `instance` names the random stream.
    pub fn from_profile(profile: &Profile, seed: Seed, instance: &str) -> Result<Self, SimError> {
        let reader = profile.reader();
        let capacity = reader.count("capacity", "bytes", (1 << 20, 1 << 50))?;
        let depth = reader.count("queue_depth", "commands", (1, 65_536))? as u32;
        let variation = reader.number("variation", "", (0.0, 10.0))?;
        let rate = reader.number("transfer_rate", "MB/s", (0.1, 1e6))?;
        let device = Self {
            info: Info {
                capacity: Sector(capacity / 512),
                depth,
                is_rotational: false,
                write_cache: WriteCache::Through,
                max_sectors: reader.count("max_sectors", "sectors", (8, 1 << 24))? as u32,
                chunk_sectors: 0,
                can_discard: false,
            },
            latency: [
                reader.duration("read_latency", "us")?,
                reader.duration("write_latency", "us")?,
            ],
            delay: Lognormal::new(variation, seed.stream(&format!("cloud/{instance}"), 0)),
            transfer_rate: (rate * 1e6).round() as u64,
            unit: reader.count("operation_unit", "bytes", (512, 1 << 24))?,
            operations: Limit::read(&reader, "operation", ["1/s", "operations"])?,
            bytes: Limit::read(&reader, "byte", ["B/s", "bytes"])?,
            starting: Calendar::default(),
            finishing: Calendar::default(),
            counts: [0; 2],
        };
        reader.finish()?;
        Ok(device)
    }
}

impl Layer for Cloud {
    fn info(&self) -> Info {
        self.info
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        let bytes = u64::from(bio.sectors) * 512;
        let operations = bytes.div_ceil(self.unit).max(1);
        let begun = self.operations.pay(now, operations).max(self.bytes.pay(now, bytes));
        self.starting.plan(begun, *bio);
    }

    fn next_event(&self) -> Ns {
        self.starting.next_event().min(self.finishing.next_event())
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        let before = done.len();
        while let Some((_, ended)) = self.finishing.take_due(now) {
            done.push(ended);
        }
        if done.len() > before {
            return;
        }
        while let Some((_, bio)) = self.starting.take_due(now) {
            let kind = usize::from(bio.operation != Operation::Read);
            self.counts[kind] += 1;
            let bytes = u64::from(bio.sectors) * 512;
            let transfer = Ns(bytes * 1_000_000_000 / self.transfer_rate);
            let time = self.delay.draw(self.latency[kind]) + transfer;
            self.finishing.plan(now + time, Ended::ok(bio.id));
        }
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let row = |name: &str, value: u64| (name.to_owned(), value as f64);
        vec![
            row("reads", self.counts[0]),
            row("writes", self.counts[1]),
            row("operations_at_bought_rate", self.operations.exhausted),
            row("operation_credits", self.operations.balance / Limit::MILLI),
            row("byte_credits", self.bytes.balance / Limit::MILLI),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::disk::tests::{Host, bio};

    fn rate(seconds: u32, sectors: u32) -> f64 {
        let profile = Profile::built_in("cloud-gp2-100g").unwrap();
        let mut cloud = Cloud::from_profile(&profile, Seed(1), "x").unwrap();
        cloud.operations.balance = 3_000 * 1_000 * Limit::MILLI;
        let mut host = Host::new();
        let mut count = 0;
        host.closed(&mut cloud, 32, |id| {
            count += 1;
            (count <= seconds * 3_000)
                .then(|| bio(id, Operation::Read, u64::from(id) * 64, sectors))
        });
        host.rate()
    }

    /// 3000 operations per second while credits last, 3 per second and GiB afterwards.
    #[test]
    fn a_burst_ends_with_the_credits() {
        let fast = rate(10, 8);
        assert!((2_900.0..3_100.0).contains(&fast), "{fast}");
        // 3.33 million operations: what 1000 s of burst leave, then 300 per second.
        let profile = Profile::built_in("cloud-gp2-100g").unwrap();
        let mut cloud = Cloud::from_profile(&profile, Seed(1), "x").unwrap();
        cloud.operations.balance = 0;
        let mut host = Host::new();
        host.closed(&mut cloud, 32, |id| {
            (id < 3_000).then(|| bio(id, Operation::Read, u64::from(id) * 64, 8))
        });
        let slow = host.rate();
        assert!((295.0..310.0).contains(&slow), "{slow}");
    }
}

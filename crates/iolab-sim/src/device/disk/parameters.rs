//! Parameters: what a profile says about a drive, checked for contradictions.

use iolab_model::Ns;

use super::geometry::{Geometry, Layout, Zone};
use super::mechanism::Mechanism;
use super::seek::{SeekCurve, TwoPieces};
use crate::error::SimError;
use crate::profile::{Profile, Reader};

/// Loss of a contiguous write that was already queued, after the one before it (cache off).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedWriteLoss {
    /// Nothing: they follow each other at the sustained media rate.
    None,
    /// Command overhead and a uniform part of a revolution.
    Uniform,
    /// Command overhead, then the wait for the true angle.
    Exact,
}

/// Rule by which the drive picks among queued commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePolicy {
    /// In order of arrival.
    Fcfs,
    /// Shortest positioning time first, with ageing.
    Sptf,
}

/// Media sectors of a write that have to be in the buffer before the media may be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prefill {
    /// Of a write shorter than `long`; a shorter one has to be there completely.
    pub short: u64,
    /// Of a longer one.
    pub of_long: u64,
    /// From here on a write is long.
    pub long: u64,
}

impl Prefill {
    /// For a write of so many media sectors.
    pub fn of(&self, sectors: u64) -> u64 {
        let least = if sectors < self.long { self.short } else { self.of_long };
        least.min(sectors)
    }
}

/// Everything but the mechanism.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// Media sectors per 512-byte sector (2 for 256-byte media).
    pub media_per_sector: u64,
    /// Overhead of a read that needs the media.
    pub overhead_read: u64,
    /// Overhead of a read that the cache answers, after a read and after a write.
    pub overhead_hit: [u64; 2],
    /// Overhead of a write: after a read (and of a flush), after a write, continuing a write.
    pub overhead_write: [u64; 3],
    /// From the arrival of a write until its data begin to come, in the same three cases.
    pub write_data: [u64; 3],
    /// Data that have to have come before the media may be written.
    pub write_prefill: Prefill,
    /// From the water mark of a read until its first sector is on the bus.
    pub bus_start: u64,
    /// After the last of the data of a read.
    pub completion_read: u64,
    /// After a write has reached the media, in the same three cases.
    pub completion_write: [u64; 3],
    /// Bus time of a media sector that is written.
    pub bus_sector_write: u64,
    /// Bus time of a media sector.
    pub bus_sector: u64,
    /// Part of a read that must be in the buffer before the bus starts, in units of 2^-20.
    pub bus_watermark: u64,
    /// Read-ahead only after reads that continue a segment; else after every read.
    pub is_read_ahead_sequential: bool,
    /// Read-ahead segments; 0 switches the read cache off.
    pub read_segments: usize,
    /// Length of a segment in media sectors.
    pub segment_sectors: u64,
    /// Write cache in media sectors; 0 is off.
    pub write_cache: u64,
    /// Most separate extents in the write cache.
    pub write_extents: usize,
    /// Oldest extents among which destaging picks; absent: all.
    pub destage_window: Option<usize>,
    /// Media sectors that are read ahead of a sequential read before another command is begun.
    pub read_ahead_least: u64,
    /// Dirty media sectors from which destaging competes with commands.
    pub high_water: u64,
    /// Commands at once.
    pub depth: u32,
    /// Rule by which the next one is picked.
    pub policy: QueuePolicy,
    /// Positioning time that a nanosecond of waiting outweighs, in units of 2^-20.
    pub ageing: u64,
    /// A command that has waited that long is next.
    pub age_limit: u64,
    /// See there.
    pub queued_write_loss: QueuedWriteLoss,
    /// Longest command in 512-byte sectors.
    pub max_sectors: u32,
}

/// Shares are kept in units of 2^-20.
pub const SHARE_ONE: f64 = 1_048_576.0;

/// Reads a drive's description; `phase` of the mechanism is left at 0.
pub fn read(profile: &Profile) -> Result<(Parameters, Mechanism), SimError> {
    let reader = profile.reader();
    let mechanism = read_mechanism(&profile.name, &reader)?;
    let parameters = read_parameters(&reader)?;
    reader.finish()?;
    if mechanism.geometry.sectors() < parameters.media_per_sector {
        return Err(inconsistent(&profile.name, "the disk has no whole sector", "add cylinders"));
    }
    Ok((parameters, mechanism))
}

fn inconsistent(subject: &str, problem: impl Into<String>, remedy: &str) -> SimError {
    SimError::Inconsistent {
        subject: format!("profile {subject}"),
        problem: problem.into(),
        remedy: remedy.to_owned(),
    }
}

fn read_mechanism(name: &str, reader: &Reader<'_>) -> Result<Mechanism, SimError> {
    let rpm = reader.number("rotation", "rpm", (1_000.0, 100_000.0))?;
    let period = Ns((60e9 / rpm).floor() as u64);
    let cylinders = reader.count("cylinders", "cylinders", (1, 1 << 22))? as u32;
    let heads = reader.count("heads", "heads", (1, 64))? as u32;
    let layout = match reader.choice("layout", &["cylinders", "serpentine"])? {
        "serpentine" => {
            let group = reader.count("serpentine_cylinders", "cylinders", (1, 1 << 20))?;
            Layout::Serpentine { cylinders: group as u32 }
        }
        _ => Layout::Cylinders,
    };
    let zones = read_zones(name, reader)?;
    Geometry::check(&format!("profile {name}"), cylinders, &zones)?;
    let mechanism = Mechanism {
        geometry: Geometry::new(heads, period, layout, &zones),
        curve: read_curve(name, reader, cylinders)?,
        resettle: reader.duration("resettle", "ms")?.0,
        resettle_write: if reader.has("resettle_write") {
            reader.duration("resettle_write", "ms")?.0
        } else {
            reader.duration("resettle", "ms")?.0
        },
        head_switch: reader.duration("head_switch", "ms")?.0,
        write_settle: reader.duration("write_settle", "ms")?.0,
        phase: 0,
        cylinder: 0,
        head: 0,
    };
    let longest = (0..cylinders).map(|distance| mechanism.curve.time(distance)).max();
    let settling = mechanism.resettle + mechanism.resettle_write + mechanism.write_settle;
    let others = mechanism.head_switch + settling;
    if longest.unwrap_or(0) + others > 1_000_000_000 {
        return Err(inconsistent(name, "moving the heads can take more than 1 s", "correct it"));
    }
    Ok(mechanism)
}

fn read_zones(name: &str, reader: &Reader<'_>) -> Result<Vec<Zone>, SimError> {
    let rows = reader.table("zones", "cylinders, sectors, sectors, sectors", 4)?;
    let whole = |row: &Vec<f64>| row.iter().all(|x| (0.0..4e9).contains(x) && x.fract() == 0.0);
    if let Some(index) = rows.iter().position(|row| !whole(row)) {
        let problem = format!("row {} of `zones` has numbers that are not counts", index + 1);
        return Err(inconsistent(name, problem, "use whole numbers from 0"));
    }
    let zone = |row: &Vec<f64>| Zone {
        cylinders: row[0] as u32,
        track_sectors: row[1] as u32,
        track_skew: row[2] as u32,
        cylinder_skew: row[3] as u32,
    };
    Ok(rows.iter().map(zone).collect())
}

fn read_curve(name: &str, reader: &Reader<'_>, cylinders: u32) -> Result<SeekCurve, SimError> {
    if reader.has("seek_table") {
        let rows = reader.table("seek_table", "cylinders, ms", 2)?;
        SeekCurve::check_table(&format!("profile {name}"), &rows)?;
        return Ok(SeekCurve::from_table(&rows, cylinders));
    }
    let pair = |parameter: &str| -> Result<[f64; 2], SimError> {
        let list = reader.list(parameter, "ms")?;
        <[f64; 2]>::try_from(list.as_slice()).map_err(|_| {
            let problem = format!("`{parameter}` has {} numbers", list.len());
            inconsistent(name, problem, "give constant and factor")
        })
    };
    let boundary = reader.count("seek_boundary", "cylinders", (1, 1 << 22))? as u32;
    let first = if reader.has("seek_first") { reader.list("seek_first", "ms")? } else { vec![] };
    let pieces =
        TwoPieces { short: pair("seek_short")?, long: pair("seek_long")?, boundary, first };
    if boundary >= cylinders {
        let problem = format!("`seek_boundary` = {boundary} is beyond the {cylinders} cylinders");
        return Err(inconsistent(name, problem, "the long piece must begin on the disk"));
    }
    let numbers = pieces.short.iter().chain(&pieces.long).chain(&pieces.first);
    if numbers.clone().any(|&ms| !(0.0..1e3).contains(&ms)) {
        return Err(inconsistent(name, "a seek constant is negative or above 1 s", "correct it"));
    }
    Ok(SeekCurve::from_pieces(&pieces, cylinders))
}

fn read_prefill(reader: &Reader<'_>, media_per_sector: u64) -> Result<Prefill, SimError> {
    if !reader.has("write_prefill") {
        return Ok(Prefill::default());
    }
    let count = |name: &str| reader.count(name, "sectors", (0, 1 << 24));
    let short = count("write_prefill")? * media_per_sector;
    if !reader.has("long_write") {
        return Ok(Prefill { short, of_long: short, long: u64::MAX });
    }
    let of_long = count("write_prefill_long")? * media_per_sector;
    Ok(Prefill { short, of_long, long: count("long_write")? * media_per_sector })
}

/// A count that a profile may leave out.
fn optional(reader: &Reader<'_>, name: &str, unit: &str) -> Result<Option<u64>, SimError> {
    if !reader.has(name) {
        return Ok(None);
    }
    reader.count(name, unit, (1, 1 << 24)).map(Some)
}

fn read_parameters(reader: &Reader<'_>) -> Result<Parameters, SimError> {
    let media_per_sector = 512 / reader.count("media_sector", "bytes", (256, 512))?;
    let to_media = |sectors: u64| sectors * media_per_sector;
    let bus = reader.number("bus_rate", "MB/s", (0.1, 100_000.0))?;
    let write_cache = to_media(reader.count("write_cache", "sectors", (0, 1 << 30))?);
    let high_water = reader.number("destage_high_water", "share", (0.0, 1.0))?;
    let write_extents = reader.count("write_cache_extents", "extents", (0, 1 << 24))?;
    let watermark = reader.number("bus_watermark", "share", (0.0, 1.0))?;
    let read_ahead = reader.choice("read_ahead", &["always", "sequential"])?;
    let policy = reader.choice("queue_policy", &["sptf", "fcfs"])?;
    let loss = reader.choice("queued_write_loss", &["none", "uniform", "exact"])?;
    let to_sector = |rate: f64| (512e3 / rate / media_per_sector as f64).round() as u64;
    let overhead_write = reader.duration("overhead_write", "ms")?.0;
    let overhead_hit = reader.duration("overhead_hit", "ms")?.0;
    let or = |name: &str, usual: u64| {
        if reader.has(name) { reader.duration(name, "ms").map(|time| time.0) } else { Ok(usual) }
    };
    // What a command costs after a read, and after a write.
    let after = |name: &str, usual: u64| -> Result<[u64; 2], SimError> {
        let first = or(name, usual)?;
        Ok([first, or(&format!("{name}_after_write"), first)?])
    };
    // The same of a write, and when it continues the one before.
    let write = |name: &str, usual: u64| -> Result<[u64; 3], SimError> {
        let [first, second] = after(name, usual)?;
        Ok([first, second, or(&format!("{name}_continuing"), second)?])
    };
    let bus_write = if reader.has("bus_rate_write") {
        reader.number("bus_rate_write", "MB/s", (0.1, 100_000.0))?
    } else {
        bus
    };
    Ok(Parameters {
        media_per_sector,
        overhead_read: reader.duration("overhead_read", "ms")?.0,
        overhead_write: write("overhead_write", overhead_write)?,
        overhead_hit: after("overhead_hit", overhead_hit)?,
        write_data: if reader.has("write_data_start") {
            write("write_data_start", 0)?
        } else {
            write("overhead_write", overhead_write)?
        },
        write_prefill: read_prefill(reader, media_per_sector)?,
        bus_start: or("bus_start", 0)?,
        completion_read: or("completion_read", 0)?,
        completion_write: write("completion_write", 0)?,
        bus_sector: to_sector(bus),
        bus_sector_write: to_sector(bus_write),
        bus_watermark: (watermark * SHARE_ONE).round() as u64,
        is_read_ahead_sequential: read_ahead == "sequential",
        read_segments: reader.count("read_segments", "segments", (0, 1_024))? as usize,
        segment_sectors: to_media(reader.count("segment_length", "sectors", (1, 1 << 24))?),
        write_cache,
        destage_window: optional(reader, "destage_window", "extents")?.map(|n| n as usize),
        read_ahead_least: to_media(optional(reader, "read_ahead_least", "sectors")?.unwrap_or(0)),
        write_extents: if write_extents == 0 { usize::MAX } else { write_extents as usize },
        high_water: ((write_cache as f64 * high_water) as u64).max(1),
        depth: reader.count("depth", "commands", (1, 65_536))? as u32,
        policy: if policy == "fcfs" { QueuePolicy::Fcfs } else { QueuePolicy::Sptf },
        ageing: (reader.number("ageing", "share", (0.0, 100.0))? * SHARE_ONE).round() as u64,
        age_limit: reader.duration("age_limit", "ms")?.0,
        queued_write_loss: match loss {
            "none" => QueuedWriteLoss::None,
            "uniform" => QueuedWriteLoss::Uniform,
            _ => QueuedWriteLoss::Exact,
        },
        max_sectors: reader.count("max_sectors", "sectors", (1, 1 << 24))? as u32,
    })
}

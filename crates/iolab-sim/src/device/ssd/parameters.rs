//! Parameters of a profile of kind `ssd`, checked for contradictions before anything is allocated.

use iolab_model::Ns;

use super::geometry::Geometry;
use crate::error::SimError;
use crate::profile::{Profile, Reader};

/// Rule by which garbage collection picks the block to empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimChoice {
    /// The block of the die with the fewest valid units.
    Greedy,
    /// The best of so many blocks drawn at random.
    Choices(u32),
}

/// Times at which garbage collection works, and the blocks it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectionPolicy {
    /// Free blocks of a plane below which it starts.
    pub start_blocks: u32,
    /// Free blocks of a plane that writes of the host never use.
    pub hard_blocks: u32,
    /// Choice of the victim.
    pub victim: VictimChoice,
}

/// Meaning of an acknowledged write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePolicy {
    /// Acknowledged data are lost at a power cut; a flush drains the cache.
    Volatile,
    /// Capacitors protect the cache: a flush only costs its base time.
    Protected,
    /// A write is acknowledged when it is on flash.
    Through,
}

/// Content of a new drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialState {
    /// Nothing was ever written.
    Fresh,
    /// Written once in order.
    Filled,
    /// Written once in order, then overwritten twice at random.
    Steady,
}

/// Kinds of pages that take turns along a block: lower, middle and upper bits of the same cells.
#[derive(Clone, Copy, Debug)]
pub struct PageSpread {
    shares: [u32; Self::KINDS_MAX],
    kinds: u32,
}

impl PageSpread {
    /// Four bits in a cell.
    const KINDS_MAX: usize = 4;
    const ONE: f64 = 1024.0;

    /// Time of a page of this row, of the given mean.
    pub fn of(&self, row: u32, mean: Ns) -> Ns {
        let share = self.shares[(row % self.kinds) as usize];
        Ns(mean.0 * u64::from(share) / Self::ONE as u64)
    }

    fn read(profile: &str, reader: &Reader<'_>) -> Result<Self, SimError> {
        let list = if reader.has("read_spread") { reader.list("read_spread", "")? } else { vec![] };
        let mean = list.iter().sum::<f64>() / list.len().max(1) as f64;
        let is_whole = list.iter().all(|share| (0.01..=10.0).contains(share));
        let is_spread = list.len() <= Self::KINDS_MAX && is_whole && (mean - 1.0).abs() < 0.01;
        if !list.is_empty() && !is_spread {
            let problem =
                format!("`read_spread` = {list:?} is no list of up to 4 shares of mean 1");
            return Err(inconsistent(
                profile,
                problem,
                "give a share of read_time per kind of page",
            ));
        }
        let mut spread = Self { shares: [Self::ONE as u32; Self::KINDS_MAX], kinds: 1 };
        for (to, share) in spread.shares.iter_mut().zip(&list) {
            *to = (share * Self::ONE).round() as u32;
        }
        spread.kinds = list.len().max(1) as u32;
        Ok(spread)
    }
}

/// Times of the flash array.
#[derive(Clone, Copy, Debug)]
pub struct FlashTimes {
    /// Array read, tR, on average.
    pub read: Ns,
    /// Shares of it that the kinds of pages of a cell take, row by row.
    pub spread: PageSpread,
    /// Reads that have to be repeated, in units of 2^-20.
    pub retry_share: u64,
    /// Program, tPROG.
    pub program: Ns,
    /// Program in single-level mode.
    pub slc_program: Ns,
    /// Erase, tERASE.
    pub erase: Ns,
    /// Command and address on the channel.
    pub command: Ns,
    /// Error correction of a page.
    pub correction: Ns,
    /// From the decision to suspend an erase until the die can read; `None` if it cannot.
    pub erase_suspend: Option<Ns>,
    /// The same for a program.
    pub program_suspend: Option<Ns>,
    /// Channel rate, bytes per second.
    pub channel_rate: u64,
}

/// Host interface.
#[derive(Clone, Copy, Debug)]
pub struct HostTimes {
    /// Payload rate, bytes per second, each way.
    pub rate: u64,
    /// Both ways at once (`PCIe`) or one at a time (SATA).
    pub is_full_duplex: bool,
    /// Commands that it takes at once.
    pub depth: u32,
    /// Latency of a command besides transfers and flash; read, write.
    pub overhead: [Ns; 2],
    /// The part of it during which the controller can do nothing else; read, write.
    pub controller: [Ns; 2],
    /// Base time of a flush.
    pub flush: Ns,
}

/// Everything that a drive needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// Sizes.
    pub geometry: Geometry,
    /// Flash times.
    pub flash: FlashTimes,
    /// Host interface.
    pub host: HostTimes,
    /// Garbage collection.
    pub collection: CollectionPolicy,
    /// Meaning of an acknowledged write.
    pub cache_policy: CachePolicy,
    /// Units that the write cache holds.
    pub cache_units: u32,
    /// Dirty units that stay in the cache for more to come.
    pub resident_units: u32,
    /// Bytes that can be programmed in single-level mode; 0 if there is no such mode.
    pub slc_bytes: u64,
    /// Time for which the host must be silent before single-level data are folded.
    pub slc_idle: Ns,
    /// Map pages held in memory; 0 if the whole map is.
    pub map_pages: u32,
    /// Superpages read ahead of a sequential reader; 0 for none.
    pub prefetch: u32,
    /// Planes of a die read at different addresses at the same time.
    pub has_independent_reads: bool,
    /// Reads in a row that a die serves while other work waits.
    pub read_burst: u32,
    /// Content when new.
    pub initial: InitialState,
}

impl Parameters {
    /// Reads and checks a profile.
    pub fn read(profile: &Profile) -> Result<Self, SimError> {
        let reader = profile.reader();
        let collection = read_collection(&reader)?;
        let geometry = read_geometry(profile, &reader, collection)?;
        let unit_bytes = u64::from(geometry.unit_bytes);
        let cache_bytes = reader.count("write_cache", "bytes", (0, 1 << 40))?;
        let cache_units = (cache_bytes / unit_bytes).min(1 << 30) as u32;
        let share = reader.number("destage_start", "", (0.0, 0.75))?;
        let map_bytes = reader.count("map_cache", "bytes", (0, 1 << 40))?;
        let parameters = Self {
            geometry,
            flash: read_flash(&profile.name, &reader)?,
            host: read_host(&reader)?,
            collection,
            cache_policy: match reader.choice("write_cache_policy", &CACHE_POLICIES)? {
                "volatile" => CachePolicy::Volatile,
                "protected" => CachePolicy::Protected,
                _ => CachePolicy::Through,
            },
            cache_units,
            resident_units: (share * f64::from(cache_units)).floor() as u32,
            slc_bytes: reader.count("slc_capacity", "bytes", (0, 1 << 50))?,
            slc_idle: reader.duration("slc_idle_time", "ms")?,
            map_pages: map_bytes.div_ceil(geometry.page_bytes()).min(1 << 30) as u32,
            prefetch: reader.count("prefetch_superpages", "", (0, 16))? as u32,
            has_independent_reads: reader.switch("independent_plane_reads")?,
            read_burst: reader.count("read_burst", "reads", (1, 1 << 20))? as u32,
            initial: match reader.choice("initial_state", &INITIAL_STATES)? {
                "fresh" => InitialState::Fresh,
                "filled" => InitialState::Filled,
                _ => InitialState::Steady,
            },
        };
        reader.finish()?;
        parameters.check(&profile.name)?;
        Ok(parameters)
    }

    /// Bytes of memory that the drive will take when all of it has been written.
    pub fn memory_bytes(&self) -> u64 {
        let geometry = &self.geometry;
        let blocks = u64::from(geometry.dies()) * u64::from(geometry.blocks);
        let maps = 4 * (u64::from(geometry.logical_units) + geometry.physical_units());
        let map_cache = 4 * u64::from(geometry.logical_units) / (geometry.page_bytes() / 4);
        // 9 bytes of block tables, 16 of cache slot with its place in the queue, 8 of map cache.
        maps + 9 * blocks + 20 * u64::from(self.cache_units) + map_cache
    }

    fn check(&self, name: &str) -> Result<(), SimError> {
        let superpage = self.geometry.superpage_units();
        // Two superpages (one that fills while the other is programmed), and as much for the
        // largest command, which may take half of the cache.
        if self.cache_units < 2 * superpage {
            let have = u64::from(self.cache_units) * u64::from(self.geometry.unit_bytes);
            let want = u64::from(2 * superpage) * u64::from(self.geometry.unit_bytes);
            return Err(inconsistent(
                name,
                format!("write_cache holds {have} bytes, two superpages are {want}"),
                "give the cache at least two superpages, or the drive fewer dies",
            ));
        }
        if self.cache_units - self.resident_units < 2 * superpage {
            return Err(inconsistent(
                name,
                "destage_start leaves less than two superpages of the cache".to_owned(),
                "lower destage_start or enlarge write_cache",
            ));
        }
        for (index, kind) in ["read", "write"].iter().enumerate() {
            if self.host.controller[index] > self.host.overhead[index] {
                return Err(inconsistent(
                    name,
                    format!("{kind}_controller_time is longer than {kind}_overhead"),
                    "the controller's time is a part of the overhead: raise the overhead",
                ));
            }
        }
        Ok(())
    }
}

const CACHE_POLICIES: [&str; 3] = ["volatile", "protected", "through"];
const INITIAL_STATES: [&str; 3] = ["fresh", "filled", "steady"];

fn inconsistent(name: &str, problem: String, remedy: &str) -> SimError {
    SimError::Inconsistent {
        subject: format!("profile {name}"),
        problem,
        remedy: remedy.to_owned(),
    }
}

fn read_collection(reader: &Reader<'_>) -> Result<CollectionPolicy, SimError> {
    let choices = reader.count("gc_choices", "blocks", (1, 1_000))? as u32;
    Ok(CollectionPolicy {
        start_blocks: reader.count("gc_start", "blocks", (1, 1 << 20))? as u32,
        hard_blocks: reader.count("gc_hard", "blocks", (1, 1 << 20))? as u32,
        victim: match reader.choice("gc_victim", &["greedy", "choices"])? {
            "greedy" => VictimChoice::Greedy,
            _ => VictimChoice::Choices(choices),
        },
    })
}

fn read_geometry(
    profile: &Profile,
    reader: &Reader<'_>,
    collection: CollectionPolicy,
) -> Result<Geometry, SimError> {
    let name = &profile.name;
    let small = |name| reader.count(name, "", (1, 64)).map(|count| count as u32);
    let logical_bytes = reader.count("logical_capacity", "bytes", (1, 1 << 50))?;
    let unit_bytes = reader.count("mapping_unit", "bytes", (512, 1 << 20))?;
    let page_bytes = reader.count("page_size", "bytes", (512, 1 << 20))?;
    if page_bytes % unit_bytes != 0 || unit_bytes % 512 != 0 {
        return Err(inconsistent(
            name,
            format!("a page of {page_bytes} bytes is no multiple of mapping units of {unit_bytes}"),
            "a mapping unit is whole sectors, a page is whole mapping units",
        ));
    }
    if logical_bytes % unit_bytes != 0 {
        return Err(inconsistent(
            name,
            format!("logical_capacity = {logical_bytes} is no multiple of {unit_bytes}"),
            "make it a multiple of mapping_unit",
        ));
    }
    let chips = small("chips_per_channel")?;
    let mut geometry = Geometry {
        channels: small("channels")?,
        dies_per_channel: chips * small("dies_per_chip")?,
        planes: small("planes_per_die")?,
        blocks: 0,
        rows: reader.count("pages_per_block", "", (1, 1 << 16))? as u32,
        units_per_page: (page_bytes / unit_bytes) as u32,
        unit_bytes: unit_bytes as u32,
        logical_units: 0,
    };
    geometry.blocks = read_blocks(profile, reader, (&geometry, logical_bytes))?;
    check_size(name, &geometry, (logical_bytes, collection))?;
    geometry.logical_units = (logical_bytes / unit_bytes) as u32;
    Ok(geometry)
}

/// Blocks of a plane: given, or as many as the capacity and the over-provisioning ask for.
fn read_blocks(
    profile: &Profile,
    reader: &Reader<'_>,
    (geometry, logical_bytes): (&Geometry, u64),
) -> Result<u32, SimError> {
    match (reader.has("blocks_per_plane"), reader.has("over_provisioning")) {
        (true, false) => Ok(reader.count("blocks_per_plane", "", (1, 1 << 24))? as u32),
        (false, true) => {
            let ratio = reader.number("over_provisioning", "", (0.0, 16.0))?;
            let block_bytes = u64::from(geometry.rows) * geometry.row_bytes();
            let across = (u64::from(geometry.dies()) * block_bytes) as f64;
            let blocks = (logical_bytes as f64 * (1.0 + ratio) / across).ceil();
            Ok(blocks.min(f64::from(1_u32 << 24)) as u32)
        }
        _ => Err(inconsistent(
            &profile.name,
            "the size of the flash must be said once".to_owned(),
            "give either blocks_per_plane or over_provisioning",
        )),
    }
}

fn check_size(
    name: &str,
    geometry: &Geometry,
    (logical_bytes, collection): (u64, CollectionPolicy),
) -> Result<(), SimError> {
    let physical = geometry.physical_units();
    // The upper half of the 32-bit numbers names slots of the write cache.
    if physical >= 1 << 31 {
        return Err(inconsistent(
            name,
            format!("{physical} mapping units are too many for a map of 32-bit numbers"),
            "enlarge mapping_unit or scale logical_capacity down",
        ));
    }
    let CollectionPolicy { start_blocks, hard_blocks, .. } = collection;
    if start_blocks < hard_blocks + 3 {
        return Err(inconsistent(
            name,
            format!("gc_start = {start_blocks} is too near to gc_hard = {hard_blocks}"),
            "collection holds up to two blocks at a time: start it at gc_hard + 3 or above",
        ));
    }
    // Kept back: the blocks that collection keeps free, the open one, and one that is emptied.
    let kept = start_blocks + 2;
    let block_bytes = u64::from(geometry.rows) * geometry.row_bytes();
    let usable = u64::from(geometry.blocks.saturating_sub(kept));
    if logical_bytes > usable * u64::from(geometry.dies()) * block_bytes {
        return Err(inconsistent(
            name,
            format!(
                "{logical_bytes} bytes do not fit into {} blocks per plane of which {kept} stay \
                 free",
                geometry.blocks
            ),
            "raise over_provisioning, or lower gc_start or pages_per_block",
        ));
    }
    Ok(())
}

fn rate(reader: &Reader<'_>, name: &str) -> Result<u64, SimError> {
    Ok((reader.number(name, "MB/s", (0.1, 1e6))? * 1e6).round() as u64)
}

fn read_flash(profile: &str, reader: &Reader<'_>) -> Result<FlashTimes, SimError> {
    let suspend = |switch: &str, time: &str| -> Result<Option<Ns>, SimError> {
        let time = reader.duration(time, "us")?;
        Ok(reader.switch(switch)?.then_some(time))
    };
    Ok(FlashTimes {
        read: reader.duration("read_time", "us")?,
        spread: PageSpread::read(profile, reader)?,
        retry_share: if reader.has("read_retry_share") {
            (reader.number("read_retry_share", "", (0.0, 0.9))? * f64::from(1 << 20)).round() as u64
        } else {
            0
        },
        program: reader.duration("program_time", "us")?,
        slc_program: reader.duration("slc_program_time", "us")?,
        erase: reader.duration("erase_time", "ms")?,
        command: reader.duration("channel_command_time", "us")?,
        correction: reader.duration("ecc_time", "us")?,
        erase_suspend: suspend("erase_suspend", "erase_suspend_time")?,
        program_suspend: suspend("program_suspend", "program_suspend_time")?,
        channel_rate: rate(reader, "channel_rate")?,
    })
}

fn read_host(reader: &Reader<'_>) -> Result<HostTimes, SimError> {
    let is_full_duplex = reader.choice("interface", &["sata", "nvme"])? == "nvme";
    let most = if is_full_duplex { 65_536 } else { 32 };
    Ok(HostTimes {
        rate: rate(reader, "interface_rate")?,
        is_full_duplex,
        depth: reader.count("queue_depth", "commands", (1, most))? as u32,
        overhead: [
            reader.duration("read_overhead", "us")?,
            reader.duration("write_overhead", "us")?,
        ],
        controller: [
            reader.duration("read_controller_time", "us")?,
            reader.duration("write_controller_time", "us")?,
        ],
        flush: reader.duration("flush_time", "us")?,
    })
}

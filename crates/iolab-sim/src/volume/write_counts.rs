//! Number of commands that a write costs: for pages, tables and people.

use iolab_model::{Bytes, Ns, Sector};

use super::list::build;
use super::parameters::VolumeParameters;
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, Submitter};
use crate::api::layer::Layer;
use crate::device::fixed::Fixed;
use crate::error::SimError;

/// Commands per member for one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteCounts {
    /// Reads of each member.
    pub reads: Vec<u64>,
    /// Writes of each member.
    pub writes: Vec<u64>,
}

impl WriteCounts {
    /// Reads and writes of all members together.
    pub fn total(&self) -> (u64, u64) {
        (self.reads.iter().sum(), self.writes.iter().sum())
    }
}

/// Commands of a write of `length` bytes at `from` on a volume of so many members that is otherwise
/// idle: the volume is built over devices that only count, and given the write.
///
/// ```
/// use iolab_model::Bytes;
/// use iolab_sim::volume::{plan_write, VolumeKind, VolumeParameters};
///
/// let mut five = VolumeParameters::new(VolumeKind::Raid5);
/// five.unit_bytes = Some(128 << 10);
/// let counts = plan_write(&five, 5, Bytes(0), Bytes(128 << 10)).unwrap();
/// assert_eq!(counts.total(), (2, 2));
/// ```
pub fn plan_write(
    parameters: &VolumeParameters,
    members: u16,
    from: Bytes,
    length: Bytes,
) -> Result<WriteCounts, SimError> {
    let mut parameters = parameters.clone();
    if parameters.rebuild.is_some() {
        parameters.rebuild = Some(false);
    }
    let device = |_| Box::new(Fixed::new(Ns(1), 1, false)) as Box<dyn Layer>;
    let mut volume = build((0..members).map(device).collect(), &parameters)?;
    let bio = write_of(&parameters, &*volume, from, length)?;
    volume.submit(Ns(0), &bio);
    let mut done = Vec::new();
    while volume.next_event() < Ns::MAX {
        volume.advance(volume.next_event(), &mut done);
    }
    debug_assert_eq!(done, [Ended::ok(BioId(0))], "one write, done once");
    let counters = volume.counters();
    let of = |name: &str| -> Vec<u64> {
        let names = (0..members).map(|member| format!("member.{member}.{name}"));
        let value = |wanted: String| counters.iter().find(|(known, _)| *known == wanted);
        names.map(|name| value(name).map_or(0, |(_, value)| *value as u64)).collect()
    };
    Ok(WriteCounts { reads: of("reads"), writes: of("writes") })
}

fn write_of(
    parameters: &VolumeParameters,
    volume: &dyn Layer,
    from: Bytes,
    length: Bytes,
) -> Result<Bio, SimError> {
    let size = Sector::SIZE.0;
    let (sector, sectors) = (Sector(from.0 / size), length.0 / size);
    let is_whole = from.0.is_multiple_of(size) && length.0.is_multiple_of(size);
    if !is_whole || sectors == 0 || sectors > u64::from(u32::MAX) {
        let problem = format!("a write of {length} bytes at {from} is not some whole sectors");
        return Err(parameters.wrong(problem, "give multiples of 512, up to 2 TiB"));
    }
    if sector.0 + sectors > volume.info().capacity.0 {
        let problem = format!("a write of {length} bytes at {from} is beyond the end");
        return Err(parameters.wrong(problem, "write inside the volume"));
    }
    let (flags, submitter) = (Flags::NONE, Submitter::default());
    let (id, operation, sectors) = (BioId(0), Operation::Write, sectors as u32);
    Ok(Bio { id, operation, sector, sectors, flags, submitter, segments: 0 })
}

//! Mode of a mounted file system: what its options and the kernel's version say.

use iolab_model::Ns;

use super::reservation::Reservations;

/// Relation of a transaction to the data of files (`data=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataMode {
    /// Data of new blocks are written before the transaction that gives them.
    Ordered,
    /// No relation.
    Writeback,
    /// Data are in the journal.
    Journal,
}

/// Times of reading that are noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTimes {
    /// None.
    Never,
    /// The first after each change.
    Relative,
    /// All.
    Always,
}

/// Options and rules of the kernel, decided.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct ExtMode {
    /// Name of the file system.
    pub name: &'static str,
    /// Files have extents.
    pub has_extents: bool,
    /// Places are chosen at write-back.
    pub is_delayed: bool,
    /// New blocks are unwritten until their data are there (`dioread_nolock`).
    pub is_unwritten_first: bool,
    /// Relation to data.
    pub data: DataMode,
    /// A replacing file is written at close or rename.
    pub replaces_at_once: bool,
    /// Times of reading.
    pub access_times: AccessTimes,
    /// Changes of times alone wait (`lazytime`).
    pub is_lazy: bool,
    /// Caches and disks are flushed for durability.
    pub has_barriers: bool,
    /// Pages come in folios of several.
    pub has_large_folios: bool,
    /// Direct writes inside a file share its lock.
    pub shares_direct: bool,
    /// The driver is the one that ext2 and ext3 had up to 4.2.
    pub own_driver: bool,
    /// Windows keep its files apart.
    pub has_windows: bool,
    /// Time at which all bitmaps are known without a search.
    pub learns_at: Ns,
    /// Work of the processor to give blocks their place.
    pub map_cost: Ns,
}

impl ExtMode {
    /// Fresh windows of a driver up to 4.2.
    pub fn windows(&self) -> Reservations {
        if self.has_windows { Reservations::default() } else { Reservations::off() }
    }
}

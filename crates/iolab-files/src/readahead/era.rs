//! Eras of read-ahead: which kernel follows which rule.
//!
//! Sources: mm/readahead.c and mm/filemap.c of Linux 2.6.32, 3.11, 4.10, 4.19, 5.11, 6.1, 6.12, and
//! of a 6.19-era tree; measurements on 6.18.

use crate::api::make::Kernel;

iolab_model::registry! {
    /// An era of read-ahead, as in `readahead_era = "ra4"`.
    pub enum ReadAheadEra as "era of read-ahead" {
        /// Kernels 2.6.24 to 3.10: a context window is all ahead.
        Ra1 = "ra1",
        /// Kernels 3.11 to 6.10: misses ramp up as markers do.
        Ra2 = "ra2",
        /// Kernels 6.11 to 6.15: misses and markers are apart.
        Ra3 = "ra3",
        /// Kernels from 6.16 on: windows end aligned, the order is kept per open file.
        Ra4 = "ra4",
    }
}

iolab_model::registry! {
    /// Search for absent pages beside large folios, as in `ra_walk = "ideal"`.
    pub enum Walk as "walk" {
        /// As kernels up to 6.18 at least do it: begun in the middle of a folio, it runs ahead.
        Exact = "exact",
        /// Page by page.
        Ideal = "ideal",
    }
}

/// The rules of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each changed in a release of its own")]
pub struct ReadAheadRules {
    /// The era.
    pub era: ReadAheadEra,
    /// A request longer than a window makes the window as long as the device takes (4.10).
    pub has_io_pages: bool,
    /// A first window that would trigger itself is capped (4.19).
    pub caps_self_trigger: bool,
    /// The page after the last byte counts as the previous one, not the page of that byte (5.11).
    pub is_previous_next: bool,
    /// Folios of two pages exist (6.9).
    pub has_order_one: bool,
    /// Folios per batch: single pages before 5.11, 15 up to 6.9, 31 since.
    pub batch_folios: u32,
    /// Present pages are mapped around a fault (3.15).
    pub has_fault_around: bool,
    /// Pages of windows come in large folios where the size allows.
    pub has_large_folios: bool,
    /// Search for absent pages beside large folios.
    pub walk: Walk,
}

impl ReadAheadRules {
    /// Rules of a kernel, for a file system with or without large folios.
    pub fn of(kernel: Kernel, has_large_folios: bool) -> Self {
        let from = |major, minor| kernel >= Kernel::new(major, minor);
        let era = match () {
            () if from(6, 16) => ReadAheadEra::Ra4,
            () if from(6, 11) => ReadAheadEra::Ra3,
            () if from(3, 11) => ReadAheadEra::Ra2,
            () => ReadAheadEra::Ra1,
        };
        Self {
            era,
            has_io_pages: from(4, 10),
            caps_self_trigger: from(4, 19),
            is_previous_next: from(5, 11),
            has_order_one: from(6, 9),
            batch_folios: if from(6, 10) {
                31
            } else if from(5, 11) {
                15
            } else {
                1
            },
            has_fault_around: from(3, 15),
            has_large_folios,
            walk: Walk::Exact,
        }
    }

    /// Rules of an era: those of its last kernel.
    pub fn of_era(era: ReadAheadEra, has_large_folios: bool) -> Self {
        let kernel = match era {
            ReadAheadEra::Ra1 => Kernel::new(3, 10),
            ReadAheadEra::Ra2 => Kernel::new(6, 10),
            ReadAheadEra::Ra3 => Kernel::new(6, 15),
            ReadAheadEra::Ra4 => Kernel::new(6, 18),
        };
        Self::of(kernel, has_large_folios)
    }
}

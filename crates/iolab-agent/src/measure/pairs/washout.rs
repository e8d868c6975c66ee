//! Pages that others have left in the page cache, taken away before a slice; and pages that a slice
//! has written, of which none may be left to the next.
//!
//! Left out: pages of the backing file of a loop device, which is read past the cache.

use std::path::PathBuf;

use iolab_drive::record::Warning;
use iolab_model::Error;
use iolab_real::cache;

use super::cast::Cast;

/// Above this share of resident pages a slice did not begin with a cold cache.
const RESIDENT_SHARE_MAX: f64 = 0.01;

/// The files of every cell on every device, and how well their pages were dropped.
pub struct Washout {
    /// By cell, then by device.
    files: Vec<Vec<Vec<PathBuf>>>,
    drops: u64,
    /// Drops after which too many pages had stayed.
    incomplete: u64,
    /// Of the buffered files of each cell, all together.
    held_bytes: Vec<u64>,
    /// Slices that read more than that.
    repeating: u64,
    /// True if the slices of the cell end with an fsync, cell by cell.
    is_flushed: Vec<bool>,
    flushed: u64,
    /// Flushed slices after which pages were still to be written.
    unwritten: u64,
}

impl Washout {
    /// Of the cells of a session, in these directories.
    pub fn of(cast: &Cast, directories: &[PathBuf]) -> Self {
        let on_each = |cell: usize| -> Vec<Vec<PathBuf>> {
            let names = cast.buffered_files(cell);
            let of = |directory: &PathBuf| names.iter().map(|it| directory.join(it)).collect();
            directories.iter().map(of).collect()
        };
        let files = (0..cast.cells()).map(on_each).collect();
        let held_bytes = (0..cast.cells()).map(|cell| cast.buffered_bytes(cell)).collect();
        let is_flushed = (0..cast.cells()).map(|cell| cast.is_flushed(cell)).collect();
        let (drops, incomplete, repeating, flushed, unwritten) = (0, 0, 0, 0, 0);
        Self { files, drops, incomplete, held_bytes, repeating, is_flushed, flushed, unwritten }
    }

    /// Drops what a cell is about to read on a device.
    ///
    /// # Errors
    ///
    /// A file is gone.
    pub fn before(&mut self, cell: usize, place: usize) -> Result<(), Error> {
        for file in &self.files[cell][place] {
            let left = cache::drop_file(file)?;
            self.drops += 1;
            let share = left.resident_pages as f64 / left.pages.max(1) as f64;
            self.incomplete += u64::from(share > RESIDENT_SHARE_MAX);
        }
        Ok(())
    }

    /// Looks at what a cell has left on a device, where it moved so many bytes in a slice: what is
    /// more than its files hold was read twice, and what is not written yet is left to others.
    ///
    /// # Errors
    ///
    /// A file is gone.
    pub fn after(&mut self, cell: usize, place: usize, moved: u64) -> Result<(), Error> {
        if self.is_flushed[cell] {
            let mut left = 0;
            for file in &self.files[cell][place] {
                left += cache::unwritten_pages(file)?.unwrap_or(0);
            }
            self.flushed += 1;
            self.unwritten += u64::from(left > 0);
        } else {
            let held = self.held_bytes[cell];
            self.repeating += u64::from(held > 0 && moved > held);
        }
        Ok(())
    }

    /// Warnings of a phase, if not all that was read came from the device, or not all that was
    /// written went there.
    pub fn warnings(&self) -> Vec<Warning> {
        let (drops, incomplete, repeating) = (self.drops, self.incomplete, self.repeating);
        let stayed = (incomplete > 0).then(|| {
            Warning::new(
                "cache_not_cold",
                format!(
                    "more than 1 % of a file stayed in the page cache before {incomplete} of \
                     {drops} slices"
                ),
                "on tmpfs nothing can be dropped; elsewhere another process may map the file",
            )
        });
        let repeated = (repeating > 0).then(|| {
            Warning::new(
                "cache_not_cold",
                format!("{repeating} slices read more than their file holds, the rest from memory"),
                "use a larger file: --file-size",
            )
        });
        let (flushed, unwritten) = (self.flushed, self.unwritten);
        let left = (unwritten > 0).then(|| {
            Warning::new(
                "slices_not_written",
                format!(
                    "pages were still to be written at the end of {unwritten} of {flushed} \
                     slices, after their fsync: the next slices pay for them"
                ),
                "see whether another process writes these files, or compare whole trials",
            )
        });
        stayed.into_iter().chain(repeated).chain(left).collect()
    }
}

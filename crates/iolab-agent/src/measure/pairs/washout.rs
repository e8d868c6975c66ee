//! Pages that others have left in the page cache, taken away before a slice.
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
        Self { files, drops: 0, incomplete: 0, held_bytes, repeating: 0 }
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

    /// Takes what a cell has moved in a slice: what is more than its files hold was read twice.
    pub fn after(&mut self, cell: usize, moved: u64) {
        let held = self.held_bytes[cell];
        self.repeating += u64::from(held > 0 && moved > held);
    }

    /// Warnings of a phase, if not all that was read came from the device.
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
        stayed.into_iter().chain(repeated).collect()
    }
}

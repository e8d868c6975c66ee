//! Names and extents of files on a simulated device without a file system.
//!
//! Files are laid out by rule, in extents of a fixed size; names cost nothing and nothing but the
//! files' own data is ever written.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use iolab_files::api::block::DeviceId;
use iolab_files::sector::{DeviceData, SectorData, by_sector};
use iolab_model::error::Errno;
use iolab_model::{Bytes, Sector};
use serde::{Deserialize, Serialize};

/// Directory of the files of a simulated device; further places are directories below it.
pub const DIRECTORY: &str = "/simulated";

/// Unit of allocation: 64 MiB.
pub const EXTENT: Sector = Sector((64 << 20) / 512);

/// Begin of new files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// One after the other from the first sector on: a freshly filled device.
    #[default]
    Packed,
    /// Spread over the whole device (van der Corput sequence, base 2: 0, 1/2, 1/4, 3/4, ...): files
    /// of different owners on a well-filled device.
    Spread,
}

/// Index of a file, stable over renames.
pub type FileId = usize;

#[derive(Clone, Debug, Default)]
struct File {
    length: u64,
    /// Index of its area.
    area: usize,
    /// First sector of every extent, in file order.
    extents: Vec<Sector>,
}

/// A range of sectors with the files below a directory.
#[derive(Debug)]
struct Area {
    /// None: files that are in no other area.
    below: Option<PathBuf>,
    /// First extent, and the one behind the last.
    extents: Range<u64>,
    /// Files that have got space so far.
    created: u64,
}

/// All files of a simulated device.
#[derive(Debug)]
pub struct Namespace {
    files: Vec<File>,
    free_files: Vec<FileId>,
    names: BTreeMap<PathBuf, FileId>,
    directories: BTreeSet<PathBuf>,
    placement: Placement,
    /// Extents of the device that are taken.
    taken: BTreeSet<u64>,
    /// The first one has whatever lies in no other.
    areas: Vec<Area>,
    /// Data of the device, if somebody looks at them.
    data: Option<DeviceData>,
}

impl Namespace {
    /// An empty device.
    pub fn new(capacity: Sector, placement: Placement) -> Self {
        Self {
            files: Vec::new(),
            free_files: Vec::new(),
            names: BTreeMap::new(),
            directories: BTreeSet::new(),
            placement,
            taken: BTreeSet::new(),
            areas: vec![Area { below: None, extents: 0..capacity.0 / EXTENT.0, created: 0 }],
            data: None,
        }
    }

    /// Gives files below a directory a range of their own, which begins at a whole extent.
    pub fn add_area(&mut self, below: PathBuf, from: Sector, capacity: Sector) {
        debug_assert!(from.0.is_multiple_of(EXTENT.0), "areas begin at whole extents");
        let first = from.0 / EXTENT.0;
        self.areas[0].extents.end = self.areas[0].extents.end.min(first);
        let extents = first..first + capacity.0 / EXTENT.0;
        self.areas.push(Area { below: Some(below), extents, created: 0 });
    }

    fn area_of(&self, path: &Path) -> usize {
        let holds = |area: &Area| area.below.as_ref().is_some_and(|below| path.starts_with(below));
        self.areas.iter().position(holds).unwrap_or(0)
    }

    /// The first sectors of all areas.
    pub fn areas(&self) -> impl Iterator<Item = Sector> {
        self.areas.iter().map(|area| Sector(area.extents.start * EXTENT.0))
    }

    /// The first sector of the area that a path is in.
    pub fn area_at(&self, path: &Path) -> Sector {
        Sector(self.areas[self.area_of(path)].extents.start * EXTENT.0)
    }

    /// The first sector of the area that a file is in.
    pub fn area(&self, id: FileId) -> Sector {
        Sector(self.areas[self.files[id].area].extents.start * EXTENT.0)
    }

    /// An existing file.
    pub fn find(&self, path: &PathBuf) -> Result<FileId, Errno> {
        self.names.get(path).copied().ok_or(Errno::ENOENT)
    }

    /// A new, empty file.
    pub fn create(&mut self, path: PathBuf) -> Result<FileId, Errno> {
        if self.names.contains_key(&path) {
            return Err(Errno::EEXIST);
        }
        let id = self.free_files.pop().unwrap_or_else(|| {
            self.files.push(File::default());
            self.files.len() - 1
        });
        self.files[id] = File { area: self.area_of(&path), ..File::default() };
        self.names.insert(path, id);
        Ok(id)
    }

    /// Removes a file and frees its extents.
    pub fn unlink(&mut self, path: &PathBuf) -> Result<(), Errno> {
        let id = self.names.remove(path).ok_or(Errno::ENOENT)?;
        self.forget_behind(id, 0);
        for start in core::mem::take(&mut self.files[id].extents) {
            self.taken.remove(&(start.0 / EXTENT.0));
        }
        self.files[id].length = 0;
        Ok(())
    }

    /// Gives a file another name, replacing what had it.
    pub fn rename(&mut self, from: &PathBuf, to: PathBuf) -> Result<(), Errno> {
        let id = self.names.get(from).copied().ok_or(Errno::ENOENT)?;
        if self.area_of(&to) != self.files[id].area {
            return Err(Errno::EXDEV);
        }
        if *from != to {
            let _ = self.unlink(&to);
            self.names.remove(from);
            self.names.insert(to, id);
        }
        Ok(())
    }

    /// All files, by name.
    pub fn names(&self) -> &BTreeMap<PathBuf, FileId> {
        &self.names
    }

    /// Makes a directory.
    pub fn make_directory(&mut self, path: PathBuf) -> Result<(), Errno> {
        if self.directories.insert(path) { Ok(()) } else { Err(Errno::EEXIST) }
    }

    /// Check that there is such a directory.
    pub fn directory(&self, path: &PathBuf) -> Result<(), Errno> {
        if self.directories.contains(path) { Ok(()) } else { Err(Errno::ENOENT) }
    }

    /// Removes a directory.
    pub fn remove_directory(&mut self, path: &PathBuf) -> Result<(), Errno> {
        if self.directories.remove(path) { Ok(()) } else { Err(Errno::ENOENT) }
    }

    /// A file's length.
    pub fn length(&self, id: FileId) -> Bytes {
        Bytes(self.files[id].length)
    }

    /// Sets a file's length, allocating as needed.
    pub fn set_length(&mut self, id: FileId, length: Bytes) -> Result<(), Errno> {
        self.reserve(id, length)?;
        self.forget_behind(id, length.0);
        self.files[id].length = length.0;
        Ok(())
    }

    /// Tell whether data are kept.
    pub const fn keeps_data(&self) -> bool {
        self.data.is_some()
    }

    /// Keeps the data of files from now on; whatever was written before is zeros.
    pub fn keep_data(&mut self) {
        self.data.get_or_insert_default();
    }

    /// Copies bytes from a buffer to the device, or from the device into a buffer.
    pub fn move_data(&mut self, id: FileId, at: Bytes, bytes: &mut [u8], is_write: bool) {
        let mut places = Vec::new();
        self.map(id, at, Bytes(bytes.len() as u64), |first, count| {
            places.extend(first.0..first.0 + u64::from(count));
        });
        let Some(data) = &mut self.data else { return };
        for (place, (_, from, part)) in places.into_iter().zip(by_sector(at.0, bytes.len())) {
            let mut sector = data.sector(DeviceId::MAIN, place);
            if is_write {
                sector.put(from, &bytes[part]);
                data.set(DeviceId::MAIN, place, sector);
            } else {
                sector.copy_to(from, &mut bytes[part]);
            }
        }
    }

    /// Sectors hold zeros.
    pub fn forget_data(&mut self, first: Sector, count: u64) {
        let Some(data) = &mut self.data else { return };
        for sector in first.0..first.0 + count {
            data.set(DeviceId::MAIN, sector, SectorData::default());
        }
    }

    /// Clears what lies behind a length of a file.
    fn forget_behind(&mut self, id: FileId, length: u64) {
        let end = self.files[id].length;
        if self.data.is_none() || end <= length {
            return;
        }
        let first = length.next_multiple_of(512);
        let mut cut = vec![0; (first.min(end) - length) as usize];
        self.move_data(id, Bytes(length), &mut cut, true);
        let mut runs = Vec::new();
        let rest = Bytes(end.saturating_sub(first));
        self.map(id, Bytes(first), rest, |sector, count| runs.push((sector, count)));
        for (sector, count) in runs {
            self.forget_data(sector, u64::from(count));
        }
    }

    /// Makes sure that the first `length` bytes have a place.
    pub fn reserve(&mut self, id: FileId, length: Bytes) -> Result<(), Errno> {
        let needed = length.0.div_ceil(EXTENT.start().0);
        while (self.files[id].extents.len() as u64) < needed {
            let start = self.next_extent(id).ok_or(Errno::ENOSPC)?;
            self.taken.insert(start);
            self.files[id].extents.push(Sector(start * EXTENT.0));
        }
        Ok(())
    }

    /// The extent after the file's last one if it is free, else the next free one.
    fn next_extent(&mut self, id: FileId) -> Option<u64> {
        let File { area, extents, .. } = &self.files[id];
        let area = *area;
        let wanted = match extents.last() {
            Some(last) => last.0 / EXTENT.0 + 1,
            None => self.first_extent(area),
        };
        let Range { start, end } = self.areas[area].extents;
        let is_free = |extent: &u64| !self.taken.contains(extent);
        (wanted..end).chain(start..wanted.min(end)).find(is_free)
    }

    fn first_extent(&mut self, area: usize) -> u64 {
        let Area { extents: Range { start, end }, created, .. } = &mut self.areas[area];
        let ordinal = *created;
        *created += 1;
        match self.placement {
            Placement::Packed => *start,
            Placement::Spread => {
                let fraction = u128::from(ordinal.reverse_bits());
                *start + ((fraction * u128::from(*end - *start)) >> 64) as u64
            }
        }
    }

    /// Places of the bytes `at .. at + length` of a file: calls `each` per contiguous run. The
    /// range must have a place.
    pub fn map(&self, id: FileId, at: Bytes, length: Bytes, mut each: impl FnMut(Sector, u32)) {
        let extents = &self.files[id].extents;
        let (mut sector, end) = (at.0 / 512, (at.0 + length.0).div_ceil(512));
        while sector < end {
            let index = (sector / EXTENT.0) as usize;
            let start = Sector(extents[index].0 + sector % EXTENT.0);
            let mut run = EXTENT.0 - sector % EXTENT.0;
            let mut next = index + 1;
            while sector + run < end && extents[next].0 == extents[next - 1].0 + EXTENT.0 {
                run += EXTENT.0;
                next += 1;
            }
            let run = run.min(end - sector);
            each(start, run as u32);
            sector += run;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(names: &Namespace, id: FileId, at: u64, length: u64) -> Vec<(u64, u32)> {
        let mut all = Vec::new();
        names.map(id, Bytes(at), Bytes(length), |start, run| all.push((start.0, run)));
        all
    }

    #[test]
    fn a_lone_file_is_contiguous() {
        let mut names = Namespace::new(Sector(EXTENT.0 * 4), Placement::Packed);
        let id = names.create("a".into()).unwrap();
        names.set_length(id, Bytes(EXTENT.start().0 * 3)).unwrap();
        assert_eq!(runs(&names, id, EXTENT.start().0 - 512, 1024), [(EXTENT.0 - 1, 2)]);
    }

    #[test]
    fn space_ends_and_comes_back() {
        let mut names = Namespace::new(Sector(EXTENT.0 * 2), Placement::Packed);
        let id = names.create("a".into()).unwrap();
        assert_eq!(names.set_length(id, Bytes(EXTENT.start().0 * 2 + 1)), Err(Errno::ENOSPC));
        names.unlink(&"a".into()).unwrap();
        let id = names.create("b".into()).unwrap();
        assert_eq!(names.set_length(id, Bytes(EXTENT.start().0 * 2)), Ok(()));
    }

    #[test]
    fn an_area_has_its_own_space_and_keeps_its_files() {
        let mut names = Namespace::new(Sector(EXTENT.0 * 4), Placement::Packed);
        let (from, capacity) = (Sector(EXTENT.0 * 3), Sector(EXTENT.0));
        names.add_area("/x/log".into(), from, capacity);
        let inside = names.create("/x/log/a".into()).unwrap();
        let outside = names.create("/x/logs".into()).unwrap();
        names.set_length(inside, Bytes(512)).unwrap();
        names.set_length(outside, Bytes(EXTENT.start().0 * 3)).unwrap();
        assert_eq!(runs(&names, inside, 0, 512), [(from.0, 1)]);
        assert_eq!((names.area(inside), names.area(outside)), (from, Sector(0)));
        for id in [inside, outside] {
            let more = Bytes(EXTENT.start().0 * 3 + 1);
            assert_eq!(names.set_length(id, more), Err(Errno::ENOSPC));
        }
        assert_eq!(names.rename(&"/x/logs".into(), "/x/log/b".into()), Err(Errno::EXDEV));
    }

    #[test]
    fn spread_files_halve_the_device_again_and_again() {
        let mut names = Namespace::new(Sector(EXTENT.0 * 8), Placement::Spread);
        let starts: Vec<u64> = ["a", "b", "c", "d"]
            .map(|name| {
                let id = names.create(name.into()).unwrap();
                names.set_length(id, Bytes(512)).unwrap();
                runs(&names, id, 0, 512)[0].0 / EXTENT.0
            })
            .to_vec();
        assert_eq!(starts, [0, 4, 2, 6]);
    }
}

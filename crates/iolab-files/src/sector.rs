//! `SectorData`: the bytes of a sector, shared by everybody who holds the same ones; `DeviceData`:
//! those that devices hold.
//!
//! Nothing is kept unless somebody looks at it: a simulation moves no bytes, only their names.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::api::block::DeviceId;

/// Size of a sector.
pub const SECTOR_BYTES: usize = 512;

/// Data of a sector; by default zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectorData(Option<Rc<[u8; SECTOR_BYTES]>>);

impl SectorData {
    /// A sector of nothing but this byte.
    pub fn filled(byte: u8) -> Self {
        Self(Some(Rc::new([byte; SECTOR_BYTES])))
    }

    /// Overwrites it from byte `at` on. Others who hold the old data keep them.
    ///
    /// # Panics
    ///
    /// If `bytes` reach behind its end.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        if bytes.len() == SECTOR_BYTES {
            let is_empty = bytes.iter().all(|byte| *byte == 0);
            self.0 = (!is_empty).then(|| Rc::new(bytes.try_into().expect("a whole sector")));
            return;
        }
        let data = self.0.get_or_insert_with(|| Rc::new([0; SECTOR_BYTES]));
        Rc::make_mut(data)[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Copies its bytes from `at` on.
    ///
    /// # Panics
    ///
    /// If `into` is longer than what is left.
    pub fn copy_to(&self, at: usize, into: &mut [u8]) {
        match &self.0 {
            Some(data) => into.copy_from_slice(&data[at..at + into.len()]),
            None => into.fill(0),
        }
    }
}

/// Parts of a range of bytes that lie in one sector each: number of the sector, first byte in it,
/// and the bytes of the part, counted from the beginning of the range.
pub fn by_sector(
    at: u64,
    length: usize,
) -> impl Iterator<Item = (u64, usize, core::ops::Range<usize>)> {
    let (end, unit) = (at + length as u64, SECTOR_BYTES as u64);
    let last = if length == 0 { at / unit } else { end.div_ceil(unit) };
    (at / unit..last).map(move |sector| {
        let from = (sector * unit).max(at);
        let until = ((sector + 1) * unit).min(end);
        (sector, (from % unit) as usize, (from - at) as usize..(until - at) as usize)
    })
}

/// Data that devices hold; what was never written is zeros.
#[derive(Clone, Debug, Default)]
pub struct DeviceData {
    sectors: BTreeMap<(DeviceId, u64), SectorData>,
}

impl DeviceData {
    /// Data of a sector.
    pub fn sector(&self, device: DeviceId, sector: u64) -> SectorData {
        self.sectors.get(&(device, sector)).cloned().unwrap_or_default()
    }

    /// Data of a sector are these from now on.
    pub fn set(&mut self, device: DeviceId, sector: u64, data: SectorData) {
        if data == SectorData::default() {
            self.sectors.remove(&(device, sector));
        } else {
            self.sectors.insert((device, sector), data);
        }
    }
}

impl DeviceData {
    /// Number of sectors that are not zeros.
    pub fn len(&self) -> usize {
        self.sectors.len()
    }

    /// Tell whether all are zeros.
    pub fn is_empty(&self) -> bool {
        self.sectors.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_range_lie_in_one_sector_each() {
        let parts: Vec<_> = by_sector(500, 530).collect();
        assert_eq!(parts, [(0, 500, 0..12), (1, 0, 12..524), (2, 0, 524..530)]);
        assert_eq!(by_sector(512, 512).collect::<Vec<_>>(), [(1, 0, 0..512)]);
        assert_eq!(by_sector(7, 0).count(), 0);
    }

    #[test]
    fn a_change_leaves_the_data_of_others_alone() {
        let mut page = SectorData::default();
        page.put(10, b"first");
        let on_its_way = page.clone();
        page.put(10, b"other");
        let mut found = [0; 5];
        on_its_way.copy_to(10, &mut found);
        assert_eq!(&found, b"first");
        page.put(0, &[0; SECTOR_BYTES]);
        assert_eq!(page, SectorData::default());
    }
}

//! The address arithmetic of striping: a bijection, no state.

use iolab_model::Sector;

/// Units laid over disks in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Number of disks (or columns).
    pub disks: u16,
    /// Unit in sectors.
    pub unit: u32,
}

impl Stripe {
    /// Disk and sector on it where an address lives.
    pub const fn locate(self, address: Sector) -> (u16, Sector) {
        let (unit, disks) = (self.unit as u64, self.disks as u64);
        let (k, offset) = (address.0 / unit, address.0 % unit);
        ((k % disks) as u16, Sector(k / disks * unit + offset))
    }

    /// The address that lives at a disk's sector.
    pub const fn address(self, disk: u16, sector: Sector) -> Sector {
        let unit = self.unit as u64;
        let (row, offset) = (sector.0 / unit, sector.0 % unit);
        Sector((row * self.disks as u64 + disk as u64) * unit + offset)
    }

    /// Size of the whole for disks of `disk_sectors`: whole units only.
    pub const fn capacity(self, disk_sectors: Sector) -> Sector {
        let unit = self.unit as u64;
        Sector(disk_sectors.0 / unit * unit * self.disks as u64)
    }

    /// Calls `piece(disk, sector, sectors)` for each unit, or part of one, of a range.
    pub fn pieces(self, from: Sector, sectors: u32, mut piece: impl FnMut(u16, Sector, u32)) {
        let end = from.0 + u64::from(sectors);
        let mut at = from.0;
        while at < end {
            let left = u64::from(self.unit) - at % u64::from(self.unit);
            let length = left.min(end - at) as u32;
            let (disk, sector) = self.locate(Sector(at));
            piece(disk, sector, length);
            at += u64::from(length);
        }
    }
}

//! Places of things on the flash: numbers of dies, blocks, rows, pages and mapping units.
//!
//! The planes of a die work in lockstep: a *row* is one page on each plane of a die, programmed by
//! one operation, and a block of the model is one block on each plane, erased by one operation.
//! A page holds one or more *mapping units*, the grain of the map. Dies are numbered
//! channel first ("CWDP"): die 0 is on channel 0, die 1 on channel 1, and so on.

/// Sizes, and the arithmetic on addresses that follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels.
    pub channels: u32,
    /// Dies on a channel (chips times dies of a chip).
    pub dies_per_channel: u32,
    /// Planes of a die.
    pub planes: u32,
    /// Blocks of a plane.
    pub blocks: u32,
    /// Pages of a block, which are rows of a block of all planes.
    pub rows: u32,
    /// Mapping units in a page.
    pub units_per_page: u32,
    /// Bytes of a mapping unit.
    pub unit_bytes: u32,
    /// Mapping units that the host can address.
    pub logical_units: u32,
}

impl Geometry {
    /// Dies of the drive.
    pub const fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Units in a row.
    pub const fn row_units(&self) -> u32 {
        self.planes * self.units_per_page
    }

    /// Units in a block of all planes of a die.
    pub const fn block_units(&self) -> u32 {
        self.rows * self.row_units()
    }

    /// Units in one row of every die.
    pub const fn superpage_units(&self) -> u32 {
        self.dies() * self.row_units()
    }

    /// Units that the flash has.
    pub const fn physical_units(&self) -> u64 {
        self.dies() as u64 * self.blocks as u64 * self.block_units() as u64
    }

    /// Bytes of a page.
    pub const fn page_bytes(&self) -> u64 {
        self.units_per_page as u64 * self.unit_bytes as u64
    }

    /// Bytes of a row.
    pub const fn row_bytes(&self) -> u64 {
        self.page_bytes() * self.planes as u64
    }

    /// The channel of a die.
    pub const fn channel_of(&self, die: u32) -> u32 {
        die % self.channels
    }

    /// The block (counted over the whole drive) of a physical unit.
    pub const fn block_of(&self, unit: u32) -> u32 {
        unit / self.block_units()
    }

    /// The die of a block.
    pub const fn die_of_block(&self, block: u32) -> u32 {
        block / self.blocks
    }

    /// The page (counted over the whole drive) of a physical unit.
    pub const fn page_of(&self, unit: u32) -> u32 {
        unit / self.units_per_page
    }

    /// The row (counted over the whole drive) of a page.
    pub const fn row_of_page(&self, page: u32) -> u32 {
        page / self.planes
    }

    /// The plane of a page, within its die.
    pub const fn plane_of_page(&self, page: u32) -> u32 {
        page % self.planes
    }

    /// The die of a page.
    pub const fn die_of_page(&self, page: u32) -> u32 {
        page / (self.planes * self.rows * self.blocks)
    }

    /// First unit of a row of a block.
    pub const fn first_of_row(&self, block: u32, row: u32) -> u32 {
        block * self.block_units() + row * self.row_units()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_decompose_as_they_were_composed() {
        let geometry = Geometry {
            channels: 3,
            dies_per_channel: 2,
            planes: 2,
            blocks: 5,
            rows: 7,
            units_per_page: 4,
            unit_bytes: 4096,
            logical_units: 100,
        };
        let mut expected = 0;
        for die in 0..6 {
            for block in die * 5..(die + 1) * 5 {
                for row in 0..7 {
                    let first = geometry.first_of_row(block, row);
                    assert_eq!(first, expected);
                    for offset in 0..8 {
                        let page = geometry.page_of(first + offset);
                        assert_eq!(geometry.block_of(first + offset), block);
                        assert_eq!(geometry.die_of_block(block), die);
                        assert_eq!(geometry.die_of_page(page), die);
                        assert_eq!(geometry.plane_of_page(page), offset / 4);
                        assert_eq!(geometry.row_of_page(page), first / 8);
                    }
                    expected += 8;
                }
            }
        }
        assert_eq!(u64::from(expected), geometry.physical_units());
    }
}

//! Contiguous pieces of members, and the list that rejoins neighbours.

use iolab_model::Sector;

/// Sectors that are read from or written to one member in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Index of the member.
    pub member: u16,
    /// First sector on it.
    pub sector: Sector,
    /// Length.
    pub sectors: u32,
}

impl Transfer {
    /// First sector after it.
    pub const fn end(&self) -> Sector {
        Sector(self.sector.0 + self.sectors as u64)
    }
}

/// Transfers of one bio or row: cut at unit boundaries by whoever pushes, rejoined per member.
#[derive(Clone, Debug, Default)]
pub struct Transfers {
    list: Vec<Transfer>,
    last: Vec<Option<u32>>,
}

impl Transfers {
    /// Forgets all, keeps the memory.
    pub fn clear(&mut self) {
        for transfer in self.list.drain(..) {
            self.last[usize::from(transfer.member)] = None;
        }
    }

    /// Adds a piece; if it continues the member's last one, that one grows instead.
    pub fn push(&mut self, piece: Transfer) {
        let member = usize::from(piece.member);
        if self.last.len() <= member {
            self.last.resize(member + 1, None);
        }
        if let Some(last) = self.last[member] {
            let last = &mut self.list[last as usize];
            if last.end() == piece.sector {
                last.sectors += piece.sectors;
                return;
            }
        }
        self.last[member] = Some(self.list.len() as u32);
        self.list.push(piece);
    }

    /// All, in the order of their first pieces.
    pub fn as_slice(&self) -> &[Transfer] {
        &self.list
    }

    /// Number of transfers.
    pub const fn len(&self) -> usize {
        self.list.len()
    }

    /// Tell whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Sum of the lengths.
    pub fn sectors(&self) -> u64 {
        self.list.iter().map(|transfer| u64::from(transfer.sectors)).sum()
    }
}

//! Choice of the copy that a mirror reads: the nearest head, streams stay, the least busy without a
//! head.
//!
//! Source: Linux drivers/md/raid1.c (behaviour of read balancing).

use core::ops::Range;

use iolab_model::Sector;

use super::members::Members;

#[derive(Clone, Copy, Debug, Default)]
struct Head {
    /// End of the last transfer of any kind.
    position: Sector,
    /// Place at which a sequential reader would go on.
    stream: Option<Sector>,
}

/// Places to which the heads of all members were sent last.
#[derive(Clone, Debug)]
pub(super) struct Heads {
    heads: Vec<Head>,
}

impl Heads {
    /// All at sector 0.
    pub(super) fn new(members: usize) -> Self {
        Self { heads: vec![Head::default(); members] }
    }

    /// The member of a group of copies that should read from `sector`.
    pub(super) fn choose<O: Copy>(
        &self,
        copies: Range<u16>,
        sector: Sector,
        members: &Members<O>,
    ) -> u16 {
        let present = || copies.clone().filter(|&copy| members.is_present(copy));
        let head = |copy: u16| self.heads[usize::from(copy)];
        if let Some(streaming) = present().find(|&copy| head(copy).stream == Some(sector)) {
            return streaming;
        }
        let is_rotational = present().any(|copy| members.is_rotational(copy));
        let distance = |copy| {
            if is_rotational { head(copy).position.0.abs_diff(sector.0) } else { 0 }
        };
        present()
            .min_by_key(|&copy| (distance(copy), members.load(copy), copy))
            .expect("a group of copies has a present member, checked when it was built")
    }

    /// A read up to `end` was sent to the member.
    pub(super) fn note_read(&mut self, member: u16, end: Sector) {
        self.heads[usize::from(member)] = Head { position: end, stream: Some(end) };
    }

    /// A write up to `end` was sent to the member.
    pub(super) fn note_write(&mut self, member: u16, end: Sector) {
        self.heads[usize::from(member)].position = end;
    }
}

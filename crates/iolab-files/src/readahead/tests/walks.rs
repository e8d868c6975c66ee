//! The kernel's walk against the plain one: they differ only beside large folios.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::api::read_ahead::CachedPages;
use crate::readahead::Walk;
use crate::readahead::walk::{history, next_absent};

struct Folios(BTreeMap<u64, u8>);

impl CachedPages for Folios {
    fn folio(&self, page: u64) -> Option<(u64, u8)> {
        let (&first, &order) = self.0.range(..=page).next_back()?;
        (page < first + (1 << order)).then_some((first, order))
    }
}

#[test]
fn a_walk_from_the_middle_of_a_folio_reports_too_much() {
    let folios = Folios(BTreeMap::from([(8, 2)]));
    assert_eq!(next_absent(&folios, 9, 100, Walk::Ideal), 12);
    assert_eq!(next_absent(&folios, 9, 100, Walk::Exact), 13);
    assert_eq!(next_absent(&folios, 11, 100, Walk::Exact), 15);
    let back = |walk| history(&folios, 12, 100, walk).pages;
    assert_eq!((back(Walk::Ideal), back(Walk::Exact)), (4, 1));
}

#[test]
fn a_new_block_of_slots_ends_the_lag() {
    // Folio [60, 64), then single pages up to 70: the walk from 63 is 3 ahead, skips 64 to 66.
    let mut folios = BTreeMap::from([(60, 2)]);
    folios.extend((64..70).map(|page| (page, 0)));
    assert_eq!(next_absent(&Folios(folios.clone()), 63, 100, Walk::Exact), 70);
    folios.remove(&65);
    assert_eq!(next_absent(&Folios(folios.clone()), 63, 100, Walk::Exact), 70);
    folios.remove(&68);
    assert_eq!(next_absent(&Folios(folios), 63, 100, Walk::Exact), 68);
}

#[test]
fn folios_of_whole_blocks_make_no_lag() {
    let mut folios = BTreeMap::from([(0, 9)]);
    folios.insert(512, 9);
    let folios = Folios(folios);
    for page in [0, 1, 63, 64, 300, 447] {
        assert_eq!(next_absent(&folios, page, 5000, Walk::Exact), 1024, "{page}");
        assert_eq!(next_absent(&folios, page, 5000, Walk::Ideal), 1024, "{page}");
    }
}

proptest! {
    #[test]
    fn single_pages_are_found_alike(
        absent in proptest::collection::btree_set(0_u64..400, 0..12),
        page in 0_u64..300,
        scan in 1_u64..150,
    ) {
        let pages = (0..400).filter(|page| !absent.contains(page));
        let folios = Folios(pages.map(|page| (page, 0)).collect());
        let ahead = |walk| next_absent(&folios, page, scan, walk);
        prop_assert_eq!(ahead(Walk::Exact), ahead(Walk::Ideal));
        let back = |walk| history(&folios, page, scan, walk);
        prop_assert_eq!(back(Walk::Exact), back(Walk::Ideal));
    }
}

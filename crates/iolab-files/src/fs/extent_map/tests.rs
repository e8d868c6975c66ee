use proptest::prelude::*;

use super::*;
use crate::api::block::DeviceId;

const BLOCKS: u64 = 64;

fn written(block: u64) -> Place {
    Place::Written(DeviceId::MAIN, block)
}

/// One place per block: what the map means, said plainly.
#[derive(Debug)]
struct PlainMap([Place; BLOCKS as usize]);

impl PlainMap {
    fn extents(&self) -> Vec<FileExtent> {
        let mut extents: Vec<FileExtent> = Vec::new();
        for (block, &place) in self.0.iter().enumerate() {
            let next = FileExtent { first: block as u64, count: 1, place };
            match extents.last_mut() {
                _ if place == Place::Hole => {}
                Some(last) if last.joins(&next) => last.count += 1,
                _ => extents.push(next),
            }
        }
        extents
    }
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Set(u64, u64, Place),
    Clear(u64, u64),
    TakeAndRestore(u64, u64),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let range = (0..BLOCKS).prop_flat_map(|first| (Just(first), 1..=BLOCKS - first));
    let place = prop_oneof![
        (0..200_u64).prop_map(written),
        (0..200_u64).prop_map(|block| Place::Unwritten(DeviceId::MAIN, block)),
        Just(Place::Delayed),
    ];
    let change = (range, place, 0..8_u8).prop_map(|((first, count), place, kind)| match kind {
        0..5 => Change::Set(first, count, place),
        // Neighbours in the file that are neighbours on the device: they must merge.
        5 => Change::Set(first, count, written(first + 7)),
        6 => Change::Clear(first, count),
        _ => Change::TakeAndRestore(first, count),
    });
    prop::collection::vec(change, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 256 }))]

    #[test]
    fn the_map_agrees_with_one_place_per_block(changes in changes()) {
        let mut map = ExtentMap::default();
        let mut plain = PlainMap([Place::Hole; BLOCKS as usize]);
        for change in changes {
            match change {
                Change::Set(first, count, place) => {
                    map.set(first, count, place);
                    for by in 0..count {
                        plain.0[(first + by) as usize] = advanced(place, by);
                    }
                }
                Change::Clear(first, count) => {
                    map.clear(first, count);
                    plain.0[first as usize..(first + count) as usize].fill(Place::Hole);
                }
                Change::TakeAndRestore(first, count) => {
                    let former = map.former(first, count);
                    prop_assert_eq!(&map.take(first, count), &former.extents);
                    prop_assert!(map.within(first, count).next().is_none());
                    map.restore(&former);
                }
            }
            let extents: Vec<FileExtent> = map.iter().collect();
            prop_assert_eq!(&extents, &plain.extents());
            prop_assert_eq!(map.blocks(), extents.iter().map(|extent| extent.count).sum::<u64>());
            for block in 0..BLOCKS {
                let mapped = map.mapped(block, BLOCKS - block);
                prop_assert_eq!(mapped.place, plain.0[block as usize]);
                prop_assert!(mapped.count >= 1);
                for by in 0..mapped.count {
                    let expected = advanced(mapped.place, by);
                    prop_assert_eq!(plain.0[(block + by) as usize], expected);
                }
                let next = plain.extents().into_iter().find(|extent| extent.first > block);
                prop_assert_eq!(map.after(block), next);
            }
        }
    }
}

#[test]
fn appending_makes_one_extent() {
    let mut map = ExtentMap::default();
    for block in 0..1000 {
        map.set(block, 1, written(5000 + block));
    }
    assert_eq!((map.len(), map.blocks()), (1, 1000));
    assert_eq!(map.last(), Some(FileExtent { first: 0, count: 1000, place: written(5000) }));
    map.set(1000, 1, Place::Unwritten(DeviceId::MAIN, 6000));
    assert_eq!(map.len(), 2, "another state is another extent");
}

/// Number of steps of a long comparison: 2000, or `IOLAB_TWIN_STEPS` (`make soak`: a million).
fn long_steps() -> u64 {
    std::env::var("IOLAB_TWIN_STEPS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

#[test]
fn the_map_agrees_with_one_place_per_block_for_long() {
    let mut seed: u64 = 7;
    let mut below = |end: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % end
    };
    let mut map = ExtentMap::default();
    let mut plain = PlainMap([Place::Hole; BLOCKS as usize]);
    for step in 0..long_steps() {
        let first = below(BLOCKS);
        let count = 1 + below(BLOCKS - first);
        let place = match below(4) {
            0 => Place::Hole,
            1 => Place::Unwritten(DeviceId::MAIN, first + 9),
            _ => written(first + below(3)),
        };
        match place {
            Place::Hole => map.clear(first, count),
            place => map.set(first, count, place),
        }
        for by in 0..count {
            plain.0[(first + by) as usize] = advanced(place, by);
        }
        if step % 64 == 0 {
            assert_eq!(map.iter().collect::<Vec<_>>(), plain.extents());
        }
    }
}

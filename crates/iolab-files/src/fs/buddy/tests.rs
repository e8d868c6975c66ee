use proptest::prelude::*;

use super::*;

const BLOCKS: u32 = 256;
const ORDERS: u32 = 7;

/// A bitmap without any index: what the buddies must agree with.
#[derive(Clone, Debug)]
struct PlainBits(Vec<bool>);

impl PlainBits {
    fn range_is(&self, first: u32, count: u32, is_free: bool) -> bool {
        self.0[first as usize..(first + count) as usize].iter().all(|&free| free == is_free)
    }

    fn fragments(&self) -> usize {
        let edge = |at: usize| self.0[at] && (at == 0 || !self.0[at - 1]);
        (0..self.0.len()).filter(|&at| edge(at)).count()
    }

    /// Largest order of an aligned free chunk around a block, said plainly.
    fn order_of(&self, block: u32) -> u32 {
        let fits = |order: &u32| {
            let first = (block >> order) << order;
            first + (1 << order) <= BLOCKS && self.range_is(first, 1 << order, true)
        };
        (0..ORDERS).rev().find(fits).unwrap_or(0)
    }

    fn first_chunk(&self, order: u32) -> Option<FreeRun> {
        (order..ORDERS).find_map(|order| {
            let mut chunks = (0..BLOCKS >> order).map(|chunk| chunk << order);
            chunks
                .find(|&first| self.0[first as usize] && self.order_of(first) == order)
                .map(|first| FreeRun { first, count: 1 << order })
        })
    }
}

fn check(buddy: &Buddy, plain: &PlainBits) -> Result<(), TestCaseError> {
    let free = plain.0.iter().filter(|&&free| free).count();
    prop_assert_eq!(buddy.free() as usize, free);
    prop_assert_eq!(buddy.fragments() as usize, plain.fragments());
    let largest = (0..BLOCKS).filter(|&at| plain.0[at as usize]).map(|at| plain.order_of(at)).max();
    prop_assert_eq!(buddy.largest_order(), largest);
    for order in 0..ORDERS {
        prop_assert_eq!(buddy.first_chunk(order), plain.first_chunk(order), "order {}", order);
    }
    prop_assert!(plain.range_is(0, buddy.first_free().min(BLOCKS), false));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn buddies_agree_with_a_bitmap(steps in prop::collection::vec((0..BLOCKS, 1..80_u32), 1..80)) {
        let mut buddy = Buddy::full(BLOCKS, ORDERS);
        buddy.give(0, BLOCKS);
        let mut plain = PlainBits(vec![true; BLOCKS as usize]);
        for (first, count) in steps {
            let count = count.min(BLOCKS - first);
            let range = first as usize..(first + count) as usize;
            if plain.range_is(first, count, true) {
                buddy.take(first, count);
                plain.0[range].fill(false);
            } else if plain.range_is(first, count, false) {
                buddy.give(first, count);
                plain.0[range].fill(true);
            } else {
                let run = buddy.run_at(first, count);
                prop_assert!(plain.range_is(first, run.count, true));
                prop_assert!(run.count >= count || !buddy.is_free(first + run.count));
            }
            check(&buddy, &plain)?;
        }
    }
}

#[test]
fn a_run_is_found_chunk_by_chunk() {
    let mut buddy = Buddy::full(64, 6);
    buddy.give(3, 61);
    let run = |needed| buddy.run_at(3, needed).count;
    // Chunks 3, 4-7, 8-15, 16-31 and 32-63: the run ends with the chunk that satisfies it.
    assert_eq!([run(1), run(2), run(6), run(14), run(30), run(99)], [1, 5, 13, 29, 61, 61]);
    assert_eq!(buddy.run_at(2, 4).count, 0);
    assert_eq!(buddy.first_chunk(2), Some(FreeRun { first: 4, count: 4 }));
}

/// Number of steps of a long comparison: 2000, or `IOLAB_TWIN_STEPS` (`make soak`: a million).
fn long_steps() -> u32 {
    std::env::var("IOLAB_TWIN_STEPS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

#[test]
fn buddies_agree_with_a_bitmap_for_long() {
    let mut seed: u64 = 7;
    let mut below = |end: u32| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as u32 % end
    };
    let mut buddy = Buddy::full(BLOCKS, ORDERS);
    buddy.give(0, BLOCKS);
    let mut plain = PlainBits(vec![true; BLOCKS as usize]);
    for step in 0..long_steps() {
        let first = below(BLOCKS);
        let count = (1 + below(24)).min(BLOCKS - first);
        let range = first as usize..(first + count) as usize;
        if plain.range_is(first, count, true) {
            buddy.take(first, count);
            plain.0[range].fill(false);
        } else if plain.range_is(first, count, false) {
            buddy.give(first, count);
            plain.0[range].fill(true);
        }
        if step % 64 == 0 {
            check(&buddy, &plain).unwrap();
        }
    }
}

//! In which order cells have their slices: a pure function of seed and unit.

use iolab_model::Seed;
use iolab_model::seed::Stream;

/// Numbers that make up a unit.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Phases of each treatment.
    pub phases: usize,
    /// Treatments.
    pub treatments: usize,
    /// Super-slices of each phase in a block.
    pub per_block: u32,
    /// Devices made alike.
    pub places: usize,
}

/// A part of a unit in which every device keeps its knobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// By how many devices the sets of knobs are shifted: a row of a Latin square.
    pub shift: usize,
    /// Phase and treatment of every slice.
    pub turns: Vec<(usize, usize)>,
}

/// The blocks of a unit.
///
/// There are as many as devices, so that every set of knobs has every device once; their order is
/// random. In a block each phase comes once, in random order, with so many super-slices; each of
/// these holds every treatment once, in random order. So a unit has every cell as often as any
/// other, and neither time, nor neighbourhood, nor device prefers one.
pub fn of_unit(seed: u64, unit: u32, size: Size) -> Vec<Block> {
    let mut random = Seed(seed).stream("order of slices", u64::from(unit));
    let mut blocks = Vec::with_capacity(size.places);
    for shift in shuffled(&mut random, size.places) {
        let mut turns = Vec::new();
        for phase in shuffled(&mut random, size.phases) {
            for _ in 0..size.per_block {
                let treatments = shuffled(&mut random, size.treatments);
                turns.extend(treatments.into_iter().map(|treatment| (phase, treatment)));
            }
        }
        blocks.push(Block { shift, turns });
    }
    blocks
}

/// The numbers below `count` in random order (Fisher and Yates).
fn shuffled(random: &mut Stream, count: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        numbers.swap(last, random.below(last as u64 + 1) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn size(phases: usize, treatments: usize, per_block: u32, places: usize) -> Size {
        Size { phases, treatments, per_block, places }
    }

    #[test]
    fn every_super_slice_holds_every_treatment_once() {
        for unit in 0..20 {
            let blocks = of_unit(7, unit, size(3, 4, 5, 1));
            assert_eq!((blocks.len(), blocks[0].turns.len()), (1, 60));
            for group in blocks[0].turns.chunks(4) {
                let mut treatments: Vec<usize> = group.iter().map(|(_, t)| *t).collect();
                treatments.sort_unstable();
                assert_eq!(treatments, [0, 1, 2, 3]);
                assert!(group.iter().all(|(phase, _)| *phase == group[0].0));
            }
        }
    }

    #[test]
    fn the_order_differs_between_units_and_depends_on_the_seed_alone() {
        let size = size(2, 2, 8, 2);
        assert_eq!(of_unit(7, 1, size), of_unit(7, 1, size));
        assert_ne!(of_unit(7, 1, size), of_unit(7, 2, size));
        assert_ne!(of_unit(7, 1, size), of_unit(8, 1, size));
    }

    #[test]
    fn each_of_two_treatments_goes_first_about_half_of_the_time() {
        let firsts: usize = (0..50)
            .flat_map(|unit| {
                let blocks = of_unit(3, unit, size(1, 2, 20, 1));
                blocks[0].turns.chunks(2).map(|g| g[0].1).collect::<Vec<_>>()
            })
            .sum();
        assert!((450..=550).contains(&firsts), "{firsts} of 1000");
    }

    #[test]
    fn every_shift_comes_once_in_a_unit_and_goes_first_in_a_third_of_them() {
        let mut firsts = [0; 3];
        for unit in 0..300 {
            let blocks = of_unit(5, unit, size(1, 3, 1, 3));
            firsts[blocks[0].shift] += 1;
            let mut shifts: Vec<usize> = blocks.iter().map(|block| block.shift).collect();
            shifts.sort_unstable();
            assert_eq!(shifts, [0, 1, 2]);
        }
        assert!(firsts.iter().all(|count| (70..=130).contains(count)), "{firsts:?}");
    }
}

//! In which order cells have their slices: a pure function of seed and unit.

use iolab_model::Seed;
use iolab_model::seed::Stream;

/// Phase and treatment of every slice of a unit.
///
/// Each phase comes once, in random order, with so many super-slices; each of these holds every
/// treatment once, in random order. So a unit has every cell as often as any other, and neither
/// time nor neighbourhood prefers one.
pub fn of_unit(
    seed: u64,
    unit: u32,
    (phases, treatments, per_unit): (usize, usize, u32),
) -> Vec<(usize, usize)> {
    let mut random = Seed(seed).stream("order of slices", u64::from(unit));
    let mut order = Vec::with_capacity(phases * treatments * per_unit as usize);
    for phase in shuffled(&mut random, phases) {
        for _ in 0..per_unit {
            let treatments = shuffled(&mut random, treatments);
            order.extend(treatments.into_iter().map(|treatment| (phase, treatment)));
        }
    }
    order
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

    #[test]
    fn every_super_slice_holds_every_treatment_once() {
        for unit in 0..20 {
            let order = of_unit(7, unit, (3, 4, 5));
            assert_eq!(order.len(), 60);
            for group in order.chunks(4) {
                let mut treatments: Vec<usize> = group.iter().map(|(_, t)| *t).collect();
                treatments.sort_unstable();
                assert_eq!(treatments, [0, 1, 2, 3]);
                assert!(group.iter().all(|(phase, _)| *phase == group[0].0));
            }
        }
    }

    #[test]
    fn the_order_differs_between_units_and_depends_on_the_seed_alone() {
        let size = (2, 2, 8);
        assert_eq!(of_unit(7, 1, size), of_unit(7, 1, size));
        assert_ne!(of_unit(7, 1, size), of_unit(7, 2, size));
        assert_ne!(of_unit(7, 1, size), of_unit(8, 1, size));
    }

    #[test]
    fn each_of_two_treatments_goes_first_about_half_of_the_time() {
        let firsts: usize = (0..50)
            .flat_map(|unit| {
                of_unit(3, unit, (1, 2, 20)).chunks(2).map(|g| g[0].1).collect::<Vec<_>>()
            })
            .sum();
        assert!((450..=550).contains(&firsts), "{firsts} of 1000");
    }
}

//! SSD-4: write amplification against the closed form, on one pool of blocks, without time.

use iolab_model::Seed;

use crate::device::ssd::ftl::Ftl;
use crate::device::ssd::geometry::Geometry;
use crate::device::ssd::parameters::{CollectionPolicy, VictimChoice};

/// One die of one plane with 256 pages per block, one mapping unit per page.
fn pool(blocks: u32, ratio: f64, (start_blocks, victim): (u32, VictimChoice)) -> Ftl {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes: 1,
        blocks,
        rows: 256,
        units_per_page: 1,
        unit_bytes: 4096,
        logical_units: (f64::from(blocks * 256) / (1.0 + ratio)) as u32,
    };
    let policy = CollectionPolicy { start_blocks, hard_blocks: 1, victim };
    Ftl::new(geometry, policy, Seed(9).stream("pool", 0))
}

/// Write amplification of the second half of eight random overwrites.
fn steady(pool: &mut Ftl) -> f64 {
    let capacity = u64::from(pool.geometry.logical_units);
    pool.fill(pool.geometry.logical_units);
    pool.overwrite(4 * capacity);
    let before = pool.counts;
    pool.overwrite(4 * capacity);
    pool.check().unwrap();
    let host = pool.counts.host_units - before.host_units;
    let moved = pool.counts.moved_units - before.moved_units;
    assert_eq!(pool.counts.padding_units, 0);
    1.0 + moved as f64 / host as f64
}

/// The closed form: a / (a - y), where y < 1 solves y e^-y = a e^-a and a = (1 + ratio)(1 - g).
fn formula(ratio: f64, free_share: f64) -> f64 {
    let alpha = (1.0 + ratio) * (1.0 - free_share);
    let goal = alpha * libm::exp(-alpha);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if middle * libm::exp(-middle) < goal { low = middle } else { high = middle }
    }
    alpha / (alpha - low)
}

#[test]
fn the_formula_has_the_values_of_the_specification() {
    for (ratio, share, expected) in [(0.07, 0.0, 7.82), (0.07, 0.004, 8.28), (0.28, 0.0, 2.48)] {
        let value = formula(ratio, share);
        assert!((value - expected).abs() < 0.006, "{ratio} {share}: {value}");
    }
}

#[test]
fn ssd_4_greedy_with_7_percent() {
    let value = steady(&mut pool(1_024, 0.07, (4, VictimChoice::Greedy)));
    assert!((7.8..=8.3).contains(&value), "{value}");
}

#[test]
fn ssd_4_greedy_with_28_percent() {
    let value = steady(&mut pool(1_024, 0.28, (4, VictimChoice::Greedy)));
    assert!((2.45..=2.55).contains(&value), "{value}");
}

#[test]
fn ssd_4_greedy_with_5_percent_free() {
    let value = steady(&mut pool(1_000, 0.07, (50, VictimChoice::Greedy)));
    assert!((27.0..=31.0).contains(&value), "{value}");
}

#[test]
fn ssd_4_ten_choices_are_a_little_worse_than_greedy() {
    let greedy = steady(&mut pool(1_024, 0.28, (4, VictimChoice::Greedy)));
    let choices = steady(&mut pool(1_024, 0.28, (4, VictimChoice::Choices(10))));
    assert!((1.0..=1.03).contains(&(choices / greedy)), "{choices} {greedy}");
}

#[test]
fn ssd_4_sequential_overwrites_move_nothing() {
    let mut pool = pool(1_024, 0.07, (4, VictimChoice::Greedy));
    for _ in 0..4 {
        pool.fill(pool.geometry.logical_units);
    }
    let value = 1.0 + pool.counts.moved_units as f64 / pool.counts.host_units as f64;
    assert!(value <= 1.01, "{value}");
    pool.check().unwrap();
}

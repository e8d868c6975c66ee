//! Check values of the reference.

use iolab_model::Seed;

use super::*;

#[test]
fn hashes_are_those_of_the_reference() {
    for (number, expected) in [
        (0_i64, 6_284_781_860_667_377_211_u64),
        (1, 8_517_097_267_634_966_620),
        (2, 1_820_151_046_732_198_393),
        (3, 4_052_466_453_699_787_802),
        (9, 9_105_318_085_603_802_964),
        (10, 2_408_371_864_701_034_737),
        (99, 6_405_349_725_575_133_178),
        (100, 879_817_313_296_471_393),
        (255, 8_064_062_821_143_829_734),
        (-1, 8_289_690_350_564_177_859),
        (256, 2_056_600_594_528_442_646),
        (999, 2_071_219_101_098_386_137),
        (1000, 5_952_875_239_596_136_740),
        (9999, 1_396_365_430_676_646_275),
        (10_000, 2_485_290_707_821_104_328),
        (65_536, 3_733_039_891_711_757_428),
        (1_000_000, 1_011_632_231_655_643_464),
        (4_294_967_296, 634_246_865_027_890_484),
        (10_000_000_000, 1_201_321_332_300_452_516),
        (2_147_483_647, 627_943_977_067_101_855),
    ] {
        assert_eq!(hash(number as u64), expected, "{number}");
    }
}

#[test]
fn scattered_ranks_are_the_popular_keys() {
    let expected = [144, 610, 213, 679, 10, 545, 942, 476, 436, 902, 505, 971];
    let keys: Vec<u64> = (0..12).map(|rank| scattered(rank, 1001)).collect();
    assert_eq!(keys, expected);
    let mut random = Seed(3).stream("scattered", 0);
    let zipfian = Zipfian::scattered();
    let drawn = (0..200_000).map(|_| scattered(zipfian.draw(&mut random), 1001));
    let share = drawn.filter(|key| *key == 144).count() as f64 / 200_000.0;
    assert!((share - 0.0382).abs() < 0.002, "{share}");
    assert_eq!(scattered_keys(1000, 1000, 0.05), 1101);
    assert_eq!(scattered_keys(1000, 1000, 0.0), 1001);
}

#[test]
fn the_constants_of_a_zipfian() {
    let zipfian = Zipfian::new(1000);
    assert!((zipfian.zeta - 7.728_953_217_284_729).abs() < 1e-12);
    assert!((zipfian.eta - 0.074_806_086_706_896_9).abs() < 1e-14);
    assert!((zipfian.alpha - 100.0).abs() < 1e-9);
    let mut grown = Zipfian::new(100);
    grown.grow(1000);
    assert!((grown.zeta - zipfian.zeta).abs() < 1e-12);
    assert!((grown.eta - Zipfian::new(100).eta).abs() < 1e-14, "eta keeps its items");
}

/// The share of the draws up to a rank, of the algorithm and not of an ideal distribution: the
/// table of 2,000,000 draws of the reference. Ranks are monotonic in `u`, so the share is where
/// they change, found without sampling.
#[test]
fn zipfian_ranks_have_the_algorithms_shares() {
    let zipfian = Zipfian::new(1000);
    for (rank, share) in [
        (0, 0.129_383_63),
        (1, 0.194_525_41),
        (2, 0.245_565_05),
        (3, 0.281_903_96),
        (4, 0.310_162_69),
        (5, 0.333_298_61),
        (9, 0.398_345_56),
        (19, 0.487_141_80),
        (49, 0.605_472_62),
        (99, 0.695_709_53),
        (199, 0.786_574_10),
        (499, 0.907_661_20),
        (899, 0.985_922_83),
    ] {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            let is_up_to = zipfian.rank(middle) <= rank;
            (low, high) = if is_up_to { (middle, high) } else { (low, middle) };
        }
        assert!((low - share).abs() < 2e-7, "{rank}: {low}");
    }
    assert_eq!(zipfian.rank(1.0 - 1e-9), 999);
}

#[test]
fn lengths_of_a_histogram_are_off_by_one_at_the_end() {
    let lengths = Lengths::new(10, &[1, 0, 3, 5]);
    let mut random = Seed(1).stream("lengths", 0);
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..9000 {
        *seen.entry(lengths.draw(&mut random)).or_insert(0) += 1;
    }
    // Parts 0 and 2, and the last one, which is taken for the one before it.
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [10, 30]);
}

#[test]
fn an_exponential_has_the_references_mean() {
    let gamma = gamma(95.0, 1000, 0.857_142_857_1);
    assert!((1.0 / gamma - 286.121_3).abs() < 1e-3, "{}", 1.0 / gamma);
    let mut random = Seed(1).stream("exponential", 0);
    let sum: f64 = (0..100_000).map(|_| exponential(gamma, &mut random)).sum();
    assert!((sum / 1e5 - 286.0).abs() < 4.0);
}

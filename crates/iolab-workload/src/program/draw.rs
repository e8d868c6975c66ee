//! Random numbers of named distributions, from a seeded stream.

use iolab_model::seed::Stream;

/// Index of one of `weights`, each as likely as it is heavy; the sum is above 0.
pub fn weighted(random: &mut Stream, weights: impl Iterator<Item = f64> + Clone) -> usize {
    let mut left = random.unit() * weights.clone().sum::<f64>();
    let mut last = 0;
    for (index, weight) in weights.enumerate() {
        if weight > 0.0 {
            last = index;
        }
        if left < weight {
            return index;
        }
        left -= weight;
    }
    last
}

/// Exponential with mean 1.
pub fn exponential(random: &mut Stream) -> f64 {
    -(1.0 - random.unit()).ln()
}

/// Standard normal (Box and Muller 1958, one of the pair).
pub fn normal(random: &mut Stream) -> f64 {
    let radius = (2.0 * exponential(random)).sqrt();
    radius * (core::f64::consts::TAU * random.unit()).cos()
}

/// Gamma of this shape and scale 1 (Marsaglia and Tsang 2000; shapes below 1 by Stuart's theorem).
pub fn gamma(random: &mut Stream, shape: f64) -> f64 {
    if shape < 1.0 {
        let power = (1.0 - random.unit()).powf(1.0 / shape);
        return gamma(random, shape + 1.0) * power;
    }
    let (base, width) = (shape - 1.0 / 3.0, 1.0 / (9.0 * shape - 3.0).sqrt());
    loop {
        let x = normal(random);
        let cube = (1.0 + width * x).powi(3);
        if cube > 0.0 {
            let chance = 1.0 - random.unit();
            if chance.ln() < 0.5 * x * x + base * (1.0 - cube + cube.ln()) {
                return base * cube;
            }
        }
    }
}

/// Rank 0..n with P(rank = k) proportional to (k + 1)^-theta, for every theta above 0.
///
/// Rejection-inversion (Hörmann and Derflinger 1996): exact, without a sum over all ranks, so that
/// `n` may change from one draw to the next.
pub fn zipf(random: &mut Stream, n: u64, theta: f64) -> u64 {
    if n <= 1 {
        return 0;
    }
    let (low, high) = (integral(1.5, theta) - 1.0, integral(n as f64 + 0.5, theta));
    loop {
        let u = high + random.unit() * (low - high);
        let x = inverse(u, theta);
        let rank = x.round().clamp(1.0, n as f64);
        if u >= integral(rank + 0.5, theta) - rank.powf(-theta) {
            return rank as u64 - 1;
        }
    }
}

/// The integral of x^-theta.
fn integral(x: f64, theta: f64) -> f64 {
    let (log, power) = (x.ln(), 1.0 - theta);
    if (power * log).abs() < 1e-8 { log } else { ((power * log).exp_m1()) / power }
}

/// Its inverse.
fn inverse(y: f64, theta: f64) -> f64 {
    let power = 1.0 - theta;
    let inner = (y * power).max(-1.0);
    if inner.abs() < 1e-8 { y.exp() } else { (inner.ln_1p() / power).exp() }
}

/// A bijection of 0..n that looks like chance: a Feistel network with cycle walking.
///
/// Four rounds on the smallest even number of bits that holds `n`; what falls outside is sent round
/// again (Black and Rogaway 2002).
pub fn scatter(value: u64, n: u64, key: u64) -> u64 {
    debug_assert!(value < n, "only what is in the range has a place in it");
    if n <= 2 {
        return value;
    }
    let half = (64 - (n - 1).leading_zeros()).div_ceil(2);
    let mask = (1_u64 << half) - 1;
    let mut value = value;
    loop {
        let (mut left, mut right) = (value >> half, value & mask);
        for round in 0..4 {
            let mixed = mix(right ^ key.rotate_left(round * 16) ^ u64::from(round));
            (left, right) = (right, left ^ (mixed & mask));
        }
        value = (left << half) | right;
        if value < n {
            return value;
        }
    }
}

/// The finisher of `SplitMix64`.
fn mix(value: u64) -> u64 {
    let z = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::Seed;
    use proptest::prelude::*;

    #[test]
    fn zipf_has_the_probabilities_of_its_law() {
        for (n, theta) in [(1000_u64, 0.99), (8, 1.2), (100, 1.0), (50, 0.5)] {
            let mut random = Seed(5).stream("zipf", n);
            let mut counts = vec![0_u32; n as usize];
            let draws = 200_000;
            for _ in 0..draws {
                counts[zipf(&mut random, n, theta) as usize] += 1;
            }
            let sum: f64 = (1..=n).map(|k| (k as f64).powf(-theta)).sum();
            for k in [0_u32, 1, 2, 5, 7] {
                let expected = f64::from(k + 1).powf(-theta) / sum;
                let found = f64::from(counts[k as usize]) / f64::from(draws);
                let error = 4.0 * (expected / f64::from(draws)).sqrt();
                assert!((found - expected).abs() < error, "{n} {theta} {k}: {found} {expected}");
            }
        }
    }

    #[test]
    fn gamma_has_its_mean_and_variance() {
        for shape in [0.5, 1.5, 4.0] {
            let mut random = Seed(6).stream("gamma", 0);
            let all: Vec<f64> = (0..100_000).map(|_| gamma(&mut random, shape)).collect();
            let mean = all.iter().sum::<f64>() / 1e5;
            let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
            assert!((mean - shape).abs() < 0.03, "{shape}: mean {mean}");
            assert!((variance / shape - 1.0).abs() < 0.06, "{shape}: variance {variance}");
        }
    }

    #[test]
    fn weights_are_shares() {
        let mut random = Seed(7).stream("weights", 0);
        let mut counts = [0_u32; 4];
        for _ in 0..40_000 {
            counts[weighted(&mut random, [3.0, 0.0, 1.0, 4.0].into_iter())] += 1;
        }
        assert_eq!(counts[1], 0);
        for (index, expected) in [(0, 15_000_i64), (2, 5_000), (3, 20_000)] {
            assert!((i64::from(counts[index]) - expected).abs() < 500, "{counts:?}");
        }
    }

    proptest! {
        #[test]
        fn scattering_is_a_bijection(n in 1_u64..600, key: u64) {
            let mut seen: Vec<u64> = (0..n).map(|value| scatter(value, n, key)).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..n).collect::<Vec<_>>());
        }
    }
}

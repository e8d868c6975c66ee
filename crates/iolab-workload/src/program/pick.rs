//! Choice of the next one of `n` equal things: places in a file, files of a set, keys of a store.

use core::fmt;

use iolab_model::seed::Stream;
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::draw;

/// An order or a distribution over `0 .. n`. Text alone stands for one without parameters:
/// `"uniform"` is `{ by = "uniform" }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Pick {
    /// 0, 1, 2, ..., and from the beginning again.
    #[default]
    Sequential,
    /// The last one first.
    Reverse,
    /// Number of units that are skipped between two; at the end it goes on at the beginning.
    Strided {
        /// Number of units to skip.
        skip: u64,
    },
    /// Each is as likely as any other.
    Uniform,
    /// Each once before any comes again, in an order like chance.
    Permutation,
    /// Zipf; which ones are likely is scattered over the range.
    Zipf {
        /// Skew, above 0.
        theta: f64,
        /// Place of the likeliest, as a share of the range; absent: anywhere. The others are
        /// scattered (fio 3.33, whose manual says otherwise).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// A share `h` of the things gets `1 - h` of the draws (fio's pareto).
    Pareto {
        /// Between 0 and 1.
        h: f64,
        /// As of zipf.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// The mean of twelve even draws, moved by another one (fio's normal), scattered.
    Bell {
        /// Width of the range of that move, in percent of the things.
        spread_percent: f64,
        /// As of zipf.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        center: Option<f64>,
    },
    /// Normal around the middle, in percent of the range.
    Normal {
        /// Standard deviation.
        deviation_percent: f64,
    },
    /// The first `data_percent` of the range get `ops_percent` of the draws.
    Hot {
        /// Size of the hot part.
        data_percent: f64,
        /// Its share of the draws.
        ops_percent: f64,
    },
    /// Several parts, one behind the other, each with its share of the draws.
    Zones {
        /// The parts; both percentages add up to 100.
        zones: Vec<Zone>,
    },
    /// A number that is drawn; one beyond the range counts from its beginning again.
    Drawn {
        /// The number.
        number: Amount,
    },
    /// Always the first one.
    Same,
    /// Values, one after the other.
    List {
        /// Ordinals; one beyond the range counts from its beginning again.
        values: Vec<u64>,
    },
    /// Zipf over the most recent ones: the last that was acknowledged is the most likely (keys).
    Latest {
        /// Skew, above 0.
        theta: f64,
    },
    /// Exponential over the most recent ones: `percent` of the draws lie in the last `share` of
    /// what was there at the beginning (keys).
    Exponential {
        /// In percent.
        percent: f64,
        /// Between 0 and 1.
        share: f64,
    },
}

/// A part of a range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Size of the part.
    pub data_percent: f64,
    /// Its share of the draws.
    pub ops_percent: f64,
}

/// [`Pick`] with a tag, as serde reads it.
#[derive(Deserialize)]
#[serde(remote = "Pick", tag = "by", rename_all = "snake_case", deny_unknown_fields)]
#[allow(dead_code, reason = "the fields are those of `Pick`")]
enum Tagged {
    Sequential,
    Reverse,
    Strided {
        skip: u64,
    },
    Uniform,
    Permutation,
    Zipf {
        theta: f64,
        #[serde(default)]
        center: Option<f64>,
    },
    Pareto {
        h: f64,
        #[serde(default)]
        center: Option<f64>,
    },
    Bell {
        spread_percent: f64,
        #[serde(default)]
        center: Option<f64>,
    },
    Normal {
        deviation_percent: f64,
    },
    Hot {
        data_percent: f64,
        ops_percent: f64,
    },
    Zones {
        zones: Vec<Zone>,
    },
    Drawn {
        number: Amount,
    },
    Same,
    List {
        values: Vec<u64>,
    },
    Latest {
        theta: f64,
    },
    Exponential {
        percent: f64,
        share: f64,
    },
}

impl<'de> Deserialize<'de> for Pick {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = Pick;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an order (uniform ...), or a table with `by`")
            }
            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Pick, E> {
                Tagged::deserialize(MapDeserializer::new([("by", name)].into_iter()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pick, A::Error> {
                Tagged::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(NameOrTable)
    }
}

impl Pick {
    /// Tell whether only the most recent ones of a growing range make sense of it.
    pub fn is_of_keys(&self) -> bool {
        matches!(self, Self::Latest { .. } | Self::Exponential { .. })
    }

    /// Contradiction, and advice.
    pub(super) fn problem(&self) -> Option<(String, &'static str)> {
        let is_percent = |value: f64| (0.0..=100.0).contains(&value);
        match self {
            Self::Zipf { center: Some(center), .. }
            | Self::Pareto { center: Some(center), .. }
            | Self::Bell { center: Some(center), .. }
                if !(0.0..=1.0).contains(center) =>
            {
                Some((format!("a center of {center}"), "use a share of the range, 0 to 1"))
            }
            Self::Bell { spread_percent, .. } if !is_percent(*spread_percent) => {
                Some((format!("a spread of {spread_percent} %"), "use a number up to 100"))
            }
            Self::Zipf { theta, .. } | Self::Latest { theta }
                if !(theta.is_finite() && *theta > 0.0) =>
            {
                Some((format!("a skew of {theta}"), "use a number above 0, as in 0.99"))
            }
            Self::Pareto { h, .. } if !(*h > 0.0 && *h < 1.0) => {
                Some((format!("a pareto of {h}"), "use a number between 0 and 1, as in 0.2"))
            }
            Self::Normal { deviation_percent: d } if !is_percent(*d) || *d == 0.0 => {
                Some((format!("a deviation of {d} %"), "use a number up to 100"))
            }
            Self::Hot { data_percent, ops_percent }
                if !is_percent(*data_percent) || !is_percent(*ops_percent) =>
            {
                let problem = format!("{ops_percent} % of the draws in {data_percent} %");
                Some((problem, "use numbers from 0 to 100"))
            }
            Self::Exponential { percent, share }
                if !(*percent > 0.0 && *percent < 100.0 && *share > 0.0) =>
            {
                let problem = format!("{percent} % of the draws in a share of {share}");
                Some((problem, "use a percentage below 100 and a share above 0"))
            }
            Self::List { values } if values.is_empty() => {
                Some(("an empty list".into(), "give at least one number"))
            }
            Self::Zones { zones } => zones_problem(zones),
            Self::Drawn { number } => number.problem(),
            _ => None,
        }
    }
}

fn zones_problem(zones: &[Zone]) -> Option<(String, &'static str)> {
    let sums = zones
        .iter()
        .fold((0.0, 0.0), |(data, ops), zone| (data + zone.data_percent, ops + zone.ops_percent));
    let is_whole = |sum: f64| (sum - 100.0_f64).abs() < 1e-6;
    let is_negative = zones.iter().any(|zone| zone.data_percent < 0.0 || zone.ops_percent < 0.0);
    if !is_negative && is_whole(sums.0) && is_whole(sums.1) {
        return None;
    }
    let problem = format!("zones of {} % of the data and {} % of the draws", sums.0, sums.1);
    Some((problem, "let both add up to 100"))
}

impl Pick {
    /// The next of `n` (above 0), of which the first `before` were there at the beginning.
    pub fn next(&self, (n, before): (u64, u64), count: u64, random: &mut Stream, key: u64) -> u64 {
        match self {
            Self::Sequential => count % n,
            Self::Reverse => n - 1 - count % n,
            Self::Strided { skip } => strided(n, skip + 1, count),
            Self::Uniform => random.below(n),
            Self::Permutation => {
                draw::scatter(count % n, n, key.wrapping_add((count / n).rotate_left(32)))
            }
            Self::Zipf { theta, center } => {
                placed(draw::zipf(random, n, *theta), (n, *center, 0), key)
            }
            Self::Pareto { h, center } => {
                // fio's rule: n u^(ln h / ln (1 - h)).
                let rank = n as f64 * random.unit().powf(h.ln() / (1.0 - h).ln());
                placed((rank as u64).min(n - 1), (n, *center, 0), key)
            }
            Self::Bell { spread_percent, center } => {
                let mean = (0..12).map(|_| random.unit()).sum::<f64>() / 12.0;
                let moved = (random.unit() - 0.5) * (spread_percent / 100.0).min(0.5);
                let place = ((mean + moved) * n as f64).clamp(0.0, (n - 1) as f64) as u64;
                placed(place, (n, *center, n / 2), key)
            }
            Self::Normal { deviation_percent } => {
                let (middle, width) = (n as f64 / 2.0, n as f64 * deviation_percent / 100.0);
                let drawn = middle + width * draw::normal(random);
                (drawn.max(0.0) as u64).min(n - 1)
            }
            Self::Hot { data_percent, ops_percent } => {
                let rest =
                    Zone { data_percent: 100.0 - data_percent, ops_percent: 100.0 - ops_percent };
                let hot = Zone { data_percent: *data_percent, ops_percent: *ops_percent };
                zoned(&[hot, rest], n, random)
            }
            Self::Zones { zones } => zoned(zones, n, random),
            Self::Drawn { number } => number.draw(random) % n,
            Self::Same => 0,
            Self::List { values } => values[(count % values.len() as u64) as usize] % n,
            Self::Latest { theta } => n - 1 - draw::zipf(random, n, *theta),
            Self::Exponential { percent, share } => {
                let mean = before.max(1) as f64 * share / -(1.0 - percent / 100.0).ln();
                loop {
                    let back = (mean * draw::exponential(random)) as u64;
                    if back < n {
                        return n - 1 - back;
                    }
                }
            }
        }
    }
}

/// Place of a rank among `n`, scattered, and moved so far that the likeliest rank lies at the
/// center.
fn placed(rank: u64, (n, center, likeliest): (u64, Option<f64>, u64), key: u64) -> u64 {
    let place = draw::scatter(rank, n, key);
    let Some(center) = center else { return place };
    let wanted = ((n as f64 * center) as u64).min(n - 1);
    let moved = u128::from(wanted) + u128::from(n - draw::scatter(likeliest, n, key));
    ((u128::from(place) + moved) % u128::from(n)) as u64
}

/// Every `step`-th, then those that were skipped: each once in `n` draws.
fn strided(n: u64, step: u64, count: u64) -> u64 {
    let mut left = count % n;
    for start in 0..step.min(n) {
        let here = (n - start).div_ceil(step);
        if left < here {
            return start + left * step;
        }
        left -= here;
    }
    left % n
}

fn zoned(zones: &[Zone], n: u64, random: &mut Stream) -> u64 {
    let chosen = draw::weighted(random, zones.iter().map(|zone| zone.ops_percent));
    let before: f64 = zones[..chosen].iter().map(|zone| zone.data_percent).sum();
    let place = |percent: f64| (n as f64 * percent / 100.0).round() as u64;
    let start = place(before).min(n - 1);
    let end = place(before + zones[chosen].data_percent).clamp(start + 1, n);
    start + random.below(end - start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::Seed;
    use proptest::prelude::*;

    fn of(text: &str) -> Pick {
        serde_json::from_str(text).unwrap()
    }

    fn all(pick: &Pick, n: u64, count: u64) -> Vec<u64> {
        let mut random = Seed(9).stream("pick", 0);
        (0..count).map(|index| pick.next((n, n), index, &mut random, 77)).collect()
    }

    #[test]
    fn a_name_alone_is_a_pick() {
        assert_eq!(of("\"uniform\""), Pick::Uniform);
        assert_eq!(of(r#"{"by":"zipf","theta":1.1}"#), Pick::Zipf { theta: 1.1, center: None });
        let error = serde_json::from_str::<Pick>("\"unifrom\"").unwrap_err().to_string();
        assert!(error.contains("unifrom") && error.contains("uniform"), "{error}");
        assert!(serde_json::from_str::<Pick>(r#"{"by":"zipf","teta":1}"#).is_err());
    }

    #[test]
    fn orders_are_what_they_are_called() {
        assert_eq!(all(&Pick::Sequential, 3, 5), [0, 1, 2, 0, 1]);
        assert_eq!(all(&Pick::Reverse, 3, 5), [2, 1, 0, 2, 1]);
        assert_eq!(all(&Pick::Strided { skip: 2 }, 7, 8), [0, 3, 6, 1, 4, 2, 5, 0]);
        assert_eq!(all(&Pick::List { values: vec![5, 1] }, 9, 3), [5, 1, 5]);
        assert_eq!(all(&Pick::Same, 9, 3), [0, 0, 0]);
    }

    #[test]
    fn shares_are_those_that_were_asked_for() {
        let share = |pick: &Pick, is_hot: &dyn Fn(u64) -> bool| {
            let drawn = all(pick, 1000, 50_000);
            drawn.iter().filter(|place| is_hot(**place)).count() as f64 / 50_000.0
        };
        let hot = of(r#"{"by":"hot","data_percent":20,"ops_percent":80}"#);
        assert!((share(&hot, &|place| place < 200) - 0.8).abs() < 0.01);
        let zones = of(r#"{"by":"zones","zones":[{"data_percent":50,"ops_percent":10},
                {"data_percent":50,"ops_percent":90}]}"#);
        assert!((share(&zones, &|place| place >= 500) - 0.9).abs() < 0.01);
        // 20 % of the places get 80 % of the draws, wherever they are.
        let drawn = all(&Pick::Pareto { h: 0.2, center: None }, 1000, 100_000);
        let mut counts = vec![0_u32; 1000];
        for place in &drawn {
            counts[*place as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let top: u32 = counts[..200].iter().sum();
        assert!((f64::from(top) / 1e5 - 0.8).abs() < 0.02, "{top}");
        // The likeliest lies at the center; of a zipf of 1.2 over 1000 it has 23 % of the draws.
        let at = |pick: &Pick| share(pick, &|place| place == 300);
        let zipf = at(&of(r#"{"by":"zipf","theta":1.2,"center":0.3}"#));
        assert!((zipf - 0.23).abs() < 0.02, "{zipf}");
        // Six standard deviations of a twelfth of the range: nothing is far from the middle.
        let bell = of(r#"{"by":"bell","spread_percent":0,"center":0.3}"#);
        let distinct: std::collections::BTreeSet<u64> =
            all(&bell, 1000, 5000).into_iter().collect();
        assert!((300..600).contains(&distinct.len()), "{}", distinct.len());
        assert!(at(&bell) > 0.003, "{}", at(&bell));
        // YCSB: 95 % of the draws in the last 6/7 of 1000 keys, mean 286.1 back.
        let pick = Pick::Exponential { percent: 95.0, share: 0.857_142_857 };
        let drawn = all(&pick, 1_000_000, 100);
        assert!(drawn.iter().all(|place| *place < 1_000_000));
        assert!(share(&Pick::Latest { theta: 0.99 }, &|place| place == 999) > 0.12);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            r#"{"by":"zipf","theta":0}"#,
            r#"{"by":"pareto","h":1.5}"#,
            r#"{"by":"hot","data_percent":120,"ops_percent":1}"#,
            r#"{"by":"list","values":[]}"#,
            r#"{"by":"zones","zones":[{"data_percent":50,"ops_percent":100}]}"#,
            r#"{"by":"normal","deviation_percent":0}"#,
            r#"{"by":"zipf","theta":1.2,"center":1.5}"#,
            r#"{"by":"bell","spread_percent":120}"#,
        ] {
            assert!(of(text).problem().is_some(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_touches_each_once_does(n in 1_u64..200, skip in 0_u64..9, pass in 0_u64..3) {
            for pick in [Pick::Sequential, Pick::Reverse, Pick::Strided { skip }, Pick::Permutation]
            {
                let mut random = Seed(9).stream("pick", 0);
                let next = |i| pick.next((n, n), pass * n + i, &mut random, 3);
                let mut seen: Vec<u64> = (0..n).map(next).collect();
                seen.sort_unstable();
                prop_assert_eq!(seen, (0..n).collect::<Vec<_>>(), "{:?}", pick);
            }
        }

        #[test]
        fn every_pick_stays_in_range(n in 1_u64..5000, seed: u64) {
            let mut random = Seed(seed).stream("pick", 0);
            for pick in [
                Pick::Uniform,
                Pick::Zipf { theta: 1.2, center: None },
                Pick::Zipf { theta: 1.2, center: Some(1.0) },
                Pick::Pareto { h: 0.3, center: None },
                Pick::Pareto { h: 0.3, center: Some(0.7) },
                Pick::Bell { spread_percent: 30.0, center: None },
                Pick::Bell { spread_percent: 100.0, center: Some(0.1) },
                Pick::Normal { deviation_percent: 40.0 },
                Pick::Hot { data_percent: 1.0, ops_percent: 99.0 },
                Pick::Latest { theta: 0.99 },
                Pick::Exponential { percent: 95.0, share: 0.8 },
            ] {
                for count in 0..20 {
                    prop_assert!(pick.next((n, n), count, &mut random, seed) < n, "{:?}", pick);
                }
            }
        }
    }
}

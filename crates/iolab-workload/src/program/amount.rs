//! Numbers that are constant or drawn: sizes, durations, counts.

use core::fmt;

use iolab_model::seed::Stream;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::draw;

/// A number, or a distribution it is drawn from each time it is needed.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// Always the same.
    Constant(u64),
    /// Drawn.
    Drawn(Spread),
}

/// Distribution from which a number is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Spread {
    /// Each multiple of `step` from `from` to `to` is as likely.
    Uniform {
        /// The smallest.
        from: u64,
        /// The largest.
        to: u64,
        /// Distance of two values; 0 counts as 1.
        #[serde(default, skip_serializing_if = "is_zero")]
        step: u64,
    },
    /// Gamma, never above `most`.
    Gamma {
        /// The mean of what lies above `least`, plus `least`.
        mean: f64,
        /// Shape; 1.5 is Filebench's.
        shape: f64,
        /// Added to what is drawn; the smallest value.
        #[serde(default, skip_serializing_if = "is_zero")]
        least: u64,
        /// The largest value; what is larger counts as this.
        most: u64,
        /// Values are rounded to multiples of this; 0: not at all.
        #[serde(default, skip_serializing_if = "is_zero")]
        round: u64,
    },
    /// Normal, cut at both ends.
    Normal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        deviation: f64,
        /// The smallest value.
        #[serde(default, skip_serializing_if = "is_zero")]
        least: u64,
        /// The largest value.
        most: u64,
        /// Values are rounded to multiples of this; 0: not at all.
        #[serde(default, skip_serializing_if = "is_zero")]
        round: u64,
    },
    /// Exponential, never above `most`.
    Exponential {
        /// Its mean.
        mean: f64,
        /// The largest value.
        most: u64,
    },
    /// Zipf over `from ..= to`: the smallest value is the most likely.
    Zipf {
        /// The smallest.
        from: u64,
        /// The largest.
        to: u64,
        /// Skew, above 0.
        theta: f64,
    },
    /// Lognormal, never above `most`.
    Lognormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// The largest value.
        most: u64,
    },
    /// Weibull, never above `most`.
    Weibull {
        /// Its shape.
        shape: f64,
        /// Its scale.
        scale: f64,
        /// The largest value.
        most: u64,
    },
    /// Triangular: the density rises from `from` to `mode` and falls to `to`.
    Triangular {
        /// The smallest.
        from: u64,
        /// The most likely.
        mode: u64,
        /// The largest.
        to: u64,
    },
    /// Each number below one that is drawn is as likely.
    Below {
        /// The number.
        of: Box<Amount>,
    },
    /// Drawn otherwise, cut at both ends and rounded.
    Clipped {
        /// Distribution that it is drawn from.
        of: Box<Amount>,
        /// The smallest value.
        #[serde(default, skip_serializing_if = "is_zero")]
        least: u64,
        /// The largest value.
        most: u64,
        /// Values are rounded to multiples of this; 0: not at all.
        #[serde(default, skip_serializing_if = "is_zero")]
        round: u64,
    },
    /// One row of a table, by weight.
    Table {
        /// The rows.
        rows: Vec<Weighted>,
    },
}

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Weighted {
    /// The value, or the smallest of a range.
    pub value: u64,
    /// The largest of a range that is drawn evenly; absent: always `value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Weight of the row, relative to the others.
    pub weight: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Amount {
    /// The value, if it is always the same.
    pub fn constant(&self) -> Option<u64> {
        match self {
            Self::Constant(value) => Some(*value),
            Self::Drawn(_) => None,
        }
    }

    /// The next value.
    pub fn draw(&self, random: &mut Stream) -> u64 {
        match self {
            Self::Constant(value) => *value,
            Self::Drawn(spread) => spread.draw(random),
        }
    }

    /// The largest value that can be drawn.
    pub fn most(&self) -> u64 {
        match self {
            Self::Constant(value) => *value,
            Self::Drawn(
                Spread::Uniform { to, .. }
                | Spread::Zipf { to, .. }
                | Spread::Triangular { to, .. },
            ) => *to,
            Self::Drawn(
                Spread::Gamma { most, .. }
                | Spread::Normal { most, .. }
                | Spread::Exponential { most, .. }
                | Spread::Lognormal { most, .. }
                | Spread::Weibull { most, .. },
            ) => *most,
            Self::Drawn(Spread::Below { of }) => of.most().saturating_sub(1),
            Self::Drawn(Spread::Clipped { of, least, most, round }) => {
                // A value half a step below a multiple is rounded up to it.
                of.most().saturating_add(round / 2).clamp(*least, *most)
            }
            Self::Drawn(Spread::Table { rows }) => {
                rows.iter().map(|row| row.to.unwrap_or(row.value)).max().unwrap_or(0)
            }
        }
    }

    /// The smallest value that can be drawn.
    pub fn least(&self) -> u64 {
        match self {
            Self::Constant(value) => *value,
            Self::Drawn(
                Spread::Uniform { from, .. }
                | Spread::Zipf { from, .. }
                | Spread::Triangular { from, .. },
            ) => *from,
            Self::Drawn(Spread::Gamma { least, .. } | Spread::Normal { least, .. }) => *least,
            Self::Drawn(
                Spread::Exponential { .. }
                | Spread::Lognormal { .. }
                | Spread::Weibull { .. }
                | Spread::Below { .. },
            ) => 0,
            Self::Drawn(Spread::Clipped { least, round, .. }) if *round > 1 => {
                *least / round * round
            }
            Self::Drawn(Spread::Clipped { of, least, .. }) => of.least().max(*least),
            Self::Drawn(Spread::Table { rows }) => {
                rows.iter().map(|row| row.value).min().unwrap_or(0)
            }
        }
    }

    /// Tell whether its largest value is where a tail is cut, which hardly ever comes.
    pub(super) fn has_tail(&self) -> bool {
        match self {
            Self::Constant(_) => false,
            Self::Drawn(Spread::Below { of } | Spread::Clipped { of, .. }) => of.has_tail(),
            Self::Drawn(spread) => matches!(
                spread,
                Spread::Gamma { .. }
                    | Spread::Normal { .. }
                    | Spread::Exponential { .. }
                    | Spread::Lognormal { .. }
                    | Spread::Weibull { .. }
            ),
        }
    }

    /// Every value and both ends of every range, for checks of alignment.
    pub(super) fn corners(&self) -> Vec<u64> {
        match self {
            Self::Constant(value) => vec![*value],
            Self::Drawn(Spread::Uniform { from, step, .. }) => vec![*from, (*step).max(1)],
            Self::Drawn(
                Spread::Gamma { least, most, round, .. }
                | Spread::Normal { least, most, round, .. },
            ) => {
                vec![*least, *most, (*round).max(1)]
            }
            Self::Drawn(Spread::Clipped { most, round, .. }) if *round > 1 => vec![*most, *round],
            Self::Drawn(
                Spread::Exponential { .. }
                | Spread::Zipf { .. }
                | Spread::Lognormal { .. }
                | Spread::Weibull { .. }
                | Spread::Triangular { .. }
                | Spread::Below { .. }
                | Spread::Clipped { .. },
            ) => vec![1],
            Self::Drawn(Spread::Table { rows }) => rows
                .iter()
                .flat_map(|row| if row.to.is_some() { vec![1] } else { vec![row.value] })
                .collect(),
        }
    }

    /// Contradiction in the description.
    pub fn problem(&self) -> Option<(String, &'static str)> {
        let Self::Drawn(spread) = self else { return None };
        let is_good = |number: f64| number.is_finite() && number > 0.0;
        let positive = "use a positive number";
        match spread {
            Spread::Uniform { from, to, .. } | Spread::Zipf { from, to, .. } if from > to => {
                Some((format!("a range from {from} to {to}"), "name the smaller end first"))
            }
            Spread::Zipf { theta, .. } if !is_good(*theta) => {
                Some((format!("a skew of {theta}"), positive))
            }
            Spread::Gamma { mean, shape, .. } if !is_good(*mean) || !is_good(*shape) => {
                Some((format!("a gamma of mean {mean} and shape {shape}"), positive))
            }
            Spread::Normal { mean, deviation, .. }
                if !mean.is_finite() || *mean < 0.0 || !is_good(*deviation) =>
            {
                Some((format!("a normal of mean {mean} and deviation {deviation}"), positive))
            }
            Spread::Exponential { mean, .. } if !is_good(*mean) => {
                Some((format!("an exponential of mean {mean}"), positive))
            }
            Spread::Gamma { least, most, .. }
            | Spread::Normal { least, most, .. }
            | Spread::Clipped { least, most, .. }
                if least > most =>
            {
                Some((format!("at least {least} and at most {most}"), "let `most` be larger"))
            }
            Spread::Lognormal { mu, sigma, .. } if !mu.is_finite() || !is_good(*sigma) => {
                Some((format!("a lognormal of mu {mu} and sigma {sigma}"), positive))
            }
            Spread::Weibull { shape, scale, .. } if !is_good(*shape) || !is_good(*scale) => {
                Some((format!("a weibull of shape {shape} and scale {scale}"), positive))
            }
            Spread::Triangular { from, mode, to } if from > mode || mode > to => {
                let problem = format!("a triangle from {from} over {mode} to {to}");
                Some((problem, "name the ends and what lies between in order"))
            }
            Spread::Below { of } | Spread::Clipped { of, .. } => of.problem(),
            Spread::Table { rows } => table_problem(rows),
            _ => None,
        }
    }
}

fn table_problem(rows: &[Weighted]) -> Option<(String, &'static str)> {
    let sum: f64 = rows.iter().map(|row| row.weight).sum();
    let is_negative = rows.iter().any(|row| !row.weight.is_finite() || row.weight < 0.0);
    if rows.is_empty() || is_negative || sum <= 0.0 {
        return Some(("a table without weight".into(), "give rows with weights above 0"));
    }
    let is_backward = |row: &&Weighted| row.to.is_some_and(|to| to < row.value);
    rows.iter()
        .find(is_backward)
        .map(|row| (format!("a row from {} downwards", row.value), "let `to` be larger"))
}

impl Spread {
    fn draw(&self, random: &mut Stream) -> u64 {
        let clip = |value: f64, least: u64, most: u64, round: u64| {
            let value = (value.max(0.0) as u64).clamp(least, most);
            let rounded = (value + round / 2).checked_div(round).map(|count| count * round);
            rounded.map_or(value, |rounded| rounded.min(most))
        };
        match self {
            Self::Uniform { from, to, step } => {
                let step = (*step).max(1);
                from + random.below((to - from) / step + 1) * step
            }
            Self::Gamma { mean, shape, least, most, round } => {
                let above = (mean - *least as f64).max(0.0);
                let value = *least as f64 + draw::gamma(random, *shape) * above / shape;
                clip(value, *least, *most, *round)
            }
            Self::Normal { mean, deviation, least, most, round } => {
                clip(mean + deviation * draw::normal(random), *least, *most, *round)
            }
            Self::Exponential { mean, most } => clip(mean * draw::exponential(random), 0, *most, 0),
            Self::Lognormal { mu, sigma, most } => {
                clip((mu + sigma * draw::normal(random)).exp(), 0, *most, 0)
            }
            Self::Weibull { shape, scale, most } => {
                clip(scale * draw::exponential(random).powf(1.0 / shape), 0, *most, 0)
            }
            Self::Triangular { from, mode, to } => {
                let (low, middle, high) = (*from as f64, *mode as f64, *to as f64);
                let (width, left, u) = (high - low, middle - low, random.unit());
                let value = if u * width < left {
                    low + (u * width * left).sqrt()
                } else {
                    high - ((1.0 - u) * width * (high - middle)).sqrt()
                };
                clip(value, *from, *to, 0)
            }
            Self::Below { of } => match of.draw(random) {
                0 => 0,
                end => random.below(end),
            },
            Self::Clipped { of, least, most, round } => {
                clip(of.draw(random) as f64, *least, *most, *round)
            }
            Self::Zipf { from, to, theta } => from + draw::zipf(random, to - from + 1, *theta),
            Self::Table { rows } => {
                let row = draw::weighted(random, rows.iter().map(|row| row.weight));
                let row = &rows[row];
                row.to.map_or(row.value, |to| row.value + random.below(to - row.value + 1))
            }
        }
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (number, drawn) = (u64::json_schema(generator), generator.subschema_for::<Spread>());
        json_schema!({
            "description": "A whole number, or the distribution that it is drawn from.",
            "anyOf": [number, drawn],
        })
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Constant(value) => serializer.serialize_u64(*value),
            Self::Drawn(spread) => spread.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrTable;
        impl<'de> Visitor<'de> for NumberOrTable {
            type Value = Amount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number, or a table with `by` (uniform, gamma, table ...)")
            }
            fn visit_u64<E>(self, value: u64) -> Result<Amount, E> {
                Ok(Amount::Constant(value))
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Amount, E> {
                let value = u64::try_from(value);
                value.map(Amount::Constant).map_err(|_| E::custom("a number below 0"))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Amount, A::Error> {
                Spread::deserialize(MapAccessDeserializer::new(map)).map(Amount::Drawn)
            }
        }
        deserializer.deserialize_any(NumberOrTable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::Seed;
    use proptest::prelude::*;

    fn mean(text: &str) -> f64 {
        let amount: Amount = serde_json::from_str(text).unwrap();
        assert_eq!(amount.problem(), None, "{text}");
        let mut random = Seed(3).stream("amount", 0);
        let all: Vec<u64> = (0..40_000).map(|_| amount.draw(&mut random)).collect();
        assert!(all.iter().all(|v| (amount.least()..=amount.most()).contains(v)), "{text}");
        all.iter().sum::<u64>() as f64 / all.len() as f64
    }

    #[test]
    fn means_are_those_of_the_distributions() {
        // Standard errors of 40000 draws are below 1 % of the mean in each case.
        let cases = [
            ("4096", 4096.0),
            (r#"{"by":"uniform","from":1000,"to":3000}"#, 2000.0),
            (r#"{"by":"gamma","mean":16384,"shape":1.5,"most":1000000}"#, 16384.0),
            (r#"{"by":"normal","mean":5000,"deviation":500,"most":10000}"#, 5000.0),
            (r#"{"by":"exponential","mean":3000,"most":100000}"#, 3000.0),
            (
                r#"{"by":"table","rows":[{"value":4096,"weight":3},{"value":8192,"weight":1}]}"#,
                5120.0,
            ),
            (r#"{"by":"lognormal","mu":8,"sigma":0.5,"most":1000000}"#, 3377.9),
            (r#"{"by":"weibull","shape":1.5,"scale":4096,"most":1000000}"#, 3697.6),
            (r#"{"by":"triangular","from":1000,"mode":2000,"to":6000}"#, 3000.0),
            (r#"{"by":"below","of":16385}"#, 8192.0),
            (r#"{"by":"clipped","of":{"by":"uniform","from":0,"to":8000},"most":4000}"#, 3000.0),
        ];
        for (text, expected) in cases {
            let found = mean(text);
            assert!((found / expected - 1.0).abs() < 0.03, "{text}: {found}, not {expected}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            r#"{"by":"uniform","from":3,"to":1}"#,
            r#"{"by":"table","rows":[]}"#,
            r#"{"by":"table","rows":[{"value":1,"weight":0}]}"#,
            r#"{"by":"gamma","mean":-1,"shape":1.5,"most":9}"#,
            r#"{"by":"zipf","from":1,"to":9,"theta":0}"#,
        ] {
            let amount: Amount = serde_json::from_str(text).unwrap();
            assert!(amount.problem().is_some(), "{text}");
        }
        assert!(serde_json::from_str::<Amount>("-1").is_err());
        assert!(serde_json::from_str::<Amount>("\"4k\"").is_err());
    }

    proptest! {
        #[test]
        fn json_is_identity(from in 0_u64..9, span in 0_u64..9, quarters in 1_u8..40) {
            // Quarters are read back exactly.
            let weight = f64::from(quarters) / 4.0;
            let rows = vec![Weighted { value: from, to: Some(from + span), weight }];
            for amount in [
                Amount::Constant(from),
                Amount::Drawn(Spread::Uniform { from, to: from + span, step: 0 }),
                Amount::Drawn(Spread::Table { rows }),
            ] {
                let text = serde_json::to_string(&amount).unwrap();
                prop_assert_eq!(serde_json::from_str::<Amount>(&text).unwrap(), amount);
            }
        }
    }
}

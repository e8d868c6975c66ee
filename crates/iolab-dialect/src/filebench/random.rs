//! Random variables as amounts of a program.

use iolab_model::nearest::did_you_mean;
use iolab_workload::program::{Amount, Spread, Weighted};

use super::lex::{ScriptFault, ScriptSpot};
use super::scope::{Bound, ScriptScope};
use super::syntax::{Givens, Value};
use super::words::{Attribute, CUSTOM, DISTRIBUTIONS};

type Result<T> = std::result::Result<T, ScriptFault>;

/// Shape that stands for none.
const SHAPE: u64 = 1500;
/// Scales above the mean behind which a tail is cut: beyond it lie fewer than one in 10^15 draws.
const TAIL: f64 = 40.0;

/// The amount that a random variable (`is_custom`: a custom one) stands for.
pub fn amount(scope: &ScriptScope, is_custom: bool, givens: &Givens) -> Result<Amount> {
    let amount = if is_custom { custom(scope, givens) } else { plain(scope, givens) }?;
    Ok(amount)
}

fn wrong<T>(spot: ScriptSpot, what: impl Into<String>, remedy: &str) -> Result<T> {
    Err(ScriptFault::new(spot, what, remedy))
}

/// Cuts and rounds what a distribution gives, if anything is asked for.
fn clipped(amount: Amount, least: u64, most: Option<u64>, round: u64) -> Amount {
    if least == 0 && most.is_none() && round == 0 {
        return amount;
    }
    let above = amount.most().saturating_add(round);
    let most = most.unwrap_or(above).max(least);
    Amount::Drawn(Spread::Clipped { of: Box::new(amount), least, most, round })
}

/// A gamma: its mean above `least`, and where its tail is cut.
fn gamma(mean: f64, shape: f64, least: u64) -> Amount {
    let scale = (mean - least as f64) / shape;
    let most = least as f64 + scale * (shape + TAIL);
    Amount::Drawn(Spread::Gamma { mean, shape, least, most: most.ceil() as u64, round: 0 })
}

fn plain(scope: &ScriptScope, givens: &Givens) -> Result<Amount> {
    let kind = scope.text(givens, Attribute::Kind)?.unwrap_or_else(|| "gamma".into());
    let min = scope.number(givens, Attribute::Min, 0)?;
    let round = scope.number(givens, Attribute::Round, 0)?;
    let most = match givens.find(Attribute::Max) {
        Some(_) => Some(scope.number(givens, Attribute::Max, 0)?),
        None => None,
    };
    let mean = match givens.find(Attribute::Mean) {
        Some(_) => Some(scope.number(givens, Attribute::Mean, 0)?),
        None => None,
    };
    let shape = scope.number(givens, Attribute::Gamma, SHAPE)? as f64 / 1000.0;
    let drawn = match kind.as_str() {
        "gamma" => {
            // Without a mean it is that of the shape, as in the original: nearly nothing.
            let mean = mean.map_or(shape, |mean| mean as f64);
            if shape <= 0.0 || mean <= min as f64 {
                let what = format!("a gamma of mean {mean}, least {min} and shape {shape}");
                return wrong(givens.spot, what, "write a mean above min, and gamma=1500");
            }
            gamma(mean, shape, min)
        }
        "uniform" => {
            let mean = mean.unwrap_or(0);
            let Some(half) = mean.checked_sub(min) else {
                let what = format!("a uniform of mean {mean} below its min {min}");
                return wrong(givens.spot, what, "write a mean of at least min");
            };
            Amount::Drawn(Spread::Uniform { from: min, to: min.saturating_add(2 * half), step: 1 })
        }
        "tabular" => tabular(scope, givens, min, mean)?,
        other => {
            let known = DISTRIBUTIONS.iter().map(|row| row.name);
            let what = format!("there is no distribution '{other}'{}", did_you_mean(other, known));
            let spot = givens.find(Attribute::Kind).map_or(givens.spot, |given| given.value.spot);
            return wrong(spot, what, "write type=gamma, uniform or tabular");
        }
    };
    // A table's min is the origin of its scaling, not a bound.
    let least = if kind == "tabular" { 0 } else { min.min(drawn.least()) };
    Ok(clipped(drawn, least, most, round))
}

fn tabular(scope: &ScriptScope, givens: &Givens, min: u64, mean: Option<u64>) -> Result<Amount> {
    let Some(Value::Table(table)) = givens.find(Attribute::Table).map(|it| &it.value.value) else {
        let what = "a tabular distribution without randtable";
        return wrong(givens.spot, what, "write randtable={{PERCENT, FROM, BELOW}, ...}");
    };
    let mut rows = Vec::new();
    for [percent, from, below] in table {
        let number = |placed: &super::syntax::Placed| match scope.resolve(placed)? {
            Bound::Integer(value) if value >= 0 => Ok(value as u64),
            _ => wrong(placed.spot, "a table holds whole numbers", "write one of at least 0"),
        };
        rows.push((number(percent)?, number(from)?, number(below)?));
    }
    let total: u64 = rows.iter().map(|row| row.0).sum();
    if total != 100 {
        let spot = givens.find(Attribute::Table).map_or(givens.spot, |given| given.spot);
        let what = format!("Prob table only totals {total}%");
        return wrong(spot, what, "let the percentages add up to 100");
    }
    if let Some(row) = rows.iter().find(|row| row.1 > row.2) {
        let what = format!("a row of the table from {} to {}", row.1, row.2);
        return wrong(givens.spot, what, "write the smaller number first");
    }
    let middle: f64 =
        rows.iter().map(|row| row.0 as f64 / 100.0 * (row.1 as f64 + row.2 as f64) / 2.0).sum();
    let origin = min as f64;
    let factor = match mean {
        Some(mean) if middle > origin => (mean as f64 - origin).max(0.0) / (middle - origin),
        _ => 1.0,
    };
    let scaled = |value: u64| (origin + (value as f64 - origin) * factor).max(0.0).round() as u64;
    let rows = rows.into_iter().filter(|row| row.0 > 0).map(|(percent, from, below)| {
        let (value, end) = (scaled(from), scaled(below));
        let to = (end > value + 1).then(|| end - 1);
        Weighted { value, to, weight: percent as f64 }
    });
    Ok(Amount::Drawn(Spread::Table { rows: rows.collect() }))
}

/// Parameters of a custom variable, with defaults for those that are not given.
fn parameters(
    scope: &ScriptScope,
    givens: &Givens,
    kind: &str,
) -> Result<Vec<(&'static str, f64)>> {
    let spot = givens.find(Attribute::Kind).map_or(givens.spot, |given| given.value.spot);
    let Some(row) = CUSTOM.iter().find(|row| row.name == kind) else {
        let known = CUSTOM.iter().map(|row| row.name);
        let what = format!("there is no custom variable '{kind}'{}", did_you_mean(kind, known));
        return wrong(spot, what, "`iolab filebench -c` lists them");
    };
    let mut found = row.parameters.to_vec();
    let Some(given) = givens.find(Attribute::Parameters) else { return Ok(found) };
    let text = scope.resolve(&given.value)?.text();
    for part in text.split(';').filter(|part| !part.trim().is_empty()) {
        let (name, value) = part.split_once(':').unwrap_or((part, ""));
        let known = row.parameters.iter().map(|parameter| parameter.0);
        let Some(place) = found.iter_mut().find(|(known, _)| *known == name.trim()) else {
            let what = format!("{kind} has no parameter '{name}'{}", did_you_mean(name, known));
            let all = row.parameters.iter().map(|it| it.0).collect::<Vec<_>>().join(", ");
            return wrong(given.value.spot, what, &format!("its parameters are {all}"));
        };
        match value.trim().parse::<f64>() {
            Ok(value) if value.is_finite() => place.1 = value,
            _ => {
                let what = format!("the parameter {name} is '{value}'");
                return wrong(given.value.spot, what, "write a number without a suffix");
            }
        }
    }
    Ok(found)
}

fn custom(scope: &ScriptScope, givens: &Givens) -> Result<Amount> {
    let Some(kind) = scope.text(givens, Attribute::Kind)? else {
        return wrong(
            givens.spot,
            "a custom variable without a type",
            "write type=cvar-gamma, or so",
        );
    };
    let found = parameters(scope, givens, &kind)?;
    let get = |name: &str| found.iter().find(|it| it.0 == name).map_or(0.0, |it| it.1);
    let whole = |value: f64| value.max(0.0) as u64;
    let tail = |scale: f64| (scale * TAIL).ceil().max(1.0) as u64;
    let spread = match kind.as_str() {
        "cvar-gamma" => return finish(scope, givens, gamma_of(get("mean"), get("gamma"))),
        "cvar-erlang" => {
            let (shape, rate) = (get("shape").floor(), get("rate"));
            return finish(scope, givens, gamma_of(shape / rate, shape));
        }
        "cvar-normal" => {
            let (mean, deviation) = (get("mean"), get("sigma"));
            let most = whole(mean + 9.0 * deviation).max(1);
            Spread::Normal { mean, deviation, least: 0, most, round: 0 }
        }
        "cvar-uniform" => {
            Spread::Uniform { from: whole(get("lower")), to: whole(get("upper")), step: 1 }
        }
        "cvar-triangular" => Spread::Triangular {
            from: whole(get("lower")),
            mode: whole(get("mode")),
            to: whole(get("upper")),
        },
        "cvar-exponential" => Spread::Exponential { mean: get("mean"), most: tail(get("mean")) },
        "cvar-weibull" => {
            let (shape, scale) = (get("shape"), get("scale"));
            let most = (scale * TAIL.powf(1.0 / shape.max(0.1))).ceil().max(1.0) as u64;
            Spread::Weibull { shape, scale, most }
        }
        _ => {
            let (mu, sigma) = (get("scale"), get("shape"));
            let most = (mu + 9.0 * sigma).exp().ceil().clamp(1.0, 1e18) as u64;
            Spread::Lognormal { mu, sigma, most }
        }
    };
    finish(scope, givens, Amount::Drawn(spread))
}

fn gamma_of(mean: f64, shape: f64) -> Amount {
    gamma(mean, shape, 0)
}

fn finish(scope: &ScriptScope, givens: &Givens, amount: Amount) -> Result<Amount> {
    let least = scope.number(givens, Attribute::Min, 0)?;
    let round = scope.number(givens, Attribute::Round, 0)?;
    let most = match givens.find(Attribute::Max) {
        Some(_) => Some(scope.number(givens, Attribute::Max, 0)?),
        None => None,
    };
    if let Some((problem, remedy)) = amount.problem() {
        return wrong(givens.spot, problem, remedy);
    }
    Ok(clipped(amount, least, most, round))
}

/// An amount in another unit.
pub fn scaled(amount: &Amount, factor: f64) -> Amount {
    let whole = |value: u64| (value as f64 * factor) as u64;
    let Amount::Drawn(spread) = amount else {
        return Amount::Constant(whole(amount.most()));
    };
    let mut rows = match spread {
        Spread::Table { rows } => rows.clone(),
        other => by_quantiles(&Amount::Drawn(other.clone())),
    };
    for row in &mut rows {
        row.value = whole(row.value);
        row.to = row.to.map(whole);
    }
    Amount::Drawn(Spread::Table { rows })
}

/// Draws of a distribution as a table, where it has to be in another unit.
fn by_quantiles(amount: &Amount) -> Vec<Weighted> {
    const DRAWS: usize = 4096;
    let mut random = iolab_model::Seed(0).stream("scaled", 0);
    let mut values: Vec<u64> = (0..DRAWS).map(|_| amount.draw(&mut random)).collect();
    values.sort_unstable();
    values
        .chunks(16)
        .map(|part| Weighted { value: part[part.len() / 2], to: None, weight: 1.0 })
        .collect()
}

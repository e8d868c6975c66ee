//! Shares of transfer sizes, distributions of places, orders of files: texts that say several
//! numbers at once.

use std::ops::Range;

use iolab_model::Bytes;
use iolab_model::op::RangeSync;
use iolab_workload::program::{Pick, Weighted, Zone};

use super::value;
use crate::diagnostic::Problem;

/// Most sizes of one direction, as in fio.
const SIZES_MAX: usize = 64;
/// Most zones, as in fio.
const ZONES_MAX: usize = 256;
/// fio's numbers where none is typed.
const ZIPF: f64 = 1.1;
const PARETO: f64 = 0.2;

type Read<T> = Result<T, Problem>;

/// Sizes of reads, writes and trims with their shares: `4k/60:16k/40,8k/100`.
pub fn split(text: &str, kb_base: u64) -> Read<[Vec<Weighted>; 3]> {
    let sets: Vec<&str> = text.split(',').collect();
    if sets.len() > 3 {
        let what = format!("bssplit has {} sets", sets.len());
        return Err(Problem::new(what, "write one for reads, writes and trims"));
    }
    let read: Vec<Vec<Weighted>> =
        sets.iter().map(|set| sizes(set, kb_base)).collect::<Read<_>>()?;
    // What is not typed is that of the direction before.
    Ok(std::array::from_fn(|place| read[place.min(read.len() - 1)].clone()))
}

fn sizes(set: &str, kb_base: u64) -> Read<Vec<Weighted>> {
    if set.trim().is_empty() {
        // The sizes of this direction are those of bs.
        return Ok(Vec::new());
    }
    let parts: Vec<&str> = set.split(':').collect();
    if parts.len() > SIZES_MAX {
        let what = format!("bssplit has {} sizes", parts.len());
        return Err(Problem::new(what, "write at most 64"));
    }
    let mut values = Vec::new();
    let mut shares = Vec::new();
    for part in parts {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let size = value::size(size.trim(), kb_base).map_err(|(_, problem)| problem)?;
        if size == 0 {
            return Err(Problem::new("transfers of no bytes", "write for instance 4k/50"));
        }
        values.push(size);
        shares.push(percent(share.trim(), "bssplit")?);
    }
    let weights = filled(&shares, "bssplit")?;
    let rows = values.into_iter().zip(weights);
    let rows = rows.map(|(value, weight)| Weighted { value, to: None, weight });
    Ok(rows.filter(|row| row.weight > 0.0).collect())
}

fn percent(text: &str, option: &str) -> Read<Option<f64>> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(share) if (0.0..=100.0).contains(&share) => Ok(Some(share)),
        _ => {
            let what = format!("{option}: '{text}' is no percentage");
            Err(Problem::new(what, "write a number from 0 to 100"))
        }
    }
}

/// Difference that adding up fractions makes.
const ROUNDING: f64 = 1e-6;

/// Shares whose missing ones are equal parts of the rest.
fn filled(shares: &[Option<f64>], option: &str) -> Read<Vec<f64>> {
    let sum: f64 = shares.iter().flatten().sum();
    let missing = shares.iter().filter(|share| share.is_none()).count();
    if sum > 100.0 + ROUNDING {
        let what = format!("{option}: the shares add up to {sum} %");
        return Err(Problem::new(what, "let them be 100 % together"));
    }
    if missing == 0 && sum < 100.0 - ROUNDING {
        let what = format!("{option}: the shares add up to {sum} %");
        return Err(Problem::new(what, "let them be 100 %, or leave one of them out"));
    }
    let rest = (100.0 - sum).max(0.0) / missing.max(1) as f64;
    Ok(shares.iter().map(|share| share.unwrap_or(rest)).collect())
}

/// Numbers behind the name of a distribution; the second one is the place of the likeliest.
fn numbers(text: Option<&str>, usual: Option<f64>, what: &str) -> Read<(f64, Option<f64>)> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        let missing = || Problem::new(format!("{what} needs a number"), format!("write {what}:N"));
        return usual.map(|number| (number, None)).ok_or_else(missing);
    };
    let float = |text: &str| {
        value::float(text).map_err(|(_, problem)| {
            Problem::new(problem.what, format!("write {what}:NUMBER, or {what}:NUMBER:CENTER"))
        })
    };
    let (first, second) = text.split_once(':').unwrap_or((text, ""));
    let center = if second.is_empty() { None } else { Some(float(second)?) };
    if let Some(center) = center.filter(|center| !(0.0..=1.0).contains(center)) {
        let problem = format!("{what}: a center of {center}");
        return Err(Problem::new(problem, "write a share of the file, 0 to 1"));
    }
    Ok((float(first)?, center))
}

/// Units in which zones are as large as typed.
#[derive(Clone, Copy, Debug)]
pub struct Worked {
    /// Bytes that are worked on; unknown as long as the file is.
    pub bytes: Option<u64>,
    /// `kb_base`.
    pub kb_base: u64,
}

/// Distribution of the reads (0), writes (1) or trims (2) of a job; `None`: each place once, or
/// evenly.
pub fn distribution(text: &str, place: usize, region: Worked) -> Read<Option<Pick>> {
    let (name, more) = text.split_once(':').map_or((text, None), |(name, more)| (name, Some(more)));
    match name {
        "random" => Ok(None),
        "zoned" => zones_of(more.unwrap_or_default(), place, None).map(Some),
        "zoned_abs" => zones_of(more.unwrap_or_default(), place, Some(region)).map(Some),
        "zipf" | "pareto" | "normal" | "gauss" => named(name, more).map(Some),
        _ => {
            let known = ["random", "zipf", "pareto", "normal", "zoned", "zoned_abs"];
            let hint = iolab_model::nearest::did_you_mean(name, known);
            let what = format!("random_distribution has no value '{name}'{hint}");
            Err(Problem::new(what, format!("use one of {}", known.join(", "))))
        }
    }
}

/// A distribution that has a number: of places, or of files.
pub fn named(name: &str, more: Option<&str>) -> Read<Pick> {
    let wrong = |value: f64, remedy: &str| {
        Err(Problem::new(format!("{name}:{value} is out of range"), remedy))
    };
    match name {
        "zipf" => match numbers(more, Some(ZIPF), name)? {
            (theta, _) if (theta - 1.0).abs() < 1e-9 => {
                Err(Problem::new("zipf theta must differ from 1.0", "write for instance zipf:1.1"))
            }
            (theta, center) if theta > 0.0 && theta.is_finite() => Ok(Pick::Zipf { theta, center }),
            (theta, _) => wrong(theta, "write a number above 0"),
        },
        "pareto" => match numbers(more, Some(PARETO), name)? {
            (h, center) if h > 0.0 && h < 1.0 => Ok(Pick::Pareto { h, center }),
            (h, _) => wrong(h, "write a number between 0 and 1"),
        },
        _ => match numbers(more, None, name)? {
            (spread_percent, center) if (0.0..100.0).contains(&spread_percent) => {
                Ok(Pick::Bell { spread_percent, center })
            }
            (percent, _) => wrong(percent, "write a percentage below 100"),
        },
    }
}

/// Zones of a direction; those that are not typed are those of the direction before.
fn zones_of(text: &str, place: usize, region: Option<Worked>) -> Read<Pick> {
    let read = |text| match region {
        None => zones(text),
        Some(region) => zones_of_sizes(text, region),
    };
    let mut sets: Vec<Pick> = text.split(',').map(read).collect::<Read<_>>()?;
    if sets.len() > 3 {
        let what = format!("zoned has {} lists of zones", sets.len());
        return Err(Problem::new(what, "write one for reads, writes and trims"));
    }
    Ok(sets.swap_remove(place.min(sets.len() - 1)))
}

fn zones(text: &str) -> Read<Pick> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > ZONES_MAX {
        return Err(Problem::new(format!("{} zones", parts.len()), "write at most 256"));
    }
    let (mut shares, mut sizes) = (Vec::new(), Vec::new());
    for part in parts {
        let Some((share, size)) = part.split_once('/') else {
            let what = format!("zoned: '{part}' is no share and size");
            return Err(Problem::new(what, "write zoned:60/10:40/90"));
        };
        shares.push(percent(share.trim(), "zoned")?);
        sizes.push(percent(size.trim(), "zoned")?);
    }
    let (shares, sizes) = (filled(&shares, "zoned")?, filled(&sizes, "zoned")?);
    let zones = shares.into_iter().zip(sizes);
    let zones = zones.map(|(ops_percent, data_percent)| Zone { data_percent, ops_percent });
    Ok(Pick::Zones { zones: zones.collect() })
}

/// Zones whose sizes are typed; what is left of the region behind them is not worked on.
fn zones_of_sizes(text: &str, region: Worked) -> Read<Pick> {
    let (mut shares, mut sizes) = (Vec::new(), Vec::new());
    for part in text.split(':') {
        let Some((share, size)) = part.split_once('/') else {
            let what = format!("zoned_abs: '{part}' is no share and size");
            return Err(Problem::new(what, "write zoned_abs:60/1g:40/10g"));
        };
        shares.push(percent(share.trim(), "zoned_abs")?);
        let read = value::size(size.trim(), region.kb_base);
        sizes.push(read.map_err(|(_, problem)| problem)?);
    }
    if shares.len() > ZONES_MAX {
        return Err(Problem::new(format!("{} zones", shares.len()), "write at most 256"));
    }
    let shares = filled(&shares, "zoned_abs")?;
    let all = sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
    // As long as nobody knows the file, the zones are taken to fill it.
    let bytes = region.bytes.unwrap_or(all).max(1);
    if all == 0 || all > bytes {
        let what = format!(
            "zoned_abs: the zones are {} together, and what is worked on is {}",
            Bytes(all),
            Bytes(bytes)
        );
        return Err(Problem::new(what, "let them be as large as that, at most"));
    }
    let percent_of = |size: u64| size as f64 / bytes as f64 * 100.0;
    let zones = shares
        .into_iter()
        .zip(sizes)
        .map(|(ops_percent, size)| Zone { data_percent: percent_of(size), ops_percent });
    let rest = Zone { data_percent: percent_of(bytes - all), ops_percent: 0.0 };
    Ok(Pick::Zones { zones: zones.chain((all < bytes).then_some(rest)).collect() })
}

/// Order of files, and transfers on one before the next; 0: until it is used up.
pub fn service(name: &str, more: Option<&str>) -> Read<(Pick, u64)> {
    let stay = |more: Option<&str>| match more.map(str::parse::<u64>) {
        None => Ok(1),
        Some(Ok(count)) if count > 0 => Ok(count),
        Some(_) => {
            let what = format!("file_service_type={name}:{}", more.unwrap_or_default());
            Err(Problem::new(what, "write a number of transfers"))
        }
    };
    match name {
        "sequential" => Ok((Pick::Sequential, 0)),
        "random" => Ok((Pick::Uniform, stay(more)?)),
        "roundrobin" => Ok((Pick::Sequential, stay(more)?)),
        _ => Ok((named(name, more)?, 1)),
    }
}

/// Transfers behind a random place (`randread:8`).
pub fn run_length(text: &str) -> Read<u64> {
    let wrong = || {
        let what = format!("rw=...:{text}: no number of transfers");
        Problem::new(what, "write a number of 1 or more")
    };
    text.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)
}

/// Bytes between two sequential transfers (`read:4k`), perhaps negative.
pub fn skip(text: &str, kb_base: u64) -> Read<i64> {
    value::integer(text, kb_base).map_err(|(_, problem): (Range<usize>, Problem)| problem)
}

/// Parts of `sync_file_range`, and the number of writes between two: `wait_before,write:8`.
pub fn range_sync(text: &str) -> Read<(RangeSync, u64)> {
    const FORM: &str = "write for instance sync_file_range=wait_before,write:8";
    let wrong = |what: String| Problem::new(format!("sync_file_range: {what}"), FORM);
    let (parts, every) =
        text.rsplit_once(':').ok_or_else(|| wrong("no number of writes".to_owned()))?;
    let mut how = RangeSync { waits_before: false, writes: false, waits_after: false };
    for part in parts.split(',').map(str::trim) {
        match part {
            "wait_before" => how.waits_before = true,
            "write" => how.writes = true,
            "wait_after" => how.waits_after = true,
            _ => {
                let known = ["wait_before", "write", "wait_after"];
                let hint = iolab_model::nearest::did_you_mean(part, known);
                return Err(wrong(format!("there is no part '{part}'{hint}")));
            }
        }
    }
    let every = every.trim().parse().ok().filter(|every| *every > 0);
    Ok((how, every.ok_or_else(|| wrong("that is no number of writes of 1 or more".to_owned()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_shares_are_the_rest() {
        let [reads, writes, trims] = split("4k/60:16k/30:64k/10,8k/50:32k/", 1024).unwrap();
        let seen = |rows: &[Weighted]| -> Vec<(u64, u64)> {
            rows.iter().map(|row| (row.value, row.weight as u64)).collect()
        };
        assert_eq!(seen(&reads), [(4096, 60), (16384, 30), (65536, 10)]);
        assert_eq!(seen(&writes), [(8192, 50), (32768, 50)]);
        assert_eq!(seen(&trims), seen(&writes));
        for (text, part) in [
            ("4k/60:8k/60", "add up to 120 %"),
            ("4k/60:8k/20", "add up to 80 %"),
            ("4k/x", "no percentage"),
            ("0/100", "no bytes"),
            ("1k,1k,1k,1k", "4 sets"),
        ] {
            let told = split(text, 1024).unwrap_err();
            assert!(format!("{told:?}").contains(part), "{text}: {told:?}");
        }
    }

    #[test]
    fn parts_of_range_syncs_come_with_a_number() {
        let how =
            |waits_before, writes, waits_after| RangeSync { waits_before, writes, waits_after };
        assert_eq!(range_sync("wait_before,write:8").unwrap(), (how(true, true, false), 8));
        assert_eq!(range_sync("wait_after:1").unwrap(), (how(false, false, true), 1));
        assert_eq!(range_sync("wait_before,write,wait_after:4").unwrap().0, RangeSync::default());
        for wrong in ["write", "write:0", ":3", "wirte:3", "write:many", "write:", ""] {
            assert!(range_sync(wrong).is_err(), "{wrong}");
        }
        assert!(range_sync("writ:3").unwrap_err().what.contains("`write`"));
    }

    #[test]
    fn distributions_are_picks() {
        let region = Worked { bytes: Some(1 << 20), kb_base: 1024 };
        let distribution = |text: &str, place| distribution(text, place, region);
        assert_eq!(distribution("random", 0).unwrap(), None);
        let zipf = |theta, center| Some(Pick::Zipf { theta, center });
        assert_eq!(distribution("zipf:1.2", 1).unwrap(), zipf(1.2, None));
        assert_eq!(distribution("zipf:1.1:0.25", 1).unwrap(), zipf(1.1, Some(0.25)));
        let bell = Pick::Bell { spread_percent: 0.0, center: None };
        assert_eq!(distribution("normal:0", 1).unwrap(), Some(bell));
        let shares = |text| match distribution(text, 0).unwrap() {
            Some(Pick::Zones { zones }) => {
                zones.iter().map(|zone| (zone.ops_percent, zone.data_percent)).collect()
            }
            _ => Vec::new(),
        };
        let of_sizes = shares("zoned_abs:60/256k:40/256k");
        assert_eq!(of_sizes, [(60.0, 25.0), (40.0, 25.0), (0.0, 50.0)]);
        assert_eq!(shares("zoned_abs:/512k:25/512k"), [(75.0, 50.0), (25.0, 50.0)]);
        let zoned = distribution("zoned:60/10:30/20:10/70", 2).unwrap();
        assert!(matches!(zoned, Some(Pick::Zones { zones }) if zones.len() == 3));
        for text in [
            "zipf:1",
            "zipf:-1",
            "pareto:1",
            "normal",
            "normal:100",
            "zipf:1.1:1.5",
            "zipf:1.1:x",
            "zoned",
            "zoned_abs:1/2",
            "zoned_abs:100/2m",
            "zoned_abs:100/0",
            "zoned:60/10:40/90,",
            "zoned:1/1:99/99,1/1:99/99,1/1:99/99,1/1:99/99",
            "zpif:1",
        ] {
            assert!(distribution(text, 0).is_err(), "{text}");
        }
        let both = "zoned:60/10:40/90,50/5:30/15:20/80";
        let count = |place| match distribution(both, place).unwrap() {
            Some(Pick::Zones { zones }) => zones.len(),
            _ => 0,
        };
        assert_eq!([count(0), count(1), count(2)], [2, 3, 3]);
    }
}

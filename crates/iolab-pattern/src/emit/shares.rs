//! Sizes with their shares as `bssplit` of fio writes them.

use super::parts::Part;
use crate::sentence::exact;
use crate::stream::sizes::{DirectionSizes, SizeShare};

/// Whole percents, which are all that fio reads (fio 3.33, HOWTO, `bssplit`).
pub const WHOLE: u64 = 100;
/// Thousandths of a percent, which iolab reads.
pub const FINE: u64 = 100_000;
/// Difference between a share and the emitted one from which on it is told, in parts of one.
const TOLD: f64 = 0.005;

/// The option for the sizes of a part, and what it does not keep.
pub fn words(part: &Part, steps: u64) -> ((&'static str, String), Vec<String>) {
    let directions = part.directions();
    let one = |sizes: &DirectionSizes| match sizes.drawn.as_slice() {
        [only] => Some(only.bytes),
        _ => None,
    };
    let sizes: Option<Vec<u64>> = directions.iter().map(|sizes| one(sizes)).collect();
    if let Some(mut sizes) = sizes {
        sizes.dedup();
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        return (("bs", sizes.join(",")), Vec::new());
    }
    let (mut texts, mut losses) = (Vec::new(), Vec::new());
    for sizes in &directions {
        let parts = in_steps(&sizes.drawn, steps);
        texts.push(split(&sizes.drawn, &parts, steps));
        losses.extend(joined(sizes));
        losses.extend(rounded(&sizes.drawn, &parts, steps));
    }
    texts.dedup();
    losses.dedup();
    (("bssplit", texts.join(",")), losses)
}

/// Shares as whole numbers of steps that add up to all of them: rounded down, and what is missing
/// goes to those that lost most.
fn in_steps(sizes: &[SizeShare], steps: u64) -> Vec<u64> {
    let exact: Vec<f64> = sizes.iter().map(|size| size.share * steps as f64).collect();
    let mut parts: Vec<u64> = exact.iter().map(|share| share.floor() as u64).collect();
    let missing = steps.saturating_sub(parts.iter().sum());
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|one, other| (exact[*other].fract()).total_cmp(&exact[*one].fract()));
    for at in order.into_iter().take(missing as usize) {
        parts[at] += 1;
    }
    parts
}

fn split(sizes: &[SizeShare], parts: &[u64], steps: u64) -> String {
    let percent = |part: u64| {
        let (whole, rest) = (part * WHOLE / steps, part * WHOLE % steps);
        if rest == 0 {
            return whole.to_string();
        }
        let digits = (steps / WHOLE).ilog10() as usize;
        let fraction = format!("{:0digits$}", rest * (steps / WHOLE) / steps);
        format!("{whole}.{}", fraction.trim_end_matches('0'))
    };
    let rows = sizes.iter().zip(parts).filter(|(_, part)| **part > 0);
    let rows: Vec<String> =
        rows.map(|(size, part)| format!("{}/{}", size.bytes, percent(*part))).collect();
    rows.join(":")
}

fn joined(sizes: &DirectionSizes) -> Option<String> {
    (sizes.different > sizes.drawn.len() as u64).then(|| {
        format!(
            "{} sizes: neighbours are joined to {} with the same bytes",
            sizes.different,
            sizes.drawn.len()
        )
    })
}

/// Changes by rounding: sizes that are left out, and the share that differs most.
fn rounded(sizes: &[SizeShare], parts: &[u64], steps: u64) -> Option<String> {
    let bytes = |size: &SizeShare| size.bytes as f64 * size.share;
    let all: f64 = sizes.iter().map(bytes).sum();
    let gone: Vec<&SizeShare> =
        sizes.iter().zip(parts).filter(|(_, part)| **part == 0).map(|(size, _)| size).collect();
    let error = |(size, part): (&SizeShare, &u64)| *part as f64 / steps as f64 - size.share;
    let rows = || sizes.iter().zip(parts.iter()).filter(|(_, part)| **part > 0);
    let worst = rows().max_by(|one, other| error(*one).abs().total_cmp(&error(*other).abs()));
    let mut told = Vec::new();
    if !gone.is_empty() {
        let share: f64 = gone.iter().map(|size| size.share).sum();
        let moved: f64 = gone.iter().map(|size| bytes(size)).sum();
        let names: Vec<String> = gone.iter().take(3).map(|size| exact(size.bytes)).collect();
        let more = if gone.len() > names.len() { " and others" } else { "" };
        told.push(format!(
            "{}{more} ({:.2} % of the accesses, {:.1} % of the bytes) are left out",
            names.join(", "),
            share * 100.0,
            moved / all * 100.0
        ));
    }
    if let Some((size, part)) = worst.filter(|row| error(*row).abs() >= TOLD) {
        told.push(format!(
            "{} has {:.1} % instead of {:.1} %",
            exact(size.bytes),
            *part as f64 / steps as f64 * 100.0,
            size.share * 100.0
        ));
    }
    (!told.is_empty() && steps == WHOLE).then(|| {
        format!(
            "shares of sizes, as fio has whole percents: {}; --emit study has thousandths",
            told.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(rows: &[(u64, u64)]) -> DirectionSizes {
        DirectionSizes::of(&rows.iter().copied().collect())
    }

    #[test]
    fn shares_add_up_to_all_steps_whatever_they_are() {
        for rows in [
            vec![(1, 1), (2, 1), (3, 1)],
            vec![(4096, 716), (24, 236), (65_536, 48)],
            vec![(1, 1), (2, 999_999)],
            (1..=64).map(|at| (1 << (at % 40), at)).collect(),
        ] {
            for steps in [WHOLE, FINE] {
                let sizes = sizes(&rows);
                let parts = in_steps(&sizes.drawn, steps);
                assert_eq!(parts.iter().sum::<u64>(), steps, "{rows:?}");
                let near = |(size, part): (&SizeShare, &u64)| {
                    (size.share * steps as f64 - *part as f64).abs() < 1.0
                };
                assert!(sizes.drawn.iter().zip(&parts).all(near), "{rows:?}");
            }
        }
    }

    #[test]
    fn whole_percents_and_fine_ones_are_written() {
        let sizes = sizes(&[(4096, 716), (24, 236), (65_536, 48)]);
        let text = |steps| split(&sizes.drawn, &in_steps(&sizes.drawn, steps), steps);
        assert_eq!(text(WHOLE), "4096/71:24/24:65536/5");
        assert_eq!(text(FINE), "4096/71.6:24/23.6:65536/4.8");
        let told = rounded(&sizes.drawn, &in_steps(&sizes.drawn, WHOLE), WHOLE).unwrap();
        assert!(told.contains("4 KiB has 71.0 % instead of 71.6 %"), "{told}");
    }

    #[test]
    fn a_rare_size_that_moves_most_is_told_with_its_bytes() {
        let sizes = sizes(&[(24, 9990), (1 << 20, 10)]);
        let told = rounded(&sizes.drawn, &in_steps(&sizes.drawn, WHOLE), WHOLE).unwrap();
        assert!(told.contains("1 MiB (0.10 % of the accesses, 97.8 % of the bytes)"), "{told}");
        let fine = in_steps(&sizes.drawn, FINE);
        assert_eq!(split(&sizes.drawn, &fine, FINE), "24/99.9:1048576/0.1");
        assert!(rounded(&sizes.drawn, &fine, FINE).is_none());
    }
}

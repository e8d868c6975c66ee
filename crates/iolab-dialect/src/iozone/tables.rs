//! File sizes, record sizes and numbers of children that a command line means.

use super::typed::{Children, Typed};
use super::values::RECORD_KB_MAX;
use crate::diagnostic::Problem;

/// `IOzone`'s defaults, in kB.
const FILE_KB: u64 = 512;
const RECORD_KB: u64 = 4;
const FILE_KB_RANGE: (u64, u64) = (64, 512 << 10);
/// Above this file size records below [`CROSS_OVER_RECORD_KB`] are left out of a table.
const CROSS_OVER_FILE_KB: u64 = 16 << 10;
const CROSS_OVER_RECORD_KB: u64 = 64;

/// Numbers of children, one table each; 1 without throughput mode.
pub fn children_counts(typed: &Typed) -> Vec<u32> {
    let Children { counts, lower, upper, .. } = &typed.children;
    let mut all = counts.clone();
    match (*lower, *upper) {
        (None, None) => {}
        (Some(lower), None) => all.push(lower),
        (lower, Some(upper)) => all.extend(lower.unwrap_or(1)..=upper),
    }
    if all.is_empty() { vec![1] } else { all }
}

/// Pairs of file size and record size, in the order of the table.
pub fn sizes(typed: &Typed, children: u32) -> Result<Vec<(u64, u64)>, Problem> {
    let table = &typed.table;
    if typed.is_throughput() {
        return throughput_size(typed, children).map(|size| vec![size]);
    }
    let is_auto = table.is_auto || table.is_old_auto;
    let is_many = table.file_kb.len() > 1 || table.record_kb.len() > 1;
    let pairs = if is_auto { automatic(typed)? } else { listed(typed) };
    if !is_auto && !is_many && (table.file_kb_range, table.record_kb_range) != Default::default() {
        return Err(Problem::new(
            "-n, -g, -y and -q are limits of automatic mode",
            "add -a, or use -s and -r",
        ));
    }
    if let Some((file, record)) = pairs.iter().find(|(file, record)| record > file) {
        return Err(Problem::new(
            format!("a record of {record} kB is larger than the file of {file} kB"),
            "give a larger -s or a smaller -r",
        ));
    }
    Ok(pairs)
}

fn throughput_size(typed: &Typed, children: u32) -> Result<(u64, u64), Problem> {
    let (files, records) = (&typed.table.file_kb, &typed.table.record_kb);
    if files.len() > 1 || records.len() > 1 {
        return Err(Problem::new(
            "throughput mode has one file size and one record size",
            "give one -s and one -r, and run the others on their own",
        ));
    }
    let file = files.first().copied().unwrap_or(FILE_KB);
    let record = records.first().copied().unwrap_or(RECORD_KB);
    let file = if typed.children.is_aggregate { file / u64::from(children) } else { file };
    if record > file {
        return Err(Problem::new(
            format!("a record of {record} kB is larger than a child's file of {file} kB"),
            "give a larger -s or a smaller -r",
        ));
    }
    Ok((file, record))
}

/// The cross product of what -s and -r list.
fn listed(typed: &Typed) -> Vec<(u64, u64)> {
    let or = |list: &[u64], default: u64| match list {
        [] => vec![default],
        list => list.to_vec(),
    };
    let records = or(&typed.table.record_kb, RECORD_KB);
    let files = or(&typed.table.file_kb, FILE_KB);
    files.iter().flat_map(|file| records.iter().map(move |record| (*file, *record))).collect()
}

/// The table of automatic mode.
fn automatic(typed: &Typed) -> Result<Vec<(u64, u64)>, Problem> {
    let table = &typed.table;
    let series = |list: &[u64], (from, to): (u64, u64)| {
        if !list.is_empty() {
            return list.to_vec();
        }
        let next = |kb: &u64| kb.checked_mul(table.multiplier);
        std::iter::successors(Some(from), next).take_while(|kb| *kb <= to).collect()
    };
    let (n, g) = table.file_kb_range;
    let (y, q) = table.record_kb_range;
    let files =
        series(&table.file_kb, (n.unwrap_or(FILE_KB_RANGE.0), g.unwrap_or(FILE_KB_RANGE.1)));
    let records = series(&table.record_kb, (y.unwrap_or(RECORD_KB), q.unwrap_or(RECORD_KB_MAX)));
    let (Some(&file), Some(&record)) = (files.first(), records.first()) else {
        return Err(Problem::new(
            "the table is empty: a smallest size is larger than the largest",
            "give -n no more than -g, and -y no more than -q",
        ));
    };
    if record > file {
        return Err(Problem::new(
            format!(
                "the smallest record, {record} kB, is larger than the smallest file, {file} kB"
            ),
            "give a smaller -y or a larger -n",
        ));
    }
    let is_crossing = !table.is_full
        && table.file_kb.is_empty()
        && table.record_kb.is_empty()
        && (y, q) == (None, None);
    let is_left_out = |file: u64, record: u64| {
        is_crossing && file > CROSS_OVER_FILE_KB && record < CROSS_OVER_RECORD_KB
    };
    let of_file = |file: u64| records.iter().filter(move |record| **record <= file);
    Ok(files
        .iter()
        .flat_map(|&file| of_file(file).map(move |&record| (file, record)))
        .filter(|&(file, record)| !is_left_out(file, record))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(change: impl FnOnce(&mut Typed)) -> Vec<(u64, u64)> {
        let mut typed = Typed::new(false);
        typed.table.is_auto = true;
        change(&mut typed);
        sizes(&typed, 1).unwrap()
    }

    #[test]
    fn the_default_table_has_126_rows() {
        let pairs = auto(|_| {});
        assert_eq!(pairs.len(), 126);
        let count = |kb| pairs.iter().filter(|(file, _)| *file == kb).count();
        let counts = [64, 128, 16 << 10, 32 << 10, 512 << 10].map(count);
        assert_eq!(counts, [5, 6, 13, 9, 9]);
    }

    #[test]
    fn any_size_that_is_given_ends_the_cross_over() {
        let rows = |change: fn(&mut Typed)| auto(change).len();
        assert_eq!(rows(|t| t.table.file_kb_range = (Some(16 << 10), Some(32 << 10))), 13 + 9);
        assert_eq!(rows(|t| t.table.is_full = true), 126 + 5 * 4);
        assert_eq!(rows(|t| t.table.record_kb_range.1 = Some(16 << 10)), 126 + 5 * 4);
    }

    #[test]
    fn lists_are_multiplied() {
        let mut typed = Typed::new(false);
        (typed.table.file_kb, typed.table.record_kb) = (vec![256, 1024], vec![4, 64]);
        assert_eq!(sizes(&typed, 1).unwrap(), [(256, 4), (256, 64), (1024, 4), (1024, 64)]);
    }
}

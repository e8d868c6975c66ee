//! The Excel report (-R): as text, and as cells for the files of -b.

use std::fmt::Write as _;

use iolab_workload::preset::IozoneTest as T;
use serde::Serialize;

use super::plan::Plan;
use super::result::{PhaseResult, RowResult, median};
use super::typed::Unit;

/// Title of a test's report in the text and in the file; the original spells them differently.
const TITLES: &[(T, &str, &str)] = &[
    (T::Write, "Writer", "Writer"),
    (T::Rewrite, "Re-writer", "Re-writer"),
    (T::Read, "Reader", "Reader"),
    (T::Reread, "Re-Reader", "Re-reader"),
    (T::RandomRead, "Random read", "Random Read"),
    (T::RandomWrite, "Random write", "Random Write"),
    (T::BackwardRead, "Backward read", "Backward Read"),
    (T::RecordRewrite, "Record rewrite", "Record Rewrite"),
    (T::StrideRead, "Stride read", "Stride Read"),
    (T::Fwrite, "Fwrite", "Fwrite"),
    (T::Frewrite, "Re-Fwrite", "Re-fwrite"),
    (T::Fread, "Fread", "Fread"),
    (T::Freread, "Re-Fread", "Re-fread"),
    (T::Pwrite, "Pwrite", "Pwrite"),
    (T::Repwrite, "Re-Pwrite", "Re-pwrite"),
    (T::Pread, "Pread", "Pread"),
    (T::Repread, "Re-Pread", "Re-pread"),
    (T::Pwritev, "Pwritev", "Pwritev"),
    (T::Preadv, "Preadv", "Preadv"),
];

/// Names of throughput mode's rows.
const ROWS: &[(T, &str)] = &[
    (T::Write, "Initial write"),
    (T::Rewrite, "Rewrite"),
    (T::Read, "Read"),
    (T::Reread, "Re-read"),
    (T::BackwardRead, "Reverse Read"),
    (T::StrideRead, "Stride read"),
    (T::RandomRead, "Random read"),
    (T::Mix, "Mixed workload"),
    (T::RandomWrite, "Random write"),
    (T::Pwrite, "Pwrite"),
    (T::Pread, "Pread"),
    (T::Fwrite, "Fwrite"),
    (T::Fread, "Fread"),
];

const CPU: &str = "CPU utilization report (Zero values should be ignored)";
const AXES: &str = "report Y-axis is type of test X-axis is number of processes";

/// A cell of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
}

/// A value at row and column.
pub type Cell = (u16, u16, Value);

/// One matrix: file sizes down, record sizes across.
pub struct Matrix {
    /// Title in the text.
    pub title: String,
    /// Title in the file.
    pub file_title: String,
    /// Record sizes in kB.
    pub record_kb: Vec<u64>,
    /// File size in kB, and a value per record size up to the last measured one; 0: left out.
    pub lines: Vec<(u64, Vec<f64>)>,
    /// Values are percentages of CPU time.
    pub is_cpu: bool,
}

/// Measured values of a test in a row, over all rounds.
fn values(
    rows: &[RowResult],
    (index, test): (usize, T),
    number: impl Fn(&PhaseResult) -> f64,
) -> Vec<f64> {
    let of_row = rows.iter().filter(|row| row.index == index);
    of_row.flat_map(|row| &row.phases).filter(|phase| phase.name == test).map(number).collect()
}

/// Tell whether a test has a report: it, or the first pass before it, was measured.
fn has_report(plan: &Plan, test: T) -> bool {
    let first = match test {
        T::Rewrite => T::Write,
        T::Reread => T::Read,
        T::Frewrite => T::Fwrite,
        T::Freread => T::Fread,
        T::Repwrite => T::Pwrite,
        T::Repread => T::Pread,
        other => other,
    };
    plan.rows.iter().any(|row| row.tests.contains(&first))
}

/// All matrices of single and automatic mode.
pub fn matrices(plan: &Plan, rows: &[RowResult]) -> Vec<Matrix> {
    let cell = |phase: &PhaseResult| phase.cell(plan) as f64;
    let mut all = of_kind(plan, rows, (false, &cell));
    if plan.show.has_cpu {
        all.extend(of_kind(plan, rows, (true, &PhaseResult::cpu_percent)));
    }
    all
}

fn of_kind(
    plan: &Plan,
    rows: &[RowResult],
    (is_cpu, number): (bool, &dyn Fn(&PhaseResult) -> f64),
) -> Vec<Matrix> {
    let sorted = |mut list: Vec<u64>| {
        list.sort_unstable();
        list.dedup();
        list
    };
    let record_kb = sorted(plan.rows.iter().map(|row| row.record_kb).collect());
    let file_kb = sorted(plan.rows.iter().map(|row| row.file_kb).collect());
    let line = |test: T, file: u64| {
        let of_record = |record: &u64| {
            let index =
                plan.rows.iter().position(|row| row.file_kb == file && row.record_kb == *record);
            index.map_or(0.0, |index| median(values(rows, (index, test), number)))
        };
        let last =
            plan.rows.iter().filter(|row| row.file_kb == file).map(|row| row.record_kb).max();
        let columns = record_kb.iter().filter(|record| Some(**record) <= last);
        (file, columns.map(of_record).collect())
    };
    TITLES
        .iter()
        .filter(|(test, _, _)| has_report(plan, *test))
        .map(|(test, text, file)| Matrix {
            title: if is_cpu { format!("{text} {CPU}") } else { format!("{text} report") },
            file_title: if is_cpu { format!("{file} {CPU}") } else { format!("{file} Report") },
            record_kb: record_kb.clone(),
            lines: file_kb.iter().map(|kb| line(*test, *kb)).collect(),
            is_cpu,
        })
        .collect()
}

/// The text of single and automatic mode.
pub fn table_text(plan: &Plan, rows: &[RowResult]) -> String {
    let mut text = "Excel output is below:\n".to_owned();
    for matrix in matrices(plan, rows) {
        let _ = write!(text, "\n\"{}\"\n      ", matrix.title);
        for record in &matrix.record_kb {
            let _ = write!(text, "  \"{record}\"");
        }
        text.push('\n');
        for (file, values) in &matrix.lines {
            let _ = write!(text, "\"{file}\"  ");
            for value in values {
                let _ = if matrix.is_cpu {
                    write!(text, " {value:>6.2}")
                } else {
                    write!(text, " {} ", *value as u64)
                };
            }
            text.push('\n');
        }
    }
    text
}

/// Name of a test, and one value per table.
type Line = (&'static str, Vec<f64>);

/// A row of throughput mode's report, one value per table.
fn throughput_rows(
    plan: &Plan,
    rows: &[RowResult],
    number: &dyn Fn(&PhaseResult) -> f64,
) -> Vec<Line> {
    let value = |index: usize, test: T| median(values(rows, (index, test), number));
    ROWS.iter()
        .filter(|(test, _)| has_report(plan, *test))
        .map(|(test, name)| (*name, (0..plan.rows.len()).map(|at| value(at, *test)).collect()))
        .collect()
}

/// Title, unit and rows of each of throughput mode's reports.
fn throughput_reports(plan: &Plan, rows: &[RowResult]) -> Vec<(String, &'static str, Vec<Line>)> {
    let unit = match plan.show.unit {
        Unit::Operations => "Output is in ops/sec",
        _ => "Output is in kBytes/sec",
    };
    let rate = |phase: &PhaseResult| phase.children_rate(plan);
    let mut all = vec![(format!("Throughput {AXES}"), unit, throughput_rows(plan, rows, &rate))];
    if plan.show.has_cpu {
        let percent = throughput_rows(plan, rows, &PhaseResult::cpu_percent);
        all.push((format!("CPU utilization {AXES}"), "Output is in CPU%", percent));
    }
    all
}

/// The text of throughput mode.
pub fn throughput_text(plan: &Plan, rows: &[RowResult]) -> String {
    let record_kb = plan.rows.first().map_or(0, |row| row.record_kb);
    let mut text = String::new();
    for (title, unit, lines) in throughput_reports(plan, rows) {
        let _ =
            write!(text, "\n\"{title}\"\n\"Record size = {record_kb} kBytes \"\n\"{unit}\"\n\n");
        for (name, values) in lines {
            let _ = write!(text, "\"{name:>15} \" ");
            let shown: Vec<String> = values.iter().map(|value| format!("{value:>10.2} ")).collect();
            let _ = write!(text, "{}\n\n", shown.join(" "));
        }
    }
    text
}

/// One sheet of a workbook: a table with a head line.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Sheet {
    /// Title: the quantity that it shows.
    pub title: String,
    /// Labels across, and down.
    pub axes: (String, String),
    /// Unit of the values.
    pub unit: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Name and values of each row; a value that was not measured is absent.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

/// The report as sheets of a workbook.
pub fn sheets(plan: &Plan, rows: &[RowResult]) -> Vec<Sheet> {
    let unit = match plan.show.unit {
        Unit::KiloBytes => "kB/s",
        Unit::Operations => "operations/s",
        Unit::Microseconds => "µs per operation",
    };
    if plan.show.throughput.is_some() {
        let columns: Vec<String> = plan.rows.iter().map(|row| row.children.to_string()).collect();
        let axes = ("children".to_owned(), "test".to_owned());
        let of_report = |(title, _, lines): (String, &str, Vec<Line>)| {
            let unit = if title.starts_with("CPU") { "%" } else { unit };
            let title = title.split(" report").next().unwrap_or_default().to_owned();
            let rows = lines.into_iter().map(|(name, values)| (name.to_owned(), known(values)));
            let (axes, columns, unit) = (axes.clone(), columns.clone(), unit.to_owned());
            Sheet { title, axes, unit, columns, rows: rows.collect() }
        };
        return throughput_reports(plan, rows).into_iter().map(of_report).collect();
    }
    let of_matrix = |matrix: Matrix| Sheet {
        title: matrix.title.split(" (").next().unwrap_or_default().replace(" report", ""),
        axes: ("record size in kB".into(), "file size in kB".into()),
        unit: if matrix.is_cpu { "%" } else { unit }.to_owned(),
        columns: matrix.record_kb.iter().map(u64::to_string).collect(),
        rows: matrix
            .lines
            .into_iter()
            .map(|(kb, values)| (kb.to_string(), known(values)))
            .collect(),
    };
    matrices(plan, rows).into_iter().map(of_matrix).collect()
}

/// In the original's reports 0 stands for what was not measured.
fn known(values: Vec<f64>) -> Vec<Option<f64>> {
    values.into_iter().map(|value| (value > 0.0).then_some(value)).collect()
}

/// Cells of the file of -b.
pub fn cells(plan: &Plan, rows: &[RowResult]) -> Vec<Cell> {
    if plan.show.throughput.is_some() {
        throughput_cells(plan, rows)
    } else {
        table_cells(plan, rows)
    }
}

fn text(row: u16, column: u16, text: impl Into<String>) -> Cell {
    (row, column, Value::Text(text.into()))
}

fn table_cells(plan: &Plan, rows: &[RowResult]) -> Vec<Cell> {
    let mut cells = vec![
        text(0, 0, format!("{} ", plan.show.command)),
        text(1, 0, " "),
        text(2, 0, "The top row is records sizes, the left column is file sizes"),
    ];
    let mut at = 3;
    let mut was_cpu = false;
    for matrix in matrices(plan, rows) {
        if matrix.is_cpu && !was_cpu {
            at += 1;
        }
        was_cpu = matrix.is_cpu;
        cells.push(text(at, 0, matrix.file_title));
        at += 1;
        for (column, record) in (1..).zip(&matrix.record_kb) {
            cells.push((at, column, Value::Number(*record as f64)));
        }
        for (file, values) in matrix.lines {
            at += 1;
            cells.push((at, 0, Value::Number(file as f64)));
            cells.extend((1..).zip(values).map(|(column, v)| (at, column, Value::Number(v))));
        }
        at += 1;
    }
    cells
}

fn throughput_cells(plan: &Plan, rows: &[RowResult]) -> Vec<Cell> {
    let record_kb = plan.rows.first().map_or(0, |row| row.record_kb);
    let mut cells = vec![text(0, 0, format!("{} ", plan.show.command))];
    let mut at = 1;
    for (title, unit, lines) in throughput_reports(plan, rows) {
        let head = [title, format!("Record size = {record_kb} kBytes"), unit.to_owned()];
        for line in head {
            cells.push(text(at, 0, line));
            at += 1;
        }
        for (name, values) in lines {
            cells.push(text(at, 0, format!("{name:>15} ")));
            // The original leaves column 1 empty.
            cells.extend((2..).zip(values).map(|(column, v)| (at, column, Value::Number(v))));
            at += 1;
        }
    }
    cells
}

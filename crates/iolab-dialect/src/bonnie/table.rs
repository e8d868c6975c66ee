//! bonnie++'s tables for people, 80 columns wide: that of a run, and that of `bon_csv2txt`.

use std::fmt::Write as _;

use super::csv::{Cell, IO_PHASES, Line, TOO_SHORT};

const RULER_IO: &str = "------Sequential Output------ --Sequential Input- --Random-";
const RULER_FILES: &str = "------Sequential Create------ --------Random Create--------";
const HEADS_IO: &str = "-Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--";
const HEADS_FILES: &str = "-Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--";
const UNITS: &str = " /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP";
/// Columns before the first rate.
const LABEL: usize = 19;
/// Rate in KiB/s from which MiB/s are shown.
const KIB_MAX: f64 = 10_000.0;

/// The table of one run; `size` is its size with chunk, seeks and so on.
pub fn of_run(line: &Line, size: &str) -> String {
    let (io, files) = line.cells.split_at(IO_PHASES);
    let version = format!("Version {:>5}       ", line.program);
    let mut text = String::new();
    if !line.file_size.is_empty() {
        let _ = write!(text, "{version}{RULER_IO}\n{:20}{HEADS_IO}\n", "");
        let _ = writeln!(text, "{:20}{UNITS}", "Name:Size etc");
        text += &row(&label(&line.name, size), io, true);
        text += &latencies(io);
    }
    if line.files.is_empty() {
        // An empty line stands where the second part would.
        return text + "\n";
    }
    let shape = match (line.size_max.is_empty(), line.size_min.is_empty()) {
        (_, false) => "files:max:min",
        (false, true) => "files:max",
        (true, true) => "              files",
    };
    let counted = files_text(line);
    let _ = write!(text, "{version}{RULER_FILES}\n{:<19.19} {HEADS_FILES}\n", line.name);
    let _ = writeln!(text, "{shape:20}{UNITS}");
    text += &row(&format!("{counted:>LABEL$}"), files, false);
    text + &latencies(files)
}

/// Output of `bon_csv2txt` for several results.
pub fn of_lines(lines: &[Line]) -> String {
    let mut text = String::new();
    let io: Vec<&Line> = lines.iter().filter(|line| !line.file_size.is_empty()).collect();
    if let Some(first) = io.first() {
        let _ = write!(text, "Version {:>9}   {RULER_IO}\n{:20}{HEADS_IO}\n", first.program, "");
        let _ = writeln!(text, "{:20}{UNITS}", "Name:Size etc");
        for line in io {
            let parts = [&line.file_size, &line.chunk, &line.seeks, &line.seekers];
            let size = parts.map(String::as_str).join(":");
            let cells = &line.cells[..IO_PHASES];
            text += &row(&label(&line.name, size.trim_end_matches(':')), cells, true);
            text += &latencies(cells);
        }
    }
    let files: Vec<&Line> = lines.iter().filter(|line| !line.files.is_empty()).collect();
    if !files.is_empty() {
        let _ = write!(text, "{:20}{RULER_FILES}\n{:20}{HEADS_FILES}\n", "", "");
        let _ = writeln!(text, "{:20}{UNITS}", "      files:max:min");
        for line in files {
            let cells = &line.cells[IO_PHASES..];
            text += &row(&label(&line.name, &files_text(line)), cells, false);
            text += &latencies(cells);
        }
    }
    text
}

/// Number, sizes and directories of the files; with directories the smallest size is always told.
fn files_text(line: &Line) -> String {
    let or_zero = |text: &str| if text.is_empty() { "0".to_owned() } else { text.to_owned() };
    let (files, largest, least) = (&line.files, &line.size_max, &line.size_min);
    match (line.directories.as_str(), largest.is_empty(), least.is_empty()) {
        ("", true, true) => files.clone(),
        ("", _, true) => format!("{files}:{largest}"),
        ("", _, false) => format!("{files}:{}:{least}", or_zero(largest)),
        (directories, _, _) => {
            format!("{files}:{}:{}/{directories}", or_zero(largest), or_zero(least))
        }
    }
}

/// Name and what is right of it in the first columns; a long one eats the name.
fn label(name: &str, right: &str) -> String {
    let width = right.chars().count();
    if width + 1 >= LABEL {
        let right: String = right.chars().take(LABEL).collect();
        return format!("{right:>LABEL$}");
    }
    let left = LABEL - width - 1;
    let name: String = name.chars().take(left).collect();
    format!("{name:left$} {right}")
}

fn row(label: &str, cells: &[Cell], is_io: bool) -> String {
    let last = cells.len() - 1;
    let mut text = label.to_owned();
    for (place, cell) in cells.iter().enumerate() {
        if cell.rate.is_empty() {
            text += &" ".repeat(10);
            continue;
        }
        let rate = match (cell.rate.parse::<f64>(), is_io && place < last) {
            (Err(_), _) => TOO_SHORT.to_owned(),
            (Ok(rate), true) => kib_text(rate),
            (Ok(rate), false) if is_io && rate < 1000.0 => format!("{rate:5.1}"),
            (Ok(rate), false) => format!("{rate:5.0}"),
        };
        let _ = write!(text, " {rate:>5} {:>3}", cell.cpu);
    }
    text.trim_end().to_owned() + "\n"
}

/// A rate in KiB/s with the letter that fits.
fn kib_text(rate: f64) -> String {
    let mib = rate / 1024.0;
    match rate {
        _ if rate < KIB_MAX => format!("{rate:4.0}k"),
        // From 99.95 on the original writes "100.0m", one place too wide.
        _ if mib < 99.95 => format!("{mib:4.1}m"),
        _ if mib < 1000.0 => format!("{mib:4.0}m"),
        _ => format!("{:4.1}g", mib / 1024.0),
    }
}

fn latencies(cells: &[Cell]) -> String {
    if cells.iter().all(|cell| cell.latency.is_empty()) {
        return String::new();
    }
    let mut text = format!("{:17}", "Latency");
    for cell in cells {
        let _ = write!(text, " {:>9}", cell.latency);
    }
    text.trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_letter_that_was_recorded() {
        let seen: Vec<String> =
            [1176.0, 9999.0, 82968.0, 150_000.0, 182_883.0, 1_206_975.0, 0.0].map(kib_text).into();
        assert_eq!(seen, ["1176k", "9999k", "81.0m", " 146m", " 179m", " 1.2g", "   0k"]);
        let wide = (0..2_000_000_u32).step_by(7).map(|kib| kib_text(f64::from(kib)).len());
        assert_eq!(wide.max(), Some(5), "a rate never needs more room than its column has");
    }

    #[test]
    fn a_long_size_eats_the_name() {
        assert_eq!(label("testhost", "64M"), "testhost        64M");
        assert_eq!(label("testhost", "64M:16k::2048"), "testh 64M:16k::2048");
        assert_eq!(label("x", "123456789012345678901"), "1234567890123456789");
    }
}

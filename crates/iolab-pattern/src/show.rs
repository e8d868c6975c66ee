//! A report for people: a table, a sentence and a picture of each file.

use std::fmt::Write as _;

use iolab_trace::density::Picture;
use iolab_trace::stages::text::{bytes, duration};

use crate::report::{FilePattern, PatternReport};
use crate::sentence::exact;

/// Names are cut from the left to this many characters: their ends tell more.
const NAME_WIDTH: usize = 32;
/// Characters of a line of text.
const WIDTH: usize = 96;
/// Files that have a picture.
const PICTURES: usize = 3;
/// Shades from few accesses to many.
const SHADES: [char; 5] = ['.', ':', '+', '*', '#'];

/// Table, sentences and, of the files with the most bytes, pictures.
pub fn text(report: &PatternReport, has_pictures: bool) -> String {
    let mut out = String::new();
    if report.files.is_empty() {
        let what = match report.files_of_other_names {
            0 => "no read or write of a file was found".to_owned(),
            1 => "the file that was read or written has another name than --only asks for; leave \
                  --only out to see it"
                .to_owned(),
            many => format!(
                "the {many} files that were read or written have other names than --only asks \
                 for; leave --only out to see them"
            ),
        };
        let _ = writeln!(out, "{} calls; {what}", report.calls);
    } else {
        table(&mut out, report);
    }
    for (index, file) in report.files.iter().enumerate() {
        out.push('\n');
        wrap(&mut out, &format!("{}: {}", file.shown_name(), file.sentence));
        if let Some(picture) = file.picture.as_ref().filter(|_| has_pictures && index < PICTURES) {
            draw(&mut out, picture, report.has_times);
        }
    }
    if report.files_left_out > 0 {
        let moved = bytes(report.bytes_left_out);
        let _ = match report.files_left_out {
            1 => writeln!(out, "\n1 more file ({moved}) is left out; --all lists it"),
            many => writeln!(
                out,
                "\n{many} more files ({moved} together) are left out; --all lists them"
            ),
        };
    }
    out
}

fn table(out: &mut String, report: &PatternReport) {
    let _ = writeln!(
        out,
        "{:NAME_WIDTH$} {:11} {:>8} {:>8} {:>10} {:>9} {:>8} {:>6} {:>5}",
        "file", "pattern", "reads", "writes", "bytes", "mostly", "aligned", "syncs", "depth"
    );
    for file in &report.files {
        let size = mostly(file);
        let _ = writeln!(
            out,
            "{:NAME_WIDTH$} {:11} {:>8} {:>8} {:>10} {:>9} {:>8} {:>6} {:>5}",
            cut(file),
            file.pattern.name(),
            file.reads.count,
            file.writes.count,
            bytes(file.reads.bytes + file.writes.bytes),
            size,
            file.alignment.map_or_else(|| "-".to_owned(), exact),
            file.syncs,
            depth(file)
        );
    }
}

/// The size of more than half of the accesses.
fn mostly(file: &FilePattern) -> String {
    let most = file.sizes.first().filter(|size| size.share > 0.5);
    most.map_or_else(|| "varied".to_owned(), |size| exact(size.bytes))
}

fn depth(file: &FilePattern) -> String {
    if file.depth == 0 { "-".to_owned() } else { file.depth.to_string() }
}

fn cut(file: &FilePattern) -> String {
    let clean: Vec<char> = file.shown_name().chars().collect();
    if clean.len() <= NAME_WIDTH {
        return clean.into_iter().collect();
    }
    let tail = clean[clean.len() - (NAME_WIDTH - 3)..].iter().collect::<String>();
    format!("...{tail}")
}

/// A paragraph in lines of at most [`WIDTH`] characters.
fn wrap(out: &mut String, text: &str) {
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            out.push_str("\n  ");
            column = 2;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
}

/// Rows from the highest place down; a column is a stretch of time.
fn draw(out: &mut String, picture: &Picture, has_times: bool) {
    let rows = picture.reads.len();
    let cell = |row: usize, column: usize| picture.reads[row][column] + picture.writes[row][column];
    let columns = picture.reads.first().map_or(0, Vec::len);
    let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let most = all.map(|(row, column)| cell(row, column)).max().unwrap_or(0).max(1);
    for row in (0..rows).rev() {
        let shade = |column: usize| match cell(row, column) {
            0 => ' ',
            // Logarithmic: one access is seen beside a million.
            count => {
                let step = f64::from(count).ln() / f64::from(most).ln().max(f64::MIN_POSITIVE);
                SHADES[((step * 4.0).round() as usize).min(4)]
            }
        };
        let line: String = (0..columns).map(shade).collect();
        let place = if row + 1 == rows || row == 0 {
            bytes(picture.first_byte + row as u64 * picture.row_bytes)
        } else {
            String::new()
        };
        let _ = writeln!(out, "  {place:>9} |{}", line.trim_end());
    }
    let width = columns as u64 * picture.column;
    let end = if has_times { duration(width as f64) } else { format!("{width} accesses") };
    let _ = writeln!(out, "  {:>9} +{} {end}", "", "-".repeat(columns));
}

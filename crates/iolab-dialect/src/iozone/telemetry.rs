//! Telemetry files (-X, -Y): a line per operation, replayed in place of a sequential pass.
//!
//! A line has an offset in bytes, a length in bytes, and perhaps milliseconds of pause before the
//! operation, with blanks between; lines that are empty or begin with `#` are skipped. The
//! original takes what is no number for 0, and crashes on a line with one word; both are errors
//! here.

use std::path::Path;

use iolab_model::{Bytes, Ns};
use iolab_workload::spec::ReplayOp;

use super::typed::{Replays, Typed};
use crate::diagnostic::Problem;
use crate::text_file::read_limited;

/// More than this is not read into memory.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Operations of a file at most.
const OPS_MAX: usize = 1_000_000;
/// Offsets and lengths at most; far below where sums would overflow.
const BYTES_MAX: u64 = 1 << 53;
/// Longest operation: the original's buffer, as for a record.
const LENGTH_MAX: u64 = 16 << 20;

/// A telemetry file, understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Telemetry {
    /// Its operations.
    pub ops: Vec<ReplayOp>,
    /// Its first operation has a pause: the original then says that the file has compute times.
    pub has_times: bool,
}

impl Telemetry {
    /// Size of a file in which every operation lies.
    pub fn file_bytes(&self) -> u64 {
        self.ops.iter().map(|op| op.at.0 + op.length.0).max().unwrap_or(0)
    }

    /// Longest operation.
    pub fn length_max(&self) -> u64 {
        self.ops.iter().map(|op| op.length.0).max().unwrap_or(0)
    }

    /// Tell whether there is a pause between any two.
    pub fn has_pauses(&self) -> bool {
        self.ops.iter().any(|op| op.pause_ns.0 > 0)
    }
}

/// Files that -X and -Y name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Of the write test.
    pub write: Option<Telemetry>,
    /// Of the read test.
    pub read: Option<Telemetry>,
}

impl Recorded {
    /// Reads the files that were named.
    pub fn read(replays: &Replays) -> Result<Self, Problem> {
        let of = |option: &str, path: &Option<String>| match path {
            Some(path) => load(option, path).map(Some),
            None => Ok(None),
        };
        let (write, read) = (of("-X", &replays.write)?, of("-Y", &replays.read)?);
        let recorded = Self { write, read };
        if let Self { write: Some(write), read: Some(read) } = &recorded
            && read.file_bytes() > write.file_bytes()
        {
            return Err(Problem::new(
                format!(
                    "-Y reads up to byte {}, but -X writes only up to byte {}",
                    read.file_bytes(),
                    write.file_bytes()
                ),
                "let the writes reach as far as the reads",
            ));
        }
        Ok(recorded)
    }

    /// Neither is given.
    pub fn is_empty(&self) -> bool {
        self.write.is_none() && self.read.is_none()
    }

    /// Size of the test file.
    pub fn file_bytes(&self) -> u64 {
        self.all().map(Telemetry::file_bytes).max().unwrap_or(0)
    }

    fn all(&self) -> impl Iterator<Item = &Telemetry> {
        self.write.iter().chain(&self.read)
    }

    /// Lines about compute time, as the original words them; none if no file has any.
    pub fn time_lines(&self) -> Vec<String> {
        let line = |telemetry: &Telemetry, what: &str| {
            if telemetry.has_times {
                format!("Compute time from telemetry files for {what}.")
            } else {
                format!("No compute time for {what}.")
            }
        };
        if !self.all().any(|telemetry| telemetry.has_times) {
            return Vec::new();
        }
        let read = self.read.as_ref().map(|telemetry| line(telemetry, "reads"));
        read.into_iter().chain(self.write.as_ref().map(|t| line(t, "writes"))).collect()
    }
}

/// Tell whether what was typed can be done together with telemetry.
pub fn check(typed: &Typed) -> Result<(), Problem> {
    let (how, table) = (&typed.how, &typed.table);
    let option = if how.replays.write.is_some() { "-X" } else { "-Y" };
    let is_auto = table.is_auto || table.is_old_auto;
    let excluded = [
        (is_auto, "-a", "give -i 0 and -i 1"),
        (!table.file_kb.is_empty(), "-s", "leave -s out: the operations say how large the file is"),
        (!table.record_kb.is_empty(), "-r", "leave -r out: each operation has its own size"),
        (how.stride != 17, "-j", "leave -j out"),
        (how.is_disturbed, "-K", "leave -K out"),
        (how.verify.is_some(), "-V and -+d", "leave them out"),
        (how.depth.is_some(), "-H and -k", "leave them out: one operation follows the other"),
    ];
    if let Some((_, other, remedy)) = excluded.iter().find(|(is_given, _, _)| *is_given) {
        return Err(Problem::new(format!("{option} and {other} exclude each other"), *remedy));
    }
    match typed.tests.iter().find(|test| **test > 1) {
        Some(test) => Err(Problem::new(
            format!("test {test} is not replayed from a telemetry file"),
            format!("with {option} select -i 0 and -i 1 only"),
        )),
        None => Ok(()),
    }
}

fn load(option: &str, path: &str) -> Result<Telemetry, Problem> {
    let wrong = |why: String| {
        let remedy = "name a text file with a line `offset length [milliseconds]` per operation";
        Problem::new(format!("{option} {path}: {why}"), remedy)
    };
    let read = read_limited(Path::new(path), FILE_BYTES_MAX);
    let Some(bytes) = read.map_err(|error| wrong(error.to_string()))? else {
        let what = format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20);
        return Err(Problem::new(format!("{option} {path}: {what}"), "split it"));
    };
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".into()))?;
    parse(option, path, &text)
}

/// The operations of a text; `option` and `path` are for messages.
pub fn parse(option: &str, path: &str, text: &str) -> Result<Telemetry, Problem> {
    let mut telemetry = Telemetry::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let op = of_words(&words).map_err(|(what, remedy)| {
            Problem::new(format!("{option}: {path}, line {}: {what}", index + 1), remedy)
        })?;
        if telemetry.ops.is_empty() {
            telemetry.has_times = words.len() == 3;
        }
        telemetry.ops.push(op);
        if telemetry.ops.len() > OPS_MAX {
            let what = format!("{option} {path} has more than {OPS_MAX} operations");
            return Err(Problem::new(what, "split it"));
        }
    }
    if telemetry.ops.is_empty() {
        let what = format!("{option} {path} lists no operation");
        return Err(Problem::new(what, "write a line `offset length [milliseconds]` for each"));
    }
    Ok(telemetry)
}

type Wrong = (String, &'static str);

fn of_words(words: &[&str]) -> Result<ReplayOp, Wrong> {
    const LINE: &str = "write `offset length [milliseconds]`, for instance `8192 4096 2`";
    if !(2..=3).contains(&words.len()) {
        return Err((format!("it has {} words, not 2 or 3", words.len()), LINE));
    }
    let number = |at: usize, what: &str| {
        let text = words.get(at).copied().unwrap_or("0");
        let number = text.parse::<u64>().ok().filter(|number| *number <= BYTES_MAX);
        number.ok_or_else(|| (format!("'{text}' is not {what}"), LINE))
    };
    let (at, length) = (number(0, "an offset in bytes")?, number(1, "a length in bytes")?);
    let ms = number(2, "a number of milliseconds")?;
    if length == 0 || length > LENGTH_MAX {
        let what = format!("an operation of {length} bytes");
        return Err((what, "give each operation 1 to 16777216 bytes"));
    }
    let pause_ns = ms.checked_mul(1_000_000).map(Ns);
    let pause_ns = pause_ns.ok_or_else(|| (format!("a pause of {ms} ms"), LINE))?;
    Ok(ReplayOp { at: Bytes(at), length: Bytes(length), pause_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let problem = parse("-X", "w.tel", text).unwrap_err();
        format!("{problem:?}")
    }

    #[test]
    fn lines_are_operations_and_comments_are_not() {
        let text = "# offset size delay_ms\n0 4096 1\n\n8192 4096 0\n4096 4096 2\n";
        let telemetry = parse("-X", "w.tel", text).unwrap();
        let seen: Vec<(u64, u64, u64)> = telemetry.ops.iter().map(|op| (*op).into()).collect();
        assert_eq!(seen, [(0, 4096, 1_000_000), (8192, 4096, 0), (4096, 4096, 2_000_000)]);
        assert_eq!((telemetry.file_bytes(), telemetry.length_max()), (12288, 4096));
        assert!(telemetry.has_times && telemetry.has_pauses());
    }

    #[test]
    fn a_line_that_is_none_is_named_with_its_file_and_number() {
        for (text, wanted) in [
            ("0 4096\nabc def\n", "w.tel, line 2: 'abc' is not an offset"),
            ("0 4096 1 5\n", "line 1: it has 4 words"),
            ("# head\n\n12\n", "line 3: it has 1 words"),
            ("0 0\n", "an operation of 0 bytes"),
            ("0 -1\n", "'-1' is not a length"),
            ("99999999999999999999 1\n", "is not an offset"),
            ("0 1 x\n", "'x' is not a number of milliseconds"),
            ("0 33554432\n", "1 to 16777216"),
            ("# nothing\n", "lists no operation"),
        ] {
            let found = refusal(text);
            assert!(found.contains(wanted), "{text}: {found}");
        }
    }

    #[test]
    fn compute_times_are_announced_as_the_original_announces_them() {
        let telemetry = |text: &str| Some(parse("-X", "w.tel", text).unwrap());
        let lines = |write: &str, read: &str| {
            Recorded { write: telemetry(write), read: telemetry(read) }.time_lines()
        };
        let [with, without] = ["0 4096 1", "0 4096"];
        assert_eq!(lines(without, without), Vec::<String>::new());
        assert_eq!(
            lines(with, without),
            ["No compute time for reads.", "Compute time from telemetry files for writes."]
        );
        assert_eq!(lines(without, with)[1], "No compute time for writes.");
    }
}

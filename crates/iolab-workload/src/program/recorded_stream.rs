//! Reading a recorded stream: one line in memory at a time, each checked, errors with their line.
//!
//! iolab's own format begins with the line `iolab recorded stream 1`. Each other line is
//! `TIME DOES FILE [AT LENGTH] [after NUMBER ...]`: nanoseconds since the beginning; read, write,
//! fsync, fdatasync or discard; number of the file in its set, from 0; first byte and bytes, unless
//! it is a flush; numbers of earlier operations, from 1, that must have ended before. Empty lines
//! and lines that begin with `#` mean nothing. Of fio's iologs, files are numbered in the order in
//! which they are named first; of recordings of devices, devices. Left out: compressed files.

use std::io::BufRead;

use iolab_model::iolog::{Action, Line as IologLine, Version};
use iolab_model::{Bytes, Ns};

use super::deed::Deed;
use super::recorded::{RECORDED_DEEDS, Recorded, RecordedContent, RecordedFormat};
use super::recorded_blktrace as blktrace;
use super::recorded_identity::{RecordedIdentity, Summed};

/// First line of a recorded stream in iolab's own format.
pub const RECORDED_TITLE: &str = "iolab recorded stream 1";
/// Longest line; a longer one is no operation.
const LINE_MAX: u64 = 8192;
/// Files that a stream may name: a worker keeps them all open.
pub const RECORDED_FILES_MAX: u64 = 512;
/// Earlier operations that one may wait for.
const AFTER_MAX: usize = 16;

/// An operation of a recorded stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedOp {
    /// Line of the file, or record of a binary one, from 1.
    pub line: u64,
    /// Its number in the stream, from 1.
    pub number: u64,
    /// Time of its begin, since the beginning of the stream.
    pub time: Ns,
    /// Deed: one of [`RECORDED_DEEDS`].
    pub does: Deed,
    /// Number of the file in its set.
    pub file: u32,
    /// First byte; 0 of a flush.
    pub at: u64,
    /// Bytes; 0 of a flush.
    pub length: u64,
    /// Numbers of the operations that must have ended before.
    pub after: Vec<u64>,
}

/// Operations as a worker takes them; an error is a line that is none, in words.
pub type RecordedStream = Box<dyn Iterator<Item = Result<RecordedOp, String>>>;

/// Reads a recorded stream; ends behind the first error.
#[derive(Debug)]
pub struct RecordedReader<R> {
    from: Summed<R>,
    /// The recording, and what of it is done.
    recorded: Recorded,
    /// Of an iolog, once its first line was read.
    version: Option<Version>,
    text: Vec<u8>,
    line: u64,
    number: u64,
    now: Ns,
    /// Time of the first operation of a recording of devices, which is time 0.
    first: Option<u64>,
    /// Names of an iolog's files, in the order of their numbers; of devices their numbers.
    names: Vec<Vec<u8>>,
    /// Identity that the whole file must have.
    expected: Option<RecordedIdentity>,
    is_over: bool,
}

impl<R: BufRead> RecordedReader<R> {
    /// A reader of the operations of a file that are done.
    pub fn new(from: R, recorded: &Recorded) -> Self {
        Self {
            from: Summed::new(from),
            recorded: Recorded { content: None, ..recorded.clone() },
            version: None,
            text: Vec::new(),
            line: 0,
            number: 0,
            now: Ns(0),
            first: None,
            names: Vec::new(),
            expected: None,
            is_over: false,
        }
    }

    /// The same, which complains at its end if the file is another one than `content` tells of.
    #[must_use]
    pub fn expecting(mut self, content: &RecordedContent) -> Self {
        self.expected = Some(content.identity.clone());
        self
    }

    /// Names of an iolog's files that occurred so far, in the order of their numbers.
    pub fn names(&self) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
        self.names.iter().map(|name| String::from_utf8_lossy(name))
    }

    /// Reads the next line that is not empty; false: there is none.
    fn read_line(&mut self) -> Result<bool, String> {
        loop {
            self.text.clear();
            let mut limited = std::io::Read::take(&mut self.from, LINE_MAX);
            let read = limited.read_until(b'\n', &mut self.text);
            if read.map_err(|error| format!("it cannot be read: {error}"))? == 0 {
                return Ok(false);
            }
            self.line += 1;
            if self.text.len() as u64 == LINE_MAX && self.text.last() != Some(&b'\n') {
                return Err(format!("it is longer than {LINE_MAX} bytes"));
            }
            if self.text.contains(&0) {
                return Err("it has a byte 0: this is no text".to_owned());
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// Next operation that is done.
    fn next_op(&mut self) -> Result<Option<RecordedOp>, String> {
        while let Some(mut op) = self.any_op()? {
            if self.recorded.skip.contains(&op.does) {
                continue;
            }
            let unit = self.recorded.at_unit_bytes.get();
            op.at = op.at / self.recorded.at_divisor.get() / unit * unit;
            if self.recorded.is_one_file {
                op.file = 0;
            }
            return Ok(Some(op));
        }
        let found = self.from.identity();
        match &self.expected {
            Some(expected) if *expected != found => Err(format!(
                "the file ends here, and is another one ({found}) than when the trial was planned \
                 ({expected}); plan it anew"
            )),
            _ => Ok(None),
        }
    }

    /// Next operation of the file.
    fn any_op(&mut self) -> Result<Option<RecordedOp>, String> {
        if self.recorded.format == RecordedFormat::Blktrace {
            return self.queued_op();
        }
        if self.line == 0 {
            self.read_title()?;
        }
        while self.read_line()? {
            let text = std::mem::take(&mut self.text);
            let op = match self.version {
                Some(version) => self.iolog_op(version, text.trim_ascii())?,
                None => self.own_op(text.trim_ascii())?,
            };
            self.text = text;
            if op.is_some() {
                return Ok(op);
            }
        }
        Ok(None)
    }

    /// Next operation of a recording of devices.
    fn queued_op(&mut self) -> Result<Option<RecordedOp>, String> {
        let Some(queued) = blktrace::next(&mut self.from, &mut self.line)? else {
            return Ok(None);
        };
        let first = *self.first.get_or_insert(queued.time_ns);
        // Events of several CPUs may be out of order by a little.
        self.now = self.now.max(Ns(queued.time_ns.saturating_sub(first)));
        let file = self.file_number(&queued.device.to_le_bytes())?;
        Ok(Some(self.op((queued.does, file), (queued.at, queued.length), Vec::new())))
    }

    /// The first line, which tells the format.
    fn read_title(&mut self) -> Result<(), String> {
        let has_line = self.read_line()?;
        self.line = self.line.max(1);
        let title = self.text.trim_ascii();
        match self.recorded.format {
            RecordedFormat::Iolab if has_line && title == RECORDED_TITLE.as_bytes() => Ok(()),
            RecordedFormat::Iolab if Version::of(title).is_some() => {
                Err("this is fio's iolog; write format = \"iolog\"".to_owned())
            }
            RecordedFormat::Iolab => Err(format!("it is not '{RECORDED_TITLE}'")),
            RecordedFormat::Iolog | RecordedFormat::Blktrace => {
                self.version = Version::of(title);
                let problem = "it is neither 'fio version 2 iolog' nor 'fio version 3 iolog'";
                self.version.map(|_| ()).ok_or_else(|| problem.to_owned())
            }
        }
    }

    fn own_op(&mut self, text: &[u8]) -> Result<Option<RecordedOp>, String> {
        if text.starts_with(b"#") {
            return Ok(None);
        }
        let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8")?;
        let mut words = text.split_ascii_whitespace();
        let time = number("TIME", words.next())?;
        let does = words.next().ok_or("DOES is missing")?;
        let known = RECORDED_DEEDS.into_iter().find(|known| known.name() == does);
        let does = known.ok_or_else(|| {
            let names = RECORDED_DEEDS.map(Deed::name).join(", ");
            format!("'{}' is none of {names}", does.escape_debug())
        })?;
        let file = number("FILE", words.next())?;
        if file >= RECORDED_FILES_MAX {
            return Err(format!("FILE is {file}: a stream has at most {RECORDED_FILES_MAX} files"));
        }
        let (at, length) = if does.has_range() {
            (number("AT", words.next())?, number("LENGTH", words.next())?)
        } else {
            (0, 0)
        };
        if does.has_range() && (length == 0 || at.checked_add(length).is_none()) {
            return Err("LENGTH is 0, or its end is beyond any file".to_owned());
        }
        if time < self.now.0 {
            return Err("TIME is before that of the operation in front of it".to_owned());
        }
        self.now = Ns(time);
        let after = self.after(words)?;
        Ok(Some(self.op((does, file as u32), (at, length), after)))
    }

    /// Words behind the place: `after NUMBER ...`, or nothing.
    fn after<'a>(&self, mut words: impl Iterator<Item = &'a str>) -> Result<Vec<u64>, String> {
        match words.next() {
            None => return Ok(Vec::new()),
            Some("after") => {}
            Some(word) => {
                let word: String = word.chars().take(40).collect();
                return Err(format!("'{}' where `after` could stand", word.escape_debug()));
            }
        }
        let mut after = Vec::new();
        for word in words {
            let earlier = number("the number behind `after`", Some(word))?;
            if earlier == 0 || earlier > self.number {
                let problem = "is no earlier operation (the first one is 1)";
                return Err(format!("{earlier} behind `after` {problem}"));
            }
            after.push(earlier);
        }
        match after.len() {
            0 => Err("no number behind `after`".to_owned()),
            count if count > AFTER_MAX => {
                Err(format!("it waits for more than {AFTER_MAX} operations"))
            }
            _ => Ok(after),
        }
    }

    fn iolog_op(&mut self, version: Version, text: &[u8]) -> Result<Option<RecordedOp>, String> {
        let line = IologLine::decode(version, text)?;
        if let Some(us) = line.us {
            if us < self.now.0 / 1000 {
                return Err("its time is before that of the line in front of it".to_owned());
            }
            self.now = Ns(us * 1000);
        }
        let (does, at, length) = match line.action {
            Action::Wait(us) => {
                let later = self.now.0.checked_add(us * 1000);
                self.now = Ns(later.ok_or("its time is beyond any recording")?);
                return Ok(None);
            }
            Action::Add | Action::Open | Action::Close => {
                self.file_number(line.file)?;
                return Ok(None);
            }
            Action::Read(at, length) => (Deed::Read, at, length),
            Action::Write(at, length) => (Deed::Write, at, length),
            Action::Trim(at, length) => (Deed::Discard, at, length),
            Action::Sync => (Deed::Fsync, 0, 0),
            Action::DataSync => (Deed::Fdatasync, 0, 0),
            Action::SyncFileRange => return Err("'sync_file_range' is not done again".to_owned()),
        };
        let file = self.file_number(line.file)?;
        Ok(Some(self.op((does, file), (at, length), Vec::new())))
    }

    /// Number of an iolog's file; its name is compared and used for nothing else.
    fn file_number(&mut self, name: &[u8]) -> Result<u32, String> {
        if let Some(known) = self.names.iter().position(|known| known == name) {
            return Ok(known as u32);
        }
        if self.names.len() as u64 >= RECORDED_FILES_MAX {
            return Err(format!("a stream has at most {RECORDED_FILES_MAX} files"));
        }
        self.names.push(name.to_vec());
        Ok(self.names.len() as u32 - 1)
    }

    fn op(
        &mut self,
        (does, file): (Deed, u32),
        (at, length): (u64, u64),
        after: Vec<u64>,
    ) -> RecordedOp {
        self.number += 1;
        let (line, number, time) = (self.line, self.number, self.now);
        RecordedOp { line, number, time, does, file, at, length, after }
    }
}

impl<R: BufRead> Iterator for RecordedReader<R> {
    type Item = Result<RecordedOp, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let is_text = self.recorded.format != RecordedFormat::Blktrace;
        let place = if is_text { "line" } else { "record" };
        let found = self.next_op().map_err(|why| format!("{place} {}: {why}", self.line));
        let found = found.transpose();
        self.is_over = !matches!(found, Some(Ok(_)));
        found
    }
}

fn number(what: &str, word: Option<&str>) -> Result<u64, String> {
    let word = word.ok_or_else(|| format!("{what} is missing"))?;
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
    let value = word.parse().ok().filter(|_| is_plain);
    value.ok_or_else(|| format!("{what} is no whole number below 2^64"))
}

impl RecordedContent {
    /// Reads a whole stream and sums it up.
    ///
    /// # Errors
    ///
    /// The first line that is no operation, with its number; a stream without an operation.
    pub fn of(from: impl BufRead, recorded: &Recorded) -> Result<Self, String> {
        Self::of_all(&mut RecordedReader::new(from, recorded))
    }

    /// The same of a reader, which then knows the names of the files.
    ///
    /// # Errors
    ///
    /// As those of [`Self::of`].
    pub fn of_all<R: BufRead>(reader: &mut RecordedReader<R>) -> Result<Self, String> {
        let mut found = Self { least_bytes: Bytes(u64::MAX), ..Self::default() };
        for op in reader.by_ref() {
            found.add(&op?)?;
        }
        if found.ops == 0 {
            return Err("there is no operation in it".to_owned());
        }
        found.least_bytes = found.least_bytes.min(found.most_bytes);
        if !reader.recorded.is_one_file {
            found.files = found.files.max(reader.names.len() as u64);
        }
        found.identity = reader.from.identity();
        Ok(found)
    }

    fn add(&mut self, op: &RecordedOp) -> Result<(), String> {
        self.ops += 1;
        self.files = self.files.max(u64::from(op.file) + 1);
        self.duration_ns = op.time;
        if !self.does.contains(&op.does) {
            self.does.push(op.does);
        }
        if !op.does.has_range() {
            return Ok(());
        }
        let sum = match op.does {
            Deed::Read => Some(&mut self.read_bytes),
            Deed::Write => Some(&mut self.written_bytes),
            _ => None,
        };
        if let Some(sum) = sum {
            let total = sum.0.checked_add(op.length);
            *sum = Bytes(total.ok_or_else(|| format!("line {}: 2^64 bytes in all", op.line))?);
        }
        self.least_bytes = self.least_bytes.min(Bytes(op.length));
        self.most_bytes = self.most_bytes.max(Bytes(op.length));
        self.end_bytes = self.end_bytes.max(Bytes(op.at + op.length));
        self.grain_bytes = Bytes(divisor(divisor(self.grain_bytes.0, op.at), op.length));
        Ok(())
    }
}

/// Greatest common divisor; that of 0 and a number is the number.
const fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(format: RecordedFormat) -> Recorded {
        Recorded::plain("/stream".into(), format, "data")
    }

    fn own(text: &str) -> Vec<Result<RecordedOp, String>> {
        let text = format!("{RECORDED_TITLE}\n{text}");
        RecordedReader::new(text.as_bytes(), &plain(RecordedFormat::Iolab)).collect()
    }

    fn iolog(text: &str) -> Vec<Result<RecordedOp, String>> {
        RecordedReader::new(text.as_bytes(), &plain(RecordedFormat::Iolog)).collect()
    }

    #[test]
    fn lines_become_operations() {
        let found = own("# a stream\n\n0 read 0 4096 512\n1500\twrite 1 0 8192 after 1\n\
                         1500 fsync 1 after 1 2\r\n2000 discard 0 0 512");
        let found: Vec<RecordedOp> = found.into_iter().map(Result::unwrap).collect();
        assert_eq!(found.len(), 4);
        assert_eq!((found[0].line, found[0].at, found[0].length), (4, 4096, 512));
        assert_eq!((found[1].number, found[1].time, &found[1].after[..]), (2, Ns(1500), &[1][..]));
        assert_eq!((found[2].does, &found[2].after[..]), (Deed::Fsync, &[1, 2][..]));
        assert_eq!((found[3].file, found[3].does), (0, Deed::Discard));
    }

    #[test]
    fn what_is_no_operation_is_told_by_its_line_and_ends_the_stream() {
        for (line, part) in [
            ("0 read 0 0", "line 3: LENGTH is missing"),
            ("0 reed 0 0 512", "'reed' is none of read, write, fsync"),
            ("0 open 0", "'open' is none of"),
            ("x read 0 0 512", "TIME is no whole number"),
            ("+1 read 0 0 512", "TIME is no whole number"),
            ("18446744073709551616 read 0 0 512", "TIME is no whole number"),
            ("0 read 0 0 512 after 3", "no earlier operation"),
            ("0 read 0 0 512 after 2", "no earlier operation"),
            ("0 read 0 0 512 after 0", "no earlier operation"),
            ("0 read 0 0 512 after", "no number behind"),
            ("0 read 0 0 512 1", "where `after` could stand"),
            ("0 fsync 0 0 0", "where `after` could stand"),
            ("0 read 0 0 0", "LENGTH is 0"),
            ("0 read 0 18446744073709551615 512", "beyond any file"),
            ("0 read 512 0 512", "at most 512 files"),
            ("0 read ../../etc/passwd 0 512", "FILE is no whole number"),
            ("0 read 0 0 512\0", "no text"),
        ] {
            let found = own(&format!("0 read 0 0 512\n{line}\n0 read 0 0 512\n"));
            assert_eq!(found.len(), 2, "{line}");
            let why = found[1].clone().unwrap_err();
            assert!(why.starts_with("line 3: ") && why.contains(part), "{line}: {why}");
        }
        let back = own("5 read 0 0 512\n4 read 0 0 512\n");
        assert!(back[1].clone().unwrap_err().contains("before that"));
        let long = own(&"0".repeat(9000));
        assert!(long[0].clone().unwrap_err().contains("line 2: it is longer than"));
    }

    #[test]
    fn the_first_line_tells_the_format() {
        let read =
            |text: &str, format| RecordedContent::of(text.as_bytes(), &plain(format)).unwrap_err();
        for (text, part) in [
            ("", "line 1: it is not 'iolab recorded stream 1'"),
            ("0 read 0 0 512\n", "line 1: it is not"),
            ("fio version 3 iolog\n", "format = \"iolog\""),
            (RECORDED_TITLE, "no operation in it"),
        ] {
            let why = read(text, RecordedFormat::Iolab);
            assert!(why.contains(part), "{text}: {why}");
        }
        assert!(read(RECORDED_TITLE, RecordedFormat::Iolog).contains("line 1: it is neither"));
    }

    #[test]
    fn iologs_of_several_files_are_read_with_their_times() {
        let third = "fio version 3 iolog\n0 /etc/passwd add\n0 b open\n100 b write 0 4096\n\
                     20000 /etc/passwd read 4096 8192\n60000 b sync 0 0\n125000 b close\n";
        let found: Vec<RecordedOp> = iolog(third).into_iter().map(Result::unwrap).collect();
        let short: Vec<_> = found.iter().map(|op| (op.time.0, op.does, op.file)).collect();
        let expected =
            [(100_000, Deed::Write, 1), (20_000_000, Deed::Read, 0), (60_000_000, Deed::Fsync, 1)];
        assert_eq!(short, expected);
        let second = "fio version 2 iolog\nd add\nd wait 1500 0\nd trim 512 512\nd wait 5 0\n\
                      d datasync\n";
        let found: Vec<RecordedOp> = iolog(second).into_iter().map(Result::unwrap).collect();
        let times: Vec<_> = found.iter().map(|op| (op.time.0, op.does)).collect();
        assert_eq!(times, [(1_500_000, Deed::Discard), (1_505_000, Deed::Fdatasync)]);
        let wrong = iolog("fio version 3 iolog\n5 d add\n4 d read 0 512\n");
        assert!(wrong[0].clone().unwrap_err().starts_with("line 3: its time is before"));
        let wrong = iolog("fio version 3 iolog\n0 d jump\n");
        assert!(wrong[0].clone().unwrap_err().starts_with("line 2: 'jump'"));
    }

    #[test]
    fn a_stream_is_summed_up_and_known_again() {
        let text = format!(
            "{RECORDED_TITLE}\n0 read 2 4096 512\n7 write 0 8192 1536\n9 fsync 0\n9 discard 1 0 512"
        );
        let content = RecordedContent::of(text.as_bytes(), &plain(RecordedFormat::Iolab)).unwrap();
        assert_eq!((content.ops, content.files), (4, 3));
        assert_eq!((content.read_bytes, content.written_bytes), (Bytes(512), Bytes(1536)));
        assert_eq!((content.least_bytes, content.most_bytes), (Bytes(512), Bytes(1536)));
        assert_eq!((content.grain_bytes, content.end_bytes), (Bytes(512), Bytes(9728)));
        assert_eq!(content.duration_ns, Ns(9));
        let again = |text: &str| -> Option<String> {
            let reader = RecordedReader::new(text.as_bytes(), &plain(RecordedFormat::Iolab));
            reader.expecting(&content).find_map(Result::err)
        };
        assert_eq!(again(&text), None);
        let why = again(&text.replace("4096", "5120")).unwrap();
        assert!(why.contains("another one (") && why.contains("the trial was planned"), "{why}");
    }

    #[test]
    fn operations_may_be_left_out_moved_and_put_on_one_file() {
        let text = format!(
            "{RECORDED_TITLE}\n0 read 2 10000 512\n7 write 0 8192 1536\n9 fsync 1 after 2\n"
        );
        let recorded = Recorded {
            skip: vec![Deed::Write],
            at_divisor: 2.try_into().unwrap(),
            at_unit_bytes: 512.try_into().unwrap(),
            is_one_file: true,
            ..plain(RecordedFormat::Iolab)
        };
        let found: Vec<_> =
            RecordedReader::new(text.as_bytes(), &recorded).map(Result::unwrap).collect();
        let short: Vec<_> = found.iter().map(|op| (op.number, op.does, op.file, op.at)).collect();
        assert_eq!(short, [(1, Deed::Read, 0, 4608), (3, Deed::Fsync, 0, 0)]);
        let content = RecordedContent::of(text.as_bytes(), &recorded).unwrap();
        assert_eq!((content.files, content.end_bytes, content.ops), (1, Bytes(5120), 2));
        let whole = RecordedIdentity::of(text.as_bytes()).unwrap();
        assert_eq!(content.identity, whole);
    }
}

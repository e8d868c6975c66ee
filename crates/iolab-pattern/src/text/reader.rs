//! Calls of a trace in one file or several, in the order in which they happened.

use std::collections::{HashMap, HashSet};

use iolab_trace::Error;
use iolab_trace::error::Caveat;
use iolab_trace::source::{Lines, Window, shown};
use iolab_trace::stages::text::duration;

use crate::calls::{CallEffect, effect_of};

use super::line::{CallText, Line, Stamp, parse};

/// Lines at the beginning by which a text is known as a trace of calls.
const LINES_LOOKED_AT: usize = 200;
/// Longest line: a call that submits a thousand requests has a hundred kilobytes.
const LINE_MAX: usize = 1 << 20;
/// Bytes that are kept of each end of a longer one, whose middle is data that was moved.
const KEPT_OF_LONG: usize = 1 << 12;
/// Most bytes of an escape within a text: `\x41`, `\101`.
const ESCAPE_BYTES: usize = 4;
const DAY_NS: u64 = 86_400 * 1_000_000_000;
/// Time by which a line goes back that is told: less is what a clock that is set right makes.
const BACK_NS: u64 = 100_000_000;
/// Calls at once that others interrupt: one of each thread, and no machine has more of them.
const BEGUN_MAX: usize = 1 << 13;
/// Bytes of the first part of such a call; longer ones are left out.
const BEGUN_BYTES_MAX: usize = 1 << 13;

/// Something that a task did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallDeed {
    /// A call, which is in [`Reader::call`].
    Call,
    /// A call began and others come before its end; only its name and the arguments so far are
    /// known.
    Begun,
    /// The task ended.
    Ended,
}

/// Place of a deed.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Process or thread; 0 if the text does not say.
    pub task: u32,
    /// Time of its beginning, if the text has times.
    pub begin_ns: Option<u64>,
    /// The deed.
    pub deed: CallDeed,
}

/// Tell whether a text that begins so is a trace of system calls.
pub fn knows(head: &[u8]) -> bool {
    let mut call = CallText::default();
    head.split(|byte| *byte == b'\n').take(LINES_LOOKED_AT).any(|line| match parse(line).1 {
        Line::Call(body) => call.parse(body).is_some() && call.outcome().is_some(),
        Line::Begun(_) => true,
        _ => false,
    })
}

/// Calls of all files.
pub struct Reader {
    files: Vec<FileReader>,
    /// File whose deed was given last.
    current: usize,
    is_started: bool,
}

impl Reader {
    /// Calls of files, which are one trace: `strace -ff` makes a file of each thread.
    pub fn new(windows: Vec<Window>) -> Self {
        let is_several = windows.len() > 1;
        let reader = |window| FileReader::new(window, is_several);
        Self { files: windows.into_iter().map(reader).collect(), current: 0, is_started: false }
    }

    /// Goes to the next deed.
    pub fn advance(&mut self) -> Result<Option<Moment>, Error> {
        if self.is_started {
            self.files[self.current].advance()?;
        } else {
            for file in &mut self.files {
                file.advance()?;
            }
            self.is_started = true;
        }
        // Without times the files come one after the other.
        let moments = self.files.iter().enumerate();
        let ready = moments.filter_map(|(index, file)| Some((index, file.moment?)));
        let next = ready.min_by_key(|(index, moment)| (moment.begin_ns.unwrap_or(0), *index));
        Ok(next.map(|(index, moment)| {
            self.current = index;
            moment
        }))
    }

    /// The call of the last deed.
    pub fn call(&self) -> &CallText {
        &self.files[self.current].call
    }

    /// True if the text is truss's.
    pub fn is_of_truss(&self) -> bool {
        self.files.iter().any(|file| file.is_of_truss)
    }

    /// Findings about lines.
    pub fn caveats(&self) -> Vec<Caveat> {
        self.files.iter().flat_map(FileReader::caveats).collect()
    }
}

/// Begun call of a task.
struct Begun {
    begin_ns: Option<u64>,
    body: Vec<u8>,
}

struct FileReader {
    lines: Lines,
    /// Task of all lines that name none.
    task: u32,
    /// The first process: on the terminal strace names it only while there are others.
    first: FirstTask,
    begun: HashMap<u32, Begun>,
    /// A call whose line ended before it did: a remark of strace came between.
    torn: Option<(Option<u32>, Option<u64>, Vec<u8>)>,
    clock: Clock,
    call: CallText,
    moment: Option<Moment>,
    is_of_truss: bool,
    strange: u64,
    first_strange: Option<Caveat>,
    /// Time by which the first line that goes back in time does so, where it is, and the number of
    /// such lines.
    back: Option<(Caveat, u64)>,
}

impl FileReader {
    fn new(window: Window, is_several: bool) -> Self {
        let ending = window.name().rsplit('.').next().and_then(|ending| ending.parse().ok());
        Self {
            lines: Lines::with_line_max(window, LINE_MAX),
            task: ending.filter(|_| is_several).unwrap_or(0),
            first: FirstTask::default(),
            begun: HashMap::new(),
            torn: None,
            clock: Clock::default(),
            call: CallText::default(),
            moment: None,
            is_of_truss: false,
            strange: 0,
            first_strange: None,
            back: None,
        }
    }

    fn advance(&mut self) -> Result<(), Error> {
        self.moment = None;
        while self.moment.is_none() && self.lines.advance()? {
            let long = if self.lines.is_cut() { Some(self.long_line()?) } else { None };
            let line = long.as_deref().unwrap_or_else(|| self.lines.line());
            let (line, attached) = without_remark(line);
            self.first.attached.extend(attached);
            let (front, content) = parse(&line);
            let task = if let Some(task) = front.task {
                self.first.resolved(task)
            } else {
                self.first.is_unnamed |= matches!(content, Line::Call(_));
                self.task
            };
            let before_ns = self.clock.now_ns;
            let begin_ns = front.stamp.map(|stamp| self.clock.at(stamp, self.is_of_truss));
            self.tell_back(before_ns.saturating_sub(self.clock.now_ns));
            self.is_of_truss |= front.is_truss;
            let deed = match content {
                Line::Call(body) => self.whole(task, begin_ns, body),
                Line::Begun(body) => self.begin(task, begin_ns, body),
                Line::Resumed(rest) => self.resume(task, rest),
                Line::Ended => {
                    self.begun.remove(&task);
                    Some((CallDeed::Ended, begin_ns))
                }
                Line::Remark => None,
                Line::Other => self.continued(task, &line),
            };
            self.moment = deed.map(|(deed, begin_ns)| Moment { task, begin_ns, deed });
        }
        Ok(())
    }

    /// Remembers that a line is from before the one before it: lines of a trace are printed in
    /// their order.
    fn tell_back(&mut self, back_ns: u64) {
        if back_ns < BACK_NS {
            return;
        }
        if let Some((_, count)) = &mut self.back {
            *count += 1;
            return;
        }
        let what = format!(
            "its time goes back by {}: if these are two traces, read each alone",
            duration(back_ns as f64)
        );
        self.back = Some((self.lines.caveat(what, false), 1));
    }

    /// A line that is too long to be kept, without most of its first text: data that was written.
    fn long_line(&mut self) -> Result<Vec<u8>, Error> {
        let mut line = self.lines.line()[..KEPT_OF_LONG].to_vec();
        // An escape that is cut is none.
        let last = line.len() - ESCAPE_BYTES;
        if let Some(at) = line[last..].iter().position(|byte| *byte == b'\\') {
            line.truncate(last + at);
        }
        let (mut tail, mut goes_on) = (Vec::new(), true);
        while goes_on {
            let piece = self.lines.line();
            tail.extend_from_slice(&piece[piece.len().saturating_sub(KEPT_OF_LONG)..]);
            tail.drain(..tail.len().saturating_sub(KEPT_OF_LONG));
            goes_on = self.lines.is_cut() && self.lines.advance()?;
        }
        if let Some(quote) = tail.iter().rposition(|byte| *byte == b'"') {
            line.extend_from_slice(b"\"...");
            line.extend_from_slice(
                tail[quote + 1..].strip_prefix(b"...").unwrap_or(&tail[quote + 1..]),
            );
        }
        Ok(line)
    }

    fn whole(
        &mut self,
        task: u32,
        begin_ns: Option<u64>,
        body: &[u8],
    ) -> Option<(CallDeed, Option<u64>)> {
        let is_whole = self.call.parse(body).is_some() && self.call.outcome().is_some();
        // One before it that no line went on with is lost.
        if let Some((.., lost)) = self.torn.take() {
            self.tell_strange(&lost);
        }
        if !is_whole {
            self.torn = Some((Some(task), begin_ns, body.to_vec()));
            return None;
        }
        self.is_of_truss |= self.call.is_of_truss();
        Some((CallDeed::Call, begin_ns))
    }

    fn begin(
        &mut self,
        task: u32,
        begin_ns: Option<u64>,
        body: &[u8],
    ) -> Option<(CallDeed, Option<u64>)> {
        if self.begun.len() < BEGUN_MAX && body.len() <= BEGUN_BYTES_MAX {
            self.begun.insert(task, Begun { begin_ns, body: body.to_vec() });
        }
        // The arguments so far tell what a new process shares.
        let mut closed = body.to_vec();
        closed.extend_from_slice(b") = ?");
        self.call.parse(&closed)?;
        Some((CallDeed::Begun, begin_ns))
    }

    fn resume(&mut self, task: u32, rest: &[u8]) -> Option<(CallDeed, Option<u64>)> {
        let Begun { begin_ns, mut body } = self.begun.remove(&task)?;
        // strace leaves out an argument that follows when it prints the first part up to it.
        body.extend_from_slice(rest);
        self.call.parse(&body)?;
        self.call.outcome()?;
        Some((CallDeed::Call, begin_ns))
    }

    /// A line that is no call of its own: the rest of one that was torn, or something strange.
    fn continued(&mut self, task: u32, line: &[u8]) -> Option<(CallDeed, Option<u64>)> {
        if let Some((torn, begin_ns, mut body)) = self.torn.take() {
            let task = torn.unwrap_or(task);
            body.extend_from_slice(line);
            if let Some(begun) = body.trim_ascii_end().strip_suffix(b"<unfinished ...>") {
                return self.begin(task, begin_ns, begun);
            }
            if self.call.parse(&body).is_some() && self.call.outcome().is_some() {
                return Some((CallDeed::Call, begin_ns));
            }
        }
        self.tell_strange(line);
        None
    }

    fn tell_strange(&mut self, line: &[u8]) {
        self.strange += 1;
        if self.first_strange.is_none() {
            let what = format!("it is no system call: {}", shown(line));
            self.first_strange = Some(self.lines.caveat(what, false));
        }
    }

    fn caveats(&self) -> Vec<Caveat> {
        let mut found: Vec<Caveat> = self.first_strange.clone().into_iter().collect();
        if let Some(caveat) = found.first_mut() {
            caveat.what.push_str(&more_lines(self.strange));
        }
        if let Some((mut caveat, count)) = self.back.clone() {
            caveat.what.push_str(&more_lines(count));
            found.push(caveat);
        }
        let is_transfer = |begun: &&Begun| {
            let name = begun.body.split(|byte| *byte == b'(').next().unwrap_or_default();
            matches!(effect_of(name), Some(CallEffect::Transfer(_)))
        };
        let cut_off = self.begun.values().filter(is_transfer).count();
        if cut_off > 0 {
            let what = match cut_off {
                1 => "one read or write had not ended and is not counted".to_owned(),
                many => format!("{many} reads or writes had not ended and are not counted"),
            };
            found.push(self.lines.caveat(what, false));
        }
        found
    }
}

/// Words for those of so many lines that are not the first one.
fn more_lines(count: u64) -> String {
    match count {
        0 | 1 => String::new(),
        2 => "; 1 more such line".to_owned(),
        _ => format!("; {} more such lines", count - 1),
    }
}

/// Number of the process that has none in its first lines.
#[derive(Default)]
struct FirstTask {
    /// Processes that strace said it was attached to: they are others.
    attached: HashSet<u32>,
    is_unnamed: bool,
    task: Option<u32>,
}

impl FirstTask {
    /// The task, or 0 if it is the first one.
    fn resolved(&mut self, task: u32) -> u32 {
        if self.is_unnamed && self.task.is_none() && !self.attached.contains(&task) {
            self.task = Some(task);
        }
        if self.task == Some(task) { 0 } else { task }
    }
}

/// A line without `strace: Process 12 attached`, which strace writes to the terminal at any time,
/// and the process that it names.
fn without_remark(line: &[u8]) -> (Vec<u8>, Option<u32>) {
    const BEGIN: &[u8] = b"strace: Process ";
    const END: &[u8] = b" attached";
    let found =
        line.strip_suffix(END).and_then(|rest| Some((rest, super::scan::find(rest, BEGIN)?)));
    match found {
        Some((rest, at)) => {
            let task = super::scan::number(&rest[at + BEGIN.len()..]);
            (line[..at].to_vec(), task.and_then(|task| u32::try_from(task).ok()))
        }
        None => (line.to_vec(), None),
    }
}

/// Times as they are printed, turned into times since one beginning.
#[derive(Default)]
struct Clock {
    now_ns: u64,
    days_ns: u64,
}

impl Clock {
    fn at(&mut self, stamp: Stamp, is_of_truss: bool) -> u64 {
        self.now_ns = match stamp {
            Stamp::At(ns) => ns,
            // `truss -d` counts from its beginning.
            Stamp::Since(ns) if is_of_truss => ns,
            Stamp::Since(ns) => self.now_ns.saturating_add(ns),
            Stamp::OfDay(ns) => {
                let at = ns.saturating_add(self.days_ns);
                if at.saturating_add(DAY_NS / 2) < self.now_ns {
                    self.days_ns += DAY_NS;
                    at.saturating_add(DAY_NS)
                } else {
                    at
                }
            }
        };
        self.now_ns
    }
}

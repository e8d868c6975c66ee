//! A line of strace or truss, taken apart.

use super::scan;

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// Returned this.
    Done(i64),
    /// Failed, or nobody knows what it returned.
    Failed,
}

/// A call as it stands in a line, or in two of them if others came between.
#[derive(Clone, Debug, Default)]
pub struct CallText {
    /// Time of the call as it is printed.
    pub stamp: Option<Stamp>,
    /// From the name of the call on.
    pub body: Vec<u8>,
    /// Length of the name.
    name: usize,
    /// Arguments, as ranges behind the parenthesis.
    arguments: Vec<(usize, usize)>,
    /// Index of the closing parenthesis.
    close: usize,
}

/// Time in front of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// Since some beginning.
    At(u64),
    /// Since midnight.
    OfDay(u64),
    /// Since the call before.
    Since(u64),
}

/// Contents of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A call from its name on.
    Call(&'a [u8]),
    /// The first part of a call, up to where others came between.
    Begun(&'a [u8]),
    /// The second part of a call, behind its name.
    Resumed(&'a [u8]),
    /// The process ended.
    Ended,
    /// Something that is no call: a signal, a remark.
    Remark,
    /// Nothing that strace or truss prints.
    Other,
}

/// Text in front of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Front {
    /// Process or thread.
    pub task: Option<u32>,
    /// Time.
    pub stamp: Option<Stamp>,
    /// True if only truss writes it so.
    pub is_truss: bool,
}

const NS: u64 = 1_000_000_000;
/// Linux has no larger number of a process (`PID_MAX_LIMIT` of include/linux/threads.h).
const TASK_MAX: u64 = 1 << 22;
const UNFINISHED: &[u8] = b"<unfinished ...>";
const SLEEPING: &[u8] = b"(sleeping...)";

/// Takes a line apart.
pub fn parse(line: &[u8]) -> (Front, Line<'_>) {
    let (front, rest) = front(line);
    (front, content(rest))
}

fn content(rest: &[u8]) -> Line<'_> {
    if let Some(resumed) = rest.strip_prefix(b"<... ") {
        return match scan::find(resumed, b" resumed>") {
            Some(at) => Line::Resumed(&resumed[at + b" resumed>".len()..]),
            None => Line::Remark,
        };
    }
    if rest.starts_with(b"+++ exited") || rest.starts_with(b"+++ killed") {
        return Line::Ended;
    }
    if [&b"---"[..], b"+++", b"strace: ", b"Base time", b"Received signal", b"Incurred fault"]
        .iter()
        .any(|remark| rest.starts_with(remark))
        || rest.is_empty()
    {
        return Line::Remark;
    }
    let name = name_length(rest);
    if name == 0 || rest.get(name) != Some(&b'(') {
        return Line::Other;
    }
    let trimmed = rest.trim_ascii_end();
    if trimmed.ends_with(SLEEPING) {
        // truss prints the call once more when it returns.
        return Line::Remark;
    }
    match trimmed.strip_suffix(UNFINISHED) {
        Some(begun) => Line::Begun(begun),
        None => Line::Call(rest),
    }
}

fn name_length(text: &[u8]) -> usize {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    match text.first() {
        Some(first) if first.is_ascii_alphabetic() || *first == b'_' => {
            text.iter().take_while(is_part).count()
        }
        _ => 0,
    }
}

/// Process and time in front of a call: all that the options of both programs put there.
fn front(line: &[u8]) -> (Front, &[u8]) {
    let mut front = Front::default();
    let mut rest = line.trim_ascii_start();
    let bracket = rest.strip_prefix(b"[pid ");
    if let Some((number, behind)) = bracket.and_then(|inner| cut_at(inner, b']')) {
        front.task = whole(number.trim_ascii()).and_then(|(number, _)| as_task(number));
        rest = behind.trim_ascii_start();
    }
    loop {
        let (word, behind) = word_of(rest);
        if let Some(process) = truss_task(word) {
            let process = whole(process).and_then(|(number, _)| u32::try_from(number).ok());
            front.task = process.or(front.task);
            front.is_truss = true;
        } else if let Some(stamp) = stamp(word) {
            // `-r` beside `-t` prints both; the absolute one is kept.
            front.stamp = front.stamp.or(Some(stamp));
        } else if let Some((number, [])) = whole(word) {
            match as_task(number) {
                Some(task) if front.task.is_none() && front.stamp.is_none() => {
                    front.task = Some(task);
                }
                _ => front.stamp = front.stamp.or(number.checked_mul(NS).map(Stamp::At)),
            }
        } else if let Some((number, _)) = whole(word).filter(|(_, rest)| is_named(rest)) {
            // `-Y`: `4711<cat>`.
            front.task = front.task.or(as_task(number));
        } else if word.starts_with(b"[") {
            // `-i`, `-n`: an address, or the number of the call.
            match cut_at(rest, b']') {
                Some((_, behind)) => {
                    rest = behind.trim_ascii_start();
                    continue;
                }
                None => return (front, rest),
            }
        } else if word == b"(+" {
            // `(+     0.000123)`, behind a time of the day.
            rest = cut_at(behind, b')').map_or(behind, |(_, rest)| rest.trim_ascii_start());
            continue;
        } else {
            return (front, rest);
        }
        rest = behind;
    }
}

fn word_of(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii_start())
}

/// A decimal number and what follows it.
fn whole(text: &[u8]) -> Option<(u64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&text[..length]).ok()?.parse().ok()?;
    Some((number, &text[length..]))
}

fn as_task(number: u64) -> Option<u32> {
    if number <= TASK_MAX { u32::try_from(number).ok() } else { None }
}

/// True of what `-Y` prints behind a process: the name of its program.
fn is_named(rest: &[u8]) -> bool {
    rest.len() > 2 && rest.starts_with(b"<") && rest.ends_with(b">")
}

/// The parts before and behind a byte.
fn cut_at(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|one| *one == byte)?;
    Some((&text[..at], &text[at + 1..]))
}

/// The process of `12:` or `12/3:` or `/3:` of truss, where 3 is a thread; the last one names none.
fn truss_task(word: &[u8]) -> Option<&[u8]> {
    let inner = word.strip_suffix(b":")?;
    let mut parts = inner.split(|byte| *byte == b'/');
    let process = parts.next()?;
    let thread = parts.next();
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if parts.next().is_some()
        || thread.is_some_and(|thread| !is_number(thread))
        || !(is_number(process) || (process.is_empty() && thread.is_some()))
    {
        return None;
    }
    Some(process)
}

/// `12.345`, `13:24:17`, `13:24:17.000123`.
fn stamp(word: &[u8]) -> Option<Stamp> {
    let (first, rest) = whole(word)?;
    if let Some(rest) = rest.strip_prefix(b":") {
        let (minutes, rest) = whole(rest)?;
        let (seconds, rest) = whole(rest.strip_prefix(b":")?)?;
        let fraction = if rest.is_empty() { 0 } else { fraction_ns(rest)? };
        let of_day = first.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)?;
        return Some(Stamp::OfDay(
            of_day.checked_add(seconds)?.checked_mul(NS)?.checked_add(fraction)?,
        ));
    }
    let ns = first.checked_mul(NS)?.checked_add(fraction_ns(rest)?)?;
    // An epoch is far from the short times that follow each other.
    Some(if first > 100_000_000 { Stamp::At(ns) } else { Stamp::Since(ns) })
}

/// `.000123` in nanoseconds.
fn fraction_ns(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b".")?;
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    let (number, rest) = whole(digits)?;
    let missing = 9 - u32::try_from(digits.len()).ok()?;
    rest.is_empty().then(|| number * 10_u64.pow(missing))
}

/// Words behind a call up to the name of its error: `= -1 EIO`.
const WORDS_TO_ERROR: usize = 3;

impl CallText {
    /// Takes a whole call apart; None if it does not end.
    pub fn parse(&mut self, body: &[u8]) -> Option<()> {
        self.body.clear();
        self.body.extend_from_slice(body);
        self.name = name_length(&self.body);
        let begin = self.name + 1;
        let close = scan::split(self.body.get(begin..)?, &mut self.arguments)?;
        for range in &mut self.arguments {
            *range = (range.0 + begin, range.1 + begin);
        }
        self.close = begin + close;
        Some(())
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.body[..self.name]
    }

    /// Number of arguments.
    pub fn count(&self) -> usize {
        self.arguments.len()
    }

    /// An argument, without blanks around it; empty if there is none.
    pub fn argument(&self, index: usize) -> &[u8] {
        let range = self.arguments.get(index);
        range.map_or(&b""[..], |(begin, end)| self.body[*begin..*end].trim_ascii())
    }

    /// All arguments as one text.
    pub fn arguments(&self) -> &[u8] {
        &self.body[self.name..self.close]
    }

    fn behind(&self) -> &[u8] {
        self.body[self.close + 1..].trim_ascii()
    }

    /// Result of the call; None if nothing behind it is one.
    pub fn outcome(&self) -> Option<CallOutcome> {
        let behind = self.behind();
        if behind.starts_with(b"Err#") {
            return Some(CallOutcome::Failed);
        }
        // truss: `fork()  (returning as child ...)  = 12`.
        let at = if behind.starts_with(b"=") { 0 } else { scan::find(behind, b" = ")? + 1 };
        let value = behind[at + 1..].trim_ascii();
        Some(match scan::number(value) {
            Some(value) if value >= 0 => CallOutcome::Done(value),
            // An address above 2^63 is a result, too, but none that is needed.
            None if value.starts_with(b"0x") => CallOutcome::Done(0),
            _ => CallOutcome::Failed,
        })
    }

    /// Name of the error of a call that failed: behind `= -1 ` of strace; of truss `Err#5 EIO`.
    pub fn error(&self) -> Option<&[u8]> {
        let is_name = |word: &&[u8]| {
            word.len() > 1 && word.iter().all(u8::is_ascii_uppercase) && word[0] == b'E'
        };
        self.behind().split(u8::is_ascii_whitespace).take(WORDS_TO_ERROR).find(is_name)
    }

    /// Path that `-y` prints behind the result.
    pub fn outcome_path(&self) -> Option<Vec<u8>> {
        let behind = self.behind();
        let value = behind.strip_prefix(b"=")?.trim_ascii();
        let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if value.get(digits) == Some(&b'<') { scan::path(value) } else { None }
    }

    /// Duration that `-T` prints at the end.
    pub fn duration_ns(&self) -> Option<u64> {
        let inner = self.body.trim_ascii_end().strip_suffix(b">")?;
        let at = inner.iter().rposition(|byte| *byte == b'<')?;
        let (seconds, rest) = whole(&inner[at + 1..])?;
        seconds.checked_mul(NS)?.checked_add(fraction_ns(rest)?)
    }

    /// True if the call looks as only truss prints it.
    pub fn is_of_truss(&self) -> bool {
        self.behind().starts_with(b"Err#") || self.body.get(self.close + 1) == Some(&b'\t')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front_of(line: &str) -> (Option<u32>, Option<Stamp>) {
        let (front, line) = parse(line.as_bytes());
        assert_eq!(line, Line::Call(b"close(3) = 0"));
        (front.task, front.stamp)
    }

    #[test]
    fn process_and_time_are_read_however_they_are_printed() {
        let call = "close(3) = 0";
        let of = |front: &str| front_of(&format!("{front}{call}"));
        assert_eq!(of(""), (None, None));
        assert_eq!(of("4711 "), (Some(4711), None));
        assert_eq!(of("[pid 4711] "), (Some(4711), None));
        assert_eq!(
            of("[pid     7] 1795171388.5 "),
            (Some(7), Some(Stamp::At(1_795_171_388_500_000_000)))
        );
        assert_eq!(of("7 1795171388 "), (Some(7), Some(Stamp::At(1_795_171_388_000_000_000))));
        assert_eq!(of("1795171388 "), (None, Some(Stamp::At(1_795_171_388_000_000_000))));
        assert_eq!(of("7      0.000120 "), (Some(7), Some(Stamp::Since(120_000))));
        assert_eq!(of("13:24:17.25 "), (None, Some(Stamp::OfDay(48_257_250_000_000))));
        assert_eq!(
            of("13:24:17 (+     0.000020) "),
            (None, Some(Stamp::OfDay(48_257_000_000_000)))
        );
        assert_eq!(of("4711<cat> "), (Some(4711), None));
        assert_eq!(of("7 [00007f3332963000] "), (Some(7), None));
        assert_eq!(of("7 [ 257] "), (Some(7), None));
        assert_eq!(of("12/3:\t 0.5000 "), (Some(12), Some(Stamp::Since(500_000_000))));
        assert_eq!(of("/1:\t"), (None, None));
    }

    #[test]
    fn a_call_has_arguments_a_result_and_a_duration() {
        let mut call = CallText::default();
        call.parse(br#"pread64(3</a>, "\0"..., 4096, 32768) = 4096 <0.000012>"#).unwrap();
        assert_eq!(call.name(), b"pread64");
        assert_eq!((call.count(), call.argument(3)), (4, &b"32768"[..]));
        assert_eq!(call.outcome(), Some(CallOutcome::Done(4096)));
        assert_eq!(call.duration_ns(), Some(12_000));
        call.parse(b"open(\"x\", O_RDONLY) = -1 ENOENT (No such file)").unwrap();
        assert_eq!(call.outcome(), Some(CallOutcome::Failed));
        call.parse(b"openat(AT_FDCWD, \"x\", 0) = 3</tmp/x>").unwrap();
        assert_eq!(call.outcome_path(), Some(b"/tmp/x".to_vec()));
        call.parse(b"lseek(3, 0x0D780000, SEEK_SET)\t\t= 0x0D780000").unwrap();
        assert_eq!(call.outcome(), Some(CallOutcome::Done(225_968_128)));
        assert!(call.is_of_truss());
        call.parse(b"open(\"x\", O_RDONLY)\t\t\tErr#2 ENOENT").unwrap();
        assert_eq!(call.outcome(), Some(CallOutcome::Failed));
        call.parse(b"read(4, 0x5, 1) = ? ERESTARTSYS (To be restarted)").unwrap();
        assert_eq!(call.outcome(), Some(CallOutcome::Failed));
    }

    #[test]
    fn what_is_no_call_is_told_apart() {
        let of = |line: &'static str| parse(line.as_bytes()).1;
        assert_eq!(of("7 +++ exited with 0 +++"), Line::Ended);
        assert_eq!(of("--- SIGALRM {si_signo=SIGALRM} ---"), Line::Remark);
        assert_eq!(of("read(0, 0x08047B38, 1)\t(sleeping...)"), Line::Remark);
        assert_eq!(of("7 read(4,  <unfinished ...>"), Line::Begun(b"read(4,  "));
        assert_eq!(of("7 <... read resumed>\"x\", 1) = 1"), Line::Resumed(b"\"x\", 1) = 1"));
        assert_eq!(of("once upon a time"), Line::Other);
    }
}

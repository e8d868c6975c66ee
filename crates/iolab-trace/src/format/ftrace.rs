//! Text of the kernel's block events: `trace` and `trace_pipe` of tracefs, `trace-cmd report`,
//! `perf script`.
//!
//! Source: the `print fmt` of Linux `include/trace/events/block.h`, 4.18 to 6.18, and recorded
//! text. Times have microseconds. Plugs have no device in this text; they get the one of the event
//! before. `block_io_start`, `block_io_done` and events of other subsystems are left out.

use super::fields::{Cursor, bytes_of};
use super::text::{Line, State, TextFormat};
use crate::event::{Action, Categories, Device, Event, Remap};

/// The format.
#[derive(Default)]
pub struct Ftrace {
    latest: Device,
    left_out: u64,
    lost: u64,
}

/// Events of the kernel and what they are here.
const EVENTS: &[(&[u8], Action)] = &[
    (b"block_bio_queue", Action::Queued),
    (b"block_getrq", Action::Got),
    (b"block_sleeprq", Action::Slept),
    (b"block_rq_insert", Action::Inserted),
    (b"block_rq_issue", Action::Issued),
    (b"block_rq_complete", Action::Completed),
    (b"block_bio_complete", Action::Completed),
    (b"block_rq_requeue", Action::Requeued),
    (b"block_bio_backmerge", Action::BackMerged),
    (b"block_bio_frontmerge", Action::FrontMerged),
    (b"block_rq_merge", Action::Joined),
    (b"block_split", Action::Split),
    (b"block_bio_remap", Action::Remapped),
    (b"block_rq_remap", Action::Remapped),
    (b"block_bio_bounce", Action::Bounced),
    (b"block_plug", Action::Plugged),
    (b"block_unplug", Action::Unplugged),
];

/// Tell whether a line is one of an event, or of the head of a trace.
pub fn is_line(line: &[u8]) -> bool {
    line.starts_with(b"# tracer: ") || Head::of(line).is_some()
}

/// Task, CPU, time and name of an event.
struct Head<'a> {
    name: &'a [u8],
    pid: u32,
    cpu: u32,
    time_ns: u64,
    event: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Head<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        // A task's name may hold anything: the CPU is the last bracket of digits before the event.
        let at = find(line, b": block_").or_else(|| find(line, b" block:block_"))?;
        let (before, rest) = (&line[..at], &line[at + 1..]);
        let begin = before.iter().rposition(|byte| *byte == b'[')?;
        let mut place = Cursor(&before[begin + 1..]);
        let cpu = u32::try_from(place.number()?).ok()?;
        place.byte(b']')?;
        let time = place.0.rsplit(|byte| *byte == b' ').find(|word| !word.is_empty())?;
        let time_ns = Cursor(time.strip_suffix(b":").unwrap_or(time)).seconds()?;
        let task = trim(&before[..begin]);
        let task = match task.strip_suffix(b")") {
            Some(task) => trim(&task[..task.iter().rposition(|byte| *byte == b'(')?]),
            None => task,
        };
        let split = task.iter().rposition(|byte| matches!(byte, b'-' | b' '))?;
        let pid = u32::try_from(super::fields::number(&task[split + 1..])?).ok()?;
        let mut rest = Cursor(rest);
        let word = rest.word()?;
        let word = word.strip_prefix(b"block:").unwrap_or(word);
        let event = word.strip_suffix(b":")?;
        Some(Self { name: trim(&task[..split]), pid, cpu, time_ns, event, rest: rest.0 })
    }
}

fn find(line: &[u8], wanted: &[u8]) -> Option<usize> {
    line.windows(wanted.len()).position(|window| window == wanted)
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

impl TextFormat for Ftrace {
    const IS_STRICT: bool = false;

    fn line(&mut self, line: &[u8], event: &mut Event, state: &mut State) -> Line {
        if line.starts_with(b"#") || line.is_empty() || line.starts_with(b"cpus=") {
            return Line::Other;
        }
        let Some(head) = Head::of(line) else { return self.other(line) };
        let Some((_, action)) = EVENTS.iter().find(|(name, _)| *name == head.event) else {
            self.left_out += 1;
            return Line::Other;
        };
        event.action = *action;
        (event.pid, event.cpu, event.time_ns) = (head.pid, head.cpu, head.time_ns);
        let name = if head.pid == 0 { b"swapper" } else { head.name };
        match self.fields(Cursor(head.rest), event) {
            Some(()) => {
                self.latest = event.device;
                state.name(head.pid, name, head.time_ns);
                Line::Event
            }
            None => Line::Wrong,
        }
    }

    fn end(&mut self, state: &mut State) {
        if self.left_out > 0 {
            let what = format!("{} block events of other kinds are left out", self.left_out);
            state.remarks.push(what);
        }
        if self.lost > 0 {
            let what =
                format!("the kernel lost {} events: times may belong to other requests", self.lost);
            state.remarks.push(what);
        }
    }
}

impl Ftrace {
    /// `CPU:0 [LOST 60 EVENTS]` is counted; events of other subsystems are not of interest.
    fn other(&mut self, line: &[u8]) -> Line {
        if let Some(at) = find(line, b"[LOST ") {
            self.lost += Cursor(&line[at + 6..]).next_number().unwrap_or(1);
            return Line::Other;
        }
        if find(line, b"] ").is_some() && find(line, b": ").is_some() {
            Line::Other
        } else {
            Line::Wrong
        }
    }

    fn fields(&self, mut cursor: Cursor<'_>, event: &mut Event) -> Option<()> {
        if matches!(event.action, Action::Plugged | Action::Unplugged) {
            event.device = self.latest;
            event.categories = Categories::QUEUE;
            cursor.brackets()?;
            if event.action == Action::Unplugged {
                event.payload.extend_from_slice(&cursor.next_number()?.to_be_bytes());
            }
            return Some(());
        }
        event.device = cursor.device()?;
        let own = Categories::of_letters(cursor.word()?)?;
        event.categories = own.with(Categories::of_action(event.action));
        let mut bytes = 0;
        if cursor.parentheses().is_none() {
            let mut ahead = cursor;
            let first = ahead.next_number()?;
            if ahead.parentheses().is_some() {
                bytes = u32::try_from(first).ok()?;
                cursor = ahead;
            }
        }
        event.sector = cursor.next_number()?;
        if event.action == Action::Split {
            cursor.token(b'/')?;
            event.payload.extend_from_slice(&cursor.next_number()?.to_be_bytes());
            return Some(());
        }
        cursor.token(b'+')?;
        event.bytes = bytes_of(cursor.next_number()?)?.max(bytes);
        if event.action == Action::Remapped {
            cursor.0 = cursor.0.strip_prefix(b" <- (")?;
            let device = cursor.device()?;
            cursor.byte(b')')?;
            event.set_remap(Remap { device, sector: cursor.next_number()? });
            return Some(());
        }
        event.priority = priority(&mut cursor).unwrap_or(0);
        let last = cursor.brackets()?;
        if matches!(event.action, Action::Completed | Action::Requeued) {
            let error: i32 = std::str::from_utf8(last).ok()?.parse().ok()?;
            event.error = error as u16;
        }
        Some(())
    }
}

/// `be,0,4`: class, hint and level.
fn priority(cursor: &mut Cursor<'_>) -> Option<u16> {
    let mut ahead = *cursor;
    let mut parts = ahead.word()?.split(|byte| *byte == b',');
    let class: u16 = match parts.next()? {
        b"none" => 0,
        b"rt" => 1,
        b"be" => 2,
        b"idle" => 3,
        _ => return None,
    };
    let hint = super::fields::number(parts.next()?)?;
    let level = super::fields::number(parts.next()?)?;
    *cursor = ahead;
    Some(class << 13 | ((hint & 0x3ff) << 3) as u16 | (level & 7) as u16)
}

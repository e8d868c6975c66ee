//! Logs of transfers that a job does again, `read_iolog`, versions 2 and 3 of fio's text form.
//!
//! Lines are decoded by [`iolab_model::iolog`]. Left out: logs of several files, recordings of
//! block devices, and logs of more than [`ACTIONS_MAX`] actions.

use iolab_model::iolog::{Action as Does, Line, Version};
use iolab_model::{Bytes, Ns};
use iolab_workload::program::{Amount, Deed, FileChoice, Limits, Node, Pick, Place as At, Program};

use super::host::Host;
use super::job::{Job, Rw};
use super::parse::Typing;
use super::value::Amount as Size;
use crate::diagnostic::{Diagnostic, Problem};

/// Actions of a log at most: each is a step of a program, with a histogram of its own.
pub const ACTIONS_MAX: usize = 500;
const NS_PER_US: u64 = 1000;
const REMEDY: &str = "write the lines as fio's write_iolog does";

/// One action of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Read, write, discard, fsync or fdatasync.
    pub does: Deed,
    /// Offset in bytes.
    pub at: u64,
    /// Bytes; 0 of a flush.
    pub length: u64,
    /// Pause before it.
    pub pause_ns: u64,
}

/// Options of replays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `read_iolog`.
    pub file: Option<String>,
    /// `replay_no_stall`.
    pub has_no_pauses: bool,
    /// `replay_time_scale` in percent; 0: not given.
    pub time_percent: u64,
    /// `replay_redirect`.
    pub redirect: Option<String>,
    /// `replay_skip`: reads, writes, trims, flushes.
    pub skipped: [bool; 4],
    /// The actions, once the file is read.
    pub actions: Vec<Action>,
}

/// Directions that `replay_skip` names.
pub fn skipped(text: &str) -> Result<[bool; 4], Problem> {
    let mut found = [false; 4];
    for name in text.split(',') {
        let known = ["read", "write", "trim", "sync"].iter().position(|known| *known == name);
        let Some(place) = known else {
            let what = format!("replay_skip has no value '{name}'");
            return Err(Problem::new(what, "use read, write, trim, sync"));
        };
        found[place] = true;
    }
    Ok(found)
}

/// Reads the logs that jobs replay, and makes of each job what its log says.
pub fn load(typing: &mut Typing, words: &[String], host: &impl Host) -> Result<(), Diagnostic> {
    let globals = typing.globals.clone();
    for job in typing.jobs.iter_mut().filter(|job| job.replay.file.is_some()) {
        let told = take(job, host);
        told.map_err(|problem| job.place_of("read_iolog", &globals).tell(words, problem))?;
    }
    Ok(())
}

fn take(job: &mut Job, host: &impl Host) -> Result<(), Problem> {
    let path = job.replay.file.clone().unwrap_or_default();
    let text = host.text(&path).map_err(|why| {
        Problem::new(format!("{path} cannot be read: {why}"), "name a log of fio's write_iolog")
    })?;
    let (file, all) = read(&path, &text)?;
    let asked = &job.replay;
    let is_kept = |action: &&Action| !asked.skipped[group(action.does)];
    let mut actions: Vec<Action> = all.iter().filter(is_kept).copied().collect();
    for action in &mut actions {
        action.pause_ns = match (asked.has_no_pauses, asked.time_percent) {
            (true, _) => 0,
            (false, 0) => action.pause_ns,
            (false, percent) => (u128::from(action.pause_ns) * 100 / u128::from(percent)) as u64,
        };
    }
    let moves = |does| actions.iter().any(|action| action.does == does);
    let lengths = || actions.iter().map(|action| action.length).filter(|length| *length > 0);
    let Some(least) = lengths().min() else {
        return Err(Problem::new(format!("{path} has no transfer"), REMEDY));
    };
    job.rw = match (moves(Deed::Read), moves(Deed::Write) || moves(Deed::Discard)) {
        (true, true) => Rw::Mixed,
        (true, false) => Rw::Read,
        (false, _) => Rw::Write,
    };
    let end = actions.iter().map(|action| action.at + action.length).max().unwrap_or(0);
    job.filename = vec![asked.redirect.clone().unwrap_or(file)];
    (job.bs, job.bsrange, job.bssplit) = ([least; 3], [None; 3], None);
    (job.size, job.io_size, job.number_ios) = (Some(Size::Bytes(end)), None, 0);
    job.replay.actions = actions;
    Ok(())
}

/// Index of the direction of `replay_skip` that an action belongs to.
fn group(does: Deed) -> usize {
    match does {
        Deed::Read => 0,
        Deed::Write => 1,
        Deed::Discard => 2,
        _ => 3,
    }
}

/// The file of a log, and its actions.
fn read(path: &str, text: &str) -> Result<(String, Vec<Action>), Problem> {
    let mut lines = text.lines().enumerate();
    let first = lines.next().and_then(|(_, line)| Version::of(line.as_bytes()));
    let Some(version) = first else {
        let what = format!("{path} does not begin with 'fio version 2 iolog' or 3");
        return Err(Problem::new(what, "recordings of devices are not replayed"));
    };
    let mut found = Found { file: None, actions: Vec::new(), pause_ns: 0, last_us: 0 };
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let wrong =
            |why: String| Problem::new(format!("{path}, line {}: {why}", index + 1), REMEDY);
        found.line(line, version).map_err(wrong)?;
        if found.actions.len() > ACTIONS_MAX {
            let what = format!("{path} has more than {ACTIONS_MAX} actions");
            return Err(Problem::new(what, "replay a part of it"));
        }
    }
    let file = found.file.ok_or_else(|| Problem::new(format!("{path} names no file"), REMEDY))?;
    Ok((file, found.actions))
}

struct Found {
    file: Option<String>,
    actions: Vec<Action>,
    pause_ns: u64,
    last_us: u64,
}

impl Found {
    fn line(&mut self, line: &str, version: Version) -> Result<(), String> {
        let line = Line::decode(version, line.as_bytes())?;
        if let Some(us) = line.us {
            self.pause_ns += us.saturating_sub(self.last_us) * NS_PER_US;
            self.last_us = us;
        }
        let file = String::from_utf8_lossy(line.file);
        if self.file.as_deref().is_some_and(|known| known != file) {
            return Err("logs of several files are not replayed".to_owned());
        }
        self.file.get_or_insert_with(|| file.into_owned());
        let (does, at, length) = match line.action {
            Does::Add | Does::Open | Does::Close => return Ok(()),
            Does::Wait(us) => {
                self.pause_ns += us * NS_PER_US;
                return Ok(());
            }
            Does::Read(at, length) => (Deed::Read, at, length),
            Does::Write(at, length) => (Deed::Write, at, length),
            Does::Trim(at, length) => (Deed::Discard, at, length),
            Does::Sync => (Deed::Fsync, 0, 0),
            Does::DataSync => (Deed::Fdatasync, 0, 0),
            Does::SyncFileRange => return Err("'sync_file_range' is not replayed".to_owned()),
        };
        let pause_ns = std::mem::take(&mut self.pause_ns);
        self.actions.push(Action { does, at, length, pause_ns });
        Ok(())
    }
}

/// A program of the actions; `file` is the choice of the file, `opened` a step of the job on it.
pub fn program(job: &Job, file: &FileChoice, opened: impl Fn(Deed) -> Node) -> Program {
    let mut steps = Vec::new();
    for (index, action) in job.replay.actions.iter().enumerate() {
        if action.pause_ns > 0 {
            let duration_ns = Some(Amount::Constant(action.pause_ns));
            steps.push(Node { duration_ns, ..Node::new(Deed::Think) });
        }
        let id = Some(format!("{}{}", action.does.name(), index + 1));
        let plain = Node { id, file: Some(file.clone()), ..opened(action.does) };
        steps.push(if action.length == 0 {
            plain
        } else {
            let at = At {
                pick: Some(Pick::Sequential),
                unit_bytes: Some(Bytes(action.length)),
                from_bytes: Bytes(action.at),
                within_bytes: Some(Bytes(action.length)),
                ..At::default()
            };
            Node { at: Some(at), size_bytes: Some(Amount::Constant(action.length)), ..plain }
        });
    }
    let time_ns = (job.runtime_ns > 0).then_some(Ns(job.runtime_ns));
    let limit = Limits { passes: Some(job.loops), time_ns, ..Limits::default() };
    Program { steps, limit, ..Program::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(does: Deed, at: u64, length: u64, pause_ns: u64) -> Action {
        Action { does, at, length, pause_ns }
    }

    #[test]
    fn both_versions_are_read() {
        let third = "fio version 3 iolog\n0 d add\n0 d open\n100 d write 0 4096\n\
                     20000 d read 4096 8192\n60000 d sync 0 0\n125000 d close\n";
        let expected = vec![
            action(Deed::Write, 0, 4096, 100_000),
            action(Deed::Read, 4096, 8192, 19_900_000),
            action(Deed::Fsync, 0, 0, 40_000_000),
        ];
        assert_eq!(read("l", third).unwrap(), ("d".to_owned(), expected));
        let second = "fio version 2 iolog\nd add\nd open\nd wait 1500 0\nd trim 512 512\n\
                      d datasync 0 0\nd close\n";
        let expected =
            vec![action(Deed::Discard, 512, 512, 1_500_000), action(Deed::Fdatasync, 0, 0, 0)];
        assert_eq!(read("l", second).unwrap(), ("d".to_owned(), expected));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let of = |line: &str| read("l", &format!("fio version 3 iolog\n{line}\n")).unwrap_err();
        for (line, named) in [
            ("d add", "no number"),
            ("0 d jump 0 0", "'jump'"),
            ("0 d read 0", "missing"),
            ("0 d read -1 4096", "'-1'"),
            ("0 d read 0 0", "no bytes"),
            ("0 d add\n0 e add", "several files"),
            ("0 d read 18446744073709551615 1", "beyond any file"),
        ] {
            let told = format!("{:?}", of(line));
            assert!(told.contains("line ") && told.contains(named), "{line}: {told}");
        }
        assert!(read("l", "blktrace").is_err());
        assert!(read("l", "").is_err());
        assert_eq!(skipped("read,sync").unwrap(), [true, false, false, true]);
        assert!(skipped("all").is_err());
    }
}

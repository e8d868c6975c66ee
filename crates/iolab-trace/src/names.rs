//! Names of processes by pid: the first that a trace tells stays, as in blkparse.

use std::collections::BTreeMap;

use iolab_model::visible::harmless;

use crate::event::{Action, Event};

/// Longest name the kernel has for a task.
const NAME_MAX: usize = 15;
/// Names that are kept; a trace that has more is not of this world.
const NAMES_MAX: usize = 1 << 17;
const CACHE: usize = 64;

#[derive(Clone, Copy)]
struct Cached {
    pid: u32,
    length: u8,
    name: [u8; NAME_MAX],
}

/// The names, with the latest ones at hand.
pub struct Names {
    all: BTreeMap<u32, Box<[u8]>>,
    latest: Box<[Option<Cached>; CACHE]>,
}

impl Default for Names {
    fn default() -> Self {
        Self { all: BTreeMap::new(), latest: Box::new([None; CACHE]) }
    }
}

impl Names {
    /// Takes the name out of a note; other events are of no use.
    pub fn learn(&mut self, event: &Event) {
        if event.action == Action::NoteProcess {
            self.insert(event.pid, event.name());
        }
    }

    /// Keeps a name unless the process has one.
    pub fn insert(&mut self, pid: u32, name: &[u8]) {
        if self.all.len() < NAMES_MAX && !self.all.contains_key(&pid) {
            let mut clean = Vec::new();
            push_clean(&mut clean, &name[..name.len().min(NAME_MAX)]);
            clean.truncate(NAME_MAX);
            self.all.insert(pid, clean.into());
            self.latest[pid as usize % CACHE] = None;
        }
    }

    /// Name of a process.
    #[inline]
    pub fn of(&mut self, pid: u32) -> Option<&[u8]> {
        let slot = pid as usize % CACHE;
        if self.latest[slot].is_none_or(|cached| cached.pid != pid) {
            let name = self.all.get(&pid)?;
            let mut cached = Cached { pid, length: name.len() as u8, name: [0; NAME_MAX] };
            cached.name[..name.len()].copy_from_slice(name);
            self.latest[slot] = Some(cached);
        }
        let cached = self.latest[slot].as_ref()?;
        Some(&cached.name[..usize::from(cached.length)])
    }
}

/// Appends text of other people: no character of it is a command to a terminal.
pub fn push_clean(text: &mut Vec<u8>, raw: &[u8]) {
    if raw.iter().all(|byte| (b' '..0x7f).contains(byte)) {
        text.extend_from_slice(raw);
        return;
    }
    for chunk in raw.utf8_chunks() {
        text.extend_from_slice(harmless(chunk.valid()).as_bytes());
        text.resize(text.len() + chunk.invalid().len(), b'?');
    }
}

/// The same as a text of its own.
pub fn cleaned(raw: &[u8]) -> String {
    let mut text = Vec::new();
    push_clean(&mut text, raw);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_stays_and_is_no_command() {
        let mut names = Names::default();
        assert_eq!(names.of(7), None);
        names.insert(7, b"a\x1b[2Jb");
        names.insert(7, b"other");
        names.insert(7 + CACHE as u32, b"second");
        assert_eq!(names.of(7), Some(&b"a?[2Jb"[..]));
        assert_eq!(names.of(7 + CACHE as u32), Some(&b"second"[..]));
        assert_eq!(names.of(7), Some(&b"a?[2Jb"[..]));
        names.insert(9, "\u{9b}2J".as_bytes());
        assert_eq!(names.of(9), Some(&b"?2J"[..]));
    }
}

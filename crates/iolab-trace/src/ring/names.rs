//! Names of processes as events told them last.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::event::Event;

/// Processes whose names are remembered; one that is forgotten is named again.
const PROCESSES_MAX: usize = 1 << 14;
/// Places of the processes that were asked for last.
const RECENT: usize = 64;
/// Number of no process: the kernel's stay below 2^22 (`PID_MAX_LIMIT`).
const NOBODY: u32 = u32::MAX;

/// As the kernel keeps it, filled up with zeros (`TASK_COMM_LEN`); all zeros if it was told
/// otherwise.
type Name = [u8; 16];

/// Names by process. Nearly every event is of a process that another one was of shortly before, so
/// that it is found without hashing.
#[derive(Debug)]
pub(super) struct Names {
    all: HashMap<u32, Name>,
    /// Each at the place of its number; all of them count as told.
    recent: [(u32, Name); RECENT],
}

impl Default for Names {
    fn default() -> Self {
        Self { all: HashMap::new(), recent: [(NOBODY, [0; 16]); RECENT] }
    }
}

impl Names {
    /// True if the name of a process has not been told; asked again, it counts as told.
    #[inline]
    pub fn is_first_of(&mut self, pid: u32) -> bool {
        if self.recent[pid as usize % RECENT].0 == pid {
            return false;
        }
        self.make_room();
        let (name, is_first) = match self.all.entry(pid) {
            Entry::Occupied(found) => (*found.get(), false),
            Entry::Vacant(place) => (*place.insert([0; 16]), true),
        };
        self.recent[pid as usize % RECENT] = (pid, name);
        is_first
    }

    /// The note of the name that an event tells of its process, if that is new.
    #[inline]
    pub fn note_of(&mut self, event: &Event, found: &[u8]) -> Option<Event> {
        let mut name = [0; 16];
        let length = found.len().min(15);
        name[..length].copy_from_slice(&found[..length]);
        let recent = &mut self.recent[event.pid as usize % RECENT];
        if *recent == (event.pid, name) {
            return None;
        }
        *recent = (event.pid, name);
        if self.all.get(&event.pid) == Some(&name) {
            return None;
        }
        self.make_room();
        self.all.insert(event.pid, name);
        let mut note = Event::default();
        note.set_process(event.pid, if event.pid == 0 { b"swapper" } else { &name[..length] });
        (note.time_ns, note.cpu) = (event.time_ns, event.cpu);
        Some(note)
    }

    fn make_room(&mut self) {
        if self.all.len() >= PROCESSES_MAX {
            self.all.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(names: &mut Names, pid: u32, name: &[u8]) -> Option<Event> {
        names.note_of(&Event { pid, time_ns: 5, cpu: 3, ..Event::default() }, name)
    }

    #[test]
    fn a_name_is_noted_when_it_is_new_also_if_two_share_a_place() {
        let mut names = Names::default();
        let far = 7 + RECENT as u32;
        let noted = note(&mut names, 7, b"dd").unwrap();
        assert_eq!((noted.pid, noted.name(), noted.time_ns, noted.cpu), (7, &b"dd"[..], 5, 3));
        assert!(note(&mut names, far, b"cp").is_some());
        assert!(note(&mut names, 7, b"dd").is_none() && note(&mut names, far, b"cp").is_none());
        assert!(note(&mut names, 7, b"sh").is_some());
        assert!(!names.is_first_of(7) && !names.is_first_of(far));
        assert!(note(&mut names, 7, b"sh").is_none(), "asking does not forget the name");
    }

    #[test]
    fn a_process_is_the_first_once() {
        let mut names = Names::default();
        for pid in [0, 8, 8 + RECENT as u32, u32::MAX >> 10] {
            assert!(names.is_first_of(pid), "{pid}");
        }
        for pid in [8, 8 + RECENT as u32, 0, 8] {
            assert!(!names.is_first_of(pid), "{pid}");
        }
        assert!(note(&mut names, 8, b"sh").is_some(), "its own name was not known");
    }

    #[test]
    fn memory_is_bounded() {
        let mut names = Names::default();
        for pid in 0..3 * PROCESSES_MAX as u32 {
            note(&mut names, pid, b"x");
        }
        assert!(names.all.len() <= PROCESSES_MAX);
    }
}

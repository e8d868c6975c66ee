//! Processes by name, as btt groups them: workers of the kernel share the name before their slash.

use std::collections::BTreeMap;

use super::periods::Ranges;
use crate::event::{Action, Event};
use crate::names::cleaned;
use iolab_model::histogram::Histogram;

/// Processes that are told apart; the others share one group.
pub const PROCESSES_MAX: usize = 512;
/// Pids that are remembered.
const PIDS_MAX: usize = 1 << 17;
const CACHE: usize = 64;
/// Name of the group of all that are too many.
const OTHERS: &str = "(others)";

/// Processes of one name.
pub struct Process {
    /// The name.
    pub name: String,
    /// Pid that was seen first.
    pub pid: u32,
    /// True if there are others of that name.
    pub is_shared: bool,
    /// Time at which a bio of it entered the queue last.
    pub last_queued_ns: Option<u64>,
    /// Times between its bios: on devices, and on devices that only map to others.
    pub between: [Option<Box<Histogram>>; 2],
    /// Periods in which its bios entered the queue.
    pub queued: Ranges,
    /// Periods in which something was completed while it ran.
    pub completed: Ranges,
}

/// All of them.
pub struct Processes {
    /// In the order in which they appeared.
    pub all: Vec<Process>,
    by_name: BTreeMap<String, u32>,
    by_pid: BTreeMap<u32, u32>,
    latest: [Option<(u32, u32)>; CACHE],
}

impl Default for Processes {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            by_name: BTreeMap::new(),
            by_pid: BTreeMap::new(),
            latest: [None; CACHE],
        }
    }
}

impl Processes {
    /// Takes the name out of a note. A process that went by its number so far is named by it, if
    /// `may_rename` and no other has that name.
    pub fn learn(&mut self, event: &Event, may_rename: bool) {
        if event.action != Action::NoteProcess {
            return;
        }
        let known = self.by_pid.get(&event.pid).copied();
        if known.is_some_and(|index| !may_rename || !self.is_unnamed(index)) {
            return;
        }
        let name = event.name();
        let length = name.iter().position(|byte| *byte == b'/').unwrap_or(name.len());
        let name = cleaned(&name[..length]);
        let name = if event.pid == 0 { "kernel".to_owned() } else { name };
        match known {
            None => {
                self.insert(event.pid, name);
            }
            Some(index) if !self.by_name.contains_key(&name) => {
                let former = std::mem::replace(&mut self.all[index as usize].name, name.clone());
                self.by_name.remove(&former);
                self.by_name.insert(name, index);
            }
            Some(_) => {}
        }
    }

    /// Tell whether a process goes by its number.
    fn is_unnamed(&self, index: u32) -> bool {
        let process = &self.all[index as usize];
        process.name == unnamed(process.pid)
    }

    /// Number of a process; one of which nothing is known goes by its pid.
    #[inline]
    pub fn of(&mut self, pid: u32) -> u32 {
        let slot = pid as usize % CACHE;
        if let Some((cached, index)) = self.latest[slot]
            && cached == pid
        {
            return index;
        }
        let known = self.by_pid.get(&pid).copied();
        let index = known.unwrap_or_else(|| self.insert(pid, unnamed(pid)));
        self.latest[slot] = Some((pid, index));
        index
    }

    fn insert(&mut self, pid: u32, name: String) -> u32 {
        let is_full = self.all.len() >= PROCESSES_MAX && !self.by_name.contains_key(&name);
        let name = if is_full { OTHERS.to_owned() } else { name };
        let index = match self.by_name.get(&name) {
            Some(index) => {
                self.all[*index as usize].is_shared = true;
                *index
            }
            None => self.push(pid, name),
        };
        if self.by_pid.len() < PIDS_MAX {
            self.by_pid.insert(pid, index);
        }
        index
    }

    fn push(&mut self, pid: u32, name: String) -> u32 {
        let index = self.all.len() as u32;
        self.by_name.insert(name.clone(), index);
        self.all.push(Process {
            name,
            pid,
            is_shared: false,
            last_queued_ns: None,
            between: [None, None],
            queued: Ranges::default(),
            completed: Ranges::default(),
        });
        index
    }

    /// Numbers in the order of names.
    pub fn sorted(&self) -> Vec<u32> {
        self.by_name.values().copied().collect()
    }
}

/// Name of a process of which only the number is known.
fn unnamed(pid: u32) -> String {
    format!("pid{pid:09}")
}

//! States that scenario files may start from.
//!
//! Understood: `processes 1 and 2: sync queues with all 32 seek-history bits set and the
//! idle-window flag cleared`, with any number of processes and either or both properties.

use super::queue::{Marks, QueueId};
use super::scheduler::Cfq;
use crate::api::bio::ProcessId;

/// State of a process's synchronous queue when it is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Preset {
    is_seeky: bool,
    is_not_awaited: bool,
}

impl Cfq {
    /// Takes on what a sentence says; false if it is not understood.
    pub(super) fn take_preset(&mut self, state: &str) -> bool {
        let Some((names, preset)) = parse(state) else { return false };
        self.presets.extend(names.into_iter().map(|name| (name, preset)));
        true
    }

    /// A synchronous queue was created for a process.
    pub(super) fn apply_preset(&mut self, name: ProcessId, id: QueueId) {
        let Some(place) = self.presets.iter().position(|&(other, _)| other == name) else {
            return;
        };
        let (_, preset) = self.presets.swap_remove(place);
        let queue = &mut self.queues[id];
        if preset.is_seeky {
            queue.seeks.history = u32::MAX;
        }
        if preset.is_not_awaited {
            queue.marks.clear(Marks::IDLE_WINDOW);
        }
    }
}

fn parse(state: &str) -> Option<(Vec<ProcessId>, Preset)> {
    let (subject, properties) = state.split_once(": sync queues with ")?;
    let names = subject.strip_prefix("processes ")?.replace(" and ", ",").replace(", ", ",");
    let names: Result<Vec<u32>, _> = names.split(',').map(|name| name.trim().parse()).collect();
    let mut preset = Preset::default();
    for property in properties.split(" and ") {
        match property {
            "all 32 seek-history bits set" => preset.is_seeky = true,
            "the idle-window flag cleared" => preset.is_not_awaited = true,
            _ => return None,
        }
    }
    Some((names.ok()?.into_iter().map(ProcessId).collect(), preset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_understood_or_refused() {
        let both = "processes 1, 2 and 7: sync queues with all 32 seek-history bits set and the \
                    idle-window flag cleared";
        let (names, preset) = parse(both).unwrap();
        assert_eq!(names, [1, 2, 7].map(ProcessId));
        assert_eq!(preset, Preset { is_seeky: true, is_not_awaited: true });
        for wrong in [
            "process 1: sync queues with all 32 seek-history bits set",
            "processes 1 and x: sync queues with the idle-window flag cleared",
            "processes 1: sync queues with the idle-window flag set",
            "",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}

//! Power cuts: the last durable group is what is there; the intent log is replayed on it.

use super::driver::Zfs;
use super::group::{Change, Entry, Group, InLog};
use super::intent_log::IntentLog;
use super::metaslab::Metaslabs;
use super::node::ZNode;
use super::options::BLOCK;
use crate::api::block::{DeviceId, FileRun, Place};
use crate::api::context::Tid;
use crate::fs::extent_map::ExtentMap;

impl Zfs {
    /// Cuts the power, and imports and mounts again; the last change that is still there.
    pub(super) fn power_cut(&mut self) -> Tid {
        let syncing = self.syncing.take().map(|syncing| syncing.group);
        let groups = [syncing, self.closed.take(), Some(core::mem::take(&mut self.open))];
        let logged: Vec<Entry> = groups
            .into_iter()
            .flatten()
            .flat_map(|group: Group| group.entries)
            .filter(|entry| matches!(entry.log, InLog::Done(_)))
            .collect();
        let durable = self.synced.max(self.log.durable());
        self.count_space();
        for entry in &logged {
            self.replay(entry);
        }
        self.log = IntentLog::at(durable, &self.log);
        self.metadata.clone_from(&self.image_metadata);
        self.image.retain(|_, node| node.links > 0);
        self.count_space();
        let node =
            |state: &super::node::NodeState| ZNode { state: state.clone(), ..ZNode::default() };
        self.nodes = self.image.iter().map(|(&number, state)| (number, node(state))).collect();
        (self.wants_next, self.is_open_asked) = (false, false);
        self.is_suspended = false;
        (self.asked, self.synced) = (Tid(0), self.last);
        durable
    }

    /// Free space of what is there.
    fn count_space(&mut self) {
        let data = (self.geometry.first, self.geometry.blocks);
        self.slabs = Metaslabs::new(data, BLOCK, self.geometry.prefers_low);
        for places in self.image_metadata.values() {
            for &place in places {
                self.slabs.occupy(place, 1);
            }
        }
        for node in self.image.values() {
            for extent in node.places.iter() {
                if let Some((_, first)) = extent.place.block() {
                    self.slabs.occupy(first, extent.count);
                }
            }
        }
    }

    /// Carries out a change of the log; data that it holds get a place.
    fn replay(&mut self, entry: &Entry) {
        entry.change.apply(&mut self.image);
        let (Change::Write(run, ..), InLog::Done(named)) = (&entry.change, &entry.log) else {
            return;
        };
        let Some(node) = self.image.get_mut(&run.node.0) else { return };
        let mut places = ExtentMap::default();
        for (run, place) in named {
            places.set(run.first, run.count, *place);
        }
        for block in run.first..run.end() {
            let place = places.get(block).map(|extent| extent.place_of(block));
            let given = || self.slabs.take_last(1).map(|at| Place::Written(DeviceId::MAIN, at));
            if let Some(place) = place.or_else(given) {
                node.places.set(block, 1, place);
            }
        }
    }

    /// Places that a file has now, within a range.
    pub(super) fn places_within(&self, run: FileRun) -> Vec<(FileRun, Place)> {
        let Some(node) = self.node(run.node) else { return Vec::new() };
        let within = node.state.places.within(run.first, run.count);
        let named = within.map(|extent| {
            let run = FileRun { node: run.node, first: extent.first, count: extent.count };
            (run, extent.place)
        });
        named.collect()
    }
}

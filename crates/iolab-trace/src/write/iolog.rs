//! fio's iolog, version 3: the bios that enter the queue, for replay.
//!
//! Source: fio(1), "TRACE FILE FORMAT". One file per device, `/dev/block/MAJOR:MINOR`, which is the
//! device's own node on the traced machine; times are microseconds. A write that flushes before
//! it, or must reach the medium, has a `sync` beside it. Left out: everything but Q, and what fio
//! cannot replay.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::event::{Action, Categories, Device, Event};
use crate::source::Source;

/// Files that are open at once.
const DEVICES_MAX: usize = 1024;

/// Writer of one log.
#[derive(Default)]
pub struct Writer {
    opened: BTreeMap<Device, String>,
    first_ns: Option<u64>,
    last_us: u64,
}

impl Writer {
    /// Appends the first line.
    pub fn push_head(text: &mut Vec<u8>) {
        text.extend_from_slice(b"fio version 3 iolog\n");
    }

    /// Appends what is replayed of an event; false if nothing is.
    pub fn push_event(&mut self, event: &Event, source: &dyn Source, text: &mut Vec<u8>) -> bool {
        if event.action != Action::Queued || event.is_packet() {
            return false;
        }
        let first_ns = *self.first_ns.get_or_insert(event.time_ns);
        self.last_us = event.time_ns.saturating_sub(first_ns) / 1000;
        let mut line = String::new();
        let us = self.last_us;
        let known = self.opened.get(&event.device).cloned();
        let file = known.unwrap_or_else(|| {
            let file = file_of(event.device, source);
            if self.opened.len() < DEVICES_MAX {
                let _ = write!(line, "{us} {file} add\n{us} {file} open\n");
                self.opened.insert(event.device, file.clone());
            }
            file
        });
        let has = |bit| event.categories.has(bit);
        let action = match event.bytes {
            0 if has(Categories::FLUSH) => "sync",
            0 => return false,
            _ if has(Categories::DISCARD) => "trim",
            _ if has(Categories::WRITE) => "write",
            _ => "read",
        };
        let offset = event.sector.saturating_mul(512);
        // What a write flushes before it, and what must be on the medium behind it, are calls of
        // their own in a log.
        let is_write = action == "write";
        if is_write && has(Categories::FLUSH) {
            let _ = writeln!(line, "{us} {file} sync 0 0");
        }
        let _ = writeln!(line, "{us} {file} {action} {offset} {}", event.bytes);
        if is_write && has(Categories::FUA) {
            let _ = writeln!(line, "{us} {file} sync 0 0");
        }
        text.extend_from_slice(line.as_bytes());
        true
    }

    /// Appends the ends of all files.
    pub fn push_end(&self, text: &mut Vec<u8>) {
        for file in self.opened.values() {
            let line = format!("{} {file} close\n", self.last_us);
            text.extend_from_slice(line.as_bytes());
        }
    }
}

/// The name that the source has for a device if that is a path, otherwise its node by number.
fn file_of(device: Device, source: &dyn Source) -> String {
    let names = source.devices();
    let own = names.into_iter().find(|(known, name)| *known == device && name.starts_with('/'));
    own.map_or_else(
        || format!("/dev/block/{}:{}", device.major(), device.minor()),
        |(_, name)| name,
    )
}

//! Events of chosen devices and partitions only.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::{Caveat, Error};
use crate::event::{Action, Device, Event};
use crate::names::cleaned;
use crate::source::{Facts, Source};

/// Devices that a message lists.
const LISTED_MAX: usize = 8;
/// Devices that are counted for the message; a hostile trace has any number.
const COUNTED_MAX: usize = 1 << 16;

/// Beginning of a fact that tells where a partition lies, before its name: device, first sector and
/// sectors. Events tell the whole device and its sectors.
pub const PARTITION_FACT: &str = "partition ";

/// A device as a user names it: by its two numbers, or by the name that the trace has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    Number(Device),
    Name(String),
    Part(Device, Range<u64>),
}

/// Events of a device that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    None,
    /// Those of sectors of partitions.
    Parts,
    All,
}

impl Named {
    fn of(text: &str, facts: &Facts) -> Self {
        let numbers = text
            .split_once([':', ','])
            .and_then(|(major, minor)| Some(Device::new(major.parse().ok()?, minor.parse().ok()?)));
        if let Some(number) = numbers {
            return Self::Number(number);
        }
        let name = text.strip_prefix("/dev/").unwrap_or(text);
        let part = facts.get(&format!("{PARTITION_FACT}{name}")).and_then(|place| part(place));
        part.unwrap_or_else(|| Self::Name(name.to_owned()))
    }

    /// Tell whether it is a device, or a part of it.
    fn is(&self, device: Device, name: Option<&str>) -> bool {
        match self {
            Self::Number(number) | Self::Part(number, _) => *number == device,
            Self::Name(own) => {
                name.map(|name| name.strip_prefix("/dev/").unwrap_or(name)) == Some(own)
            }
        }
    }
}

/// Place of a partition in the words of a fact: `7,0 2048 163840`.
fn part(place: &str) -> Option<Named> {
    let mut words = place.split(' ');
    let (major, minor) = words.next()?.split_once(',')?;
    let device = Device::new(major.parse().ok()?, minor.parse().ok()?);
    let (first, count): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Named::Part(device, first..first.checked_add(count)?))
}

/// A source without the events of other devices. Notes tell of the trace, and calls of processes
/// name no device: both stay.
pub struct Chosen {
    inner: Box<dyn Source>,
    /// As the user wrote it, what it means, and whether an event was of it.
    wanted: Vec<(String, Named, bool)>,
    has_parts: bool,
    begin_ns: Option<u64>,
    /// Devices that were met: number of events, and which are wanted.
    met: BTreeMap<Device, (u64, Wanted)>,
    latest: Option<(Device, Wanted)>,
}

impl Chosen {
    /// Source of the devices that are named: `8:0`, `8,0`, `sda` or `/dev/sda`; or partitions, if
    /// the trace tells where they lie.
    pub fn new(inner: Box<dyn Source>, devices: &[String]) -> Self {
        let facts = inner.facts();
        let named = |text: &String| (text.clone(), Named::of(text, &facts), false);
        let wanted: Vec<_> = devices.iter().map(named).collect();
        let has_parts = wanted.iter().any(|(_, named, _)| matches!(named, Named::Part(..)));
        Self { inner, wanted, has_parts, begin_ns: None, met: BTreeMap::new(), latest: None }
    }

    fn wanted_of(&mut self, device: Device) -> Wanted {
        if let Some((_, wanted)) = self.latest.filter(|(latest, _)| *latest == device) {
            return wanted;
        }
        let known = self.met.get(&device).map(|(_, wanted)| *wanted);
        let wanted = known.unwrap_or_else(|| self.meet(device));
        self.latest = Some((device, wanted));
        wanted
    }

    #[cold]
    fn meet(&mut self, device: Device) -> Wanted {
        let names = self.inner.devices();
        let name = names.iter().find(|(named, _)| *named == device).map(|(_, name)| name.as_str());
        let mut wanted = Wanted::None;
        for (_, named, is_met) in &mut self.wanted {
            match named {
                _ if !named.is(device, name) => {}
                Named::Part(..) if wanted == Wanted::None => wanted = Wanted::Parts,
                Named::Part(..) => {}
                _ => (*is_met, wanted) = (true, Wanted::All),
            }
        }
        wanted
    }

    /// Tell whether an event lies in one of the partitions that are wanted.
    fn is_in_part(&mut self, event: &Event) -> bool {
        let mut is_in = false;
        for (_, named, is_met) in &mut self.wanted {
            if let Named::Part(device, sectors) = named
                && *device == event.device
                && event.bytes > 0
                && sectors.contains(&event.sector)
            {
                (*is_met, is_in) = (true, true);
            }
        }
        is_in
    }

    fn count(&mut self, device: Device, wanted: Wanted) {
        if let Some((count, _)) = self.met.get_mut(&device) {
            *count += 1;
        } else if self.met.len() < COUNTED_MAX {
            self.met.insert(device, (1, wanted));
        }
    }

    fn is_named(&self, device: Device, name: Option<&str>) -> bool {
        self.wanted.iter().any(|(_, named, _)| named.is(device, name))
    }

    /// The error of the first device without an event.
    fn missing(&self) -> Option<Error> {
        let (text, ..) = self.wanted.iter().find(|(.., is_met)| !is_met)?;
        let names: BTreeMap<Device, String> = self.inner.devices().into_iter().collect();
        let shown = self.met.iter().take(LISTED_MAX).map(|(device, (count, _))| {
            let events = if *count == 1 { "event" } else { "events" };
            match names.get(device) {
                Some(name) => {
                    format!("{} ({device}) with {count} {events}", cleaned(name.as_bytes()))
                }
                None => format!("{device} with {count} {events}"),
            }
        });
        let mut there = shown.collect::<Vec<_>>().join(", ");
        if there.is_empty() {
            there = "no event of any device".into();
        }
        if let more @ 1.. = self.met.len().saturating_sub(LISTED_MAX) {
            there = format!("{there} and {more} more");
        }
        Some(Error::OtherDevice { name: cleaned(text.as_bytes()), there })
    }
}

impl Source for Chosen {
    fn next(&mut self, event: &mut Event) -> Result<bool, Error> {
        while self.inner.next(event)? {
            if !matches!(event.action, Action::NoteProcess | Action::NoteTime) {
                self.begin_ns.get_or_insert(event.time_ns);
            }
            let names_none = event.action == Action::Point && event.device == Device(0);
            if event.action.is_note() || names_none {
                return Ok(true);
            }
            let wanted = self.wanted_of(event.device);
            self.count(event.device, wanted);
            let is_in_part = wanted != Wanted::None && self.has_parts && self.is_in_part(event);
            if is_in_part || wanted == Wanted::All {
                return Ok(true);
            }
        }
        self.missing().map_or(Ok(false), Err)
    }

    fn caveats(&self) -> &[Caveat] {
        self.inner.caveats()
    }

    fn begin_ns(&self) -> Option<u64> {
        self.inner.begin_ns().or(self.begin_ns)
    }

    fn bounds_ns(&self) -> Option<(u64, u64)> {
        self.inner.bounds_ns()
    }

    fn devices(&self) -> Vec<(Device, String)> {
        let mut named = self.inner.devices();
        named.retain(|(device, name)| self.is_named(*device, Some(name)));
        named
    }

    fn titles(&self) -> Vec<(Device, String)> {
        let mut titles = self.devices();
        for (device, name) in &mut titles {
            let own = self.wanted.iter().filter(|(_, named, _)| named.is(*device, Some(name)));
            let (parts, whole): (Vec<_>, Vec<_>) =
                own.partition(|(_, named, _)| matches!(named, Named::Part(..)));
            let (is_whole, parts) = (!whole.is_empty(), parts.into_iter());
            let parts: Vec<&str> =
                parts.map(|(text, ..)| text.strip_prefix("/dev/").unwrap_or(text)).collect();
            if !is_whole && !parts.is_empty() {
                *name = format!("{} of {name}", parts.join(", "));
            }
        }
        titles
    }

    fn facts(&self) -> Facts {
        let mut facts = self.inner.facts();
        for (device, name) in self.inner.devices() {
            if !self.is_named(device, Some(&name)) {
                facts.remove(&format!("device {device}"));
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Listed {
        events: Vec<Event>,
        names: Vec<(Device, String)>,
    }

    impl Source for Listed {
        fn next(&mut self, event: &mut Event) -> Result<bool, Error> {
            let next = self.events.pop();
            let is_there = next.is_some();
            *event = next.unwrap_or_default();
            Ok(is_there)
        }

        fn caveats(&self) -> &[Caveat] {
            &[]
        }

        fn devices(&self) -> Vec<(Device, String)> {
            self.names.clone()
        }

        fn facts(&self) -> Facts {
            let fact =
                |(device, name): &(Device, String)| (format!("device {device}"), name.clone());
            let mut facts: Facts = self.names.iter().map(fact).collect();
            facts.insert("partition sdb2".to_owned(), "8,16 2048 8".to_owned());
            facts.insert("partition sdb3".to_owned(), "8,16 2056 8".to_owned());
            facts
        }
    }

    fn of(devices: &[&str]) -> Chosen {
        let on = |action, device| Event { action, device, ..Event::default() };
        let (sda, sdb) = (Device::new(8, 0), Device::new(8, 16));
        let events = vec![
            on(Action::Queued, sda),
            on(Action::Queued, sdb),
            on(Action::Point, Device(0)),
            on(Action::NoteTime, Device(0)),
            on(Action::Issued, sdb),
        ];
        let names = vec![(sda, "sda".to_owned())];
        let devices: Vec<String> = devices.iter().map(|text| (*text).to_owned()).collect();
        Chosen::new(Box::new(Listed { events, names }), &devices)
    }

    fn read(source: &mut impl Source) -> Result<Vec<(Action, Device)>, String> {
        let mut event = Event::default();
        let mut found = Vec::new();
        while source.next(&mut event).map_err(|error| error.to_string())? {
            found.push((event.action, event.device));
        }
        Ok(found)
    }

    #[test]
    fn events_of_other_devices_are_left_out() {
        let none = Device(0);
        let own =
            [(Action::NoteTime, none), (Action::Point, none), (Action::Queued, Device::new(8, 0))];
        for name in ["8:0", "8,0", "sda", "/dev/sda"] {
            let mut source = of(&[name]);
            assert_eq!(source.devices().len(), 1);
            assert_eq!(source.facts().len(), 3);
            assert_eq!(read(&mut source).unwrap(), own, "{name}");
        }
        assert_eq!(read(&mut of(&["sda", "8:16"])).unwrap().len(), 5);
        let other = of(&["8:16"]);
        assert!(other.devices().is_empty() && !other.facts().contains_key("device 8,0"));
    }

    #[test]
    fn a_partition_has_the_events_of_its_sectors() {
        let sdb = Device::new(8, 16);
        let at =
            |action, sector| Event { action, device: sdb, sector, bytes: 4096, ..Event::default() };
        let read_of = |devices: &[&str]| {
            let events = vec![
                at(Action::Completed, 2055),
                at(Action::Issued, 2056),
                at(Action::Issued, 2048),
                at(Action::Queued, 2047),
                Event { bytes: 0, ..at(Action::Plugged, 2050) },
            ];
            let devices: Vec<String> = devices.iter().map(|text| (*text).to_owned()).collect();
            let listed = Listed { events, names: Vec::new() };
            read(&mut Chosen::new(Box::new(listed), &devices))
        };
        let own = [(Action::Issued, sdb), (Action::Completed, sdb)];
        assert_eq!(read_of(&["/dev/sdb2"]).unwrap(), own);
        assert_eq!(read_of(&["sdb2", "sdb3"]).unwrap().len(), 3);
        assert_eq!(read_of(&["sdb2", "8:16"]).unwrap().len(), 5, "and all others");
        assert!(part("8,16 2048").is_none() && part("8 1 1").is_none());
        assert!(part(&format!("8,16 1 {}", u64::MAX)).is_none());
    }

    #[test]
    fn a_device_without_an_event_is_an_error_that_names_the_others() {
        let told = read(&mut of(&["8:16", "nvme0n1\u{1b}"])).unwrap_err();
        assert_eq!(
            told,
            "no event is of nvme0n1?: the trace has sda (8,0) with 1 event, 8,16 with 2 events; \
             name one of its devices"
        );
    }
}

//! Events of chosen devices only.

use std::collections::BTreeMap;

use crate::error::{Caveat, Error};
use crate::event::{Action, Device, Event};
use crate::names::cleaned;
use crate::source::{Facts, Source};

/// Devices that a message lists.
const LISTED_MAX: usize = 8;
/// Devices that are counted for the message; a hostile trace has any number.
const COUNTED_MAX: usize = 1 << 16;

/// A device as a user names it: by its two numbers, or by the name that the trace has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    Number(Device),
    Name(String),
}

impl Named {
    fn of(text: &str) -> Self {
        let numbers = text
            .split_once([':', ','])
            .and_then(|(major, minor)| Some(Device::new(major.parse().ok()?, minor.parse().ok()?)));
        let name = || text.strip_prefix("/dev/").unwrap_or(text).to_owned();
        numbers.map_or_else(|| Self::Name(name()), Self::Number)
    }

    fn is(&self, device: Device, name: Option<&str>) -> bool {
        match self {
            Self::Number(number) => *number == device,
            Self::Name(own) => {
                name.map(|name| name.strip_prefix("/dev/").unwrap_or(name)) == Some(own)
            }
        }
    }
}

/// A source without the events of other devices. Notes tell of the trace, and calls of processes
/// name no device: both stay.
pub struct Chosen {
    inner: Box<dyn Source>,
    /// As the user wrote it, what it means, and whether an event was of it.
    wanted: Vec<(String, Named, bool)>,
    /// Devices that were met: number of events, and whether they are wanted.
    met: BTreeMap<Device, (u64, bool)>,
    latest: Option<(Device, bool)>,
}

impl Chosen {
    /// Source of the devices that are named: `8:0`, `8,0`, `sda` or `/dev/sda`.
    pub fn new(inner: Box<dyn Source>, devices: &[String]) -> Self {
        let wanted = devices.iter().map(|text| (text.clone(), Named::of(text), false)).collect();
        Self { inner, wanted, met: BTreeMap::new(), latest: None }
    }

    fn is_wanted(&mut self, device: Device) -> bool {
        if let Some((_, is_wanted)) = self.latest.filter(|(latest, _)| *latest == device) {
            return is_wanted;
        }
        let known = self.met.get(&device).map(|(_, is_wanted)| *is_wanted);
        let is_wanted = known.unwrap_or_else(|| self.meet(device));
        self.latest = Some((device, is_wanted));
        is_wanted
    }

    #[cold]
    fn meet(&mut self, device: Device) -> bool {
        let names = self.inner.devices();
        let name = names.iter().find(|(named, _)| *named == device).map(|(_, name)| name.as_str());
        let mut is_wanted = false;
        for (_, named, is_met) in &mut self.wanted {
            if named.is(device, name) {
                (*is_met, is_wanted) = (true, true);
            }
        }
        is_wanted
    }

    fn count(&mut self, device: Device, is_wanted: bool) {
        if let Some((count, _)) = self.met.get_mut(&device) {
            *count += 1;
        } else if self.met.len() < COUNTED_MAX {
            self.met.insert(device, (1, is_wanted));
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
            let names_none = event.action == Action::Point && event.device == Device(0);
            if event.action.is_note() || names_none {
                return Ok(true);
            }
            let is_wanted = self.is_wanted(event.device);
            self.count(event.device, is_wanted);
            if is_wanted {
                return Ok(true);
            }
        }
        self.missing().map_or(Ok(false), Err)
    }

    fn caveats(&self) -> &[Caveat] {
        self.inner.caveats()
    }

    fn devices(&self) -> Vec<(Device, String)> {
        let mut named = self.inner.devices();
        named.retain(|(device, name)| self.is_named(*device, Some(name)));
        named
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
            self.names.iter().map(fact).collect()
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
            assert_eq!(source.facts().len(), 1);
            assert_eq!(read(&mut source).unwrap(), own, "{name}");
        }
        assert_eq!(read(&mut of(&["sda", "8:16"])).unwrap().len(), 5);
        let other = of(&["8:16"]);
        assert!(other.devices().is_empty() && other.facts().is_empty());
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

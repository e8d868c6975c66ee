//! Several places at once: a testbed where a trial's files lie, and others for sets of files that
//! name them.
//!
//! Each place is a testbed of its own, opened, prepared, cleaned and closed as if it were alone, so
//! that the journal knows all of it. In the folder of a trial it appears under its name: as a mount
//! in the agent's private namespace, or as a symbolic link where root's rights are not at work.
//! The file system and the knobs of a trial are those of the main place; the others stay as their
//! own description says, in all trials. Left out: whole devices as further places.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::symlinkat;

use super::api::{Asked, Kind, Opening, Prepared, PreparedPlace, Testbed};
use super::filesystem;
use super::loop_device::enter_namespace;
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::owned_directory;
use crate::protocol::{ActionKind, PlaceSpec, PlacesSpec, Stack, TestbedSpec, Warning};

/// Places at most: each is a device or a directory that somebody named.
const PLACES_MAX: usize = 16;
/// Longest name of a place.
const NAME_MAX: usize = 40;
/// Privilege classes, the least first.
const CLASSES: [&str; 4] = ["A", "A+", "B", "C"];

impl Kind for PlacesSpec {
    /// The highest of all places.
    fn class(&self) -> &'static str {
        let specs = std::iter::once(&*self.main).chain(self.others.iter().map(|it| &it.testbed));
        let ranks = specs.map(|spec| rank(super::kind_of(spec).class));
        CLASSES[ranks.max().unwrap_or(0)]
    }

    fn is_erasing(&self) -> bool {
        super::kind_of(&self.main).is_erasing
    }
}

fn rank(class: &str) -> usize {
    CLASSES.iter().position(|known| *known == class).unwrap_or(CLASSES.len() - 1)
}

/// A further place.
struct Place {
    name: String,
    /// Kind of its testbed.
    kind: &'static str,
    testbed: Box<dyn Testbed>,
    stack: Option<Stack>,
    /// Path at which it appears in the folder of a trial, while it does.
    shown_at: Option<PathBuf>,
}

/// Open places.
struct Places {
    class: &'static str,
    main: Box<dyn Testbed>,
    others: Vec<Place>,
    devices: Vec<String>,
    warnings: Vec<Warning>,
    /// True if places are mounted in the folder of a trial, or linked.
    is_mounted: bool,
}

/// Opens all of them, the main one first.
pub fn open(spec: PlacesSpec, opening: Opening) -> Result<Box<dyn Testbed>> {
    check(&spec)?;
    let class = spec.class();
    let Opening { machine, control, run, boundary, .. } = opening;
    let is_mounted = nix::unistd::geteuid().is_root() && machine.user().is_none();
    if machine.user().is_some() && rank(class) > rank("A+") {
        return Err(Error::refused(
            "root makes several places for others in their own directories only",
            "use directories, as in --on dir:PATH,NAME=dir:PATH, or run it as root",
        ));
    }
    if is_mounted {
        machine.act(ActionKind::Exec, "unshare", "private mount namespace", enter_namespace)?;
    }
    let main = super::open(
        *spec.main,
        Opening { machine: &mut *machine, control: &mut *control, run, boundary, place: None },
    )?;
    let (devices, warnings) = (main.devices().to_vec(), main.warnings().to_vec());
    let mut places = Places { class, main, others: Vec::new(), devices, warnings, is_mounted };
    for PlaceSpec { name, testbed, stack } in spec.others {
        let (machine, control, place) = (&mut *machine, &mut *control, Some(&*name));
        let kind = super::kind_of(&testbed).name;
        let opened = super::open(testbed, Opening { machine, control, run, boundary, place });
        match opened {
            Ok(testbed) => places.add(Place { name, kind, testbed, stack, shown_at: None }),
            Err(error) => {
                // What the journal does not know must not be in its way.
                let _ = places.close(machine);
                return Err(error);
            }
        }
    }
    Ok(Box::new(places))
}

/// Refuses places that cannot be beside each other.
fn check(spec: &PlacesSpec) -> Result<()> {
    let refused = |what: String, hint: &str| Err(Error::refused(what, hint));
    match &*spec.main {
        TestbedSpec::Places(_) => return Err(Error::protocol("places inside of places")),
        TestbedSpec::Directory(main) if main.in_place => {
            return refused(
                "a directory that is worked in itself has no other places".to_owned(),
                "use --on dir:PATH, which works in a sub-directory of its own",
            );
        }
        _ => {}
    }
    if spec.others.len() > PLACES_MAX {
        return refused(format!("{} places", spec.others.len()), "use 16 at most");
    }
    for (index, place) in spec.others.iter().enumerate() {
        let name = &place.name;
        if !is_name(name) {
            return refused(
                format!("no place is called {name:?}"),
                "a name has 1 to 40 of the characters a-z, A-Z, 0-9, - and _",
            );
        }
        if spec.others[..index].iter().any(|other| other.name == *name) {
            return refused(format!("two places are called {name}"), "name each once");
        }
        match &place.testbed {
            TestbedSpec::Loop(_) => {}
            TestbedSpec::Directory(own) if !own.in_place && own.allow_knobs_on.is_empty() => {}
            _ => {
                return refused(
                    format!("the place {name} is no private loop device and no directory"),
                    "use loop:SIZE or dir:PATH; knobs are those of the main place",
                );
            }
        }
    }
    Ok(())
}

/// Tell whether a place can be called that.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

impl Places {
    fn add(&mut self, place: Place) {
        for device in place.testbed.devices() {
            if !self.devices.contains(device) {
                self.devices.push(device.clone());
            }
        }
        let own = place.testbed.warnings().iter().cloned();
        let named = |warning: Warning| Warning {
            message: format!("place {}: {}", place.name, warning.message),
            ..warning
        };
        self.warnings.extend(own.map(named));
        self.others.push(place);
    }

    /// Lets a place appear in the folder of a trial.
    fn show(
        &mut self,
        machine: &mut Machine,
        index: usize,
        at: (&Prepared, &PreparedPlace),
    ) -> Result<()> {
        let (trial, place) = at;
        let point = trial.folder.join(&place.name);
        let shown = (point.display().to_string(), place.folder.display().to_string());
        if self.is_mounted {
            let detail = format!("mount --bind {} {}", shown.1, shown.0);
            machine.act(ActionKind::Mount, shown.0, detail, || bind(trial, place))?;
        } else {
            let user = machine.user().cloned();
            machine.act(ActionKind::CreateFile, shown.0, format!("link to {}", shown.1), || {
                crate::identity::on_behalf(user.as_ref(), || link(trial, place))
            })?;
        }
        self.others[index].shown_at = Some(point);
        Ok(())
    }

    /// Takes all places out of the folder of the trial; a link goes with what lies in it.
    fn hide(&mut self, machine: &mut Machine) -> Result<()> {
        for place in &mut self.others {
            let Some(point) = place.shown_at.take() else { continue };
            if self.is_mounted {
                filesystem::unmount(machine, &point)?;
            }
        }
        Ok(())
    }
}

/// Mounts the folder of a place in that of a trial: what is opened, not what the paths lead to.
fn bind(trial: &Prepared, place: &PreparedPlace) -> Result<()> {
    let folder = owned_directory::open_owned(&trial.folder, trial.token.as_deref())?;
    let own = owned_directory::open_owned(&place.folder, place.token.as_deref())?;
    let fail = |error: nix::Error| Error::io("mount", trial.folder.join(&place.name), error);
    match mkdirat(&folder, place.name.as_str(), Mode::S_IRWXU) {
        Ok(()) | Err(nix::Error::EEXIST) => {}
        Err(error) => return Err(fail(error)),
    }
    let opened = |fd: i32| PathBuf::from(format!("/proc/self/fd/{fd}"));
    let (from, to) = (opened(own.as_raw_fd()), opened(folder.as_raw_fd()).join(&place.name));
    let none: Option<&str> = None;
    mount(Some(&from), &to, none, MsFlags::MS_BIND, none).map_err(fail)
}

/// Links the folder of a place in that of a trial.
fn link(trial: &Prepared, place: &PreparedPlace) -> Result<()> {
    let folder = owned_directory::open_owned(&trial.folder, trial.token.as_deref())?;
    symlinkat(&place.folder, &folder, place.name.as_str())
        .map_err(|error| Error::io("make the link", trial.folder.join(&place.name), error))
}

impl Testbed for Places {
    fn class(&self) -> &'static str {
        self.class
    }

    fn directory(&self) -> &Path {
        self.main.directory()
    }

    fn is_users(&self) -> bool {
        self.main.is_users()
    }

    fn devices(&self) -> &[String] {
        &self.devices
    }

    fn knob_devices(&self) -> &[String] {
        self.main.devices()
    }

    fn loop_run(&self) -> Option<&str> {
        self.main.loop_run()
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = self.main.facts();
        for place in &self.others {
            facts.insert(format!("place.{}.kind", place.name), place.kind.to_owned());
            let devices = place.testbed.devices().join(", ");
            facts.insert(format!("place.{}.devices", place.name), devices);
            let folder = place.testbed.directory().display().to_string();
            facts.insert(format!("place.{}.directory", place.name), folder);
        }
        facts
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn free_bytes(&self) -> u64 {
        self.main.free_bytes()
    }

    fn check_knobs(&self, machine: &Machine, knobs: &BTreeMap<String, String>) -> Result<()> {
        self.main.check_knobs(machine, knobs)
    }

    fn check_fast_switching(&self) -> Result<()> {
        self.main.check_fast_switching()
    }

    fn prepare(&mut self, machine: &mut Machine, asked: Asked) -> Result<Prepared> {
        self.hide(machine)?;
        let mut prepared = self.main.prepare(machine, asked)?;
        if prepared.raw.is_some() {
            return Err(Error::refused(
                "a device without a file system has no folder for other places",
                "choose a file system for it, as with --fs ext4",
            ));
        }
        for index in 0..self.others.len() {
            let other = &mut self.others[index];
            let own = Asked { stack: other.stack.as_ref(), ..asked };
            let found = other.testbed.prepare(machine, own)?;
            let place = PreparedPlace {
                name: other.name.clone(),
                folder: found.folder,
                token: found.token,
                reserve_bytes: found.reserve_bytes,
            };
            prepared.warnings.extend(found.warnings);
            self.show(machine, index, (&prepared, &place))?;
            prepared.places.push(place);
        }
        Ok(prepared)
    }

    fn clean(&mut self, machine: &mut Machine) -> Result<()> {
        // A place that is still mounted would be emptied as a directory of the main one.
        self.hide(machine)?;
        let cleaned: Vec<Result<()>> =
            self.others.iter_mut().map(|place| place.testbed.clean(machine)).collect();
        self.main.clean(machine)?;
        cleaned.into_iter().collect()
    }

    fn close(&mut self, machine: &mut Machine) -> Result<()> {
        let hidden = self.hide(machine);
        let closed: Vec<Result<()>> =
            self.others.iter_mut().map(|place| place.testbed.close(machine)).collect();
        let main = self.main.close(machine);
        hidden.and(main).and(closed.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{DirectorySpec, LoopSpec};

    fn directory(path: &str) -> TestbedSpec {
        let allow_knobs_on = Vec::new();
        TestbedSpec::Directory(DirectorySpec {
            path: path.into(),
            allow_knobs_on,
            in_place: false,
            devices: Vec::new(),
        })
    }

    fn private() -> TestbedSpec {
        TestbedSpec::Loop(LoopSpec {
            size_bytes: 64 << 20,
            image_dir: "/var/tmp".into(),
            device_count: 1,
            logical_block_bytes: 512,
            twin_count: 1,
        })
    }

    fn places(main: TestbedSpec, others: &[(&str, TestbedSpec)]) -> PlacesSpec {
        let place = |(name, testbed): &(&str, TestbedSpec)| PlaceSpec {
            name: (*name).to_owned(),
            testbed: testbed.clone(),
            stack: None,
        };
        PlacesSpec { main: Box::new(main), others: others.iter().map(place).collect() }
    }

    #[test]
    fn the_class_is_the_highest_of_all_places() {
        let alone = super::super::kind_of(&directory("/x")).class;
        assert_eq!(places(directory("/x"), &[("log", directory("/y"))]).class(), alone);
        assert_eq!(places(directory("/x"), &[("log", private())]).class(), "B");
        assert!(!places(private(), &[]).is_erasing());
    }

    #[test]
    fn what_cannot_be_a_place_is_refused_by_name() {
        let told = |spec: PlacesSpec| check(&spec).unwrap_err().to_string();
        let fine = places(directory("/x"), &[("log", directory("/y")), ("b_2", private())]);
        assert!(check(&fine).is_ok());
        for name in ["", "a/b", ".", "..", "a b", "a+b"] {
            assert!(told(places(private(), &[(name, private())])).contains("is called"), "{name}");
        }
        let twice = places(private(), &[("log", private()), ("log", directory("/y"))]);
        assert!(told(twice).contains("two places are called log"));
        let nested = TestbedSpec::Places(places(private(), &[]));
        assert!(told(places(private(), &[("log", nested.clone())])).contains("the place log"));
        assert!(check(&places(nested, &[])).is_err());
        let allow_knobs_on = Vec::new();
        let own = DirectorySpec {
            path: "/x".into(),
            allow_knobs_on,
            in_place: true,
            devices: Vec::new(),
        };
        let own = TestbedSpec::Directory(own);
        assert!(told(places(own, &[("log", private())])).contains("worked in itself"));
    }
}

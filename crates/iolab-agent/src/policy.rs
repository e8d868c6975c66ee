//! Policy: the actions that root allows others through a sudo rule that names the agent:
//! `/etc/iolab/agent.toml`.
//!
//! The file is root's and says it; a request never does. Without a file: private loop devices in
//! /var/tmp, with every knob of their own. Left out: who is asked about it, which is `boundary`'s.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::knob::{self, Scope};
use crate::trusted::{Shared, weakness};

/// Path of the file, which root writes.
pub const PATH: &str = "/etc/iolab/agent.toml";
/// The largest file that is read.
const BYTES_MAX: u64 = 1 << 20;
/// Word for every knob of a device, those of its schedulers included.
const EVERY_DEVICE_KNOB: &str = "device";
/// Word for dropping the page cache of the whole machine.
const DROP_CACHES: &str = "drop_caches";
const CLASSES: &[&str] = &["A", "A+", "B", "C"];

/// Permissions of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// File that it was read from; none: there is no file.
    source: Option<&'static str>,
    rules: Rules,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Rules {
    classes: Vec<String>,
    image_dirs: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    devices: Vec<String>,
    knobs: Vec<String>,
    all_processes: bool,
    #[serde(deserialize_with = "size")]
    max_bytes: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            classes: vec!["B".to_owned()],
            image_dirs: vec!["/var/tmp".into()],
            directories: Vec::new(),
            devices: Vec::new(),
            knobs: vec![EVERY_DEVICE_KNOB.to_owned(), DROP_CACHES.to_owned()],
            all_processes: false,
            max_bytes: 64 << 30,
        }
    }
}

impl Policy {
    /// Root's file, or the usual policy if there is none; refused if others may write it.
    pub fn load() -> Result<Self> {
        let path = Path::new(PATH);
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { source: None, rules: Rules::default() });
            }
            Err(error) => return Err(Error::io("look at", path, error)),
            Ok(_) => {}
        }
        let refused = |why: String| {
            Error::refused(
                format!("{PATH} is not used: {why}"),
                format!("as root: chown root: {PATH}; chmod go-w {PATH}, and so its directories"),
            )
        };
        if let Some(why) = weakness(path, Shared::Refused) {
            return Err(refused(why));
        }
        let found = fs::metadata(path).map_err(|error| Error::io("look at", path, error))?;
        if !found.is_file() || found.size() > BYTES_MAX {
            return Err(refused("it is no file of at most 1 MiB".to_owned()));
        }
        let text = fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
        Ok(Self { source: Some(PATH), rules: parse(&text)? })
    }

    /// A policy as it would be read from a file.
    #[cfg(test)]
    pub fn of(text: &str) -> Result<Self> {
        Ok(Self { source: Some(PATH), rules: parse(text)? })
    }

    /// The path of the file, or `default`.
    pub fn source(&self) -> &'static str {
        self.source.unwrap_or("default")
    }

    /// Privilege classes that are allowed.
    pub fn classes(&self) -> &[String] {
        &self.rules.classes
    }

    /// Refuses a privilege class that root has not allowed.
    pub fn check_class(&self, class: &str) -> Result<()> {
        if class == "A" || self.rules.classes.iter().any(|allowed| allowed == class) {
            return Ok(());
        }
        let what = match class {
            "A+" => "root does not work in a directory for others here (class A+)".to_owned(),
            "B" => "private loop devices are not for others here (class B)".to_owned(),
            _ => "whole devices are not for others here (class C)".to_owned(),
        };
        Err(wants(what, &format!("classes = [\"{class}\"]")))
    }

    /// Refuses images in a directory that root has not named; `real` has no links in it.
    pub fn check_image_dir(&self, real: &Path) -> Result<()> {
        if is_below(real, &self.rules.image_dirs) {
            return Ok(());
        }
        let shown = real.display();
        let what = format!("images in {shown} are not allowed for others");
        Err(wants(what, &format!("image_dirs = [\"{shown}\"]")))
    }

    /// Refuses a directory testbed that root has not allowed; `real` has no links in it.
    pub fn check_directory(&self, real: &Path) -> Result<()> {
        if is_below(real, &self.rules.directories) {
            return Ok(());
        }
        let shown = real.display();
        let what = format!("root does not work in {shown} for others");
        Err(wants(what, &format!("directories = [\"{shown}\"]")))
    }

    /// Refuses a device, given by its kernel name, that root has not named.
    pub fn check_device(&self, name: &str) -> Result<()> {
        let is_it = |entry: &String| match entry.strip_prefix("/dev/") {
            None => entry == name,
            Some(_) => fs::canonicalize(entry).is_ok_and(|node| {
                node.strip_prefix("/dev").is_ok_and(|rest| {
                    rest.to_str().is_some_and(|rest| rest.replace('/', "!") == name)
                })
            }),
        };
        if self.rules.devices.iter().any(is_it) {
            return Ok(());
        }
        let what = format!("the device {name} is not for others");
        Err(wants(what, &format!("devices = [\"{name}\"]")))
    }

    /// Refuses a knob that root has not allowed.
    pub fn check_knob(&self, name: &str) -> Result<()> {
        let is_of_device = knob::find(name)?.1.scope() == Scope::Device;
        let allows = |entry: &String| entry == name || (is_of_device && entry == EVERY_DEVICE_KNOB);
        if self.rules.knobs.iter().any(allows) {
            return Ok(());
        }
        let what = format!("the knob {name} is not for others: it acts on the whole machine");
        let what = if is_of_device { format!("the knob {name} is not for others") } else { what };
        Err(wants(what, &format!("knobs = [\"{name}\"]")))
    }

    /// Tell whether the page cache of everybody may be dropped.
    pub fn may_drop_caches(&self) -> bool {
        self.rules.knobs.iter().any(|entry| entry == DROP_CACHES)
    }

    /// Refuses the recording of what processes of everybody do.
    pub fn check_all_processes(&self) -> Result<()> {
        if self.rules.all_processes {
            return Ok(());
        }
        let what =
            "what all processes do is not recorded for others; with --for COMMAND only that \
                    command is recorded"
                .to_owned();
        Err(wants(what, "all_processes = true"))
    }

    /// Bytes that others may use at once.
    pub fn bytes_max(&self) -> u64 {
        self.rules.max_bytes
    }

    /// Refuses more bytes than root allows for one testbed.
    pub fn check_bytes(&self, bytes: u64) -> Result<()> {
        let limit = self.rules.max_bytes;
        if bytes <= limit {
            return Ok(());
        }
        let what = format!("{bytes} bytes are more than the {limit} that others may use at once");
        Err(wants(what, &format!("max_bytes = {bytes}")))
    }
}

/// A refusal that names what root would have to write.
fn wants(what: String, line: &str) -> Error {
    let hint = format!(
        "root can allow it with {line} in {PATH} (add it to what stands there); whoever may run \
         anything by sudo needs no rule: sudo iolab ..."
    );
    Error::refused(what, hint)
}

fn parse(text: &str) -> Result<Rules> {
    let wrong = |what: String| {
        Error::refused(
            format!("{PATH} is not used: {what}"),
            "correct it as root; its keys are in docs/reference/agent-policy.md",
        )
    };
    let rules: Rules =
        toml::from_str(text).map_err(|error| wrong(error.to_string().trim().replace('\n', " ")))?;
    if let Some(class) = rules.classes.iter().find(|class| !CLASSES.contains(&class.as_str())) {
        return Err(wrong(format!("'{class}' is no class; there are A, A+, B and C")));
    }
    let mut folders = rules.image_dirs.iter().chain(&rules.directories);
    if let Some(folder) = folders.find(|folder| !folder.is_absolute()) {
        return Err(wrong(format!("{} is no absolute path", folder.display())));
    }
    let is_node = |name: &&String| name.contains('/') && !name.starts_with("/dev/");
    if let Some(device) = rules.devices.iter().find(is_node) {
        return Err(wrong(format!("'{device}' is neither a kernel name nor a path in /dev")));
    }
    let words = [EVERY_DEVICE_KNOB, DROP_CACHES];
    for name in rules.knobs.iter().filter(|name| !words.contains(&name.as_str())) {
        knob::find(name).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(rules)
}

/// Tell whether `real` is one of `folders`, or lies below one.
fn is_below(real: &Path, folders: &[PathBuf]) -> bool {
    let mut folders = folders.iter().filter_map(|folder| fs::canonicalize(folder).ok());
    folders.any(|folder| real.starts_with(folder))
}

/// A number of bytes, or a text such as `64 GiB`.
fn size<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Bytes(u64),
        Text(String),
    }
    let size = match Size::deserialize(from)? {
        Size::Bytes(bytes) => Some(bytes),
        Size::Text(text) => bytes_of(&text),
    };
    size.ok_or_else(|| {
        serde::de::Error::custom("max_bytes takes bytes, or a text such as \"64 GiB\"")
    })
}

fn bytes_of(text: &str) -> Option<u64> {
    const UNITS: &[(&str, u32)] = &[("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("B", 0)];
    let text = text.trim();
    let (unit, shift) = UNITS.iter().find(|(unit, _)| text.ends_with(unit)).unwrap_or(&("", 0));
    let number: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_word_only_loop_devices_are_for_others() {
        let policy = Policy::of("").unwrap();
        assert!(policy.check_class("B").is_ok() && policy.check_class("A").is_ok());
        for class in ["A+", "C"] {
            let error = policy.check_class(class).unwrap_err();
            assert!(matches!(error, Error::Refused { .. }));
            assert!(error.hint().contains(&format!("classes = [\"{class}\"]")), "{}", error.hint());
            assert!(error.hint().contains(PATH));
        }
        for knob in ["scheduler", "bfq.slice_idle", "read_ahead_kb", "driver_queue_depth"] {
            policy.check_knob(knob).unwrap();
        }
        for knob in ["vm.dirty_ratio", "cpu.governor"] {
            assert!(policy.check_knob(knob).unwrap_err().hint().contains(knob));
        }
        assert!(policy.may_drop_caches());
        assert!(policy.check_all_processes().unwrap_err().hint().contains("all_processes = true"));
        Policy::of("all_processes = true").unwrap().check_all_processes().unwrap();
        assert!(policy.check_image_dir(Path::new("/var/tmp/x")).is_ok());
        assert!(policy.check_image_dir(Path::new("/var/tmpx")).is_err());
        assert!(policy.check_image_dir(Path::new("/etc")).is_err());
        assert!(policy.check_directory(Path::new("/var/tmp")).is_err());
        assert!(policy.check_device("sda").is_err());
        assert!(
            policy.check_bytes(64 << 30).is_ok() && policy.check_bytes((64 << 30) + 1).is_err()
        );
    }

    #[test]
    fn what_root_writes_is_what_holds() {
        let policy = Policy::of(
            "classes = ['A+', 'C']\nimage_dirs = []\ndirectories = ['/tmp']\n\
             devices = ['sdb', '/dev/null']\nknobs = ['scheduler', 'vm.dirty_ratio']\n\
             max_bytes = '1 GiB'",
        )
        .unwrap();
        assert!(policy.check_class("C").is_ok() && policy.check_class("B").is_err());
        assert!(policy.check_image_dir(Path::new("/var/tmp")).is_err());
        assert!(policy.check_directory(Path::new("/tmp/mine")).is_ok());
        assert!(policy.check_device("sdb").is_ok() && policy.check_device("sda").is_err());
        assert!(policy.check_device("null").is_ok());
        assert!(policy.check_knob("vm.dirty_ratio").is_ok());
        assert!(policy.check_knob("nomerges").is_err() && !policy.may_drop_caches());
        assert!(policy.check_bytes(1 << 30).is_ok() && policy.check_bytes((1 << 30) + 1).is_err());
    }

    #[test]
    fn a_word_that_is_not_understood_allows_nothing() {
        for wrong in [
            "class = ['B']",
            "classes = ['D']",
            "classes = 'B'",
            "image_dirs = ['tmp']",
            "devices = ['../sda']",
            "knobs = ['schedular']",
            "all_processes = 'yes'",
            "max_bytes = 'much'",
            "max_bytes = -1",
            "max_bytes = '99999999999 TiB'",
            "[classes]",
            "\0",
        ] {
            let error = Policy::of(wrong).unwrap_err();
            assert!(matches!(error, Error::Refused { .. }), "{wrong}: {error}");
            assert!(error.to_string().contains(PATH), "{wrong}: {error}");
        }
    }

    #[test]
    fn sizes_have_units() {
        let expected = [("7", Some(7)), ("2 KiB", Some(2048)), ("3GiB", Some(3 << 30))];
        for (text, bytes) in expected {
            assert_eq!(bytes_of(text), bytes, "{text}");
        }
        assert_eq!(bytes_of("GiB"), None);
        assert_eq!(bytes_of("1 GB"), None);
    }
}

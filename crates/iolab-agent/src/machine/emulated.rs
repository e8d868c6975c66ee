//! A tree of files that behaves like the kernel's, and a fuse that lets the agent die at any step.
//!
//! What it models: a scheduler switch resets `nr_requests` and the tunables; bfq turns write-back
//! throttling off; `nr_requests` under `none` is the driver's depth, which survives switches; pairs
//! of a ratio and its bytes exclude each other; two views of one tunable. Source: Linux
//! block/elevator.c, block/blk-wbt.c, block/bfq-iosched.c, mm/page-writeback.c; tried on 6.18.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::Machine;
use crate::error::{Error, Result};
use crate::knob::{self, Scope, Site};

/// Steps that the agent may still take before it "dies".
#[derive(Clone, Debug)]
pub struct Fuse(Rc<Cell<u32>>);

impl Fuse {
    /// Burns after `steps` steps.
    pub fn new(steps: u32) -> Self {
        Self(Rc::new(Cell::new(steps)))
    }

    /// One step.
    pub fn burn(&self) -> Result<()> {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        if left == 0 { Err(Error::Crashed) } else { Ok(()) }
    }

    /// One step that appends to a file; dying in it leaves half of the bytes.
    pub fn burn_append(&self, file: &mut File, bytes: &[u8]) -> Result<()> {
        let is_dying = self.0.get() == 1;
        self.burn()?;
        let written = if is_dying { &bytes[..bytes.len() / 2] } else { bytes };
        file.write_all(written).map_err(|error| Error::io("append to", "journal", error))?;
        if is_dying { Err(Error::Crashed) } else { Ok(()) }
    }
}

/// Writes as the kernel would.
#[derive(Debug, Default)]
pub struct Kernel {
    /// Lets writes fail once it has burnt.
    pub fuse: Option<Fuse>,
    /// Write-back throttling that bfq has turned off, by device folder.
    throttling: BTreeMap<PathBuf, String>,
}

const TUNABLES: &[(&str, &[(&str, &str)])] = &[
    ("none", &[]),
    ("mq-deadline", &[("fifo_batch", "16"), ("read_expire", "500"), ("async_depth", "256")]),
    ("bfq", &[("low_latency", "1"), ("slice_idle", "8"), ("slice_idle_us", "8000")]),
];

impl Kernel {
    /// Writes `value` to `real`, which lies below `root`.
    pub fn write(&mut self, root: &Path, real: &Path, value: &str) -> io::Result<()> {
        if let Some(fuse) = &self.fuse {
            fuse.burn().map_err(io::Error::other)?;
        }
        if !real.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        match real.file_name().and_then(|name| name.to_str()).unwrap_or_default() {
            "scheduler" => self.switch(real, value),
            "nr_requests" => set_requests(root, real, value),
            "max_sectors_kb" => {
                let limit: u64 = number(&real.with_file_name("max_hw_sectors_kb"));
                put(real, &value.parse::<u64>().map_err(io::Error::other)?.min(limit).to_string())
            }
            "slice_idle" => {
                put(&real.with_file_name("slice_idle_us"), &format!("{value}000"))?;
                put(real, value)
            }
            "slice_idle_us" => {
                let ms = value.parse::<u64>().map_err(io::Error::other)? / 1000;
                put(&real.with_file_name("slice_idle"), &ms.to_string())?;
                put(real, value)
            }
            name if name.starts_with("dirty_") && name.ends_with("_ratio") => {
                set_pair(real, &real.with_file_name(name.replace("ratio", "bytes")), value)
            }
            name if name.starts_with("dirty_") && name.ends_with("bytes") => {
                if value.parse::<u64>().unwrap_or(0) < 8192 {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                set_pair(real, &real.with_file_name(name.replace("bytes", "ratio")), value)
            }
            _ => put(real, value),
        }
    }

    fn switch(&mut self, file: &Path, name: &str) -> io::Result<()> {
        let old = get(file);
        let Some((_, tunables)) = TUNABLES.iter().find(|(scheduler, _)| *scheduler == name) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if old.contains(&format!("[{name}]")) {
            return Ok(());
        }
        put(file, &bracketed(name))?;
        put(&file.with_file_name("nr_requests"), if name == "none" { "128" } else { "256" })?;
        let folder = file.with_file_name("iosched");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        if !tunables.is_empty() {
            fs::create_dir(&folder)?;
        }
        for (tunable, value) in *tunables {
            fs::write(folder.join(tunable), value)?;
        }
        let throttle = file.with_file_name("wbt_lat_usec");
        if name == "bfq" {
            self.throttling.insert(throttle.clone(), get(&throttle));
            put(&throttle, "0")?;
        } else if let Some(value) = self.throttling.remove(&throttle) {
            put(&throttle, &value)?;
        }
        Ok(())
    }
}

/// A fake machine with `loop8` and `sda`.
pub fn fake_machine() -> (tempfile::TempDir, Machine) {
    let root = tempfile::tempdir().expect("a temporary directory");
    for (name, device_number, sequence) in [("loop8", "7:8", "13"), ("sda", "8:0", "2")] {
        make_device(root.path(), name, device_number, sequence);
    }
    write_usual(root.path(), None);
    let cpufreq = root.path().join("sys/devices/system/cpu/cpufreq");
    for (policy, governor) in [("policy0", "schedutil"), ("policy4", "powersave")] {
        // Two groups of CPUs whose clocks differ, and so do their governors.
        fs::create_dir_all(cpufreq.join(policy)).expect("a folder");
        let write = |file: &str, text: &str| fs::write(cpufreq.join(policy).join(file), text);
        write("scaling_governor", governor).expect("a file");
        let offered = "powersave schedutil performance";
        write("scaling_available_governors", offered).expect("a file");
    }
    // These two were tuned by the machine's owner.
    let vm = root.path().join("proc/sys/vm");
    fs::write(vm.join("dirty_background_ratio"), "0").expect("a file");
    fs::write(vm.join("dirty_background_bytes"), "16777216").expect("a file");
    let machine = Machine::emulated(root.path().to_path_buf(), Kernel::default());
    (root, machine)
}

fn make_device(root: &Path, name: &str, device_number: &str, sequence: &str) {
    let device = root.join("sys/block").join(name);
    let tags = root.join("sys/kernel/debug/block").join(name).join("hctx0");
    let truth = root.join("truth");
    for folder in [device.join("queue"), device.join("mq/0"), tags.clone(), truth.clone()] {
        fs::create_dir_all(folder).expect("a folder");
    }
    let write = |file: &str, text: &str| fs::write(device.join(file), text).expect("a file");
    write("dev", device_number);
    write("diskseq", sequence);
    write("mq/0/nr_tags", "128");
    write_usual(root, Some(name));
    write("queue/scheduler", &bracketed("none"));
    write("queue/max_hw_sectors_kb", "1280");
    fs::write(tags.join("tags"), tags_text("128")).expect("a file");
    fs::write(truth.join(name), "128").expect("a file");
    if name == "sda" {
        // This one was tuned by its owner.
        Kernel::default().switch(&device.join("queue/scheduler"), "mq-deadline").expect("a switch");
        write("queue/nr_requests", "64");
        write("queue/iosched/fifo_batch", "4");
    }
}

/// Gives every knob of a device, or of the machine, its file with its usual value.
fn write_usual(root: &Path, device: Option<&str>) {
    let scope = if device.is_some() { Scope::Device } else { Scope::Machine };
    for row in knob::ALL.iter().filter(|row| row.knob.scope() == scope) {
        let about = row.knob.about();
        if about.members.is_empty() {
            let path = row.knob.path(Site { device, knob: row.name });
            let file = root.join(path.strip_prefix("/").expect("a knob's path is absolute"));
            fs::create_dir_all(file.parent().expect("a file lies in a folder")).expect("a folder");
            fs::write(file, &about.example[0]).expect("a file");
        }
    }
}

/// Every file with its contents.
pub fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path(), get(&entry.path()));
            }
        }
    }
    found
}

fn set_requests(root: &Path, file: &Path, value: &str) -> io::Result<()> {
    let wanted: u32 = value.parse().map_err(io::Error::other)?;
    if !get(&file.with_file_name("scheduler")).contains("[none]") {
        return put(file, &wanted.max(4).to_string());
    }
    let device = file.ancestors().nth(2).expect("a queue lies in a device");
    if wanted > number::<u32>(&device.join("mq/0/nr_tags")) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if get(file) != value {
        let name = device.file_name().expect("a device has a name");
        let tags = root.join("sys/kernel/debug/block").join(name).join("hctx0/tags");
        put(&root.join("truth").join(name), value)?;
        if tags.exists() {
            put(&tags, &tags_text(value))?;
        }
    }
    put(file, value)
}

fn set_pair(file: &Path, other: &Path, value: &str) -> io::Result<()> {
    if get(file) != value {
        put(other, "0")?;
    }
    put(file, value)
}

fn tags_text(depth: &str) -> String {
    format!(
        "nr_tags=128\nnr_reserved_tags=0\nactive_queues=0\n\nbitmap_tags:\ndepth={depth}\nbusy=0"
    )
}

fn bracketed(active: &str) -> String {
    let names = TUNABLES.iter().map(|(name, _)| *name);
    names
        .map(|name| if name == active { format!("[{name}]") } else { name.to_owned() })
        .collect::<Vec<_>>()
        .join(" ")
}

fn number<T: std::str::FromStr + Default>(file: &Path) -> T {
    get(file).parse().unwrap_or_default()
}

fn get(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

fn put(file: &Path, text: &str) -> io::Result<()> {
    fs::write(file, text)
}

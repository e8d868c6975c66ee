//! State of the machine: read only, stored with every trial as flat names and texts.
//!
//! A fact that cannot be read is left out. Source: Documentation/ABI/stable/sysfs-block,
//! Documentation/filesystems/proc.rst. Left out: SMART, firmware.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use nix::sys::statvfs::statvfs;

use crate::machine::{Machine, command, find_program};
use crate::mounts;
use crate::testbed::{FILE_SYSTEMS, leaves_of};

/// Names and texts.
pub type Facts = BTreeMap<String, String>;

const FILES: &[(&str, &str)] = &[
    ("kernel.release", "/proc/sys/kernel/osrelease"),
    ("kernel.version", "/proc/version"),
    ("kernel.cmdline", "/proc/cmdline"),
    ("kernel.io_uring_disabled", "/proc/sys/kernel/io_uring_disabled"),
    ("kernel.lockdown", "/sys/kernel/security/lockdown"),
    ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("cpu.governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("cpu.frequency_khz", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"),
    ("cpu.frequency_driver", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
    ("cpu.no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("cpu.boost", "/sys/devices/system/cpu/cpufreq/boost"),
    ("cpu.online", "/sys/devices/system/cpu/online"),
    ("cpu.smt", "/sys/devices/system/cpu/smt/active"),
    ("cpu.idle_driver", "/sys/devices/system/cpu/cpuidle/current_driver"),
    ("cpu.idle_governor", "/sys/devices/system/cpu/cpuidle/current_governor"),
    ("memory.transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("dmi.product", "/sys/class/dmi/id/product_name"),
    ("dmi.vendor", "/sys/class/dmi/id/sys_vendor"),
    ("cgroup.path", "/proc/self/cgroup"),
    ("load.average", "/proc/loadavg"),
    ("kernel.task_delayacct", "/proc/sys/kernel/task_delayacct"),
    ("kernel.hostname", "/proc/sys/kernel/hostname"),
    ("kernel.arch", "/proc/sys/kernel/arch"),
    ("aio.max", "/proc/sys/fs/aio-max-nr"),
    ("pressure.cpu", "/proc/pressure/cpu"),
    ("pressure.io", "/proc/pressure/io"),
    ("pressure.memory", "/proc/pressure/memory"),
];

const VM_SETTINGS: &[&str] = &[
    "dirty_ratio",
    "dirty_bytes",
    "dirty_background_ratio",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
    "vfs_cache_pressure",
    "swappiness",
    "min_free_kbytes",
];

const DEVICE_FILES: &[(&str, &str)] = &[
    ("number", "dev"),
    ("diskseq", "diskseq"),
    ("size_sectors", "size"),
    ("vendor", "device/vendor"),
    ("model", "device/model"),
    ("revision", "device/rev"),
    ("serial", "device/serial"),
    ("serial", "serial"),
    ("firmware", "device/firmware_rev"),
    ("driver_tags", "mq/0/nr_tags"),
    ("bdi.read_ahead_kb", "bdi/read_ahead_kb"),
    ("bdi.max_ratio", "bdi/max_ratio"),
    ("bdi.min_ratio", "bdi/min_ratio"),
    ("bdi.strict_limit", "bdi/strict_limit"),
    ("queue_depth", "device/queue_depth"),
    ("loop.backing_file", "loop/backing_file"),
    ("loop.dio", "loop/dio"),
    ("loop.offset", "loop/offset"),
    ("loop.size_limit", "loop/sizelimit"),
    ("loop.autoclear", "loop/autoclear"),
    ("md.level", "md/level"),
    ("md.sync_action", "md/sync_action"),
    ("dm.name", "dm/name"),
];

/// Facts about the machine.
pub fn machine(machine: &Machine) -> Facts {
    let mut facts = Facts::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value.replace('\n', "; "));
        }
    };
    for (name, file) in FILES {
        add(name, machine.peek(file));
    }
    for name in VM_SETTINGS {
        add(&format!("vm.{name}"), machine.peek(Path::new("/proc/sys/vm").join(name)));
    }
    for name in machine.list("/sys/devices/system/cpu/vulnerabilities") {
        let file = Path::new("/sys/devices/system/cpu/vulnerabilities").join(&name);
        add(&format!("cpu.vulnerability.{name}"), machine.peek(file));
    }
    let cpu = machine.peek("/proc/cpuinfo").unwrap_or_default();
    add("cpu.model", field(&cpu, "model name", ':'));
    add(
        "cpu.count",
        Some(cpu.lines().filter(|line| line.starts_with("processor")).count().to_string()),
    );
    add("cpu.throttle_count", throttle_count(machine));
    add("cgroup.limits", cgroup_limits(machine));
    add("md.resync", md_resync(machine));
    add("virtualization", virtualization(machine));
    let memory = machine.peek("/proc/meminfo").unwrap_or_default();
    for (name, key) in [
        ("memory.total", "MemTotal"),
        ("memory.available", "MemAvailable"),
        ("memory.swap", "SwapTotal"),
    ] {
        add(name, field(&memory, key, ':'));
    }
    let os = machine.peek("/etc/os-release").unwrap_or_default();
    add("os.name", field(&os, "PRETTY_NAME", '=').map(|name| name.trim_matches('"').to_owned()));
    for (name, version) in tool_versions() {
        add(&format!("tool.{name}"), Some(version.clone()));
    }
    facts
}

/// Facts about a device, and about what lies below it.
pub fn device(machine: &Machine, name: &str) -> Facts {
    let mut facts = Facts::new();
    let folder = Path::new("/sys/block").join(name);
    let mut add = |fact: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(format!("device.{name}.{fact}"), value);
        }
    };
    for (fact, file) in DEVICE_FILES {
        add(fact, machine.peek(folder.join(file)));
    }
    for file in machine.list(folder.join("queue")) {
        add(&format!("queue.{file}"), machine.peek(folder.join("queue").join(&file)));
    }
    for file in machine.list(folder.join("queue/iosched")) {
        add(&format!("iosched.{file}"), machine.peek(folder.join("queue/iosched").join(&file)));
    }
    let backing = machine.peek(folder.join("loop/backing_file"));
    if let Some(image) = backing {
        let image = image.trim_end_matches(" (deleted)").to_owned();
        let place = Path::new(&image).parent().unwrap_or(Path::new("/"));
        add("below.fs", mounts::of(place).map(|mount| mount.fs));
        let below = leaves_of(machine, place);
        add("below.devices", Some(below.join(",")));
        for lower in below {
            let scheduler = machine.peek(format!("/sys/block/{lower}/queue/scheduler"));
            add(&format!("below.{lower}.scheduler"), scheduler);
        }
    }
    facts
}

/// Facts about the file system that a folder lies in.
pub fn place(folder: &Path) -> Facts {
    let mut facts = Facts::new();
    if let Some(mount) = mounts::of(folder) {
        // A folder of devices: what their names lead to lies in no file system.
        if mount.fs == "devtmpfs" {
            return facts;
        }
        facts.insert("fs.options".to_owned(), mount.effective_options());
        facts.insert("fs.type".to_owned(), mount.fs);
        facts.insert("fs.source".to_owned(), mount.source);
    }
    if let Ok(status) = statvfs(folder) {
        let bytes = |blocks: u64| (blocks * status.fragment_size()).to_string();
        facts.insert("fs.free_bytes".to_owned(), bytes(status.blocks_available()));
        facts.insert("fs.size_bytes".to_owned(), bytes(status.blocks()));
        facts.insert("fs.block_bytes".to_owned(), status.block_size().to_string());
    }
    facts
}

/// Number of times that a core was too hot for its clock rate since the start; absent in virtual
/// machines.
fn throttle_count(machine: &Machine) -> Option<String> {
    let folder = Path::new("/sys/devices/system/cpu");
    let counts = machine.list(folder).into_iter().filter_map(|cpu| {
        let file = folder.join(cpu).join("thermal_throttle/core_throttle_count");
        machine.peek(file)?.parse::<u64>().ok()
    });
    counts.reduce(|sum, count| sum + count).map(|sum| sum.to_string())
}

/// Limits of the control group that this process is in; version 2 only.
fn cgroup_limits(machine: &Machine) -> Option<String> {
    let groups = machine.peek("/proc/self/cgroup")?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let folder = Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'));
    let files = ["memory.max", "memory.high", "cpu.max", "cpuset.cpus", "io.max"];
    let limit = |file: &str| {
        let text = machine.peek(folder.join(file)).filter(|text| !text.is_empty())?;
        Some(format!("{file} {text}"))
    };
    let found: Vec<String> = files.into_iter().filter_map(limit).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

/// Arrays that are being rebuilt or checked, which takes time from everybody.
fn md_resync(machine: &Machine) -> Option<String> {
    let text = machine.peek("/proc/mdstat")?;
    let words = ["resync", "recovery", "check", "reshape"];
    let is_busy = |line: &&str| words.iter().any(|word| line.contains(&format!("{word} =")));
    let lines: Vec<&str> = text.lines().filter(is_busy).map(str::trim).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// `none`, or what kind of virtual machine this seems to be.
pub fn virtualization(machine: &Machine) -> Option<String> {
    let cpu = machine.peek("/proc/cpuinfo")?;
    let is_guest = field(&cpu, "flags", ':')?.split(' ').any(|flag| flag == "hypervisor");
    let product = machine.peek("/sys/class/dmi/id/product_name").filter(|name| !name.is_empty());
    Some(if is_guest {
        product.unwrap_or_else(|| "hypervisor".to_owned())
    } else {
        "none".to_owned()
    })
}

/// Value of the first line that begins with `key`.
pub fn field(text: &str, key: &str, separator: char) -> Option<String> {
    let line =
        text.lines().find(|line| line.split(separator).next().is_some_and(|k| k.trim() == key))?;
    Some(line.split_once(separator)?.1.trim().to_owned())
}

/// Versions of the programs that make file systems; asked once.
fn tool_versions() -> &'static Vec<(&'static str, String)> {
    static VERSIONS: OnceLock<Vec<(&'static str, String)>> = OnceLock::new();
    VERSIONS.get_or_init(|| {
        let names = FILE_SYSTEMS.iter().map(|row| row.mkfs);
        names.filter_map(|name| Some((name, version(name)?))).collect()
    })
}

/// First words that a program says about itself; mke2fs says them on standard error.
fn version(name: &str) -> Option<String> {
    let output = command(find_program(name)?).arg("-V").output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).lines().next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fake_machine;

    #[test]
    fn queue_files_become_flat_names() {
        let (_root, machine) = fake_machine();
        let facts = device(&machine, "sda");
        assert_eq!(facts["device.sda.queue.nr_requests"], "64");
        assert_eq!(facts["device.sda.iosched.fifo_batch"], "4");
        assert_eq!(facts["device.sda.diskseq"], "2");
    }

    #[test]
    fn what_is_absent_is_left_out_and_what_is_there_is_added_up() {
        let (root, fake) = fake_machine();
        let before = machine(&fake);
        for name in ["cpu.throttle_count", "cgroup.limits", "md.resync", "pressure.io"] {
            assert_eq!(before.get(name), None, "{name}");
        }
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3");
        write("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "4");
        write("proc/self/cgroup", "0::/user.slice\n");
        write("sys/fs/cgroup/user.slice/memory.max", "1073741824");
        write("proc/mdstat", "md0 : active raid1\n [=>...]  resync = 7.0% (1/2) finish=1min");
        write("sys/block/sda/bdi/max_ratio", "100");
        let after = machine(&fake);
        assert_eq!(after["cpu.throttle_count"], "7");
        assert_eq!(after["cgroup.limits"], "memory.max 1073741824");
        assert!(after["md.resync"].contains("resync = 7.0%"), "{after:?}");
        assert_eq!(device(&fake, "sda")["device.sda.bdi.max_ratio"], "100");
    }

    #[test]
    fn fields_are_found_whatever_blanks_surround_them() {
        let text = "processor\t: 0\nmodel name\t: A B: C\nMemTotal:  12 kB\n";
        assert_eq!(field(text, "model name", ':').as_deref(), Some("A B: C"));
        assert_eq!(field(text, "MemTotal", ':').as_deref(), Some("12 kB"));
        assert_eq!(field(text, "model", ':'), None);
    }
}

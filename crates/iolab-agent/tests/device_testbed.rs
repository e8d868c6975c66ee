//! Whole devices through the real binary: what is refused (rules R1 to R5), what is done, and that
//! nothing but a marker stays, however it ends.
//!
//! Needs root; the devices are loop devices over images of these tests.

#[path = "agent/client.rs"]
mod agent;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use agent::{Agent, alone, ext4, is_root, mounts_of, trial, wait_until, writing};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
const SIZE: u64 = 160 * MIB;

/// A loop device over an image of ours, detached at the end.
struct Disk {
    place: tempfile::TempDir,
    node: String,
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Disk {
    fn new() -> Self {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let image = place.path().join("disk.img");
        File::create(&image).unwrap().set_len(SIZE).unwrap();
        let node = run("losetup", &["--find", "--show", image.to_str().unwrap()]);
        let disk = Self { place, node };
        // The kernel keeps the scheduler of a loop device that was used before.
        fs::write(format!("/sys/block/{}/queue/scheduler", disk.name()), "none").unwrap();
        disk
    }

    fn image(&self) -> PathBuf {
        self.place.path().join("disk.img")
    }

    fn state(&self) -> PathBuf {
        self.place.path().join("state")
    }

    fn name(&self) -> &str {
        self.node.strip_prefix("/dev/").unwrap()
    }

    /// As the agent knows it: name and inode of the image.
    fn serial(&self) -> String {
        use std::os::unix::fs::MetadataExt;
        format!("disk.img-{}", fs::metadata(self.image()).unwrap().ino())
    }

    fn knob(&self, name: &str) -> String {
        fs::read_to_string(format!("/sys/block/{}/queue/{name}", self.name())).unwrap()
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        let device = OpenOptions::new().write(true).open(&self.node).unwrap();
        device.write_all_at(bytes, offset).unwrap();
        device.sync_all().unwrap();
    }

    fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        File::open(&self.node).unwrap().read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }

    /// The ends and some of the middle.
    fn content(&self) -> Vec<u8> {
        [self.read(0, 4 << 20), self.read(SIZE - 2 * MIB, 2 << 20)].concat()
    }

    fn spec(&self, path: &str, serial: Option<&str>) -> Value {
        let results = self.place.path();
        json!({"kind": "device", "path": path, "erase_serial": serial, "protected": [results],
            "precondition": "none", "precondition_round_ns": 1_000_000})
    }

    /// Refusal of a real start with the right serial; checks that it changed nothing.
    fn refusal_of(&self, path: &str) -> String {
        let before = self.content();
        let why = self.why_not(path);
        assert!(self.content() == before, "a refusal changes nothing");
        why
    }

    /// Refusal of a real start with the right serial.
    fn why_not(&self, path: &str) -> String {
        let (mut agent, _) = Agent::start("device-refused", &self.state(), false);
        let serial = self.serial();
        let answer = agent.ask("open_testbed", &self.spec(path, Some(&serial)));
        let error = answer.expect_err("it must be refused");
        assert_eq!(error["code"], "refused", "{error}");
        assert!(!error["hint"].as_str().unwrap().is_empty(), "{error}");
        assert_eq!(agent.end_input(), Some(0));
        format!("{} | {}", error["message"].as_str().unwrap(), error["hint"].as_str().unwrap())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // After a failure only; else there is none.
        let _ = Command::new("swapoff").arg(&self.node).output();
        let _ = Command::new("losetup").args(["-d", &self.node]).status();
    }
}

fn raw() -> Value {
    json!({"fs": "none", "mkfs_options": [], "mount_options": [], "has_external_journal": false})
}

fn is_marked(disk: &Disk) -> bool {
    let begin = disk.read(0, MIB as usize);
    begin.starts_with(b"iolab-device-marker-1\n")
        && begin[4096..].iter().all(|&byte| byte == 0)
        && disk.read(SIZE - MIB, MIB as usize).iter().all(|&byte| byte == 0)
}

#[test]
fn needs_root_raw_and_formatted_trials_leave_a_marker_and_nothing_else() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    let (scheduler, before) = (disk.knob("scheduler"), mounts_of("device-"));
    let (mut agent, _) = Agent::start("device-use", &disk.state(), false);
    let opened = agent.ask("open_testbed", &disk.spec(&disk.node, Some(&disk.serial()))).unwrap();
    assert_eq!((&opened["class"], &opened["devices"]), (&json!("C"), &json!([disk.name()])));
    let phrase = format!("ERASE {} loop", disk.serial());
    assert_eq!(opened["facts"]["erase.phrase"], phrase);
    assert_eq!(opened["facts"]["erase.is_confirmed"], "false");
    assert!(disk.content().iter().all(|&byte| byte == 0), "nothing is written before a trial");

    let knobs = json!({"scheduler": "mq-deadline", "read_ahead_kb": "64"});
    let phases = writing(&json!({"kind": "once"}));
    let record = agent.ask("run_trial", &trial(&raw(), &knobs, &phases)).unwrap();
    assert_eq!(record["status"], "ok", "{record}");
    assert_eq!(record["knobs"]["scheduler"], "mq-deadline");
    assert_eq!(record["phases"][0]["devices"][0]["write_bytes"], 4_194_304, "direct, all of it");
    let written = disk.read(MIB, 4 << 20);
    assert!(written.chunks(4096).all(|page| page.iter().any(|&byte| byte != 0)), "the slice");
    assert!(disk.read(5 * MIB, 4096).iter().all(|&byte| byte == 0), "nothing behind it");
    assert!(disk.read(0, MIB as usize).iter().all(|&byte| byte == 0), "nothing before it");

    for stack in [ext4(), raw(), ext4()] {
        let record = agent.ask("run_trial", &trial(&stack, &knobs, &phases)).unwrap();
        assert_eq!(record["status"], "ok", "{record}");
    }
    assert_eq!(mounts_of("device-"), before, "the mount is private");
    let claimed = OpenOptions::new().write(true).open(&disk.node);
    drop(claimed.unwrap());
    let closed = agent.ask("close_testbed", &json!({})).unwrap();
    assert_eq!(closed["is_restored"], true, "{closed}");
    assert_eq!(agent.end_input(), Some(0));
    assert_eq!((disk.knob("scheduler"), mounts_of("device-")), (scheduler, before));
    assert!(is_marked(&disk), "both ends are blank but for the marker");
    assert!(!Path::new("/run/iolab/device-use").exists());

    // Nobody said which study that was: it is asked again.
    let (mut agent, _) = Agent::start("device-again", &disk.state(), false);
    agent.ask("open_testbed", &disk.spec(&disk.node, None)).unwrap_err();
    assert_eq!(agent.end_input(), Some(0));
    assert!(is_marked(&disk));
}

/// Runs one trial of `study` and closes; whether the start was allowed.
fn study(disk: &Disk, run: &str, study: &str, serial: Option<&str>) -> Result<Value, Value> {
    let (mut agent, _) = Agent::start(run, &disk.state(), false);
    let mut spec = disk.spec(&disk.node, serial);
    spec["study"] = json!(study);
    let opened = agent.ask("open_testbed", &spec);
    if opened.is_ok() {
        let phases = writing(&json!({"kind": "once"}));
        let record = agent.ask("run_trial", &trial(&raw(), &json!({}), &phases)).unwrap();
        assert_eq!(record["status"], "ok", "{record}");
    }
    assert_eq!(agent.end_input(), Some(0));
    opened
}

#[test]
fn needs_root_only_the_same_study_on_what_it_left_is_not_asked_for_again() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    study(&disk, "device-first", "plan-a", Some(&disk.serial())).unwrap();
    assert!(is_marked(&disk));
    let before = disk.content();
    let error = study(&disk, "device-other", "plan-b", None).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("nobody has confirmed"), "{error}");
    let error = study(&disk, "device-wrong", "plan-a", Some("S123")).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("is not the device"), "{error}");
    assert!(disk.content() == before, "a refusal changes nothing");
    let opened = study(&disk, "device-same", "plan-a", None).unwrap();
    assert_eq!(opened["facts"]["erase.is_confirmed"], "true");

    // Somebody else's data, of which the ends know nothing.
    disk.write(9 * MIB + 4096, b"thesis");
    let error = study(&disk, "device-late", "plan-a", None).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("nobody has confirmed"), "{error}");
    assert_eq!(disk.read(9 * MIB + 4096, 6), b"thesis");
}

#[test]
fn needs_root_what_a_killed_run_left_is_told_before_the_content() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    let (mut agent, _) = Agent::start("device-dead", &disk.state(), false);
    let mut spec = disk.spec(&disk.node, Some(&disk.serial()));
    spec["study"] = json!("plan-a");
    agent.ask("open_testbed", &spec).unwrap();
    let phases = writing(&json!({"kind": "once"}));
    agent.ask("run_trial", &trial(&ext4(), &json!({}), &phases)).unwrap();
    kill(watchdog_of(&disk.state()), Signal::SIGKILL).unwrap();
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();

    let mut told = Vec::new();
    for is_dry_run in [true, false] {
        let (mut agent, _) = Agent::start("device-next", &disk.state(), is_dry_run);
        let error = agent.ask("open_testbed", &spec).unwrap_err();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("device-dead") && !message.contains("not empty"), "{error}");
        told.push(message.to_owned());
        assert!(error["hint"].as_str().unwrap().contains("iolab restore"), "{error}");
        assert_eq!(agent.end_input(), Some(0));
    }
    let (mut agent, _) = Agent::start("device-restore", &disk.state(), false);
    let outcome = agent.ask("restore", &json!({"run": null})).unwrap();
    assert_eq!(outcome["problems"], json!([]), "{outcome}");
    assert_eq!(agent.end_input(), Some(0));
    assert!(is_marked(&disk), "restoring takes it off: {outcome}");
    let undone = |word: &str| outcome[word].as_array().unwrap().len();
    let count = undone("restored") + undone("obsolete");
    let text = format!("an earlier run (device-dead) left {count} changes that are not undone");
    assert!(count > 1 && told.iter().all(|message| *message == text), "{told:?}: {outcome}");
    let settled = outcome["restored"].to_string();
    assert!(
        settled.contains("both ends are blank") && settled.contains("still there"),
        "{settled}"
    );
    // Nobody knows who wrote there before it was restored.
    study(&disk, "device-asked", "plan-a", None).unwrap_err();
}

/// Rows of the doctor about this device.
fn examined(disk: &Disk) -> Vec<Value> {
    let (mut agent, _) = Agent::start("device-doctor", &disk.state(), true);
    let found = agent.ask("doctor", &json!({"paths": [disk.node]})).unwrap();
    assert_eq!(agent.end_input(), Some(0));
    let checks = found["checks"].as_array().unwrap();
    let text = found.to_string();
    for wrong in ["is not a directory", "mkdir", "lies on no block device", "/probe"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    let is_meant = |check: &&Value| {
        [disk.node.as_str(), &format!("device {}", disk.name())]
            .contains(&check["name"].as_str().unwrap())
    };
    checks.iter().filter(is_meant).cloned().collect()
}

#[test]
fn needs_root_the_doctor_looks_at_a_device_as_a_device() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    let found = examined(&disk);
    assert_eq!(found.len(), 2, "told once, and its schedulers: {found:?}");
    assert_eq!((&found[0]["status"], &found[1]["status"]), (&json!("ok"), &json!("ok")));
    let message = found[0]["message"].as_str().unwrap();
    assert!(message.contains("would erase") && !message.contains("samples"), "{message}");
    assert!(found[1]["message"].as_str().unwrap().contains("mq-deadline"), "{found:?}");

    // A raw volume of a database: nothing at the ends, data between them.
    disk.write(20 * MIB, &vec![7; 100 << 20]);
    let found = examined(&disk);
    assert_eq!(found[0]["status"], "warn");
    let message = found[0]["message"].as_str().unwrap();
    assert!(message.contains("samples are not blank: something is stored here"), "{message}");
    let (mut agent, _) = Agent::start("device-asked", &disk.state(), true);
    let opened = agent.ask("open_testbed", &disk.spec(&disk.node, None)).unwrap();
    let stored = opened["facts"]["erase.stored"].as_str().unwrap();
    assert!(message.ends_with(stored), "the question says the same: {stored}");
    assert_eq!(agent.end_input(), Some(0));

    disk.write(0, &[1; 512]);
    let found = examined(&disk);
    assert_eq!((found.len(), &found[0]["status"]), (1, &json!("fail")), "{found:?}");
    assert!(found[0]["message"].as_str().unwrap().contains("is not empty"), "{found:?}");
    assert!(found[0]["hint"].as_str().unwrap().contains("wipefs"), "{found:?}");
}

fn watchdog_of(state: &Path) -> Pid {
    let state = state.to_str().unwrap();
    let found = fs::read_dir("/proc").unwrap().find_map(|entry| {
        let name = entry.unwrap().file_name().into_string().ok()?;
        let command = fs::read_to_string(format!("/proc/{name}/cmdline")).ok()?;
        let is_it = command.contains("\0watchdog\0") && command.contains(state);
        is_it.then(|| name.parse().map(Pid::from_raw).ok())?
    });
    found.expect("a watchdog runs")
}

#[test]
fn needs_root_nothing_is_erased_that_nobody_confirmed() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    for typed in [None, Some(""), Some("yes"), Some("disk.img"), Some("ERASE")] {
        let (mut agent, _) = Agent::start("device-asked", &disk.state(), false);
        let error = agent.ask("open_testbed", &disk.spec(&disk.node, typed)).unwrap_err();
        assert_eq!(error["code"], "refused", "{typed:?}: {error}");
        assert!(error["message"].as_str().unwrap().contains(&disk.serial()), "{error}");
        assert_eq!(agent.end_input(), Some(0));
        assert!(disk.content().iter().all(|&byte| byte == 0), "{typed:?}");
    }
}

/// Rule R3 with real programs where they exist; what is written by hand cites its offset in
/// `src/disk/signature.rs`.
#[test]
fn needs_root_what_is_not_empty_is_refused() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    for (name, program) in [
        ("ext2, ext3 or ext4", &["mkfs.ext4", "-F", "-q"] as &[&str]),
        ("btrfs", &["mkfs.btrfs", "-q"]),
        ("swap", &["mkswap"]),
    ] {
        let disk = Disk::new();
        run(program[0], &[&program[1..], &[disk.node.as_str()]].concat());
        let why = disk.refusal_of(&disk.node);
        assert!(why.contains(name) && why.contains("wipefs -a"), "{name}: {why}");
    }
    let md = b"\xFC\x4E\x2B\xA9";
    let uberblock = 0x00BA_B10C_u64.to_le_bytes();
    let cases: &[(&str, u64, &[u8])] = &[
        ("GPT", 512, b"EFI PART"),
        ("GPT partition table (backup)", SIZE - 512, b"EFI PART"),
        ("MBR", 510, b"\x55\xAA"),
        ("xfs", 0, b"XFSB"),
        ("LVM", 512, b"LABELONE"),
        ("md RAID member (0.90)", SIZE - 65_536, md),
        ("md RAID member (1.0)", SIZE - 8192, md),
        ("md RAID member (1.2)", 4096, md),
        ("LUKS", 0, b"LUKS\xBA\xBE\x00\x02"),
        ("ZFS", 128 << 10, &uberblock),
        ("ZFS", SIZE - (128 << 10), &uberblock),
        ("Ceph", 0, b"bluestore block device\n"),
        ("byte 500000 there is something", 500_000, b"x"),
        ("there is something", SIZE - 1, b"x"),
    ];
    for (name, offset, bytes) in cases {
        let disk = Disk::new();
        disk.write(*offset, bytes);
        let why = disk.refusal_of(&disk.node);
        assert!(why.contains(name), "{name}: {why}");
        let command = why.split("what is on it: ").nth(1).expect("the command is told");
        run("sh", &["-c", command]);
        let (mut agent, _) = Agent::start("device-wiped", &disk.state(), true);
        agent.ask("open_testbed", &disk.spec(&disk.node, None)).expect("its own advice helps");
    }
}

/// Rules R1, R2 and R4 on devices that are really in use.
#[test]
fn needs_root_what_is_in_use_is_refused_under_any_name() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    let alias = disk.place.path().join("by-id-alias");
    symlink(&disk.node, &alias).unwrap();
    let alias = alias.to_str().unwrap();

    let open = File::open(&disk.node).unwrap();
    let why = disk.refusal_of(alias);
    assert!(why.contains(&format!("process {} ", std::process::id())), "{why}");
    drop(open);

    let twin = run("losetup", &["--find", "--show", disk.image().to_str().unwrap()]);
    run("mkfs.ext4", &["-F", "-q", &twin]);
    let point = disk.place.path().join("point");
    fs::create_dir(&point).unwrap();
    let point = point.to_str().unwrap();
    // For reading only: what may be written changes by itself (ext4 fills its tables).
    run("mount", &["-o", "ro", &twin, point]);
    let why = disk.refusal_of(alias);
    run("umount", &[point]);
    run("losetup", &["-d", &twin]);
    assert!(why.contains("is mounted on") && why.contains("umount"), "same image twice: {why}");

    run("mount", &["-o", "ro", &disk.node, point]);
    let why = disk.refusal_of(alias);
    run("umount", &[point]);
    assert!(why.contains(&format!("is mounted on {point}")), "{why}");

    let above = run("losetup", &["--find", "--show", &disk.node]);
    let why = disk.refusal_of(alias);
    run("losetup", &["-d", &above]);
    assert!(why.contains(&format!("{above} is attached to {}", disk.node)), "{why}");

    run("mkswap", &[&disk.node]);
    run("swapon", &[&disk.node]);
    // Its content is the system's: a kernel that reclaims memory early swaps at once.
    let why = disk.why_not(alias);
    run("swapoff", &[&disk.node]);
    assert!(why.contains(&format!("running system (swap on {})", disk.node)), "{why}");
}

/// One image under another name, from another offset, or in the hands of another program.
#[test]
fn needs_root_an_image_in_use_under_another_name_is_refused() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    let link = disk.place.path().join("hard-link.img");
    fs::hard_link(disk.image(), &link).unwrap();
    let point = disk.place.path().join("point");
    fs::create_dir(&point).unwrap();
    let point = point.to_str().unwrap();

    let attach = ["--find", "--show", "-o", "4194304", link.to_str().unwrap()];
    let twin = run("losetup", &attach);
    run("mkfs.ext4", &["-F", "-q", &twin]);
    let blank = disk.read(0, MIB as usize).iter().all(|&byte| byte == 0);
    let why = disk.refusal_of(&disk.node);
    run("mount", &["-o", "ro", &twin, point]);
    let why_mounted = disk.refusal_of(&disk.node);
    run("umount", &[point]);
    run("losetup", &["-d", &twin]);
    assert!(blank, "no label would give it away");
    assert!(why.contains(&format!("{twin} has the same image")) && why.contains("losetup -d"));
    assert!(why_mounted.contains(&format!("is mounted on {point}")), "{why_mounted}");

    let open = OpenOptions::new().read(true).write(true).open(&link).unwrap();
    let why = disk.refusal_of(&disk.node);
    drop(open);
    let own = format!("process {} ", std::process::id());
    assert!(why.contains(&own) && why.contains("has its image"), "{why}");

    let above = run("losetup", &["--find", "--show", &disk.node]);
    let why = disk.refusal_of(&above);
    run("losetup", &["-d", &above]);
    assert!(why.contains("is a loop device over the device"), "{why}");
}

#[test]
fn needs_root_a_partition_and_the_parent_of_a_mounted_one_are_refused() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    run("addpart", &[&disk.node, "1", "20480", "204800"]);
    let part = format!("{}p1", disk.node);
    wait_until(Duration::from_secs(5), "the node of the partition", || Path::new(&part).exists());
    let why = disk.refusal_of(&part);
    assert!(why.contains("is a partition") && why.contains(&disk.node), "{why}");
    run("mkfs.ext4", &["-F", "-q", &part]);
    let point = disk.place.path().join("point");
    fs::create_dir(&point).unwrap();
    run("mount", &[&part, point.to_str().unwrap()]);
    let why = disk.refusal_of(&disk.node);
    run("umount", &[point.to_str().unwrap()]);
    run("delpart", &[&disk.node, "1"]);
    assert!(why.contains(&part) && why.contains("is mounted on"), "{why}");
}

#[test]
fn needs_root_what_is_no_disk_is_refused() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    let typo = format!("/dev/iolab-typo-{}", std::process::id());
    fs::write(&typo, "dd wrote this").unwrap();
    let why = disk.refusal_of(&typo);
    fs::remove_file(&typo).unwrap();
    assert!(why.contains("ordinary file") && why.contains("mistyped"), "{why}");
    run("blockdev", &["--setro", &disk.node]);
    let why = disk.refusal_of(&disk.node);
    run("blockdev", &["--setrw", &disk.node]);
    assert!(why.contains("read-only"), "{why}");

    // The disk that this machine runs from; a rehearsal, so that not even a mistake could hurt it.
    let root = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let source = root.lines().find_map(|line| {
        let (mount, rest) = line.split_once(" - ")?;
        let source = rest.split(' ').nth(1)?.to_owned();
        (mount.split(' ').nth(4)? == "/" && source.starts_with("/dev/")).then_some(source)
    });
    let source = source.filter(|source| Path::new(source).exists());
    let Some(source) = source.or_else(|| Path::new("/dev/vda").exists().then(|| "/dev/vda".into()))
    else {
        return;
    };
    let (mut agent, _) = Agent::start("device-system", &disk.state(), true);
    let error = agent.ask("open_testbed", &disk.spec(&source, None)).unwrap_err();
    assert_eq!(error["code"], "refused");
    let is_system = error["message"].as_str().unwrap().contains("carries the running system");
    assert!(is_system || error["message"].as_str().unwrap().contains("partition"), "{error}");
}

#[test]
fn needs_root_a_killed_agent_leaves_no_file_system_and_no_setting() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    for (index, stack) in [raw(), ext4()].into_iter().enumerate() {
        let disk = Disk::new();
        let (scheduler, before) = (disk.knob("scheduler"), mounts_of("device-"));
        let run = format!("device-kill-{index}");
        let (mut agent, _) = Agent::start(&run, &disk.state(), false);
        let spec = disk.spec(&disk.node, Some(&disk.serial()));
        agent.ask("open_testbed", &spec).unwrap();
        let knobs = json!({"scheduler": "mq-deadline", "nr_requests": "64"});
        let limit = json!({"kind": "time", "duration_ns": 20_000_000_000_u64});
        agent.send("run_trial", &trial(&stack, &knobs, &writing(&limit)));
        wait_until(Duration::from_secs(20), "the trial to run", || {
            disk.knob("scheduler").contains("[mq-deadline]")
        });
        std::thread::sleep(Duration::from_millis(700));
        kill(Pid::from_raw(agent.child.id().cast_signed()), Signal::SIGKILL).unwrap();
        agent.child.wait().unwrap();
        wait_until(Duration::from_secs(10), "the watchdog", || {
            disk.knob("scheduler") == scheduler
                && fs::read_dir(disk.state().join("journal")).unwrap().next().is_none()
        });
        assert_eq!(mounts_of("device-"), before);
        assert!(!Path::new("/run/iolab").join(&run).exists());
        assert!(is_marked(&disk), "what we made is taken off: {index}");
    }
}

#[test]
fn needs_root_what_was_made_meanwhile_is_left_alone() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    let (mut agent, _) = Agent::start("device-late", &disk.state(), false);
    let spec = disk.spec(&disk.node, Some(&disk.serial()));
    agent.ask("open_testbed", &spec).unwrap();
    let phases = writing(&json!({"kind": "once"}));
    agent.ask("run_trial", &trial(&raw(), &json!({}), &phases)).unwrap();
    // Somebody ignores the claim and puts a label of theirs on it.
    disk.write(512, b"LABELONE");
    let closed = agent.ask("close_testbed", &json!({})).unwrap();
    assert_eq!(closed["is_restored"], true, "{closed}");
    assert_eq!(agent.end_input(), Some(0));
    assert_eq!(disk.read(512, 8), b"LABELONE");
}

#[test]
fn needs_root_a_rehearsal_names_every_step_and_changes_nothing() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    let (mut agent, _) = Agent::start("device-paper", &disk.state(), true);
    let mut spec = disk.spec(&disk.node, None);
    spec["precondition"] = json!("fill2x");
    let opened = agent.ask("open_testbed", &spec).unwrap();
    let phases = writing(&json!({"kind": "once"}));
    let knobs = json!({"scheduler": "mq-deadline"});
    let mut text = opened["actions"].to_string();
    for stack in [raw(), ext4()] {
        let record = agent.ask("run_trial", &trial(&stack, &knobs, &phases)).unwrap();
        assert_eq!(record["status"], "dry_run");
        text += &record["actions"].to_string();
    }
    let closed = agent.ask("close_testbed", &json!({})).unwrap();
    text += &closed["actions"].to_string();
    for word in [
        "claim_device",
        "slices within bytes 1048576 to 166723584",
        "precondition fill2x: at most 331350016 bytes",
        "mkfs.ext4",
        "mount",
        "write_knob",
        "write_marker",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("\"class\":\"B\"") && text.contains("\"class\":\"C\""));
    assert!(disk.content().iter().all(|&byte| byte == 0));
}

#[test]
fn needs_root_preconditioning_is_told_with_its_rounds() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    let (mut agent, _) = Agent::start("device-full", &disk.state(), false);
    let mut spec = disk.spec(&disk.node, Some(&disk.serial()));
    spec["precondition"] = json!("random");
    spec["precondition_round_ns"] = json!(20_000_000);
    let opened = agent.ask("open_testbed", &spec).unwrap();
    let facts = &opened["facts"];
    assert_eq!(facts["precondition.method"], "random");
    let rounds = facts["precondition.rounds_iops"].as_str().unwrap().split(',').count();
    assert!((5..=25).contains(&rounds), "a small device is judged, too: {facts}");
    let written: u64 = facts["precondition.written_bytes"].as_str().unwrap().parse().unwrap();
    let room = SIZE - 2 * MIB;
    assert!((2 * room..=4 * room).contains(&written), "{written}");
    assert!(disk.read(MIB, 4096).iter().any(|&byte| byte != 0));
    assert_eq!(agent.end_input(), Some(0));
    assert!(is_marked(&disk));
}

#[test]
fn needs_root_preconditioning_can_be_stopped() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let disk = Disk::new();
    let before = mounts_of("device-");
    let (mut agent, _) = Agent::start("device-stop", &disk.state(), false);
    let mut spec = disk.spec(&disk.node, Some(&disk.serial()));
    spec["precondition"] = json!("random");
    spec["precondition_round_ns"] = json!(30_000_000_000_u64);
    let id = agent.send("open_testbed", &spec);
    wait_until(Duration::from_secs(30), "the writing to begin", || {
        disk.read(MIB, 4096).iter().any(|&byte| byte != 0)
    });
    agent.send("interrupt", &json!({}));
    let answer = loop {
        let message = agent.receive();
        if message["id"] == id {
            break message;
        }
    };
    assert_eq!(answer["error"]["code"], "interrupted", "{answer}");
    assert_eq!(agent.end_input(), Some(0), "everything was put back");
    assert!(is_marked(&disk) && !Path::new("/run/iolab/device-stop").exists());
    assert_eq!(mounts_of("device-"), before);
}

use std::os::unix::fs::symlink;

use super::*;
use crate::machine::fake_machine;

/// A fake machine with the disks `sdx` (partitions sdx1, sdx2) and `sdy`, and what is put on them.
struct Fake {
    root: tempfile::TempDir,
    machine: Machine,
}

impl Fake {
    fn new() -> Self {
        let (root, machine) = fake_machine();
        let fake = Self { root, machine };
        fake.disk("sdx", "8:16");
        fake.disk("sdy", "8:32");
        for (part, number) in [("sdx1", "8:17"), ("sdx2", "8:18")] {
            let folder = format!("sys/devices/sdx/{part}");
            fake.write(&format!("{folder}/partition"), "1");
            fake.write(&format!("{folder}/dev"), number);
            symlink(fake.path(&folder), fake.path(&format!("sys/class/block/{part}"))).unwrap();
            fake.write(&format!("dev/{part}"), "");
        }
        fake
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn disk(&self, name: &str, number: &str) {
        let folder = format!("sys/devices/{name}");
        self.write(&format!("{folder}/dev"), number);
        self.write(&format!("{folder}/size"), "2097152");
        self.write(&format!("dev/{name}"), "");
        for class in ["sys/block", "sys/class/block"] {
            fs::create_dir_all(self.path(class)).unwrap();
            symlink(self.path(&folder), self.path(&format!("{class}/{name}"))).unwrap();
        }
    }

    fn mount(&self, number: &str, point: &str, fs: &str, source: &str) {
        let old = self.machine.peek("/proc/self/mountinfo").unwrap_or_default();
        let line = format!("36 25 {number} / {point} rw - {fs} {source} rw\n");
        self.write("proc/self/mountinfo", &(old + "\n" + &line));
    }

    fn holder(&self, of: &str, holder: &str, number: &str) {
        self.disk(holder, number);
        self.write(&format!("sys/devices/{of}/holders/{holder}/dev"), number);
    }

    fn why(&self, name: &str) -> String {
        let why = in_use(&self.machine, name, &[], Patience::Glance).expect("it is in use");
        assert!(!why.hint.is_empty());
        why.what
    }

    /// Process 4711 with a name, which has `target` open as descriptor 5.
    fn open_in_process(&self, name: &str, target: &Path) {
        self.write("proc/4711/comm", name);
        fs::create_dir_all(self.path("proc/4711/fd")).unwrap();
        symlink(target, self.path("proc/4711/fd/5")).unwrap();
    }

    fn is_free(&self, name: &str) -> bool {
        in_use(&self.machine, name, &[], Patience::Glance).is_none()
    }
}

#[test]
fn a_mounted_disk_and_the_parent_of_a_mounted_partition_are_in_use() {
    let fake = Fake::new();
    assert!(fake.is_free("sdx") && fake.is_free("sdy"));
    fake.mount("8:32", "/data", "ext4", "/dev/disk/by-id/ata-other-name");
    assert!(fake.why("sdy").contains("mounted on /data"), "by number, whatever the name");
    assert!(fake.is_free("sdx"));
    fake.mount("8:18", "/more", "xfs", "/dev/sdx2");
    assert!(fake.why("sdx").contains("/dev/sdx2 is mounted on /more"));
}

#[test]
fn the_system_disk_is_named_as_such() {
    for point in SYSTEM_POINTS {
        let fake = Fake::new();
        fake.mount("8:17", "/data", "ext4", "/dev/sdx1");
        fake.mount("8:18", point, "ext4", "/dev/sdx2");
        let why = in_use(&fake.machine, "sdx", &[], Patience::Glance).unwrap();
        assert!(why.what.contains("carries the running system"), "{why:?}");
        assert!(why.hint.contains("no option"), "{why:?}");
        assert!(fake.is_free("sdy"));
    }
}

#[test]
fn the_results_and_the_program_are_protected() {
    let fake = Fake::new();
    fake.mount("8:1", "/", "ext4", "/dev/sda1");
    fake.mount("8:32", "/results", "ext4", "/dev/sdy");
    let why =
        in_use(&fake.machine, "sdy", &[PathBuf::from("/results/out")], Patience::Glance).unwrap();
    assert!(why.what.contains("carries the running system (/results/out)"), "{why:?}");
}

/// Newcomers read `(/, /usr/local/libexec/iolab/iolab-agent)`, as if that were a mount point, too.
#[test]
fn what_lies_below_a_named_mount_point_is_not_listed_again() {
    let fake = Fake::new();
    fake.mount("8:16", "/", "ext4", "/dev/sdx");
    let program = PathBuf::from("/usr/local/libexec/iolab/iolab-agent");
    let why =
        in_use(&fake.machine, "sdx", &[program, PathBuf::from("/data/out")], Patience::Glance)
            .unwrap();
    assert!(why.what.ends_with("carries the running system (/)"), "{why:?}");
    fake.mount("8:16", "/boot", "ext4", "/dev/sdx");
    fake.mount("8:16", "/home", "ext4", "/dev/sdx");
    let why = in_use(&fake.machine, "sdx", &[], Patience::Glance).unwrap();
    assert!(why.what.ends_with("carries the running system (/, /boot and /home)"), "{why:?}");
}

#[test]
fn volumes_arrays_and_what_is_mounted_on_them_are_found() {
    for (holder, uuid, kind) in [
        ("dm-0", "LVM-abc", "LVM"),
        ("dm-1", "CRYPT-LUKS2-abc", "encrypted"),
        ("dm-2", "mpath-36", "multipath"),
        ("md0", "", "RAID"),
        ("bcache0", "", "bcache"),
    ] {
        let fake = Fake::new();
        fake.holder("sdx/sdx1", holder, "253:0");
        fake.write(&format!("sys/devices/{holder}/dm/uuid"), uuid);
        let what = fake.why("sdx");
        assert!(what.contains(kind) && what.contains("sdx1"), "{what}");
        assert!(fake.is_free("sdy"));
    }
    let fake = Fake::new();
    fake.holder("sdx/sdx1", "dm-0", "253:0");
    fake.holder("dm-0", "dm-1", "253:1");
    fake.mount("253:1", "/", "ext4", "/dev/mapper/vg-root");
    let what = fake.why("sdx");
    assert!(what.contains("carries the running system (/)"), "two storeys up: {what}");
}

#[test]
fn swap_is_found_below_its_alias() {
    let fake = Fake::new();
    fs::create_dir_all(fake.path("dev/disk/by-id")).unwrap();
    symlink(fake.path("dev/sdx2"), fake.path("dev/disk/by-id/ata-swap")).unwrap();
    fake.write("proc/swaps", "Filename Type Size Used Priority\n/dev/disk/by-id/ata-swap p 1 0 -2");
    assert!(fake.why("sdx").contains("running system (swap on /dev/disk/by-id/ata-swap)"));
    assert!(fake.is_free("sdy"));
}

#[test]
fn every_member_of_a_btrfs_is_in_use() {
    let fake = Fake::new();
    fake.write("sys/fs/btrfs/1f-2e/devices/sdy/dev", "8:32");
    fake.write("sys/fs/btrfs/1f-2e/devices/sda/dev", "8:0");
    assert!(fake.why("sdy").contains("belongs to the mounted btrfs 1f-2e"));
    fake.mount("0:40", "/pool", "btrfs", "/dev/sdx1");
    assert!(fake.why("sdx").contains("mounted on /pool"), "its number is its own");
}

#[test]
fn loop_devices_over_it_and_with_the_same_image_count() {
    let fake = Fake::new();
    fake.disk("loop5", "7:5");
    fake.write("sys/devices/loop5/loop/backing_file", "/dev/sdy");
    assert!(fake.why("sdy").contains("/dev/loop5 is attached to /dev/sdy"));
    fake.disk("loop6", "7:6");
    for twin in ["loop5", "loop6"] {
        fake.write(&format!("sys/devices/{twin}/loop/backing_file"), "/srv/a.img");
    }
    assert!(fake.why("loop6").contains("/dev/loop5 has the same image"), "even if it is not used");
    fake.mount("7:5", "/cd", "ext4", "/dev/loop5");
    assert!(fake.why("loop6").contains("mounted on /cd"), "the same image, twice attached");
}

#[test]
fn one_image_with_two_names_is_one_image() {
    let fake = Fake::new();
    fake.write("srv/a.img", "");
    fake.write("srv/other.img", "");
    fs::hard_link(fake.path("srv/a.img"), fake.path("srv/b.img")).unwrap();
    for (name, number, image) in
        [("loop5", "7:5", "a.img"), ("loop6", "7:6", "b.img"), ("loop7", "7:7", "other.img")]
    {
        fake.disk(name, number);
        fake.write(&format!("sys/devices/{name}/loop/backing_file"), &format!("/srv/{image}"));
    }
    assert!(fake.why("loop6").contains("/dev/loop5 has the same image, attached as /srv/a.img"));
    assert!(fake.is_free("loop7"));
    fake.mount("7:5", "/cd", "ext4", "/dev/loop5");
    assert!(fake.why("loop6").contains("mounted on /cd"));
    assert!(fake.is_free("loop7"));
    fake.write("proc/swaps", "Filename Type Size Used Priority\n/srv/other.img file 1 0 -2");
    assert!(fake.why("loop7").contains("running system (swap on /srv/other.img)"));
}

#[test]
fn a_process_that_has_the_image_open_is_named() {
    let fake = Fake::new();
    fake.write("srv/a.img", "");
    fs::hard_link(fake.path("srv/a.img"), fake.path("srv/b.img")).unwrap();
    fake.disk("loop5", "7:5");
    fake.write("sys/devices/loop5/loop/backing_file", "/srv/a.img");
    assert!(fake.is_free("loop5"));
    fake.open_in_process("qemu-system-x86", &fake.path("srv/b.img"));
    let what = fake.why("loop5");
    assert!(what.contains("process 4711 (qemu-system-x86) has its image"), "{what}");
    assert!(fake.is_free("sdy"));
}

#[test]
fn a_process_that_has_it_open_is_named() {
    let fake = Fake::new();
    fake.open_in_process("nbd-server", Path::new("/dev/sdx1"));
    assert!(fake.why("sdx").contains("process 4711 (nbd-server) has it open"));
    let fd = fake.path("proc/4711/fd/5");
    let closing = std::thread::spawn(move || {
        std::thread::sleep(super::PAUSE * 3);
        fs::remove_file(fd).unwrap();
    });
    assert!(fake.is_free("sdx"), "who only looked at it does not use it");
    closing.join().unwrap();
    assert!(fake.is_free("sdy"));
}

/// Symptom: `iolab doctor` waited two seconds for each device that a process had open, one after
/// the other. Fix: only a device that is about to be taken is worth the wait.
#[test]
fn a_list_of_devices_does_not_wait_for_processes_that_have_them_open() {
    let fake = Fake::new();
    fake.open_in_process("nbd-server", Path::new("/dev/sdx1"));
    let elapsed = |patience| {
        let begun = Instant::now();
        let why = in_use(&fake.machine, "sdx", &[], patience).expect("it is in use");
        assert!(why.what.contains("process 4711 (nbd-server) has it open"), "{}", why.what);
        begun.elapsed()
    };
    assert!(elapsed(Patience::Glance) >= GLANCE);
    assert!(elapsed(Patience::None) < GLANCE / 2);
}

#[test]
fn what_cannot_be_measured_is_unfit() {
    let fake = Fake::new();
    assert_eq!(unfit(&fake.machine, "sdy"), None);
    let cases: &[(&str, &str, &str)] = &[
        ("ro", "1", "read-only"),
        ("queue/zoned", "host-managed", "zoned"),
        ("size", "0", "no size"),
        ("removable", "1", ""),
        ("size", "2048", "less than 64"),
        ("slaves/sda1/dev", "8:1", "is a volume on sda1"),
    ];
    for (file, text, expected) in cases {
        let fake = Fake::new();
        fake.write(&format!("sys/devices/sdy/{file}"), text);
        let found = unfit(&fake.machine, "sdy").map(|why| why.what).unwrap_or_default();
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{found}");
    }
    let fake = Fake::new();
    fake.write("sys/devices/sdy/removable", "1");
    fake.write("sys/devices/sdy/size", "0");
    assert!(unfit(&fake.machine, "sdy").unwrap().what.contains("no medium"));
}

//! Power cuts of UFS at random events: everything that fsync has acknowledged is there afterwards.
//!
//! `IOLAB_CRASHES` is the number of cuts for each mode, 300 without.

mod crash;

use crash::Fragile;
use iolab_files::api::file_system::FileSystem;
use iolab_files::api::make::{DeviceFacts, Kernel, MakeSpec, Solaris};
use iolab_files::api::options::FsOptions;
use iolab_files::fs::list::find;

fn cuts() -> u64 {
    std::env::var("IOLAB_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

fn made(mount: &str) -> Box<dyn FileSystem> {
    let row = find("ufs").unwrap();
    let spec = MakeSpec {
        devices: vec![DeviceFacts {
            bytes: 96 << 20,
            is_rotational: true,
            io_min_bytes: 512,
            io_opt_bytes: 0,
        }],
        kernel: Kernel::DEFAULT,
        mkfs: FsOptions::default(),
        mount: FsOptions::mount(row.name, row.mount, &[mount.to_owned()]).unwrap(),
        cpus: 2,
        solaris: Solaris::DEFAULT,
        system: FsOptions::default(),
    };
    (row.make)(&spec).unwrap()
}

fn survives(mount: &str) {
    for seed in 0..cuts() {
        let mut machine = Fragile::new(made(mount), seed, 1 + seed * 7 % 400);
        // Data are not in the log, and nothing orders them before the inode.
        machine.may_be_stale = true;
        // It never asks for a flush: disks of its time had no write cache, or it was off.
        machine.forgets = false;
        machine.run();
        machine.check(&format!("ufs {mount}, seed {seed}"));
    }
}

#[test]
fn ufs_without_a_log() {
    survives("nologging");
}

#[test]
fn ufs_with_a_log() {
    survives("logging");
}

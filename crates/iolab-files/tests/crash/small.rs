//! Small file systems, and how often their power is cut.

use iolab_files::api::file_system::FileSystem;
use iolab_files::api::make::{DeviceFacts, Kernel, MakeSpec, Solaris};
use iolab_files::api::options::FsOptions;
use iolab_files::fs::list::find;
use iolab_model::Ns;

/// Number of power cuts for each mode (`IOLAB_CRASHES`).
pub fn cuts() -> u64 {
    std::env::var("IOLAB_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

/// A small file system with these options.
pub fn made(name: &str, mkfs: &str, mount: &str) -> Box<dyn FileSystem> {
    made_on(1, name, mkfs, mount)
}

/// The same with a second device.
#[allow(dead_code, reason = "few file systems take one")]
pub fn made_with_second(name: &str, mkfs: &str, mount: &str) -> Box<dyn FileSystem> {
    made_on(2, name, mkfs, mount)
}

fn made_on(devices: usize, name: &str, mkfs: &str, mount: &str) -> Box<dyn FileSystem> {
    let row = find(name).unwrap();
    let device = DeviceFacts {
        bytes: 96 << 20,
        is_rotational: true,
        io_min_bytes: 512,
        io_opt_bytes: 0,
        stripe: None,
    };
    let spec = MakeSpec {
        memory_bytes: 8 << 30,
        map_cost: Ns(3_000),
        devices: vec![device; devices],
        kernel: Kernel::DEFAULT,
        mkfs: FsOptions::mkfs(row.name, row.mkfs, &[mkfs.to_owned()]).unwrap(),
        mount: FsOptions::mount(row.name, row.mount, &[mount.to_owned()]).unwrap(),
        cpus: 2,
        solaris: Solaris::DEFAULT,
        system: FsOptions::default(),
    };
    (row.make)(&spec).unwrap()
}

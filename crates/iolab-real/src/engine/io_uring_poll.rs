//! `io_uring` that polls the device for completions instead of waiting for interrupts.
//!
//! It needs direct I/O on a device with polled queues (`queue/io_poll` is 1: `NVMe` with
//! `nvme.poll_queues`, for one). Loop and virtio devices cannot poll; the kernel would fail every
//! op with EOPNOTSUPP, so that a lane on such a device is refused aloud. Flushes are plain system
//! calls. Left out: access through the page cache, appending, vectored transfers.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use iolab_model::{Capabilities, Error, LaneRequest};

use super::io_uring::Uring;
use super::ring::{Flavor, Ring};

/// Rings with polled completion.
pub struct UringPoll;

/// The target.
pub const fn target() -> Ring<UringPoll> {
    Ring::new()
}

impl Flavor for UringPoll {
    const NAME: &'static str = "io_uring_poll";
    const IS_POLLED: bool = true;
    const CAPABILITIES: Capabilities =
        Capabilities { has_plain: false, has_append: false, ..Uring::CAPABILITIES };

    fn check(request: &LaneRequest) -> Result<(), Error> {
        check_devices(request, Self::NAME)
    }
}

/// Refuses files whose devices cannot poll, for an engine.
pub fn check_devices(request: &LaneRequest, engine: &'static str) -> Result<(), Error> {
    request.paths.iter().try_for_each(|path| check_device(path, engine))
}

fn check_device(path: &Path, target: &'static str) -> Result<(), Error> {
    let refused = |what: String| Error::Unsupported { target, what };
    let Some(queue) = queue_of(path) else {
        let shown = path.display();
        return Err(refused(format!(
            "poll for {shown}, which lies on no block device; use --engine io_uring"
        )));
    };
    if std::fs::read_to_string(queue.join("io_poll")).is_ok_and(|text| text.trim() == "1") {
        return Ok(());
    }
    let device = queue.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    Err(refused(format!(
        "poll {device} for completions, which has no polled queues (queue/io_poll is not 1); use \
         --engine io_uring (in a job of fio leave hipri out), or an NVMe device with \
         nvme.poll_queues"
    )))
}

/// The sysfs directory of the request queue under a file, which need not exist yet, or a device.
fn queue_of(path: &Path) -> Option<PathBuf> {
    let device = match std::fs::metadata(path) {
        Ok(found) if found.file_type().is_block_device() => found.rdev(),
        Ok(found) => found.dev(),
        Err(_) => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            std::fs::metadata(parent.unwrap_or(Path::new("."))).ok()?.dev()
        }
    };
    let (major, minor) = (libc::major(device), libc::minor(device));
    let found = std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    // A partition has the queue of its disk.
    [found.join("queue"), found.parent()?.join("queue")].into_iter().find(|queue| queue.is_dir())
}

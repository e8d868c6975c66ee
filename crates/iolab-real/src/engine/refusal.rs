//! Reason why the kernel refuses an engine, and what to do instead. Nothing falls back by itself.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use iolab_model::target::Content;
use iolab_model::{Bytes, Error, LaneRequest, Seed, Target, error::Errno};

use super::EngineVisitor;

/// An engine that cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// Refused thing.
    pub why: String,
    /// Advice: the next thing to do, or another way.
    pub remedy: String,
}

/// The error of a lane that could not be opened.
pub fn refused(engine: &'static str, call: &'static str, errno: Errno) -> Error {
    let subject = format!("for engine {engine} ({})", remedy(engine, call, errno));
    Error::System { call, subject, errno }
}

/// Remedy against a refusal.
fn remedy(engine: &str, call: &str, errno: Errno) -> &'static str {
    match (call, errno.0) {
        ("io_uring_setup", libc::EPERM) if engine.contains("sqpoll") => {
            "before Linux 5.11 only root may have a polling thread, and kernel.io_uring_disabled \
             or a container may forbid io_uring: use --engine io_uring or psync"
        }
        ("io_uring_setup", libc::EPERM | libc::ENOSYS) => {
            "the kernel or the container forbids io_uring: see kernel.io_uring_disabled, or use \
             --engine psync"
        }
        ("io_uring_setup", libc::ENOMEM) => {
            "the ring does not fit into RLIMIT_MEMLOCK: raise it with `ulimit -l`, or use a \
             smaller depth"
        }
        ("io_uring_register", libc::ENOMEM) => {
            "its buffers do not fit into RLIMIT_MEMLOCK: raise it with `ulimit -l`, use a smaller \
             depth or record, or --engine io_uring"
        }
        ("io_setup", libc::EAGAIN) => {
            "all of fs.aio-max-nr is in use: raise it with sysctl, use a smaller depth, or \
             --engine io_uring"
        }
        ("io_setup", libc::ENOSYS) => {
            "this kernel was built without it: use --engine io_uring or psync"
        }
        _ => "use --engine psync",
    }
}

/// Tries an engine by opening a small lane for files in some directories, as a trial would.
pub(super) struct Try<'a>(pub &'a [PathBuf]);

impl EngineVisitor for Try<'_> {
    type Output = Result<(), Unavailable>;

    fn visit<T: Target + Sync>(self, target: &T) -> Self::Output {
        let request = LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes::PAGE,
            content: Content::Zero,
            seed: Seed(0),
            priority: None,
            submitter_cpu: None,
            paths: self.0.iter().map(|place| probe_in(place)).collect(),
        };
        target.open(&request).map(drop).map_err(|error| match error {
            Error::System { call, errno, .. } => Unavailable {
                why: format!("{call}: {}", std::io::Error::from_raw_os_error(errno.0)),
                remedy: remedy(target.name(), call, errno).to_owned(),
            },
            Error::Unsupported { what, .. } => {
                let (what, remedy) = what.split_once("; ").unwrap_or((&what, "use --engine psync"));
                Unavailable { why: format!("it cannot {what}"), remedy: remedy.to_owned() }
            }
            other => {
                let text = other.to_string();
                let (why, remedy) = text.split_once("; ").unwrap_or((&text, "use --engine psync"));
                Unavailable { why: why.to_owned(), remedy: remedy.to_owned() }
            }
        })
    }
}

/// File on which an engine would be used: a file in a directory, or a block device itself.
fn probe_in(place: &Path) -> PathBuf {
    let is_device = std::fs::metadata(place).is_ok_and(|it| it.file_type().is_block_device());
    if is_device { place.to_path_buf() } else { place.join("probe") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_probed_itself_and_a_directory_with_a_file() {
        assert_eq!(probe_in(Path::new("/tmp")), Path::new("/tmp/probe"));
        let devices = std::fs::read_dir("/dev").unwrap().map(|entry| entry.unwrap().path());
        let is_block = |path: &PathBuf| {
            std::fs::metadata(path).is_ok_and(|it| it.file_type().is_block_device())
        };
        for device in devices.filter(is_block) {
            assert_eq!(probe_in(&device), device);
        }
    }

    #[test]
    fn a_refusal_names_the_engine_the_call_and_a_way_out() {
        for (engine, call, errno, way_out) in [
            ("io_uring", "io_uring_setup", libc::EPERM, "kernel.io_uring_disabled"),
            ("io_uring_sqpoll", "io_uring_setup", libc::EPERM, "--engine io_uring"),
            ("io_uring_fixed", "io_uring_register", libc::ENOMEM, "ulimit -l"),
            ("libaio", "io_setup", libc::EAGAIN, "fs.aio-max-nr"),
        ] {
            let text = refused(engine, call, Errno(errno)).to_string();
            assert!([engine, call, way_out].iter().all(|part| text.contains(part)), "{text}");
        }
    }
}

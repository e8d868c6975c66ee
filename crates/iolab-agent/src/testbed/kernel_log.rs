//! New lines of the kernel's log about some devices: a failed mount says why only there.
//!
//! The log is the whole machine's. Whoever reads an answer of the agent may not be allowed to read
//! it (`dmesg_restrict`), and a line about somebody else's device explains nothing: only lines that
//! name a device of the run are quoted, and, for root, those of the file system that name none.
//!
//! Source: Documentation/ABI/testing/dev-kmsg.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// `CONSOLE_EXT_LOG_MAX` of include/linux/printk.h: no record is longer.
const RECORD_BYTES: usize = 8192;

/// The log from now on; empty if it may not be read.
#[derive(Debug)]
pub struct KernelLog {
    file: Option<File>,
    /// As the kernel prints them: `loop8`.
    devices: Vec<String>,
    /// Begins of lines without a device that are quoted, too.
    begins: &'static [&'static str],
}

impl KernelLog {
    /// Forgets what was said before; heeds lines that name one of `devices` (`/dev/loop8`), and
    /// those that begin with one of `begins`.
    pub fn from_now<'a>(
        devices: impl Iterator<Item = &'a str>,
        begins: &'static [&'static str],
    ) -> Self {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        let file = file.and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| file)).ok();
        let devices = devices.map(|node| node.trim_start_matches("/dev/").replace('/', "!"));
        Self { file, devices: devices.collect(), begins }
    }

    /// Lines since the last call.
    pub fn new_lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut record = vec![0; RECORD_BYTES];
        while let Some(file) = &mut self.file {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(count) => lines.extend(message(&record[..count])),
                // Records were overwritten before we came; the next read continues after them.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => break,
            }
        }
        lines.retain(|line| self.heeds(line));
        lines
    }

    fn heeds(&self, line: &str) -> bool {
        self.begins.iter().any(|begin| line.starts_with(begin))
            || self.devices.iter().any(|name| names(line, name))
    }
}

/// True if a line has `name` as a word: `loop80` is not `loop8`.
fn names(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let is_part = |sign: Option<char>| sign.is_some_and(char::is_alphanumeric);
        !is_part(line[..at].chars().next_back()) && !is_part(line[at + name.len()..].chars().next())
    })
}

/// The text of `priority,sequence,time,flags;text` and its continuation lines, which are left out.
fn message(record: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(record);
    Some(text.lines().next()?.split_once(';')?.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{KernelLog, message};

    /// Issue 14, point 4 (L5): the machine's log came with every failed mount to whoever may run
    /// the agent, although `dmesg_restrict` keeps it from them: keys, addresses, other users.
    #[test]
    fn issue_14_point_4_only_lines_about_the_runs_own_devices_are_quoted() {
        let log = |begins| KernelLog {
            file: None,
            devices: vec!["loop8".to_owned(), "nvme0n1".to_owned()],
            begins,
        };
        for (line, is_ours) in [
            ("EXT4-fs (loop8): can't mount with data=ordered", true),
            ("JBD2: no valid journal superblock found on loop8-8", true),
            ("XFS (nvme0n1): Mounting V5 Filesystem", true),
            ("EXT4-fs (loop80): mounted filesystem", false),
            ("EXT4-fs (xloop8): mounted filesystem", false),
            ("usb 1-1: SerialNumber: 4C530001", false),
            ("EXT4-fs (dm-3): mounted filesystem of somebody", false),
            ("", false),
        ] {
            assert_eq!(log(&[]).heeds(line), is_ours, "{line}");
            assert_eq!(log(&["EXT4-fs: "]).heeds(line), is_ours, "{line}");
        }
        assert!(log(&["EXT4-fs: "]).heeds("EXT4-fs: Unknown parameter 'x'"));
        assert!(!log(&[]).heeds("EXT4-fs: Unknown parameter 'x'"));
    }

    #[test]
    fn the_message_is_what_follows_the_prefix() {
        let record = b"6,339,5140900,-;NET: Registered; really\n DEVICE=+pci\n";
        assert_eq!(message(record).as_deref(), Some("NET: Registered; really"));
    }
}

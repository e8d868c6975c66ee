//! New lines of the kernel's log: a failed mount says why only there.
//!
//! Source: Documentation/ABI/testing/dev-kmsg.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// `CONSOLE_EXT_LOG_MAX` of include/linux/printk.h: no record is longer.
const RECORD_BYTES: usize = 8192;

/// The log from now on; empty if it may not be read.
#[derive(Debug)]
pub struct KernelLog(Option<File>);

impl KernelLog {
    /// Forgets what was said before.
    pub fn from_now() -> Self {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        Self(file.and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| file)).ok())
    }

    /// What was said since.
    pub fn new_lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut record = vec![0; RECORD_BYTES];
        while let Some(file) = &mut self.0 {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(count) => lines.extend(message(&record[..count])),
                // Records were overwritten before we came; the next read continues after them.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => break,
            }
        }
        lines
    }
}

/// The text of `priority,sequence,time,flags;text` and its continuation lines, which are left out.
fn message(record: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(record);
    Some(text.lines().next()?.split_once(';')?.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::message;

    #[test]
    fn the_message_is_what_follows_the_prefix() {
        let record = b"6,339,5140900,-;NET: Registered; really\n DEVICE=+pci\n";
        assert_eq!(message(record).as_deref(), Some("NET: Registered; really"));
    }
}

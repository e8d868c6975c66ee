//! Parameters of a file system that was just made, as its own program reads them back.
//!
//! Two levels of an option may lead to the same file system: mkfs rounds, or a default is named, or
//! an option has no effect beside another. Their parameters agree then, and the front end says that
//! a level was compared with itself. Left out: what differs between any two
//! file systems (identities, instants, labels), what the device went through (discards), and the
//! order in which a program names things.
//!
//! Sources: dumpe2fs(8), `xfs_db(8)` info, btrfs-inspect-internal(8) `dump-super`.

use crate::machine::Machine;

/// A program that reads parameters back; the device follows its words.
#[derive(Debug)]
pub struct Reader {
    /// Words in front of the device.
    pub words: &'static [&'static str],
    /// Begins of lines that differ between any two file systems.
    pub left_out: &'static [&'static str],
}

/// Of ext2, ext3 and ext4.
pub const DUMPE2FS: Reader = Reader {
    words: &["dumpe2fs", "-h"],
    left_out: &[
        "Filesystem volume name:",
        "Filesystem UUID:",
        "Filesystem created:",
        "Last ",
        "Lifetime writes:",
        "Directory Hash Seed:",
        "Checksum:",
        "Checksum seed:",
        "Journal UUID:",
        "Journal device:",
        "Journal checksum:",
        "Journal sequence:",
        "Next check after:",
        "MMP update",
    ],
};

/// Of XFS; the log on another device is not needed for it.
pub const XFS_DB: Reader =
    Reader { words: &["xfs_db", "-r", "-c", "info"], left_out: &["meta-data="] };

/// Of btrfs.
pub const BTRFS: Reader = Reader {
    words: &["btrfs", "inspect-internal", "dump-super"],
    left_out: &[
        "superblock:",
        "csum\t",
        "fsid",
        "metadata_uuid",
        "label",
        "generation",
        "dev_item.uuid",
        "dev_item.fsid",
    ],
};

impl Reader {
    /// Lines that name a parameter and its value; none if they cannot be read.
    pub fn read(&self, machine: &Machine, device: &str) -> Vec<String> {
        let mut command: Vec<String> = self.words.iter().map(|&word| word.to_owned()).collect();
        command.push(device.to_owned());
        machine.ask(&command).map(|text| self.parameters(&text)).unwrap_or_default()
    }

    fn parameters(&self, text: &str) -> Vec<String> {
        let is_left_out = |line: &&str| self.left_out.iter().any(|begin| line.starts_with(begin));
        let whole = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        // The device's name is that of the run; `isize` behind it is not.
        let first = text.lines().find(|line| line.starts_with("meta-data="));
        let behind = first.and_then(|line| line.split_once(char::is_whitespace)).map(|it| it.1);
        let others = text.lines().filter(|line| !is_left_out(line));
        let lines = behind.into_iter().chain(others).map(whole);
        lines.filter(|line| !line.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_and_instants_are_left_out() {
        let text = "Filesystem UUID:          2dc6\nInode size:\t          256\n\n\
            Last write time:          Sun Nov 22 20:41:58 2026\nBlock size:               1024\n";
        assert_eq!(DUMPE2FS.parameters(text), ["Inode size: 256", "Block size: 1024"]);
        let text =
            "csum_type\t\t0 (crc32c)\ncsum\t\t\t0x1a [match]\nfsid\t\t\t0c4d\nnodesize\t\t16384\n";
        assert_eq!(BTRFS.parameters(text), ["csum_type 0 (crc32c)", "nodesize 16384"]);
        let text = "meta-data=/dev/loop7   isize=512    agcount=4\n         =      sectsz=512\n";
        assert_eq!(XFS_DB.parameters(text), ["isize=512 agcount=4", "= sectsz=512"]);
    }
}

use super::*;
use crate::api::options::FsOptions;
use crate::fs::ext::options::{MKFS, order_from};

fn bytes(text: &str) -> u64 {
    text.parse::<iolab_model::Bytes>().unwrap().0
}

/// A line of the header of a recording.
fn header<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("@ ")?.split_once(" = "));
    lines.find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// Free runs that a real image has.
fn free_runs(text: &str) -> Vec<(u64, u64)> {
    let runs = text.lines().filter(|line| !line.starts_with('@')).map(|line| {
        let (first, last) = line.split_once('-').unwrap_or((line, line));
        (first.parse().unwrap(), last.parse().unwrap())
    });
    runs.collect()
}

#[test]
fn free_blocks_are_those_of_real_images() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/layout");
    let mut count = 0;
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = free_runs(&text);
        let header = |key| header(&text, key);
        let words: Vec<String> =
            header("mkfs").unwrap_or("").split_whitespace().map(str::to_owned).collect();
        let size = bytes(header("size").unwrap());
        let kind = header("fs").unwrap();
        let kind = ["ext2", "ext3", "ext4"].into_iter().find(|name| *name == kind).unwrap();
        let options = FsOptions::mkfs(kind, MKFS, &words).unwrap();
        let order = order_from(kind, &options, size).unwrap();
        let made = Geometry::new(&order).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert_eq!(header("inodes_per_group"), Some(made.inodes_per_group.to_string().as_str()));
        let mut free = Vec::new();
        for group in 0..made.groups {
            let mut at = 0;
            let end = made.blocks_of(group);
            for run in made.fixed(group).iter().cloned().chain(std::iter::once(end..end)) {
                if run.start > at {
                    free.push((made.block_at(group, at), made.block_at(group, run.start - 1)));
                }
                at = run.end;
            }
        }
        assert_eq!(free, expected, "{name}");
        count += 1;
    }
    assert!(count >= 14, "only {count} recordings");
}

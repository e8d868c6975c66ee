//! Extents of ext4, ext3 and ext2, block by block as the kernel placed them (6.18, one CPU).

mod pattern;

use std::path::{Path, PathBuf};

use pattern::Pattern;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/extents")
}

/// Rows of a recording: mount options, and the row without them.
fn recorded(name: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.csv"))).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| row.split_once(',').unwrap())
        .map(|(mount, row)| (mount.to_owned(), row.to_owned()))
        .collect()
}

/// Model's rows of a pattern, per mount.
fn simulated(name: &str, mount: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.pattern"))).unwrap();
    let pattern = Pattern::read(&text);
    let mut machine = pattern.machine("ext4", mount);
    machine.run(&pattern);
    let mut rows = machine.rows();
    if let Some(most) = pattern.head.get("rows") {
        rows.truncate(most.parse().unwrap());
    }
    rows
}

#[test]
fn every_recorded_pattern_is_placed_block_by_block() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| entry.unwrap().path().file_stem()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    names.dedup();
    let mut wrong = Vec::new();
    for name in names {
        if !folder().join(format!("{name}.csv")).exists() {
            continue;
        }
        let rows = recorded(&name);
        let mut mounts: Vec<&String> = rows.iter().map(|(mount, _)| mount).collect();
        mounts.dedup();
        for mount in mounts {
            let want: Vec<&String> =
                rows.iter().filter(|(m, _)| m == mount).map(|(_, row)| row).collect();
            let got = simulated(&name, &mount.replace('+', ","));
            if want.len() == got.len() && want.iter().zip(&got).all(|(want, got)| *want == got) {
                continue;
            }
            let at = want.iter().zip(&got).take_while(|(want, got)| **want == *got).count();
            wrong.push(format!(
                "{name} ({mount}): {} extents, {} recorded; row {at}: {:?}, recorded {:?}",
                got.len(),
                want.len(),
                got.iter().skip(at).take(3).collect::<Vec<_>>(),
                want.iter().skip(at).take(3).collect::<Vec<_>>()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

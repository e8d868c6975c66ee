//! Trees whose directories branch at random.
//!
//! The root holds directories and is never a leaf; below it a directory at depth d (the root's are
//! at 2) is a leaf if the depth that it draws is at most d. Growth ends the moment there is
//! everything. Directories beside the tree are grown in the same way after the files.

use iolab_model::seed::Stream;

use super::super::draw;
use super::{Branching, Drawn, FileSet};

/// Deepest directory: path names end there.
const DEPTH_MAX: u32 = 200;

/// Thing that grows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Leaf,
}

struct Growth<'a> {
    set: &'a FileSet,
    branching: &'a Branching,
    mean_depth: f64,
    drawn: &'a mut Drawn,
    random: &'a mut Stream,
    kind: Kind,
    /// Number of them that are still missing.
    left: u64,
}

/// Fills `drawn` with the directories and names of a set.
pub(super) fn grow(
    set: &FileSet,
    branching: &Branching,
    root: &str,
    (drawn, random): (&mut Drawn, &mut Stream),
) {
    let mean_depth = set.mean_depth();
    let kind = Kind::File;
    let mut growth = Growth { set, branching, mean_depth, drawn, random, kind, left: set.files };
    let mut number = 0;
    for (kind, count) in [(Kind::File, set.files), (Kind::Leaf, set.tree.leaf_directories)] {
        (growth.kind, growth.left) = (kind, count);
        while growth.left > 0 {
            number += 1;
            growth.directory(&format!("{root}/{number:08}"), 2);
        }
    }
}

impl Growth<'_> {
    fn directory(&mut self, path: &str, depth: u32) {
        self.drawn.directories.push(path.to_owned());
        let (leaf_at, width) = (self.depth(), self.width());
        let is_leaf = f64::from(depth) >= leaf_at || depth >= DEPTH_MAX;
        for number in 1..=width {
            if self.left == 0 {
                return;
            }
            let below = format!("{path}/{number:08}");
            match (is_leaf, self.kind) {
                (false, _) => self.directory(&below, depth + 1),
                (true, Kind::File) => self.drawn.files.push(below),
                (true, Kind::Leaf) => self.drawn.leafs.push(below),
            }
            self.left -= u64::from(is_leaf);
        }
    }

    fn depth(&mut self) -> f64 {
        if let Some(depth) = &self.branching.depth {
            return depth.draw(self.random).max(1) as f64;
        }
        self.around(self.mean_depth).floor().max(1.0)
    }

    fn width(&mut self) -> u64 {
        if let Some(width) = &self.branching.width {
            return width.draw(self.random).max(1);
        }
        let mean = self.set.tree.width.unwrap_or(0) as f64;
        self.around(mean).ceil().max(1.0) as u64
    }

    /// A draw around a mean; the mean itself without a shape.
    fn around(&mut self, mean: f64) -> f64 {
        let shape = self.set.tree.width_shape;
        if shape > 0.0 && mean > 0.0 {
            draw::gamma(self.random, shape) * mean / shape
        } else {
            mean
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use iolab_model::Seed;

    use super::*;

    fn set(files: u64, leafs: u64, width: u64) -> FileSet {
        let text = format!(
            r#"{{"name": "s", "files": {files}, "file_bytes": 0, "tree": {{"width": {width},
            "width_shape": 1.5, "leaf_directories": {leafs}, "branching": {{}}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    /// Number of entries of each directory, without the root.
    fn widths(drawn: &Drawn) -> BTreeMap<String, Vec<u64>> {
        let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for name in drawn.directories[1..].iter().chain(&drawn.files).chain(&drawn.leafs) {
            let (parent, own) = name.rsplit_once('/').unwrap();
            found.entry(parent.to_owned()).or_default().push(own.parse().unwrap());
        }
        found
    }

    #[test]
    fn names_are_gapless_and_the_root_holds_directories_alone() {
        let set = set(10_000, 0, 20);
        let drawn = set.drawn(Seed(1));
        assert_eq!(drawn.files.len(), 10_000);
        assert_eq!(drawn, set.drawn(Seed(1)), "the same tree again");
        let widths = widths(&drawn);
        for (parent, mut numbers) in widths.clone() {
            numbers.sort_unstable();
            let gapless: Vec<u64> = (1..=numbers.len() as u64).collect();
            assert_eq!(numbers, gapless, "{parent}");
        }
        assert!(drawn.files.iter().all(|file| file.matches('/').count() >= 2), "none in the root");
        let depths: BTreeMap<usize, usize> =
            drawn.files.iter().fold(BTreeMap::new(), |mut all, f| {
                *all.entry(f.matches('/').count()).or_default() += 1;
                all
            });
        assert!(depths.len() > 3, "files lie at several depths: {depths:?}");
    }

    /// Mean of gamma 1.5 rounded up: 20.5; the standard error of n widths is 16.3 / sqrt n.
    #[test]
    fn widths_are_those_that_were_asked_for() {
        let drawn = set(40_000, 0, 20).drawn(Seed(5));
        let widths = widths(&drawn);
        let full: Vec<f64> = widths
            .iter()
            .filter(|(parent, _)| parent.as_str() != "s")
            .map(|(_, numbers)| numbers.len() as f64)
            .collect();
        let mean = full.iter().sum::<f64>() / full.len() as f64;
        let error = 16.3 / (full.len() as f64).sqrt();
        assert!((mean - 20.5).abs() < 3.0 * error + 0.2, "{mean} of {}", full.len());
    }

    #[test]
    fn wide_directories_make_one_of_them_and_leafs_are_directories() {
        let drawn = set(100, 0, 1_000_000).drawn(Seed(2));
        assert_eq!(drawn.directories, ["s", "s/00000001"]);
        let drawn = set(0, 200, 10).drawn(Seed(2));
        assert_eq!((drawn.files.len(), drawn.leafs.len()), (0, 200));
        assert!(drawn.leafs_exist.iter().all(|exists| !exists));
    }
}

//! Sets of files, and spaces of keys.

use std::collections::BTreeSet;

use iolab_model::Seed;
use iolab_model::target::Content;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::draw;
use super::node::is_default;

mod branch;

/// Files that programs work on, below a directory of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSet {
    /// Its name, which is that of its directory.
    pub name: String,
    /// Name of the place where it lies; absent: the testbed's only one. A place is a directory in
    /// which the set's own lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Its files lie in the testbed's directory itself, not in one of their own; they have names.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_flat: bool,
    /// Number of files that there are or can be.
    pub files: u64,
    /// Size of each file that is there at the beginning, and of one that is written as a whole.
    pub file_bytes: Amount,
    /// Its directories and names.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tree: Tree,
    /// Share of the files that are there at the beginning; the rest are names of files to be made.
    #[serde(default = "all", skip_serializing_if = "is_all")]
    pub existing_percent: f64,
    /// Treatment of files that an earlier phase has left.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reuse: Reuse,
    /// Content of files that are there at the beginning.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fill: Fill,
    /// Content of the files that are there at the beginning; absent: the workload's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Number of workers that make them side by side; 0 and 1: one after the other.
    #[serde(default, skip_serializing_if = "is_default")]
    pub makers: u32,
}

/// Directories and names of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// Names of the files, where they follow no rule (`00000001` and so on); below the set's
    /// directory, perhaps in directories that are named before them: `a/b`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Files in a directory, on average; absent: all in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u64>,
    /// Shape of the gamma that the width of each directory is drawn from; 0: all are alike.
    #[serde(default, skip_serializing_if = "is_default")]
    pub width_shape: f64,
    /// Levels of directories between the set's own and its files; absent: as many as directories of
    /// this width need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Directories beside the tree, to be made, listed and removed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub leaf_directories: u64,
    /// As large a share of these directories is there at the beginning as of the files; otherwise
    /// none is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub has_leaf_directories: bool,
    /// Directories branch at random, so that files lie at several depths; absent: all at one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branching: Option<Branching>,
}

/// Tree that grows depth first: each directory draws its width, and a depth at which it would be a
/// leaf that holds files.
///
/// Source: Filebench 1.5-alpha3, `fileset.c`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Branching {
    /// Entries of a directory; absent: drawn around `width`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<Amount>,
    /// Depth at which a directory is a leaf; absent: drawn around the logarithm of the number of
    /// files to the base of the width, with the shape of the widths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<Amount>,
}

/// Treatment of files that are there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// The first phase of the workload makes them; later ones go on with what is there.
    #[default]
    Continue,
    /// Each phase makes them anew.
    Never,
    /// Also the first phase uses what it finds: missing files are made, short ones filled, long
    /// ones cut.
    Found,
    /// The same, but long ones stay as they are.
    Kept,
    /// Nothing is written: all files are there and long enough, or the phase fails.
    Untouched,
}

/// Content of files that are there at the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Data.
    #[default]
    Data,
    /// Blocks, but no data.
    Allocated,
    /// Nothing: they have a length.
    Sparse,
}

/// Keys that programs work on, and their values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeySpace {
    /// Its name.
    pub name: String,
    /// Keys that are there at the beginning: 0 .. this.
    pub records: u64,
    /// Size of a value.
    pub value_bytes: Amount,
    /// Keys are hashed (FNV-1a), so that those that follow each other do not lie side by side.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_hashed: bool,
    /// The first phase that uses it does not put the records: an earlier program has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_loaded: bool,
}

fn all() -> f64 {
    100.0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_all(percent: &f64) -> bool {
    (*percent - 100.0).abs() < f64::EPSILON
}

/// Most files of a set: each costs some 40 bytes of memory and a name.
pub const FILES_MAX: u64 = 1 << 24;

/// Names and sizes of a set, drawn from its name and the workload's seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Directories below the place, in an order in which they can be made; the set's own first.
    pub directories: Vec<String>,
    /// Directories beside the tree, which need not exist.
    pub leafs: Vec<String>,
    /// Files.
    pub files: Vec<String>,
    /// Size of each.
    pub sizes: Vec<u64>,
    /// True if each is there at the beginning.
    pub exists: Vec<bool>,
    /// The same of the directories beside the tree.
    pub leafs_exist: Vec<bool>,
}

impl FileSet {
    /// Directory of the set below the testbed's.
    pub fn directory(&self) -> String {
        match &self.place {
            Some(place) => format!("{place}/{}", self.name),
            None => self.name.clone(),
        }
    }

    /// First part of its directory's name: what is removed when the set is no longer needed.
    pub fn top(&self) -> &str {
        self.place.as_deref().unwrap_or(&self.name)
    }

    /// Names, sizes, and which files there are: the same for equal seeds.
    pub fn drawn(&self, seed: Seed) -> Drawn {
        let mut random = seed.stream(&self.name, 0);
        let root = self.directory();
        let mut drawn = Drawn::default();
        if self.is_flat {
            drawn.files.clone_from(&self.tree.names);
        } else {
            drawn.directories.extend(self.place.clone());
            drawn.directories.push(root.clone());
        }
        if self.is_flat {
            // Its names are all there is.
        } else if let Some(branching) = &self.tree.branching {
            branch::grow(self, branching, &root, (&mut drawn, &mut random));
        } else if self.tree.names.is_empty() {
            self.grow(&root, &mut drawn, &mut random);
        } else {
            self.listed(&root, &mut drawn);
        }
        if self.tree.branching.is_none() {
            let leaf = |number| format!("{root}/leaf{number:08}");
            drawn.leafs = (1..=self.tree.leaf_directories).map(leaf).collect();
        }
        drawn.sizes = (0..self.files).map(|_| self.file_bytes.draw(&mut random)).collect();
        // Exactly so many, evenly dealt: a share that is counted is the share that was asked for.
        let wanted = (self.files as f64 * self.existing_percent / 100.0).round() as u64;
        let key = random.next_u64();
        drawn.exists =
            (0..self.files).map(|i| draw::scatter(i, self.files, key) < wanted).collect();
        let leafs = drawn.leafs.len() as u64;
        let share = if self.tree.has_leaf_directories { self.existing_percent } else { 0.0 };
        let wanted = (leafs as f64 * share / 100.0).round() as u64;
        drawn.leafs_exist = (0..leafs).map(|i| draw::scatter(i, leafs, key) < wanted).collect();
        drawn
    }

    fn listed(&self, root: &str, drawn: &mut Drawn) {
        for name in &self.tree.names {
            let parts: Vec<&str> = name.split('/').collect();
            for end in 1..parts.len() {
                let directory = format!("{root}/{}", parts[..end].join("/"));
                if !drawn.directories.contains(&directory) {
                    drawn.directories.push(directory);
                }
            }
            drawn.files.push(format!("{root}/{name}"));
        }
    }

    /// Fills directories of drawn widths, all at one depth, one after the other.
    fn grow(&self, root: &str, drawn: &mut Drawn, random: &mut iolab_model::seed::Stream) {
        let levels = self.tree.width.map(|width| (width, self.levels(width)));
        let Some((width, depth)) = levels.filter(|(_, depth)| *depth > 0) else {
            drawn.files.extend((1..=self.files).map(|number| format!("{root}/{number:08}")));
            return;
        };
        let widths = |random: &mut iolab_model::seed::Stream| match self.tree.width_shape {
            shape if shape > 0.0 => {
                (draw::gamma(random, shape) * width as f64 / shape).ceil().max(1.0) as u64
            }
            _ => width,
        };
        let mut known: BTreeSet<String> = drawn.directories.iter().cloned().collect();
        let (mut left, mut ordinal) = (self.files, 0_u64);
        while left > 0 {
            let here = widths(random).min(left);
            let directory = directory_at(root, (ordinal, width, depth), (drawn, &mut known));
            let names = (1..=here).map(|number| format!("{directory}/{number:08}"));
            drawn.files.extend(names);
            left -= here;
            ordinal += 1;
        }
    }

    /// Levels of directories that hold the files with about `width` entries in each directory.
    fn levels(&self, width: u64) -> u32 {
        self.tree.depth.unwrap_or_else(|| {
            let (mut levels, mut room) = (0, width);
            while room < self.files && levels < 30 {
                room = room.saturating_mul(width.max(2));
                levels += 1;
            }
            levels
        })
    }

    /// Depth of its directories on average, where they branch.
    pub fn mean_depth(&self) -> f64 {
        let width = self.tree.width.unwrap_or(0) as f64;
        ((self.files + self.tree.leaf_directories) as f64).ln() / width.ln()
    }

    /// Bytes of all its files at most.
    pub fn bytes_max(&self) -> u64 {
        self.files.saturating_mul(self.file_bytes.most())
    }
}

/// The directory of files number `ordinal`, whose parents are made as they are needed.
fn directory_at(
    root: &str,
    (ordinal, width, depth): (u64, u64, u32),
    (drawn, known): (&mut Drawn, &mut BTreeSet<String>),
) -> String {
    let (mut path, mut rest) = (root.to_owned(), ordinal);
    let mut digits = Vec::new();
    for level in 0..depth {
        // The outermost level takes whatever the inner ones do not.
        let digit = if level + 1 == depth { rest } else { rest % width.max(2) };
        digits.push(digit + 1);
        rest /= width.max(2);
    }
    for digit in digits.iter().rev() {
        path = format!("{path}/{digit:08}");
        if known.insert(path.clone()) {
            drawn.directories.push(path.clone());
        }
    }
    path
}

impl KeySpace {
    /// The key of record number `number`.
    pub fn key(&self, number: u64) -> u64 {
        if !self.is_hashed {
            return number;
        }
        // FNV-1a over the eight bytes, the least significant first.
        number.to_le_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(text: &str) -> FileSet {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_tree_has_the_width_that_was_asked_for() {
        let set = set(r#"{"name":"mail","files":1000,"file_bytes":16384,"existing_percent":80,
                "tree":{"width":20,"width_shape":1.5}}"#);
        let drawn = set.drawn(Seed(1));
        assert_eq!(drawn, set.drawn(Seed(1)), "the same in every run");
        assert_eq!(drawn.files.len(), 1000);
        assert_eq!(drawn.exists.iter().filter(|exists| **exists).count(), 800);
        assert_eq!(drawn.files.iter().collect::<BTreeSet<_>>().len(), 1000);
        let holding = drawn.files.iter().map(|file| file.rsplit_once('/').unwrap().0);
        let holding: BTreeSet<&str> = holding.collect();
        let mean = 1000.0 / holding.len() as f64;
        assert!((10.0..32.0).contains(&mean), "{mean} files in a directory");
        assert_eq!(drawn.directories[0], "mail");
        let mut made: BTreeSet<&str> = BTreeSet::new();
        for directory in &drawn.directories {
            let parent = directory.rsplit_once('/').map(|(parent, _)| parent);
            assert!(parent.is_none_or(|parent| made.contains(parent)), "{directory} too early");
            assert!(made.insert(directory), "{directory} twice");
        }
        assert!(holding.is_subset(&made));
    }

    #[test]
    fn names_and_places_are_those_that_were_given() {
        let set = set(r#"{"name":"db","place":"fast","files":3,"file_bytes":1,
                "tree":{"names":["log","data/a","data/b"],"leaf_directories":1}}"#);
        let drawn = set.drawn(Seed(1));
        assert_eq!(drawn.directories, ["fast", "fast/db", "fast/db/data"]);
        assert_eq!(drawn.files, ["fast/db/log", "fast/db/data/a", "fast/db/data/b"]);
        assert_eq!(drawn.leafs, ["fast/db/leaf00000001"]);
        assert_eq!(set.top(), "fast");
    }

    #[test]
    fn keys_are_hashed_or_not() {
        let space = KeySpace {
            name: "t".into(),
            records: 1,
            value_bytes: Amount::Constant(1),
            is_hashed: false,
            is_loaded: false,
        };
        assert_eq!(space.key(7), 7);
        let hashed = KeySpace { is_hashed: true, ..space };
        // YCSB's hash of 0 before its absolute value, which this is negative of.
        assert_eq!(hashed.key(0).cast_signed().unsigned_abs(), 6_284_781_860_667_377_211);
        assert_eq!(hashed.key(999).cast_signed().unsigned_abs(), 2_071_219_101_098_386_137);
    }

    proptest! {
        #[test]
        fn every_tree_holds_every_file_once(
            files in 1_u64..300,
            width in 1_u64..40,
            depth in proptest::option::of(0_u32..4),
            shape in 0_u8..3,
        ) {
            let mut set = set(r#"{"name":"s","files":1,"file_bytes":1}"#);
            set.files = files;
            let width_shape = f64::from(shape);
            set.tree = Tree { width: Some(width), width_shape, depth, ..Tree::default() };
            let drawn = set.drawn(Seed(2));
            let made: BTreeSet<&str> = drawn.directories.iter().map(String::as_str).collect();
            let mut distinct = BTreeSet::new();
            for file in &drawn.files {
                prop_assert!(distinct.insert(file));
                prop_assert!(made.contains(file.rsplit_once('/').unwrap().0));
            }
            prop_assert_eq!(distinct.len() as u64, files);
        }
    }
}

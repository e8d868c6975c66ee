//! Recordings of where the kernel placed the blocks of files, beside what the model does.

use std::path::{Path, PathBuf};

use super::Pattern;

/// A folder of recordings: patterns of calls, and a table of extents for each.
pub struct Recordings {
    folder: PathBuf,
    system: &'static str,
}

impl Recordings {
    /// The recordings of a file system in a folder of golden files.
    pub fn new(folder: &str, system: &'static str) -> Self {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
        Self { folder: golden.join(folder), system }
    }

    /// Names of all of them.
    pub fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|word| word == "csv"))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    /// Fails unless the model places every block where the kernel did, under each mount option.
    pub fn check<Name: AsRef<str>>(&self, names: &[Name]) {
        let wrong: Vec<String> = names.iter().flat_map(|name| self.wrong(name.as_ref())).collect();
        assert!(!names.is_empty() && wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn wrong(&self, name: &str) -> Vec<String> {
        let rows = self.recorded(name);
        let mut mounts: Vec<&String> = rows.iter().map(|(mount, _)| mount).collect();
        mounts.dedup();
        assert!(!mounts.is_empty(), "{name} has rows");
        let mut wrong = Vec::new();
        for mount in mounts {
            let want: Vec<&String> =
                rows.iter().filter(|(of, _)| of == mount).map(|(_, row)| row).collect();
            let got = self.simulated(name, &mount.replace('+', ","));
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
        wrong
    }

    /// Rows of a recording: mount options, and the row without them.
    fn recorded(&self, name: &str) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(self.folder.join(format!("{name}.csv"))).unwrap();
        let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        rows.map(|row| row.split_once(',').unwrap())
            .map(|(mount, row)| (mount.to_owned(), row.to_owned()))
            .collect()
    }

    /// Model's rows of a pattern under a mount option.
    fn simulated(&self, name: &str, mount: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join(format!("{name}.pattern"))).unwrap();
        let pattern = Pattern::read(&text);
        let mut machine = pattern.machine(self.system, mount);
        machine.run(&pattern);
        let mut rows = machine.rows();
        if let Some(most) = pattern.head.get("rows") {
            rows.truncate(most.parse().unwrap());
        }
        rows
    }
}

/// A test for each check that is a recording.
#[macro_export]
macro_rules! recorded_checks {
    ($recordings:expr; $($test:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                $recordings.check(&[$name]);
            }
        )*
    };
}

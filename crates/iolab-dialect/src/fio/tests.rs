//! Job files and command lines, read from memory.

mod control_groups;
mod golden;
mod lowering;
mod parsing;

use std::collections::BTreeMap;

use super::host::{Host, There};

/// A machine that exists in a test alone.
#[derive(Default)]
pub struct Paper {
    pub files: BTreeMap<String, String>,
    pub variables: BTreeMap<String, String>,
    pub there: BTreeMap<String, There>,
}

impl Paper {
    pub fn with(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        Self { files, ..Self::default() }
    }
}

impl Host for Paper {
    fn text(&self, path: &str) -> Result<String, String> {
        self.files.get(path).cloned().ok_or_else(|| "No such file or directory".to_owned())
    }

    fn open(&self, path: &str) -> Result<Box<dyn std::io::BufRead>, String> {
        let text = self.text(path).map_err(|why| format!("it cannot be read: {why}"))?;
        Ok(Box::new(std::io::Cursor::new(text)))
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn at(&self, path: &str) -> There {
        self.there.get(path).copied().unwrap_or(There::Nothing)
    }

    fn directory(&self) -> String {
        "/cwd".to_owned()
    }

    fn page_bytes(&self) -> u64 {
        4096
    }

    fn memory_mib(&self) -> u64 {
        1000
    }

    fn cpus(&self) -> u64 {
        2
    }

    fn chance(&self) -> u64 {
        7
    }
}

pub fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

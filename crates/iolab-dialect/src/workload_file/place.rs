//! Places of the parts of a description in a text.

use std::collections::BTreeMap;

/// Offsets of keys and values, by their path.
#[derive(Debug, Default)]
pub struct Places {
    /// Offsets of the beginnings of lines.
    lines: Vec<usize>,
    at: BTreeMap<String, usize>,
}

impl Places {
    /// Of a text, with nothing known yet.
    pub fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { lines, at: BTreeMap::new() }
    }

    /// Line of an offset, from 1 on.
    pub fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|begin| *begin <= at).max(1)
    }

    /// Notes where something stands.
    pub fn note(&mut self, path: &str, at: usize) {
        self.at.entry(path.to_owned()).or_insert(at);
    }

    /// Tell whether something stands there.
    pub fn knows(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    fn find(&self, path: &str) -> Option<usize> {
        let short = path.strip_prefix("phases[0].").unwrap_or(path);
        self.at.get(path).or_else(|| self.at.get(short)).copied()
    }

    /// Line of what is wrong below a path: of the key that the message names, if it stands there.
    pub fn line_of(&self, path: &str, message: &str) -> usize {
        let short = path.strip_prefix("phases[0].").unwrap_or(path);
        for name in message.split('`').skip(1).step_by(2) {
            let is_there = |known: &&String| {
                let rest = known.strip_prefix(path).or_else(|| known.strip_prefix(short));
                rest.is_some_and(|rest| rest.rsplit('.').next() == Some(name))
            };
            if let Some(key) = self.at.keys().find(is_there) {
                return self.line(self.at[key]);
            }
        }
        // The nearest part around it that stands in the text.
        let mut around = path;
        loop {
            if let Some(at) = self.find(around) {
                return self.line(at);
            }
            match around.rfind(['.', '[']) {
                Some(end) => around = &around[..end],
                None => return 1,
            }
        }
    }
}

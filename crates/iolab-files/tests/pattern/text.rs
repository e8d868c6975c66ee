//! Text of a pattern: its head and its calls, loops unrolled.

use std::collections::BTreeMap;

use iolab_files::api::make::{DeviceFacts, Kernel, MakeSpec, Solaris};
use iolab_files::api::options::FsOptions;
use iolab_files::fs::list::find;
use iolab_model::Ns;

use super::small::Small;

/// A pattern: its head and its calls.
pub struct Pattern {
    /// Values of the lines that begin with `@`.
    pub head: BTreeMap<String, String>,
    /// Calls, loops unrolled.
    pub calls: Vec<Vec<String>>,
}

fn atom(token: &str, names: &BTreeMap<String, u64>) -> u64 {
    if let Some(value) = names.get(token) {
        return *value;
    }
    let (digits, size) = match token.as_bytes().last() {
        Some(b'k') => (&token[..token.len() - 1], 1 << 10),
        Some(b'm') => (&token[..token.len() - 1], 1 << 20),
        Some(b'g') => (&token[..token.len() - 1], 1 << 30),
        _ => (token, 1),
    };
    digits.parse::<u64>().unwrap_or_else(|_| panic!("no number: {token}")) * size
}

/// Value of a sum of products.
fn value(text: &str, names: &BTreeMap<String, u64>) -> u64 {
    let mut total = 0i64;
    for (sign, term) in signed_terms(text) {
        let mut product = 1u64;
        let mut operator = '*';
        let mut rest = term;
        loop {
            let end = rest.find(['*', '%']).unwrap_or(rest.len());
            let number = atom(&rest[..end], names);
            product = if operator == '*' { product * number } else { product % number };
            if end == rest.len() {
                break;
            }
            operator = rest[end..].chars().next().unwrap();
            rest = &rest[end + 1..];
        }
        total += sign * product as i64;
    }
    total as u64
}

fn signed_terms(text: &str) -> Vec<(i64, &str)> {
    let mut terms = Vec::new();
    let (mut sign, mut rest) = (1, text);
    while let Some(end) = rest.find(['+', '-']) {
        terms.push((sign, &rest[..end]));
        sign = if rest[end..].starts_with('+') { 1 } else { -1 };
        rest = &rest[end + 1..];
    }
    terms.push((sign, rest));
    terms
}

fn named(word: &str, names: &BTreeMap<String, u64>) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some(open) = rest.find('{') {
        let close = rest.find('}').expect("a brace is closed");
        text += &rest[..open];
        text += &value(&rest[open + 1..close], names).to_string();
        rest = &rest[close + 1..];
    }
    text + rest
}

fn unroll(lines: &[&str], names: &BTreeMap<String, u64>, out: &mut Vec<Vec<String>>) {
    let mut at = 0;
    while at < lines.len() {
        let words: Vec<&str> = lines[at].split_whitespace().collect();
        at += 1;
        match words.as_slice() {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["for", name, count] => {
                let mut depth = 1;
                let start = at;
                while depth > 0 {
                    let first = lines[at].split_whitespace().next().unwrap_or("");
                    depth += i32::from(first == "for") - i32::from(first == "end");
                    at += 1;
                }
                for i in 0..value(count, names) {
                    let mut inner = names.clone();
                    inner.insert((*name).to_owned(), i);
                    unroll(&lines[start..at - 1], &inner, out);
                }
            }
            words => {
                let is_name = |i: usize| i == 1 || (i == 2 && words[0] == "rename");
                let each = words.iter().enumerate().map(|(i, word)| match i {
                    0 => (*word).to_owned(),
                    i if is_name(i) => named(word, names),
                    _ => value(word, names).to_string(),
                });
                out.push(each.collect());
            }
        }
    }
}

impl Pattern {
    /// Reads the text of a `.pattern` file.
    pub fn read(text: &str) -> Self {
        let mut head = BTreeMap::new();
        let mut lines = Vec::new();
        for line in text.lines() {
            match line.strip_prefix('@').and_then(|rest| rest.split_once('=')) {
                Some((name, value)) => {
                    head.insert(name.trim().to_owned(), value.trim().to_owned());
                }
                None => lines.push(line),
            }
        }
        let mut calls = Vec::new();
        unroll(&lines, &BTreeMap::new(), &mut calls);
        Self { head, calls }
    }

    /// The file system that it asks for, with some mount options.
    pub fn machine(&self, default_fs: &str, mount: &str) -> Small {
        let word = |name: &str, default: &str| {
            self.head.get(name).cloned().unwrap_or_else(|| default.to_owned())
        };
        let row = find(&word("fs", default_fs)).unwrap();
        let mkfs = FsOptions::mkfs(row.name, row.mkfs, &[word("mkfs", "")]).unwrap();
        let mount = FsOptions::mount(row.name, row.mount, &[mount.to_owned()]).unwrap();
        let bytes = atom(&word("size", "2304m"), &BTreeMap::new());
        let is_rotational = word("rotational", "1") == "1";
        let device =
            DeviceFacts { bytes, is_rotational, io_min_bytes: 512, io_opt_bytes: 0, stripe: None };
        let spec = MakeSpec {
            memory_bytes: 8 << 30,
            map_cost: Ns(3_000),
            devices: vec![device],
            kernel: Kernel::DEFAULT,
            mkfs,
            mount,
            cpus: 2,
            solaris: Solaris::DEFAULT,
            system: FsOptions::default(),
        };
        Small::new((row.make)(&spec).unwrap())
    }
}

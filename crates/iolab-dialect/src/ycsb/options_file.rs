//! Options files of `RocksDB`: sections of `name=value`, as the library writes them.

use iolab_model::kv::KvOption;

use crate::diagnostic::{Diagnostic, Problem};

/// Options of a file, for a column family; what points at objects of a program is left out.
pub fn read(file: &str, text: &str, family: &str) -> Result<Vec<KvOption>, Diagnostic> {
    let has_own = text.lines().any(|line| section(line) == Some(("CFOptions", family)));
    let family = if has_own { family } else { "default" };
    let mut found = Vec::new();
    let mut part = None;
    for (number, line) in text.lines().enumerate() {
        let plain = line.trim();
        if plain.is_empty() || plain.starts_with('#') {
            continue;
        }
        if let Some((kind, name)) = section(line) {
            part = match kind {
                "DBOptions" => Some("db"),
                "CFOptions" if name == family => Some("cf"),
                "TableOptions/BlockBasedTable" if name == family => Some("table"),
                _ => None,
            };
            continue;
        }
        let Some((name, value)) = plain.split_once('=') else {
            let problem = Problem::new(
                format!("'{plain}' is neither a section nor an option"),
                "write NAME=VALUE below [DBOptions] or [CFOptions \"default\"]",
            );
            return Err(Diagnostic {
                place: format!("{file}:{}:1", number + 1),
                line: line.to_owned(),
                marked: 0..line.chars().count(),
                problem,
            });
        };
        let (name, value) = (name.trim(), value.trim());
        if let Some(part) = part.filter(|_| value != "nullptr" && !value.is_empty()) {
            let (part, name) = (part.to_owned(), name.to_owned());
            found.push(KvOption { part, name, value: value.to_owned() });
        }
    }
    Ok(found)
}

/// Kind and name of a section's head.
fn section(line: &str) -> Option<(&str, &str)> {
    let inside = line.trim().strip_prefix('[')?.strip_suffix(']')?;
    let (kind, name) = inside.split_once(' ').unwrap_or((inside, ""));
    Some((kind, name.trim().trim_matches('"')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_the_family_in_use_are_taken() {
        let text = "# RocksDB options\n[Version]\n  rocksdb_version=7.8.3\n[DBOptions]\n  \
                    max_open_files=-1\n  wal_filter=nullptr\n[CFOptions \"default\"]\n  \
                    write_buffer_size=1048576\n[TableOptions/BlockBasedTable \"default\"]\n  \
                    block_size=4096\n[CFOptions \"other\"]\n  write_buffer_size=7\n";
        let names = |family| {
            let found = read("f", text, family).unwrap();
            found.into_iter().map(|one| format!("{}.{}={}", one.part, one.name, one.value))
        };
        let expected =
            ["db.max_open_files=-1", "cf.write_buffer_size=1048576", "table.block_size=4096"];
        assert!(names("usertable").eq(expected));
        assert!(names("other").eq(["db.max_open_files=-1", "cf.write_buffer_size=7"]));
        let error = read("f", "[DBOptions]\nnonsense\n", "x").unwrap_err().to_string();
        assert!(error.starts_with("f:2:1: 'nonsense'"), "{error}");
    }
}

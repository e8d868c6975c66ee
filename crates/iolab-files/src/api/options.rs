//! Typed options of mkfs and mount, under the names of the real programs.
//!
//! A file system lists the options that its model knows; everything else is refused by name. Names
//! of mkfs options carry their switch (`-b`, `-E stride`, `-O has_journal`, `-d su`).

use iolab_model::Bytes;

use crate::error::FilesError;

/// Values that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// None: the word itself. mkfs: `name`, or `^name` for off.
    Flag,
    /// None, or 1 for the word itself and 0 for its opposite, which has `no` before it.
    Switch,
    /// A whole number.
    Number {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// A size in bytes, perhaps with a suffix.
    Size {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// An option that a model knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsOption {
    /// Name, as it is typed.
    pub name: &'static str,
    /// Values that it takes.
    pub values: Values,
    /// Effect, for the reference page.
    pub help: &'static str,
}

/// An option without a value.
pub const fn flag(name: &'static str, help: &'static str) -> FsOption {
    FsOption { name, values: Values::Flag, help }
}

/// An option without a value, or with 0 or 1; the opposite word is a row, too.
pub const fn switch(name: &'static str, help: &'static str) -> FsOption {
    FsOption { name, values: Values::Switch, help }
}

/// An option with a whole number.
pub const fn number(name: &'static str, min: u64, max: u64, help: &'static str) -> FsOption {
    FsOption { name, values: Values::Number { min, max }, help }
}

/// An option with a size in bytes, perhaps with a suffix.
pub const fn size(name: &'static str, min: u64, max: u64, help: &'static str) -> FsOption {
    FsOption { name, values: Values::Size { min, max }, help }
}

/// An option with one of some words.
pub const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    help: &'static str,
) -> FsOption {
    FsOption { name, values: Values::Choice(words), help }
}

/// A value that was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The word itself; false: `^name`.
    Flag(bool),
    /// A number, or a size in bytes.
    Number(u64),
    /// A word.
    Choice(&'static str),
}

/// Options that were typed; the last one of a name counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsOptions(Vec<(&'static str, Value)>);

impl FsOptions {
    /// Value of an option, if it was typed.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.0.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// `Some(true)` if the word was typed, `Some(false)` if it was switched off.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name) {
            Some(Value::Flag(is_on)) => Some(is_on),
            _ => None,
        }
    }

    /// Tell which of two opposite words was typed last (`delalloc`, `nodelalloc`).
    pub fn either(&self, on: &str, off: &str) -> Option<bool> {
        let found = self.0.iter().rev().find(|(name, _)| *name == on || *name == off);
        found.map(|(name, _)| *name == on)
    }

    /// The one of these words that was typed last.
    pub fn last_of(&self, words: &[&'static str]) -> Option<&'static str> {
        self.0.iter().rev().map(|(name, _)| *name).find(|name| words.contains(name))
    }

    /// Two words that say different things about the same.
    pub fn contradiction(&self) -> Option<(String, String)> {
        let shown = |(name, value): &(&str, Value)| match value {
            Value::Flag(_) => (*name).to_owned(),
            Value::Number(number) => format!("{name}={number}"),
            Value::Choice(word) => format!("{name}={word}"),
        };
        let differs = |one: &(&str, Value), other: &(&str, Value)| {
            // `nobarrier` and `barrier`, `dioread_nolock` and `dioread_lock`.
            let without = |word: &str| word.replacen("no", "", 1);
            if one.0 == other.0 {
                return one.1 != other.1;
            }
            without(one.0) == other.0 || without(other.0) == one.0
        };
        self.0.iter().enumerate().find_map(|(at, one)| {
            let other = self.0[at + 1..].iter().find(|other| differs(one, other))?;
            Some((shown(one), shown(other)))
        })
    }

    /// Number of an option.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.get(name) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// Word of an option.
    pub fn choice(&self, name: &str) -> Option<&'static str> {
        match self.get(name) {
            Some(Value::Choice(word)) => Some(word),
            _ => None,
        }
    }

    /// Reads what follows `mount -o`: texts of words between commas.
    pub fn mount(
        file_system: &'static str,
        rows: &[FsOption],
        texts: &[String],
    ) -> Result<Self, FilesError> {
        let reader = Reader { file_system, kind: "mount", rows };
        let mut options = Self::default();
        for word in texts.iter().flat_map(|text| text.split(',')).filter(|word| !word.is_empty()) {
            let (name, value) = split(word);
            options.0.push(reader.read(name, value)?);
        }
        Ok(options)
    }

    /// Reads variables of the kernel, by name.
    pub fn system<'a>(
        file_system: &'static str,
        rows: &[FsOption],
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Result<Self, FilesError> {
        let reader = Reader { file_system, kind: "system", rows };
        let mut options = Self::default();
        for (name, value) in values {
            options.0.push(reader.read(name, Some(&value.to_string()))?);
        }
        Ok(options)
    }

    /// Reads the words of a mkfs command line.
    pub fn mkfs(
        file_system: &'static str,
        rows: &[FsOption],
        words: &[String],
    ) -> Result<Self, FilesError> {
        let reader = Reader { file_system, kind: "mkfs", rows };
        let mut options = Self::default();
        let mut words = words.iter().flat_map(|word| word.split_whitespace());
        while let Some(word) = words.next() {
            if !word.starts_with('-') || word.len() < 2 || !word.is_char_boundary(2) {
                return Err(reader.unknown(word));
            }
            let (switch, attached) = word.split_at(2);
            let is_plain = rows.iter().any(|row| row.name == switch && row.values == Values::Flag);
            if is_plain {
                options.0.push((reader.row(switch)?.name, Value::Flag(true)));
                continue;
            }
            let text = if attached.is_empty() { words.next().unwrap_or("") } else { attached };
            if rows.iter().any(|row| row.name == switch) {
                options.0.push(reader.read(switch, Some(text))?);
                continue;
            }
            for part in text.split(',') {
                let (name, value) = split(part);
                let (is_off, bare) =
                    name.strip_prefix('^').map_or((false, name), |bare| (true, bare));
                let (name, read) = reader.read(&format!("{switch} {bare}"), value)?;
                let read = if is_off { Value::Flag(false) } else { read };
                options.0.push((name, read));
            }
        }
        Ok(options)
    }
}

fn split(word: &str) -> (&str, Option<&str>) {
    word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)))
}

struct Reader<'a> {
    file_system: &'static str,
    kind: &'static str,
    rows: &'a [FsOption],
}

impl Reader<'_> {
    fn unknown(&self, name: &str) -> FilesError {
        let known = self.rows.iter().map(|row| row.name.to_owned()).collect();
        FilesError::UnknownOption {
            file_system: self.file_system,
            kind: self.kind,
            name: name.to_owned(),
            known,
        }
    }

    fn row(&self, name: &str) -> Result<&FsOption, FilesError> {
        self.rows.iter().find(|row| row.name == name).ok_or_else(|| self.unknown(name))
    }

    fn read(&self, name: &str, value: Option<&str>) -> Result<(&'static str, Value), FilesError> {
        let row = self.row(name)?;
        let bad = |problem: String| FilesError::BadValue {
            file_system: self.file_system,
            kind: self.kind,
            name: row.name,
            value: value.unwrap_or("").to_owned(),
            problem,
        };
        let text = value.filter(|text| !text.is_empty());
        let within = |number: Option<u64>, min, max| match number {
            Some(number) if (min..=max).contains(&number) => Ok(Value::Number(number)),
            Some(_) => Err(bad(format!("must be {min} to {max}"))),
            None => Err(bad(format!("must be a number from {min} to {max}"))),
        };
        let read = match (row.values, text) {
            (Values::Flag | Values::Switch, None) | (Values::Switch, Some("1")) => {
                Value::Flag(true)
            }
            (Values::Switch, Some("0")) => {
                return Ok((self.row(&format!("no{name}"))?.name, Value::Flag(true)));
            }
            (Values::Switch, Some(_)) => return Err(bad("must be 0 or 1, or left out".into())),
            (Values::Flag, Some(_)) => return Err(bad("takes no value".into())),
            (_, None) => return Err(bad("needs a value".into())),
            (Values::Number { min, max }, Some(text)) => within(text.parse().ok(), min, max)?,
            (Values::Size { min, max }, Some(text)) => {
                let size = text.parse::<Bytes>().ok().map(|size| size.0);
                let size = size.filter(|size| (min..=max).contains(size));
                let sizes = || match (Bytes(min), Bytes(max)) {
                    (min, max) if min == max => format!("must be {min}"),
                    (min, max) => format!("must be a size of {min} to {max}"),
                };
                Value::Number(size.ok_or_else(|| bad(sizes()))?)
            }
            (Values::Choice(words), Some(text)) => {
                let word = words.iter().find(|word| **word == text);
                let word = word.ok_or_else(|| bad(format!("must be {}", words.join(" or "))))?;
                Value::Choice(word)
            }
        };
        Ok((row.name, read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNT: &[FsOption] = &[
        FsOption { name: "delalloc", values: Values::Flag, help: "" },
        FsOption { name: "nodelalloc", values: Values::Flag, help: "" },
        FsOption { name: "barrier", values: Values::Switch, help: "" },
        FsOption { name: "nobarrier", values: Values::Flag, help: "" },
        FsOption { name: "commit", values: Values::Number { min: 1, max: 900 }, help: "" },
        FsOption { name: "data", values: Values::Choice(&["ordered", "journal"]), help: "" },
    ];
    const MKFS: &[FsOption] = &[
        FsOption { name: "-b", values: Values::Size { min: 1024, max: 4096 }, help: "" },
        FsOption { name: "-O has_journal", values: Values::Flag, help: "" },
        FsOption { name: "-E stride", values: Values::Number { min: 0, max: 99 }, help: "" },
        FsOption { name: "-q", values: Values::Flag, help: "" },
    ];

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn words_of_a_mount_are_read_in_order() {
        let texts = owned(&["nodelalloc,commit=10", "data=journal,delalloc"]);
        let options = FsOptions::mount("ext4", MOUNT, &texts).unwrap();
        assert_eq!(options.either("delalloc", "nodelalloc"), Some(true));
        assert_eq!((options.number("commit"), options.choice("data")), (Some(10), Some("journal")));
        assert_eq!(options.flag("nobarrier"), None);
        let both = Some(("nodelalloc".to_owned(), "delalloc".to_owned()));
        assert_eq!(options.contradiction(), both);
        let again = FsOptions::mount("ext4", MOUNT, &owned(&["commit=5,commit=9"])).unwrap();
        assert_eq!(again.contradiction(), Some(("commit=5".to_owned(), "commit=9".to_owned())));
        let same = FsOptions::mount("ext4", MOUNT, &owned(&["commit=5,delalloc,commit=5"]));
        assert_eq!(same.unwrap().contradiction(), None);
    }

    #[test]
    fn a_switch_has_a_number_or_its_opposite_word() {
        let found = |word: &str| {
            let options = FsOptions::mount("ext4", MOUNT, &owned(&[word]));
            options.map(|options| options.either("barrier", "nobarrier"))
        };
        for (word, is_on) in
            [("barrier", true), ("barrier=1", true), ("barrier=0", false), ("nobarrier", false)]
        {
            assert_eq!(found(word).unwrap(), Some(is_on), "{word}");
        }
        assert!(found("barrier=2").unwrap_err().to_string().contains("must be 0 or 1"));
        assert!(found("nobarrier=1").unwrap_err().to_string().contains("takes no value"));
    }

    #[test]
    fn switches_of_mkfs_are_read_with_and_without_a_space() {
        let words = owned(&["-b4k", "-q", "-O", "^has_journal", "-E stride=16"]);
        let options = FsOptions::mkfs("ext4", MKFS, &words).unwrap();
        assert_eq!((options.number("-b"), options.number("-E stride")), (Some(4096), Some(16)));
        assert_eq!((options.flag("-O has_journal"), options.flag("-q")), (Some(false), Some(true)));
    }

    #[test]
    fn an_unknown_option_is_refused_by_name() {
        let error =
            FsOptions::mount("ext4", MOUNT, &owned(&["nodelaloc"])).unwrap_err().to_string();
        assert!(error.contains("no mount option `nodelaloc`, or it is not modelled (did you"));
        let seconds = FsOptions::mount("ext4", MOUNT, &owned(&["commit=5s"])).unwrap_err();
        assert!(seconds.to_string().contains("must be a number from 1 to 900"), "{seconds}");
        let size = FsOptions::mkfs("ext4", MKFS, &owned(&["-b 8k"])).unwrap_err();
        assert!(size.to_string().contains("must be a size of 1k to 4k"), "{size}");
        for word in ["commit", "commit=0", "data=x", "delalloc=1"] {
            assert!(FsOptions::mount("ext4", MOUNT, &owned(&[word])).is_err(), "{word}");
        }
        for word in ["b", "-", "-E stripe=1", "-b 8k", "-é"] {
            assert!(FsOptions::mkfs("ext4", MKFS, &owned(&[word])).is_err(), "{word}");
        }
    }
}

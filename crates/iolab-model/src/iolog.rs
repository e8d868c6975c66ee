//! Lines of fio's iolog, versions 2 and 3: what a job did to its files.
//!
//! The one decoder of the format: traces, fio's replays and recorded streams read it here. Source:
//! fio(1), "TRACE FILE FORMAT", and logs of fio 3.33, whose times are microseconds. Version 2 has
//! `FILE ACTION [OFFSET LENGTH]` and passes time by `FILE wait MICROSECONDS 0`; version 3 begins
//! each line with the microseconds since the beginning. Left out: version 1, which fio has not read
//! since 2008, and recordings of block devices.

/// Longest recorded time in microseconds: nanoseconds must fit into 64 bits, also slowed down.
pub const US_MAX: u64 = u64::MAX / 1000 / 100;
/// Characters of a word that are repeated in a message.
const SHOWN_MAX: usize = 40;

/// Version of an iolog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Pauses are lines of their own.
    Second,
    /// Each line begins with its time.
    Third,
}

impl Version {
    /// Version that the first line of a file tells; absent: it is no iolog.
    pub fn of(line: &[u8]) -> Option<Self> {
        match line.trim_ascii() {
            b"fio version 2 iolog" => Some(Self::Second),
            b"fio version 3 iolog" => Some(Self::Third),
            _ => None,
        }
    }
}

/// Action of a line on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The file belongs to the job.
    Add,
    /// The file is opened.
    Open,
    /// The file is closed.
    Close,
    /// So many microseconds pass (version 2).
    Wait(u64),
    /// A read: place and bytes.
    Read(u64, u64),
    /// A write: place and bytes.
    Write(u64, u64),
    /// A discard: place and bytes.
    Trim(u64, u64),
    /// fsync(2).
    Sync,
    /// fdatasync(2).
    DataSync,
    /// `sync_file_range(2)`.
    SyncFileRange,
}

/// A line of an iolog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Microseconds since the beginning (version 3).
    pub us: Option<u64>,
    /// Name of the file.
    pub file: &'a [u8],
    /// Action on the file.
    pub action: Action,
}

impl Action {
    /// True if place and bytes belong to the action.
    const fn has_place(self) -> bool {
        matches!(self, Self::Read(..) | Self::Write(..) | Self::Trim(..))
    }
}

impl<'a> Line<'a> {
    /// Decodes a line that is not empty.
    ///
    /// # Errors
    ///
    /// The fault of the line, in words.
    pub fn decode(version: Version, text: &'a [u8]) -> Result<Self, String> {
        let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let us = match version {
            Version::Second => None,
            Version::Third => Some(time(words.next())?),
        };
        let (Some(file), Some(word)) = (words.next(), words.next()) else {
            return Err(format!("{} is no action", shown(text)));
        };
        let mut numbers = || Ok::<_, String>((number(words.next())?, number(words.next())?));
        let action = match word {
            b"add" => Action::Add,
            b"open" => Action::Open,
            b"close" => Action::Close,
            b"wait" if version == Version::Second => Action::Wait(time(words.next())?),
            b"sync" => Action::Sync,
            b"datasync" => Action::DataSync,
            b"sync_file_range" => Action::SyncFileRange,
            b"read" | b"write" | b"trim" => {
                let (at, length) = numbers()?;
                if length == 0 {
                    return Err(format!("{} of no bytes", String::from_utf8_lossy(word)));
                }
                at.checked_add(length).ok_or("it is beyond any file")?;
                match word {
                    b"read" => Action::Read(at, length),
                    b"write" => Action::Write(at, length),
                    _ => Action::Trim(at, length),
                }
            }
            other => return Err(format!("{} is no action", shown(other))),
        };
        // Offset and length that mean nothing, and the second number of a pause.
        let rest = words.by_ref().try_fold(0, |count, word| number(Some(word)).map(|_| count + 1));
        match (rest?, action) {
            (0, _) | (1, Action::Wait(_)) => {}
            (2, other) if !matches!(other, Action::Wait(_)) && !other.has_place() => {}
            _ => return Err("it has more words than its action takes".to_owned()),
        }
        Ok(Self { us, file, action })
    }
}

fn number(word: Option<&[u8]>) -> Result<u64, String> {
    let word = word.ok_or("a number is missing")?;
    let is_plain = word.iter().all(u8::is_ascii_digit);
    let value = std::str::from_utf8(word).ok().filter(|_| is_plain).and_then(|w| w.parse().ok());
    value.ok_or_else(|| format!("{} is no number that is understood", shown(word)))
}

fn time(word: Option<&[u8]>) -> Result<u64, String> {
    let value = number(word)?;
    let problem = || format!("{value} microseconds are more than any recording has");
    Some(value).filter(|value| *value <= US_MAX).ok_or_else(problem)
}

/// A word as messages have it: without control characters, and not long.
fn shown(word: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(word).chars().take(SHOWN_MAX).collect();
    format!("'{}'", text.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(version: Version, line: &str) -> Result<Line<'_>, String> {
        Line::decode(version, line.as_bytes())
    }

    #[test]
    fn both_versions_are_understood() {
        assert_eq!(Version::of(b"fio version 2 iolog\n"), Some(Version::Second));
        assert_eq!(Version::of(b"fio version 1 iolog"), None);
        let line = of(Version::Third, "100 d write 0 4096").unwrap();
        let expected = Line { us: Some(100), file: b"d", action: Action::Write(0, 4096) };
        assert_eq!(line, expected);
        assert_eq!(of(Version::Second, "d wait 1500 0").unwrap().action, Action::Wait(1500));
        assert_eq!(of(Version::Second, "d trim 512 512").unwrap().action, Action::Trim(512, 512));
        assert_eq!(of(Version::Third, "5 d sync 0 0").unwrap().action, Action::Sync);
        assert_eq!(of(Version::Second, "d datasync").unwrap().action, Action::DataSync);
    }

    #[test]
    fn a_line_that_is_none_says_why() {
        for (line, part) in [
            ("d add", "no number"),
            ("0 d jump 0 0", "'jump'"),
            ("0 d read 0", "missing"),
            ("0 d read -1 4096", "'-1'"),
            ("0 d read +1 4096", "'+1'"),
            ("0 d read 0 0", "no bytes"),
            ("0 d read 18446744073709551615 1", "beyond any file"),
            ("0 d read 0 512 512", "more words"),
            ("0 d wait 5 0", "'wait'"),
            ("18446744073709551615 d add", "more than any"),
            ("0 d \u{7}", "'\\u{7}'"),
        ] {
            let why = of(Version::Third, line).unwrap_err();
            assert!(why.contains(part), "{line}: {why}");
        }
    }
}

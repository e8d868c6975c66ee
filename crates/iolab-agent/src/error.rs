//! Everything that can go wrong, with its values; each error knows its protocol code and what to
//! do.

use std::io;
use std::path::{Path, PathBuf};

use crate::protocol::ErrorCode;

/// Result with the agent's error.
pub type Result<T> = std::result::Result<T, Error>;

/// An operating error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The front end said something that is not in the contract.
    #[error("{what}")]
    Protocol {
        /// Fault, in words.
        what: String,
    },
    /// A name that is in none of our lists.
    #[error("'{name}' is not a {kind}{}", did_you_mean(nearest.as_deref()))]
    UnknownName {
        /// Kind of thing that was expected: `knob`, `testbed`, ...
        kind: &'static str,
        /// Name that was typed.
        name: String,
        /// The closest name that exists.
        nearest: Option<String>,
        /// All names, for the hint.
        known: String,
    },
    /// A knob cannot have this value here.
    #[error("{knob} of {site} cannot be '{value}': {reason}")]
    KnobValue {
        /// Name of the knob.
        knob: String,
        /// Device, or `this machine`.
        site: String,
        /// Value that was asked for.
        value: String,
        /// Reason of the refusal, and what would be accepted.
        reason: String,
    },
    /// Something that somebody typed cannot be.
    #[error("{what}")]
    Usage {
        /// The word that was typed, and its fault.
        what: String,
        /// The form that would be accepted.
        hint: String,
    },
    /// A rule of safety forbids it.
    #[error("{what}")]
    Refused {
        /// Action that is refused, its object and the reason.
        what: String,
        /// The form that would be accepted.
        hint: String,
    },
    /// A system call failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Verb, such as `write`.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A program such as mkfs failed.
    #[error("{command} failed ({status}): {output}")]
    Command {
        /// Command line.
        command: String,
        /// Exit status.
        status: String,
        /// Its own words and new lines of the kernel log.
        output: String,
    },
    /// Something on the machine is not as it must be.
    #[error("{what}")]
    Failed {
        /// Action that failed, and its object.
        what: String,
        /// Advice: the next thing to do.
        hint: String,
    },
    /// Something failed, and not everything could be put back afterwards.
    #[error("{cause}; and not everything could be put back: {}", problems.join("; "))]
    RestoreIncomplete {
        /// First failure.
        cause: String,
        /// Changes that are still there.
        problems: Vec<String>,
    },
    /// The front end asked to stop.
    #[error("stopped on request")]
    Interrupted,
    /// A test has let the agent die here.
    #[cfg(test)]
    #[error("crashed by the test")]
    Crashed,
}

impl Error {
    /// A failed system call.
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        Self::Io { action, path: path.as_ref().to_path_buf(), source: source.into() }
    }

    /// A mistake in what was typed.
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { what: what.into(), hint: hint.into() }
    }

    /// A refusal.
    pub fn refused(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), hint: hint.into() }
    }

    /// A failure.
    pub fn failed(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), hint: hint.into() }
    }

    /// Wrong use of the protocol.
    pub fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol { what: what.into() }
    }

    /// A name that is in none of our lists; finds the nearest.
    pub fn unknown(kind: &'static str, name: &str, known: &[&str]) -> Self {
        Self::UnknownName {
            kind,
            name: name.to_owned(),
            nearest: nearest(name, known).map(str::to_owned),
            known: known.join(", "),
        }
    }

    /// Code in the protocol.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Protocol { .. }
            | Self::UnknownName { .. }
            | Self::KnobValue { .. }
            | Self::Usage { .. } => ErrorCode::Usage,
            Self::Refused { .. } => ErrorCode::Refused,
            Self::RestoreIncomplete { .. } => ErrorCode::RestoreIncomplete,
            Self::Interrupted => ErrorCode::Interrupted,
            _ => ErrorCode::Failed,
        }
    }

    /// True if a thing that was to be made is there already.
    pub fn is_there_already(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
    }

    /// Advice: the next thing to do.
    pub fn hint(&self) -> String {
        match self {
            Self::Protocol { .. } => {
                "see docs/design/0002-agent-protocol.md; agent and front end must be of one version"
                    .to_owned()
            }
            Self::UnknownName { known, .. } => format!("known: {known}"),
            Self::Usage { hint, .. } | Self::Refused { hint, .. } | Self::Failed { hint, .. } => {
                hint.clone()
            }
            Self::Io { source, .. } => io_hint(source).to_owned(),
            Self::RestoreIncomplete { .. } => "run `iolab restore`".to_owned(),
            Self::Command { .. } => "correct the options, or try the command by hand".to_owned(),
            _ => String::new(),
        }
    }
}

fn io_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "use one that this user may write, or run it as root",
        io::ErrorKind::ReadOnlyFilesystem => {
            "it is mounted read-only: make it writable (after an error: unmount it, run fsck, \
             mount it), or name another place"
        }
        io::ErrorKind::StorageFull => "free some space, or use a smaller testbed",
        _ => "",
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default()
}

/// The closest of `known`, if it is close enough to be what was meant.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let scored = known.iter().map(|candidate| (distance(name, candidate), *candidate));
    let (best, candidate) = scored.min()?;
    (best <= 1 + name.len().div_ceil(4)).then_some(candidate)
}

/// Levenshtein (1966): insertions, deletions and substitutions that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name_is_found_only_if_near() {
        let known = ["scheduler", "read_ahead_kb", "nr_requests"];
        assert_eq!(nearest("schedular", &known), Some("scheduler"));
        assert_eq!(nearest("readahead_kb", &known), Some("read_ahead_kb"));
        assert_eq!(nearest("colour", &known), None);
    }

    #[test]
    fn distance_is_symmetric_and_counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("sitting", "kitten"), 3);
    }
}

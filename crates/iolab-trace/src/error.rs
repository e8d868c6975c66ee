//! Errors of a trace, with the place in the file.

use std::io;

/// A trace that cannot be used, or an output that cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{name} cannot be read: {error}")]
    Read {
        /// File.
        name: String,
        /// Reason.
        error: io::Error,
    },
    /// An output could not be written.
    #[error("the output cannot be written: {0}")]
    Write(io::Error),
    /// The content is none of the formats.
    #[error("{name} is no block trace in a known format: {what}; formats are {formats}")]
    Unknown {
        /// File.
        name: String,
        /// Bytes at its beginning.
        what: String,
        /// Names of the formats.
        formats: String,
    },
    /// The file is damaged from its beginning, or of another version.
    #[error("{name}, {place}: {what}")]
    Damaged {
        /// File.
        name: String,
        /// Offset or line.
        place: Place,
        /// Fault, in words.
        what: String,
    },
    /// A format string or option that cannot be understood.
    #[error("{0}")]
    Option(String),
    /// A device that was asked for has no event.
    #[error("no event is of {name}: the trace has {there}; name one of its devices")]
    OtherDevice {
        /// Device as the user named it.
        name: String,
        /// Devices that have events.
        there: String,
    },
    /// No event is of the times that were asked for.
    #[error("no event is {part}: the nearest is at {beside}; times count from the first event")]
    OtherTime {
        /// Times as the user named them, in s.
        part: String,
        /// Times of the events before and behind, in s.
        beside: String,
    },
    /// The output format cannot hold the event.
    #[error("{format} cannot hold {what}")]
    Unfit {
        /// Output format.
        format: &'static str,
        /// Field that does not fit.
        what: String,
    },
}

/// Place of something in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Offset in bytes.
    Offset(u64),
    /// Line, from 1 on.
    Line(u64),
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Offset(bytes) => write!(formatter, "offset {bytes}"),
            Self::Line(number) => write!(formatter, "line {number}"),
        }
    }
}

/// Something a reader found that does not keep it from going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caveat {
    /// File.
    pub name: String,
    /// Place in the file.
    pub place: Place,
    /// Fault, in words.
    pub what: String,
    /// True if the rest of the file is not used because its content is wrong.
    pub is_damage: bool,
}

impl std::fmt::Display for Caveat {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}, {}: {}", self.name, self.place, self.what)
    }
}

//! Errors in the description of a file system, with the nearest valid name.

use iolab_model::nearest::did_you_mean;
use thiserror::Error as ThisError;

/// A file system that cannot be made or mounted.
#[non_exhaustive]
#[derive(Debug, ThisError, PartialEq, Eq)]
pub enum FilesError {
    /// An option that the model does not know.
    #[error(
        "{file_system}: {kind} option `{name}` is not modelled{}; known: {}",
        did_you_mean(.name, .known.iter().map(String::as_str)),
        .known.join(", ")
    )]
    UnknownOption {
        /// The file system.
        file_system: &'static str,
        /// `mkfs` or `mount`.
        kind: &'static str,
        /// Name that was typed.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// A value that an option does not take.
    #[error("{file_system}: {kind} option {name}={value}: {problem}")]
    BadValue {
        /// The file system.
        file_system: &'static str,
        /// `mkfs` or `mount`.
        kind: &'static str,
        /// The option.
        name: &'static str,
        /// Value that was typed.
        value: String,
        /// Fault, in words.
        problem: String,
    },
    /// Parts that contradict each other.
    #[error("{subject}: {problem}; {remedy}")]
    Inconsistent {
        /// File system or machine.
        subject: String,
        /// Fault, in words.
        problem: String,
        /// Advice: the next thing to do.
        remedy: String,
    },
}

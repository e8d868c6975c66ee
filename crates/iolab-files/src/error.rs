//! Errors in the description of a file system, with the nearest valid name.

use iolab_model::nearest::did_you_mean;
use thiserror::Error as ThisError;

/// The option that was probably meant: of mkfs also one whose letter, or whose word, was left out.
fn suggestion(name: &str, known: &[String]) -> String {
    let is_part = |one: &&String| {
        one.split_once(' ').is_some_and(|(letter, word)| letter == name || word == name)
    };
    match known.iter().find(is_part) {
        Some(whole) => format!(" (did you mean `{whole}`?)"),
        None => did_you_mean(name, known.iter().map(String::as_str)),
    }
}

/// A file system that cannot be made or mounted.
#[non_exhaustive]
#[derive(Debug, ThisError, PartialEq, Eq)]
pub enum FilesError {
    /// An option that the model does not know.
    #[error(
        "{file_system}: there is no {kind} option `{name}`, or it is not modelled{}; known: {}",
        suggestion(.name, .known),
        if .known.is_empty() { "none".to_owned() } else { .known.join(", ") }
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

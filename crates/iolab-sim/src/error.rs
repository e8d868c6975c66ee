//! Errors in a description of a stack, with the nearest valid name.

use iolab_model::nearest::did_you_mean;
use thiserror::Error as ThisError;

/// A simulation that cannot be set up, or a scenario file that cannot be read.
#[non_exhaustive]
#[derive(Debug, ThisError, PartialEq)]
pub enum SimError {
    /// A name that is in no list.
    #[error(
        "unknown {kind} `{name}`{}; known: {}",
        did_you_mean(.name, .known.iter().map(String::as_str)),
        .known.join(", ")
    )]
    UnknownName {
        /// Sort of the named thing.
        kind: &'static str,
        /// Name that was typed.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// A number outside its range.
    #[error("{name} = {value} {unit}: must be {min} to {max} {unit}")]
    OutOfRange {
        /// Parameter or tunable, with its owner.
        name: String,
        /// Value that was given.
        value: f64,
        /// Unit.
        unit: String,
        /// Least allowed.
        min: f64,
        /// Most allowed.
        max: f64,
    },
    /// A parameter that is missing, of another type or in another unit.
    #[error("profile {profile}: parameter {name}: {problem}")]
    BadParameter {
        /// Profile.
        profile: String,
        /// Parameter.
        name: String,
        /// Fault, in words.
        problem: String,
    },
    /// Parameters or layers that contradict each other.
    #[error("{subject}: {problem}; {remedy}")]
    Inconsistent {
        /// Profile, stack or scenario.
        subject: String,
        /// Fault, in words.
        problem: String,
        /// Advice: the next thing to do.
        remedy: String,
    },
    /// A file system that cannot be made.
    #[error(transparent)]
    Files(#[from] iolab_files::FilesError),
    /// Text that is not TOML, or not of the expected shape.
    #[error("{subject}: {problem}")]
    Syntax {
        /// File or profile.
        subject: String,
        /// Message of the parser.
        problem: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_suggests_its_neighbour() {
        let known = vec!["deadline".to_owned(), "cfq".to_owned()];
        let error = SimError::UnknownName { kind: "scheduler", name: "dedline".into(), known };
        let text = error.to_string();
        assert_eq!(
            text,
            "unknown scheduler `dedline` (did you mean `deadline`?); known: deadline, cfq"
        );
    }
}

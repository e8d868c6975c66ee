//! Fault of a description: where, what, and what to do about it.

use iolab_model::Error;

/// A contradiction in a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the part, as in `phases[0].tenants[1].program.steps[2]`.
    pub path: String,
    /// Fault, with the offending values.
    pub problem: String,
    /// Advice: the next thing to do.
    pub remedy: String,
}

impl Problem {
    /// A problem at a path.
    pub fn new(path: impl Into<String>, problem: impl Into<String>, remedy: &str) -> Self {
        Self { path: path.into(), problem: problem.into(), remedy: remedy.to_owned() }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let Problem { path, problem, remedy } = problem;
        Self::BadWorkload { problem: format!("{path}: {problem}"), remedy }
    }
}

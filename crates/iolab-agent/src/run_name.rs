//! Names of runs: what a user calls one, and what that one is called on this machine.
//!
//! A run's name is part of the names of its journal, mount point, image and control groups. Users
//! for whom root works choose theirs freely, so each has names of his own: on the machine they
//! begin with his number. Else one could find out whether another has a run of some name, or keep
//! him from having it. Root's runs, and those of who is not root, have the name that was given.

use crate::error::{Error, Result};

/// Between the number of a user and the name that he gave; no given name has it.
const MARK: char = '.';
const FORM: &str = "a name has 4 to 40 of the characters a-z, 0-9 and -";

/// Refuses what cannot be part of a file's name. The contract: `[a-z0-9-]{4,40}`.
pub fn check(run: &str) -> Result<()> {
    let is_plain = run.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if is_plain && (4..=40).contains(&run.len()) {
        return Ok(());
    }
    let shown: String = run.chars().take(60).collect();
    Err(Error::usage(format!("no run is called {shown:?}"), FORM))
}

/// The name on this machine of the run that `uid`, for whom root works, calls `run`.
pub fn on_machine(uid: Option<u32>, run: &str) -> String {
    match uid {
        Some(uid) => format!("{uid}{MARK}{run}"),
        None => run.to_owned(),
    }
}

/// The user for whom root works, if a run's name on this machine has one, and what he calls it.
pub fn parts(name: &str) -> (Option<u32>, &str) {
    let parted = name.split_once(MARK).and_then(|(uid, run)| Some((uid.parse().ok()?, run)));
    parted.map_or((None, name), |(uid, run)| (Some(uid), run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_name_and_that_on_the_machine_are_two() {
        for (uid, name) in [(None, "run-1"), (Some(1000), "1000.run-1")] {
            assert_eq!(on_machine(uid, "run-1"), name);
            assert_eq!(parts(name), (uid, "run-1"));
        }
        assert_eq!(parts("x.run-1"), (None, "x.run-1"));
    }

    /// Newcomers, finding 20: `iolab restore --run "My Run"` answered with the contract of the
    /// protocol, and advised to compare versions of agent and front end.
    #[test]
    fn a_name_that_cannot_be_is_told_in_plain_words() {
        for name in ["", "abc", "Run-1", "1000.run-1", "../run", "a b c d", &"x".repeat(41)] {
            let error = check(name).unwrap_err();
            let text = format!("{error}; {}", error.hint());
            assert!(text.contains("4 to 40") && !text.contains("protocol"), "{text}");
        }
        check("r-4fb19f5fcddd").unwrap();
    }
}

//! Processes whose events are recorded: they exist, and the user may see what they do.
//!
//! Whoever uses a rule of sudo for the agent alone may record processes that are his, and can never
//! become another's: the kernel follows what they start, programs with the set-user-id bit too, and
//! only `no_new_privs` (Linux Documentation/userspace-api/no_new_privs.rst) keeps those from
//! gaining rights. A process inherits it, and cannot lose it.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};

const PIDS_MAX: usize = 256;
const HINT: &str = "record a command of your own with --for COMMAND; root can allow all processes \
                    with all_processes = true in /etc/iolab/agent.toml";

/// Refuses processes that are not there, or, with a `user`, not that user's for good.
pub fn check(pids: &[u32], user: Option<u32>) -> Result<()> {
    if pids.len() > PIDS_MAX {
        let what = format!("{} processes are too many", pids.len());
        return Err(Error::usage(what, format!("name at most {PIDS_MAX}")));
    }
    pids.iter().try_for_each(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|_| {
            let hint = "see `ps`; a process that has ended cannot be recorded";
            Error::usage(format!("there is no process {pid}"), hint)
        })?;
        match user.and_then(|user| why_foreign(&text, user)) {
            None => Ok(()),
            Some(why) => {
                Err(Error::refused(format!("process {pid} is not recorded for you: {why}"), HINT))
            }
        }
    })
}

/// Reason why a process is not a user's own for good, from its `status`.
fn why_foreign(status: &str, user: u32) -> Option<String> {
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let ids: Vec<u32> = line("Uid:")
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect();
    if ids.len() != 4 || ids.iter().any(|id| *id != user) {
        return Some("it belongs to another user".to_owned());
    }
    let is_bound = line("NoNewPrivs:").map(str::trim) == Some("1");
    (!is_bound).then(|| "what it starts may gain other rights".to_owned())
}

/// Threads of processes, by which the kernel knows them.
pub fn threads_of(pids: &[u32]) -> Vec<u32> {
    let mut threads = Vec::new();
    for pid in pids {
        threads.push(*pid);
        let Ok(listing) = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task"))
        else {
            continue;
        };
        let names = listing.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        threads.extend(names.filter_map(|name| name.parse::<u32>().ok()));
    }
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Name of a task, as the kernel has it; none if it is gone.
pub fn name_of(pid: u32) -> Option<Vec<u8>> {
    let mut name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    name.truncate(name.iter().position(|byte| *byte == b'\n').unwrap_or(name.len()));
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_that_stay_the_users_are_his() {
        let status = "Name:\tdd\nUid:\t7\t7\t7\t7\nGid:\t0\t0\t0\t0\nNoNewPrivs:\t1\n";
        assert_eq!(why_foreign(status, 7), None);
        for (wrong, user) in [
            (status.to_owned(), 8),
            (status.replace("7\t7\t7\t7", "7\t0\t7\t7"), 7),
            (status.replace("7\t7\t7\t7", "7\t7"), 7),
            (status.replace("NoNewPrivs:\t1", "NoNewPrivs:\t0"), 7),
            (status.replace("NoNewPrivs:\t1\n", ""), 7),
            (String::new(), 7),
        ] {
            assert!(why_foreign(&wrong, user).is_some(), "{wrong}");
        }
    }

    #[test]
    fn threads_are_those_of_the_process() {
        let own = std::process::id();
        assert!(threads_of(&[own]).contains(&own));
        assert!(check(&[own], None).is_ok());
        let error = check(&[u32::MAX], None).unwrap_err();
        assert!(error.to_string().contains("4294967295"), "{error}");
    }
}

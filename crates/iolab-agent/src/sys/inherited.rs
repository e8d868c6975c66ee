//! Limits, signals and priorities that a process has from its caller, also through sudo, and their
//! usual values for root's.
//!
//! Limits, signals, timers and priorities outlive execve(2). Each could end root's process in the
//! middle of a change, keep it from making or undoing one, or let it wait for ever. Sources:
//! execve(2), getrlimit(2), signal(7), setitimer(2), sched(7), `ioprio_set(2)`,
//! `proc_pid_oom_score_adj(5)`. Left out: processors, which somebody may have chosen for a
//! measurement; control groups, which are the service manager's.

use std::fs;
use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};

use super::check;

const INFINITY: u64 = libc::RLIM_INFINITY;

/// Limits that root's process has: soft and hard limit. Without the first group it could be ended
/// or starved at any moment.
const VITAL: &[(Resource, u64, u64)] = &[
    (Resource::RLIMIT_AS, INFINITY, INFINITY),
    (Resource::RLIMIT_CPU, INFINITY, INFINITY),
    (Resource::RLIMIT_DATA, INFINITY, INFINITY),
    (Resource::RLIMIT_FSIZE, INFINITY, INFINITY),
    (Resource::RLIMIT_RTTIME, INFINITY, INFINITY),
];
/// Limits that a process has where root of a container may not raise these.
const USUAL: &[(Resource, u64, u64)] = &[
    // A dump of root's memory helps nobody but who wanted it.
    (Resource::RLIMIT_CORE, 0, 0),
    (Resource::RLIMIT_MEMLOCK, 64 << 20, 64 << 20),
    // Workers have some each.
    (Resource::RLIMIT_NOFILE, 1 << 16, 1 << 16),
    // Each worker may be a process, also of the user's whom it becomes.
    (Resource::RLIMIT_NPROC, 1 << 16, 1 << 16),
    (Resource::RLIMIT_SIGPENDING, 1 << 14, 1 << 14),
    (Resource::RLIMIT_STACK, 8 << 20, INFINITY),
];
/// prctl(2), `PR_SET_TIMERSLACK`: the kernel's own.
const TIMER_SLACK_NS: libc::c_ulong = 50_000;
const OOM_SCORE: &str = "/proc/self/oom_score_adj";
// include/uapi/linux/ioprio.h: IOPRIO_WHO_PROCESS, and no class.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;
const IOPRIO_NONE: libc::c_int = 0;
/// include/uapi/linux/signal.h: `_NSIG`.
const SIGNALS: std::ops::RangeInclusive<libc::c_int> = 1..=64;

/// Raises the limit of open files as far as it goes: each trace point takes one per CPU, and a
/// workload may keep thousands of files open.
pub fn allow_many_files() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Rids a process of root of what the caller has left it: a user behind the effective one, a
/// directory, modes of new files, limits, signals, timers and priorities.
pub fn harden() -> io::Result<()> {
    let root = nix::unistd::Uid::from_raw(0);
    nix::unistd::setresuid(root, root, root)?;
    std::env::set_current_dir("/")?;
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
    for (resource, soft, hard) in VITAL {
        setrlimit(*resource, *soft, *hard)?;
    }
    for (resource, soft, hard) in USUAL {
        setrlimit(*resource, *soft, *hard).or_else(|_| {
            let (_, most) = getrlimit(*resource)?;
            setrlimit(*resource, (*soft).min(most), most)
        })?;
    }
    usual_signals()?;
    stop_timers()?;
    usual_priorities();
    Ok(())
}

/// Lets signals that the caller ignores or blocks do what they usually do; SIGPIPE stays as it is
/// in every Rust program.
pub(super) fn usual_signals() -> io::Result<()> {
    for signal in SIGNALS {
        // SAFETY: the structure is plain data, for which all zeroes is a valid value.
        let mut found: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one structure to `found`, and nothing is set.
        let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut found) };
        let is_ignored = asked == 0 && found.sa_sigaction == libc::SIG_IGN;
        if !is_ignored || signal == libc::SIGPIPE {
            continue; // Some numbers are the C library's own: these it does not show.
        }
        found.sa_sigaction = libc::SIG_DFL;
        // SAFETY: the default action runs no code of ours, and `found` outlives the call.
        check(unsafe { libc::sigaction(signal, &raw const found, std::ptr::null_mut()) })?;
    }
    Ok(sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?)
}

/// An alarm that the caller has set would end us, if sudo started us in its own place.
fn stop_timers() -> io::Result<()> {
    // SAFETY: the structure is plain data, for which all zeroes is a valid value: no alarm.
    let never: libc::itimerval = unsafe { std::mem::zeroed() };
    for timer in [libc::ITIMER_REAL, libc::ITIMER_VIRTUAL, libc::ITIMER_PROF] {
        // SAFETY: `never` outlives the call, and no old value is asked for.
        check(unsafe { libc::setitimer(timer, &raw const never, std::ptr::null_mut()) })?;
    }
    Ok(())
}

/// Set usual priorities: a process that restores a busy machine, or one that is short of memory,
/// must come neither last nor be ended first. Root of a container may not say so; then it is as
/// slow as its caller wants.
fn usual_priorities() {
    // SAFETY: the structure is plain data, for which all zeroes is a valid value.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: `parameters` outlives the first call; the others take no pointers.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters);
        libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_NONE);
        libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    }
    // A negative one is root's gift.
    let score = fs::read_to_string(OOM_SCORE).ok().and_then(|text| text.trim().parse::<i32>().ok());
    if score.is_some_and(|score| score > 0) {
        let _ = fs::write(OOM_SCORE, "0");
    }
}

//! `iolab-agent`: the one program of iolab that may be root.
//!
//! It prepares a testbed, switches knobs, lets a child measure, and puts everything back, also
//! after it was killed. It speaks JSON lines on standard input and output; the contract is
//! `docs/reference/agent-protocol.md`. Nobody but the front end is meant to type at it.
//!
//! Left out: planning, storing, judging, which are Python's.
#![deny(missing_docs)]

mod boundary;
mod cgroup;
mod control;
mod disk;
mod doctor;
mod error;
mod facts;
mod identity;
mod io_group;
mod journal;
mod knob;
mod lines;
mod machine;
mod measure;
mod memory;
mod mounts;
mod names;
mod noise;
mod owned_directory;
mod plausible;
mod policy;
mod protocol;
mod request;
mod restore;
mod run_name;
#[allow(unsafe_code, reason = "System V semaphores have no safe wrapper; each call says why")]
mod semaphores;
mod serve;
mod session;
#[allow(unsafe_code, reason = "the system calls are here; every block says why it is sound")]
mod sys;
mod testbed;
mod trace;
mod trial;
mod trusted;
mod watchdog;

use std::borrow::Cow;
use std::ffi::OsString;
use std::process::ExitCode;

use protocol::RunAs;

/// Exit code of wrong arguments.
const EXIT_USAGE: u8 = 1;
/// Exit code of what a rule of safety forbids.
const EXIT_REFUSED: u8 = 2;

const HELP: &str = "\
iolab-agent prepares testbeds, runs trials and restores the machine, for `iolab`.

usage: iolab-agent [serve]      speak JSON lines on standard input and output (default)
       iolab-agent measure      run one trial's workload (started by serve)
       iolab-agent capture      record block events (started by serve)
       iolab-agent watchdog STATE_DIR RUN
                                restore when standard input ends (started by serve)
       iolab-agent semaphores make N | remove
                                those by which N copies of bonnie++ begin each phase together
       iolab-agent names        what may be typed for engines and knobs, as JSON
       iolab-agent --version | --help

example: echo '{\"id\":1,\"method\":\"hello\",\"params\":{\"protocol\":1,\"run\":\"try-1\",\
\"is_dry_run\":true,\"state_dir\":null}}' | iolab-agent
";

fn main() -> ExitCode {
    // A state directory may have a name that is no text; what is understood is text.
    let given: Vec<OsString> = std::env::args_os().skip(1).collect();
    let arguments: Vec<Cow<str>> = given.iter().map(|word| word.to_string_lossy()).collect();
    let words: Vec<&str> = arguments.iter().map(|word| &**word).collect();
    let caller = match admitted(&words) {
        Ok(caller) => caller,
        Err(error) => {
            eprintln!("iolab-agent: refused: {error}; {}", error.hint());
            return ExitCode::from(EXIT_REFUSED);
        }
    };
    match words[..] {
        [] | ["serve"] => serve::main(caller),
        ["measure"] => measure::main(),
        ["capture"] => trace::main(),
        [watchdog::NAME, _, run] => watchdog::main(given[1].as_ref(), run),
        ["semaphores", ref words @ ..] => match semaphores::command(words) {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("iolab-agent: {problem}");
                ExitCode::from(EXIT_USAGE)
            }
        },
        ["names"] => {
            println!("{}", names::text());
            ExitCode::SUCCESS
        }
        ["schema"] => {
            println!("{}", iolab_protocol::schema::text());
            ExitCode::SUCCESS
        }
        ["--version" | "-V"] => {
            println!("iolab-agent {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        ["--help" | "-h"] => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("iolab-agent: '{}' is not understood\n\n{HELP}", arguments.join(" "));
            ExitCode::from(EXIT_USAGE)
        }
    }
}

/// The user for whom root works, if it is for one; refused if that cannot be done safely.
///
/// What the agent starts itself it starts without the caller's environment, hence as root's own;
/// nobody else may play its children: a watchdog acts on any journal, at once.
fn admitted(words: &[&str]) -> error::Result<Option<RunAs>> {
    let caller = boundary::caller()?;
    if caller.is_some() {
        boundary::check_program()?;
        if let Some(word @ (&"measure" | &"capture" | &"watchdog" | &"semaphores")) = words.first()
        {
            let what = format!("'{word}' is for the agent itself, or for root");
            return Err(error::Error::refused(what, "leave it to `iolab`"));
        }
        sys::harden().map_err(|error| {
            let what = format!("what the caller has left this process cannot be undone: {error}");
            error::Error::refused(what, "start it without limits (ulimit), or on the host")
        })?;
    }
    Ok(caller)
}

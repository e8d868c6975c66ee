//! `iolab-agent`: the one program of iolab that may be root.
//!
//! It prepares a testbed, switches knobs, lets a child measure, and puts everything back, also
//! after it was killed. It speaks JSON lines on standard input and output; the contract is
//! `docs/design/0002-agent-protocol.md`. Nobody but the front end is meant to type at it.
//!
//! Left out: planning, storing, judging, which are Python's.
#![deny(missing_docs)]

mod cgroup;
mod control;
mod disk;
mod doctor;
mod error;
mod facts;
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
mod protocol;
mod restore;
#[allow(unsafe_code, reason = "System V semaphores have no safe wrapper; each call says why")]
mod semaphores;
mod serve;
mod session;
#[allow(unsafe_code, reason = "the system calls are here; every block says why it is sound")]
mod sys;
mod testbed;
mod trial;
mod watchdog;

use std::process::ExitCode;

/// Exit code of wrong arguments.
const EXIT_USAGE: u8 = 1;

const HELP: &str = "\
iolab-agent prepares testbeds, runs trials and restores the machine, for `iolab`.

usage: iolab-agent [serve]      speak JSON lines on standard input and output (default)
       iolab-agent measure      run one trial's workload (started by serve)
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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["serve"] => serve::main(),
        ["measure"] => measure::main(),
        ["watchdog", state_dir, run] => watchdog::main(state_dir.as_ref(), run),
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

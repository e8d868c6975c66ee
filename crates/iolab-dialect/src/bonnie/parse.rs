//! From words to a plan.

use super::lower::{Host, lower};
use super::options::GRAMMAR;
use super::plan::Plan;
use super::typed::{Files, Size, Typed};
use crate::diagnostic::{Diagnostic, Problem};
use crate::option::{Common, help_text, read};

/// Text above the options in `--help`.
pub const HELP: &str = "\
iolab bonnie++: the command line of bonnie++, with its tables, on real or
simulated storage

  iolab bonnie++ -d DIR                   all phases: twice the memory,
                                          and 16384 small files
  iolab bonnie++ -d DIR -s 4g -r 0 -f -D  no per-character phases, direct
  iolab bonnie++ -d DIR -s 0 -n 64:4k     only small files
  iolab bonnie++ --on loop:8g --repeat 5 -s 2g -r 0
                                          on its own disk, five times
";

impl Host {
    /// This machine. Nothing but these four facts is asked of it.
    pub fn here() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let memory = text("/proc/meminfo");
        let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let kib = total.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let process = std::process::id();
        Self {
            ram_mib: kib.unwrap_or(0_u64) >> 10,
            name: text("/proc/sys/kernel/hostname").trim().replace(',', "-"),
            process,
            seed: process ^ now.map_or(0, |elapsed| elapsed.as_secs() as u32),
        }
    }
}

/// Reads a command line, without the program's name.
pub fn parse(words: &[String], host: &Host) -> Result<Plan, Diagnostic> {
    let is_compat = words.iter().any(|word| word == "--compat");
    let (mut typed, mut common) = (Typed::new(is_compat), Common::default());
    read(&GRAMMAR, words, &mut typed, &mut common)?;
    let command = [&["bonnie++".to_owned()], words].concat().join(" ");
    if common.is_help || typed.semaphores.is_some() {
        // Nothing is measured: whatever the sizes are, they are no problem.
        typed.size = Some(Size { mib: 0, chunk: 8192, seeks: 0, seekers: 1 });
        typed.files = Files { thousands: 1, ..typed.files };
    }
    let is_help = common.is_help;
    let whole = |problem: Problem| Diagnostic::of_all(GRAMMAR.program, words, problem);
    let mut plan = lower(&typed, common, host, command).map_err(whole)?;
    if is_help {
        plan.only_text = Some(HELP.to_owned() + &help_text(&GRAMMAR));
    }
    Ok(plan)
}

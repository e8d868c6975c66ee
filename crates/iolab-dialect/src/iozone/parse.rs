//! From words to a plan.

use super::lower::lower;
use super::options::GRAMMAR;
use super::plan::Plan;
use super::typed::Typed;
use crate::diagnostic::{Diagnostic, Problem};
use crate::option::{Common, help_text, read};

/// Text above the options in `--help`.
pub const HELP: &str = "\
iolab iozone: the command line of IOzone, with its tables, on real or simulated
storage

  iolab iozone -a -g 64m                     a table of file and record sizes
  iolab iozone -i 0 -i 1 -s 1g -r 64k -I     write and read 1 GiB, direct
  iolab iozone -t 4 -s 256m -e               four processes at once
  iolab iozone --on loop:1g --repeat 5 -i 0  on a disk of its own, five times
";

/// Reads a command line, without the program's name.
pub fn parse(words: &[String]) -> Result<Plan, Diagnostic> {
    let is_compat = words.iter().any(|word| word == "--compat");
    let (mut typed, mut common) = (Typed::new(is_compat), Common::default());
    read(&GRAMMAR, words, &mut typed, &mut common)?;
    let whole = |problem: Problem| Diagnostic::of_all(GRAMMAR.program, words, problem);
    if words.is_empty() {
        let problem = Problem::new(
            "iozone without an option measures nothing",
            "for a first table write `iolab iozone -a -g 64m`; `iolab iozone -h` lists all options",
        );
        return Err(whole(problem));
    }
    let is_help = typed.is_help || common.is_help;
    let is_version = typed.is_version;
    let command = [&["iozone".to_owned()], words].concat().join(" ");
    let mut plan = match lower(typed, common, command) {
        Ok(plan) => plan,
        Err(_) if is_help || is_version => lower_nothing(),
        Err(problem) => return Err(whole(problem)),
    };
    if is_help {
        plan.only_text = Some(HELP.to_owned() + &help_text(&GRAMMAR));
    } else if is_version {
        plan.only_text = Some(format!("iolab {VERSION}, dialect of IOzone 3.489\n"));
    }
    Ok(plan)
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The plan of an empty command line, when only a text is wanted.
fn lower_nothing() -> Plan {
    lower(Typed::new(false), Common::default(), "iozone".into()).expect("the defaults are valid")
}

//! From words to a plan.

use super::lower::{Plan, lower};
use super::options::{GRAMMAR, Typed};
use crate::diagnostic::{Diagnostic, Problem};
use crate::option::{Common, help_text, read};

/// Text above the options in `--help`.
pub const HELP: &str = "\
iolab mkfile: files of a size, as mkfile of Solaris makes them, timed

  iolab mkfile 64m swap1 swap2            two files of 64 MiB of zeros
  iolab mkfile -n 10g image               a sparse file
  iolab mkfile -v 8192b /data/file        4 MiB: b are blocks of 512 bytes
  iolab mkfile --on loop:1g --repeat 5 --sync 256m file
                                          on its own disk, five times, flushed
  iolab mkfile --on sim:STACK.toml --iostat '-xc 5' --time 500m file
                                          in virtual time, iostat beside it
";

/// Reads a command line, without the program's name.
pub fn parse(words: &[String]) -> Result<Plan, Diagnostic> {
    let (mut typed, mut common) = (Typed::default(), Common::default());
    read(&GRAMMAR, words, &mut typed, &mut common)?;
    let is_help = common.is_help;
    if is_help {
        typed = Typed { bytes: Some(0), files: vec!["file".into()], ..Typed::default() };
    }
    let whole = |problem: Problem| Diagnostic::of_all(GRAMMAR.program, words, problem);
    let mut plan = lower(&typed, common).map_err(whole)?;
    plan.only_text = is_help.then(|| HELP.to_owned() + &help_text(&GRAMMAR));
    Ok(plan)
}

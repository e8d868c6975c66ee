//! The options of bonnie++, one row each. Facts: the program's behaviour, version 2.00a.

use super::typed::{Typed, bounded, field, files, semaphores, size, user, waits};
use crate::diagnostic::Problem;
use crate::option::{Given, Grammar, OptionRow, Standing, Takes};

use Standing::{Differs, Done, Ignored};

const WHAT: &str = "What is run";
const HOW: &str = "How I/O is done";
const SHOWN: &str = "What is shown";
const WHO: &str = "Who runs it";
const TOGETHER: &str = "Several copies";

type Row = OptionRow<Typed>;

/// The command line.
pub const GRAMMAR: Grammar<Typed> =
    Grammar { program: "bonnie++", rows: OPTIONS, word: Some(stray) };

/// A word that belongs to nothing.
fn stray(_: &mut Typed, given: &Given<'_>) -> Result<(), Problem> {
    let is_number = given.value.parse::<u64>().is_ok();
    let remedy = if is_number {
        format!("if it is the value of -f write -f{} without a blank", given.value)
    } else {
        "leave it out, or write the option before it".to_owned()
    };
    Err(Problem::new(
        format!("'{}' is neither an option nor the value of one", given.value),
        remedy,
    ))
}

/// All options.
pub const OPTIONS: &[Row] = &[
    Row::value(("-d", "DIR"), WHAT, "directory of the files (.)", Done, |typed, given| {
        given.value.clone_into(&mut typed.directory);
        Ok(())
    }),
    Row::value(
        ("-s", "SIZE[:CHUNK[:SEEKS[:SEEKERS]]]"),
        WHAT,
        "file size in MiB or with m, g, t; chunk in bytes or with k (8k); tickets of the seek \
         phase (8192) and threads that work them off (5); 0: no phases on the large file; \
         default: twice the memory",
        Differs("an unknown unit is refused, not ignored"),
        size,
    ),
    Row::value(
        ("-n", "NUMBER[:MAX[:MIN[:DIRS[:CHUNK]]]]"),
        WHAT,
        "files in units of 1024 (16), their largest and smallest size in bytes or with k, m, g \
         (0), directories (1), chunk (8k); MAX -1: hard links, -2: symbolic links; 0: no phases \
         on many files",
        Differs("an unknown unit is refused, not ignored"),
        files,
    ),
    Row {
        name: "-f",
        takes: Takes::Attached("MIB"),
        group: WHAT,
        doc: "MiB of the per-character phases (3), written without a blank; alone: leave them out",
        standing: Differs("a value behind a blank is refused with a hint"),
        update: |typed, given| {
            typed.per_char_mib = match given.value {
                "" => 0,
                _ => bounded(given, 0, 1 << 20)?,
            };
            Ok(())
        },
    },
    Row::value(
        ("-r", "MIB"),
        WHAT,
        "memory that the checks of sizes suppose; 0: no checks (that of the machine)",
        Done,
        |typed, given| {
            typed.ram_mib = Some(bounded(given, 0, 1 << 30)?);
            Ok(())
        },
    ),
    Row::value(
        ("-x", "N"),
        WHAT,
        "N runs; only CSV lines, with a header above several",
        Differs("the runs are rounds of one stored study"),
        |typed, given| {
            typed.runs = Some(u32::try_from(bounded(given, 1, 1000)?).expect("it is bounded"));
            Ok(())
        },
    ),
    Row::value(("-z", "SEED"), WHAT, "random seed", Done, |typed, given| {
        typed.seed = Some(given.number("a whole number of 32 bits")?);
        typed.random_file = None;
        Ok(())
    }),
    Row::value(
        ("-Z", "FILE"),
        WHAT,
        "random numbers of 32 bits from a file, high byte first, used again from its front",
        Differs("of at most 65536 numbers"),
        |typed, given| {
            typed.random_file = Some(field(given)?);
            Ok(())
        },
    ),
    Row::flag(
        "-b",
        HOW,
        "flush after every update of the seek phase, and after every file made or removed",
        Done,
        |typed, _| {
            typed.is_flushed = true;
            Ok(())
        },
    ),
    Row::flag(
        "-D",
        HOW,
        "direct I/O",
        Differs(
            "in all block phases and the seeks, not only in block output; the per-character \
             phases, which cannot be direct, are left out with a note, not failed",
        ),
        |typed, _| {
            typed.is_direct = true;
            Ok(())
        },
    ),
    Row::value(("-m", "NAME"), SHOWN, "name of the machine (its own)", Done, |typed, given| {
        typed.name = Some(field(given)?);
        Ok(())
    }),
    Row::flag(
        "-q",
        SHOWN,
        "the table to standard error, only the CSV line to standard output",
        Done,
        |typed, _| {
            typed.is_quiet = true;
            Ok(())
        },
    ),
    Row::value(
        ("-u", "USER[:GROUP]"),
        WHO,
        "user to run as",
        Differs("root need not say it, a note tells then; only root can become another user"),
        |typed, given| user(typed, given.value.split_once(':').unwrap_or((given.value, ""))),
    ),
    Row::value(
        ("-g", "GROUP"),
        WHO,
        "group to run as",
        Differs("without root one of the groups that one has"),
        |typed, given| user(typed, ("", given.value)),
    ),
    Row::value(
        ("-c", "N"),
        TOGETHER,
        "copies that run at the same time, for the check of sizes and the report (1)",
        Differs("so many workers in the file phases, none more in the others; a note says so"),
        |typed, given| {
            typed.concurrency = bounded(given, 1, 200)?;
            Ok(())
        },
    ),
    Row::value(
        ("-p", "N"),
        TOGETHER,
        "make the semaphores for N copies and end; -1: remove them",
        Differs("-p 0 is refused, not ignored"),
        semaphores,
    ),
    Row::value(
        ("-y", "s|p"),
        TOGETHER,
        "wait before each phase: s for the other copies, by semaphores; p for a line on standard \
         input, after the phase's number was printed",
        Differs("the wait is never inside the time; s serves for one run"),
        waits,
    ),
    Row::value(("-l", "X"), SHOWN, "nothing", Ignored("as in the original"), |_, _| Ok(())),
];

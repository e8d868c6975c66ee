//! The options of bonnie++, one row each. Facts: the program's behaviour, version 2.00a.

use super::typed::{Typed, bounded, files, size};
use crate::diagnostic::Problem;
use crate::option::{Given, Grammar, OptionRow, Standing, Takes};

use Standing::{Differs, Done, Ignored, Refused};

const WHAT: &str = "What is run";
const HOW: &str = "How I/O is done";
const SHOWN: &str = "What is shown";
const WHO: &str = "Who runs it";
const TOGETHER: &str = "Several copies";

type Row = OptionRow<Typed>;
type Update = fn(&mut Typed, &Given<'_>) -> Result<(), Problem>;

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

const fn row(
    (name, takes): (&'static str, Takes<Typed>),
    group: &'static str,
    doc: &'static str,
    standing: Standing,
    update: Update,
) -> Row {
    OptionRow { name, takes, group, doc, standing, update }
}

const fn flag(
    name: &'static str,
    group: &'static str,
    doc: &'static str,
    standing: Standing,
    update: Update,
) -> Row {
    row((name, Takes::Nothing), group, doc, standing, update)
}

const fn value(
    (name, metavar): (&'static str, &'static str),
    group: &'static str,
    doc: &'static str,
    standing: Standing,
    update: Update,
) -> Row {
    row((name, Takes::Value(metavar)), group, doc, standing, update)
}

/// All options.
pub const OPTIONS: &[Row] = &[
    value(("-d", "DIR"), WHAT, "directory of the files (.)", Done, |typed, given| {
        given.value.clone_into(&mut typed.directory);
        Ok(())
    }),
    value(
        ("-s", "SIZE[:CHUNK[:SEEKS[:SEEKERS]]]"),
        WHAT,
        "file size in MiB or with m, g, t; chunk in bytes or with k (8k); tickets of the seek \
         phase (8192) and threads that work them off (5); 0: no phases on the large file; \
         default: twice the memory",
        Differs("an unknown unit is refused, not ignored"),
        size,
    ),
    value(
        ("-n", "NUMBER[:MAX[:MIN[:DIRS[:CHUNK]]]]"),
        WHAT,
        "files in units of 1024 (16), their largest and smallest size in bytes or with k, m, g \
         (0), directories (1), chunk (8k); MAX -1: hard links, -2: symbolic links; 0: no phases \
         on many files",
        Differs("an unknown unit is refused, not ignored"),
        files,
    ),
    row(
        ("-f", Takes::Attached("MIB")),
        WHAT,
        "MiB of the per-character phases (3), written without a blank; alone: leave them out",
        Differs("a value behind a blank is refused with a hint"),
        |typed, given| {
            typed.per_char_mib = match given.value {
                "" => 0,
                _ => bounded(given, 0, 1 << 20)?,
            };
            Ok(())
        },
    ),
    value(
        ("-r", "MIB"),
        WHAT,
        "memory that the checks of sizes suppose; 0: no checks (that of the machine)",
        Done,
        |typed, given| {
            typed.ram_mib = Some(bounded(given, 0, 1 << 30)?);
            Ok(())
        },
    ),
    value(
        ("-x", "N"),
        WHAT,
        "N runs; only CSV lines, with a header above several",
        Differs("the runs are rounds of one stored study"),
        |typed, given| {
            typed.runs = Some(u32::try_from(bounded(given, 1, 1000)?).expect("it is bounded"));
            Ok(())
        },
    ),
    value(
        ("-z", "SEED"),
        WHAT,
        "random seed",
        Differs("our random numbers, not the C library's: another order of seeks, other names"),
        |typed, given| {
            typed.seed = Some(given.number("a whole number of 32 bits")?);
            Ok(())
        },
    ),
    value(
        ("-Z", "FILE"),
        WHAT,
        "random numbers from a file",
        Refused("random numbers come from a seed here", "use -z SEED"),
        |_, _| Ok(()),
    ),
    flag(
        "-b",
        HOW,
        "flush after every update of the seek phase, and after every file made or removed",
        Done,
        |typed, _| {
            typed.is_flushed = true;
            Ok(())
        },
    ),
    flag(
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
    value(("-m", "NAME"), SHOWN, "name of the machine (its own)", Done, |typed, given| {
        if given.value.contains([',', '\n', '\r']) {
            let problem = format!("the name '{}' would break the CSV line", given.value);
            return Err(Problem::new(problem, "use a name without commas and line ends"));
        }
        typed.name = Some(given.value.to_owned());
        Ok(())
    }),
    flag(
        "-q",
        SHOWN,
        "the table to standard error, only the CSV line to standard output",
        Done,
        |typed, _| {
            typed.is_quiet = true;
            Ok(())
        },
    ),
    value(
        ("-u", "USER[:GROUP]"),
        WHO,
        "user to run as",
        Differs("must be the user who runs iolab; root need not say it"),
        |typed, given| {
            let (user, group) = given.value.split_once(':').unwrap_or((given.value, ""));
            user.clone_into(&mut typed.user.0);
            if !group.is_empty() {
                group.clone_into(&mut typed.user.1);
            }
            Ok(())
        },
    ),
    value(
        ("-g", "GROUP"),
        WHO,
        "group to run as",
        Differs("must be a group of the user who runs iolab"),
        |typed, given| {
            given.value.clone_into(&mut typed.user.1);
            Ok(())
        },
    ),
    value(
        ("-c", "N"),
        TOGETHER,
        "copies that run at the same time, for the check of sizes and the report (1)",
        Differs("as the original starts none of them; a note says so"),
        |typed, given| {
            typed.concurrency = bounded(given, 1, 200)?;
            Ok(())
        },
    ),
    value(
        ("-p", "N"),
        TOGETHER,
        "make semaphores for N copies",
        Refused("copies do not wait for each other here", "use streams of `iolab compare`"),
        |_, _| Ok(()),
    ),
    value(
        ("-y", "s|p"),
        TOGETHER,
        "wait for the other copies before each phase",
        Refused("copies do not wait for each other here", "use streams of `iolab compare`"),
        |_, _| Ok(()),
    ),
    value(("-l", "X"), SHOWN, "nothing", Ignored("as in the original"), |_, _| Ok(())),
];

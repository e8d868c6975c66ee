//! Options of the command line, one row each.

use std::ops::Range;

use crate::diagnostic::Problem;
use crate::option::{Given, Grammar, OptionRow, Standing};

use Standing::{Done, Ignored};

const WHAT: &str = "Workload";
const HOW: &str = "Clients and progress";
const DIRECT: &str = "The client's own form, without load or run";
const JAVA: &str = "The Java machine";

type Row = OptionRow<Typed>;

/// A word, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub text: String,
    /// Its place.
    pub place: (usize, Range<usize>),
}

/// Typed words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// `load` or `run`, and the store.
    pub words: Vec<Word>,
    /// -P, in order.
    pub files: Vec<Word>,
    /// Name and value of -p and of what stands for it, in order.
    pub properties: Vec<(String, Word)>,
    /// Options that do nothing.
    pub idle: Vec<&'static str>,
    /// The command with the properties of all files is printed.
    pub is_shown: bool,
}

impl Typed {
    fn set(&mut self, name: &str, given: &Given<'_>, value: &str) {
        let word = Word { text: value.to_owned(), place: given.place.clone() };
        self.properties.push((name.to_owned(), word));
    }
}

/// The command line.
pub const GRAMMAR: Grammar<Typed> = Grammar { program: "ycsb", rows: OPTIONS, word: Some(operand) };

/// All options.
pub const OPTIONS: &[Row] = &[
    Row::value(("-P", "FILE"), WHAT, "property file (may be repeated)", Done, |typed, given| {
        let word = Word { text: given.value.to_owned(), place: given.place.clone() };
        typed.files.push(word);
        Ok(())
    }),
    Row::value(
        ("-p", "NAME=VALUE"),
        WHAT,
        "property; counts more than every file",
        Done,
        |typed, given| {
            let Some((name, value)) = given.value.split_once('=') else {
                let problem = format!("-p takes NAME=VALUE, not '{}'", given.value);
                return Err(Problem::new(problem, "as in -p recordcount=10000"));
            };
            typed.set(name.trim(), given, value);
            Ok(())
        },
    ),
    Row::flag(
        "--showcmd",
        WHAT,
        "print the command with the properties of all files, and measure nothing",
        Standing::Differs("not in the original"),
        |typed, _| {
            typed.is_shown = true;
            Ok(())
        },
    ),
    Row::value(("-threads", "N"), HOW, "number of clients", Done, |typed, given| {
        typed.set("threadcount", given, given.value);
        Ok(())
    }),
    Row::value(
        ("-target", "N"),
        HOW,
        "operations per second of all clients together",
        Done,
        |typed, given| {
            typed.set("target", given, given.value);
            Ok(())
        },
    ),
    Row::flag("-s", HOW, "lines about the progress", Done, |typed, given| {
        typed.set("status", given, "true");
        Ok(())
    }),
    Row::value(("-l", "LABEL"), HOW, "text before each of them", Done, |typed, given| {
        typed.set("label", given, given.value);
        Ok(())
    }),
    Row::flag("-load", DIRECT, "load records", Done, |typed, given| {
        typed.set("dotransactions", given, "false");
        Ok(())
    }),
    Row::flag("-t", DIRECT, "run operations", Done, |typed, given| {
        typed.set("dotransactions", given, "true");
        Ok(())
    }),
    Row::value(
        ("-db", "CLASS"),
        DIRECT,
        "store, by the class of its client",
        Done,
        |typed, given| {
            typed.set("db", given, given.value);
            Ok(())
        },
    ),
    Row::value(("-cp", "PATH"), JAVA, "class path", Ignored("nothing of Java runs"), |typed, _| {
        typed.idle.push("-cp");
        Ok(())
    }),
    Row::value(
        ("-jvm-args", "ARGS"),
        JAVA,
        "arguments of the machine",
        Ignored("nothing of Java runs"),
        |typed, _| {
            typed.idle.push("-jvm-args");
            Ok(())
        },
    ),
];

#[allow(clippy::unnecessary_wraps, reason = "the grammar asks for a word that may be refused")]
fn operand(typed: &mut Typed, given: &Given<'_>) -> Result<(), Problem> {
    typed.words.push(Word { text: given.value.to_owned(), place: given.place.clone() });
    Ok(())
}

//! The command line.

use std::ops::Range;

use iolab_model::nearest::did_you_mean;

use super::plan::Format;
use super::script::Overrides;
use crate::diagnostic::{Diagnostic, Problem};
use crate::option::Standing::{self, Differs, Done, Ignored};
use crate::option::{COMMON, Common, Given, Takes as CommonTakes, common_row};

/// Request of a command line.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Typed {
    /// Options that every dialect has.
    pub common: Common,
    /// -f.
    pub file: Option<String>,
    /// Name of a personality.
    pub personality: Option<String>,
    /// --script.
    pub script: Option<String>,
    /// --set and --run.
    pub overrides: Overrides,
    /// --output-format.
    pub format: Format,
    /// --output.
    pub output: Option<String>,
    /// --engine.
    pub engine: Option<String>,
    /// --allow-exec.
    pub may_execute: bool,
    /// --showcmd.
    pub is_shown: bool,
    /// --list.
    pub is_listed: bool,
    /// --print.
    pub is_printed: bool,
    /// -c, and the type that it is asked about.
    pub custom: Option<String>,
    /// Word that names the script, for messages about all of it.
    pub script_word: Option<usize>,
}

/// Form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// None.
    Nothing,
    /// One, attached with = (a letter: at once) or in the next word.
    Value(&'static str),
    /// One in the next word that is no option, or none.
    Perhaps(&'static str),
}

/// An option.
pub struct ScriptOptionRow {
    /// As typed.
    pub name: &'static str,
    /// Form of its value.
    pub takes: Takes,
    /// Effect, in one line.
    pub doc: &'static str,
    /// Degree to which it is done.
    pub standing: Standing,
    /// Notes its use.
    pub set: fn(&mut Typed, &str) -> Result<(), Problem>,
}

type Set = fn(&mut Typed, &str) -> Result<(), Problem>;

const OURS: Standing = Differs("not in the original");

const fn row(
    name: &'static str,
    takes: Takes,
    doc: &'static str,
    standing: Standing,
    set: Set,
) -> ScriptOptionRow {
    ScriptOptionRow { name, takes, doc, standing, set }
}

use Takes::{Nothing, Perhaps, Value};

/// All of them but those that every dialect has.
pub const ROWS: &[ScriptOptionRow] = &[
    row("-f", Value("SCRIPT"), "file with the script", Done, |typed, text| {
        typed.file = Some(text.to_owned());
        Ok(())
    }),
    row("-h", Nothing, "this text", Done, |typed, _| {
        typed.common.is_help = true;
        Ok(())
    }),
    row(
        "-c",
        Perhaps("TYPE"),
        "lists custom variables, or tells about one",
        Done,
        |typed, text| {
            typed.custom = Some(text.to_owned());
            Ok(())
        },
    ),
    row(
        "-s",
        Value("SECONDS"),
        "seconds to wait for shared memory",
        Ignored("there is none"),
        |_, _| Ok(()),
    ),
    row(
        "--set",
        Value("NAME=VALUE"),
        "sets the variable $NAME, as in nfiles=1000",
        OURS,
        set_variable,
    ),
    row("--run", Value("SECONDS"), "time of the run", OURS, |typed, text| {
        let seconds = text.parse().ok().filter(|seconds| (1..=10_000_000).contains(seconds));
        let Some(seconds) = seconds else {
            let what = format!("--run takes seconds, not '{text}'");
            return Err(Problem::new(what, "write a whole number above 0, as in --run 60"));
        };
        typed.overrides.run_s = Some(seconds);
        Ok(())
    }),
    row("--script", Value("TEXT"), "the script itself", OURS, |typed, text| {
        typed.script = Some(text.to_owned());
        Ok(())
    }),
    row("--output-format", Value("FORMAT"), "text, 1.4.9 or json", OURS, |typed, text| {
        let known = [("text", Format::Text), ("1.4.9", Format::Old), ("json", Format::Json)];
        let Some((_, format)) = known.iter().find(|(name, _)| *name == text) else {
            let hint = did_you_mean(text, known.iter().map(|row| row.0));
            let what = format!("there is no output format '{text}'{hint}");
            return Err(Problem::new(what, "use text, 1.4.9 or json"));
        };
        typed.format = *format;
        Ok(())
    }),
    row("--output", Value("FILE"), "file of the results", OURS, |typed, text| {
        typed.output = Some(text.to_owned());
        Ok(())
    }),
    row(
        "--engine",
        Value("ENGINE"),
        "engine: psync (default), io_uring (with aiowrite), sync, libaio ...",
        OURS,
        |typed, text| {
            typed.engine = Some(text.to_owned());
            Ok(())
        },
    ),
    row("--allow-exec", Nothing, "commands of `system` may run", OURS, |typed, _| {
        typed.may_execute = true;
        Ok(())
    }),
    row("--showcmd", Nothing, "prints the command line without a file", OURS, |typed, _| {
        typed.is_shown = true;
        Ok(())
    }),
    row("--list", Nothing, "lists the personalities", OURS, |typed, _| {
        typed.is_listed = true;
        Ok(())
    }),
    row("--print", Nothing, "prints the script, nothing is measured", OURS, |typed, _| {
        typed.is_printed = true;
        Ok(())
    }),
];

fn set_variable(typed: &mut Typed, text: &str) -> Result<(), Problem> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let name = name.trim_start_matches('$');
    let is_name = name.len() > 1 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name || value.is_empty() {
        let what = format!("--set takes a variable and its value, not '{text}'");
        return Err(Problem::new(what, "write --set nfiles=1000"));
    }
    typed.overrides.variables.retain(|known| known.0 != name);
    typed.overrides.variables.push((name.to_owned(), value.to_owned()));
    Ok(())
}

type Place = (usize, Range<usize>);

/// Requests of a command line.
pub fn read(words: &[String]) -> Result<Typed, Diagnostic> {
    let mut typed = Typed::default();
    let mut next = 0;
    while next < words.len() {
        let index = next;
        next += 1;
        let read = word(words, index, &mut next, &mut typed);
        read.map_err(|(place, problem)| Diagnostic::of_words("filebench", words, place, problem))?;
    }
    Ok(typed)
}

fn word(
    words: &[String],
    index: usize,
    next: &mut usize,
    typed: &mut Typed,
) -> Result<(), (Place, Problem)> {
    let word = &words[index];
    let whole = (index, 0..word.chars().count());
    if !word.starts_with('-') || word == "-" {
        if typed.personality.is_some() || typed.file.is_some() {
            let problem = Problem::new(format!("a second script '{word}'"), "name one");
            return Err((whole, problem));
        }
        let is_file = word.strip_suffix(".f").is_some() || word.contains('/');
        *(if is_file { &mut typed.file } else { &mut typed.personality }) = Some(word.clone());
        typed.script_word = Some(index);
        return Ok(());
    }
    let (name, attached) = match word.split_once('=') {
        Some((name, value)) if word.starts_with("--") => (name, Some(value)),
        _ if word.starts_with("--") || word.len() == 2 => (word.as_str(), None),
        _ => word.split_at_checked(2).map_or((word.as_str(), None), |(n, v)| (n, Some(v))),
    };
    if let Some(row) = ROWS.iter().find(|row| row.name == name) {
        let value = value_of(words, (row.name, row.takes, attached), next, &whole)?;
        if row.name == "-f" {
            typed.script_word = Some(*next - 1);
        }
        return (row.set)(typed, value).map_err(|problem| ((*next - 1, 0..usize::MAX), problem));
    }
    let Some(row) = common_row(name) else {
        let known = ROWS.iter().map(|row| row.name).chain(COMMON.iter().map(|row| row.name));
        let what = format!("there is no option {name}{}", did_you_mean(name, known));
        let end = name.chars().count();
        return Err(((index, 0..end), Problem::new(what, "`iolab filebench --help` lists all")));
    };
    let takes = match row.takes {
        CommonTakes::Nothing => Nothing,
        _ => Value("VALUE"),
    };
    let value = value_of(words, (row.name, takes, attached), next, &whole)?;
    let place = (*next - 1, 0..usize::MAX);
    let given = Given { name: row.name, value, words: &[], place: place.clone() };
    (row.update)(&mut typed.common, &given).map_err(|problem| (place, problem))
}

fn value_of<'a>(
    words: &'a [String],
    (name, takes, attached): (&str, Takes, Option<&'a str>),
    next: &mut usize,
    whole: &Place,
) -> Result<&'a str, (Place, Problem)> {
    match (takes, attached) {
        (Nothing, Some(_)) => {
            Err((whole.clone(), Problem::new(format!("{name} takes no value"), "leave it out")))
        }
        (Nothing, None) => Ok(""),
        (_, Some(value)) => Ok(value),
        (Perhaps(_), None) => {
            let value = words.get(*next).filter(|word| !word.starts_with('-'));
            *next += usize::from(value.is_some());
            Ok(value.map_or("", String::as_str))
        }
        (Value(metavar), None) => {
            let Some(value) = words.get(*next) else {
                let what = format!("{name} needs a value");
                let place = (usize::MAX, 0..0);
                return Err((place, Problem::new(what, format!("write {name} {metavar}"))));
            };
            *next += 1;
            Ok(value)
        }
    }
}

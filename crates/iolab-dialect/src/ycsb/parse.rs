//! From words to a plan: the command line, the files that it names, and the properties of both.

use std::collections::BTreeMap;
use std::path::Path;

use iolab_model::nearest::did_you_mean;

use super::lower::{Command, Plan, lower};
use super::options::{GRAMMAR, OPTIONS, Typed, Word};
use super::properties::{Origin, Property, read as read_properties};
use super::table::{self, OPTION_PREFIX, PROPERTIES, PropertyRow, TABLE_PREFIX, ValueForm};
use crate::diagnostic::{Diagnostic, Problem, quoted};
use crate::option::{Common, Standing, Takes, common_row, help_text, read};
use crate::text_file::read_limited;

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Beginnings of names that belong to clients of other databases, or to their scripts.
const OF_OTHERS: [&str; 6] =
    ["jdbc.", "mongodb.", "cassandra.", "redis.", "hbase.", "measurement."];

/// Text above the options in `--help`.
pub const HELP: &str = "\
iolab ycsb: YCSB's core workload on a real key-value store, without Java

  iolab ycsb load rocksdb -P workloads/workloada -p rocksdb.dir=/db -s
  iolab ycsb run rocksdb -P workloads/workloada -p rocksdb.dir=/db -threads 4
  iolab ycsb run memory -P workloads/workloada
                                           what the client itself costs
  iolab ycsb run rocksdb --on loop:2g --repeat 5 -P workloads/workloada
                                           on its own disk, loaded anew
  iolab ycsb load basic ...                prints the operations

Stores: rocksdb (the system's library; `iolab doctor` says whether it is there),
memory, basic.
";

/// Access to the files that a command line names.
pub trait FileTexts {
    /// Text of a file.
    fn read(&self, path: &str) -> Result<String, String>;
}

/// `FileTexts` of this machine.
pub struct LocalFiles;

impl FileTexts for LocalFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        let path = Path::new(path);
        if !path.metadata().map_err(|error| reason(&error))?.is_file() {
            return Err("is no file".into());
        }
        let Some(bytes) = read_limited(path, FILE_BYTES_MAX).map_err(|error| reason(&error))?
        else {
            return Err(format!("is larger than {} MiB", FILE_BYTES_MAX >> 20));
        };
        // Java reads these files byte by byte (ISO 8859-1).
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| error.into_bytes().into_iter().map(char::from).collect()))
    }
}

fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Everything that was typed and read, the last value of each property.
pub struct Given<'a> {
    /// Words of the command line.
    pub words: &'a [String],
    /// Values, by name.
    pub values: BTreeMap<String, Property>,
    /// `FileTexts`.
    pub files: &'a dyn FileTexts,
}

impl Given<'_> {
    /// The text of a property, or its default.
    pub fn text(&self, name: &str) -> String {
        let default = table::find(name).map_or("", |row| row.default);
        self.values.get(name).map_or(default, |property| &property.value).to_owned()
    }

    /// Tell whether a property was given.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// A whole number; its form was looked at before.
    pub fn count(&self, name: &str) -> u64 {
        self.text(name).trim().parse().unwrap_or(0)
    }

    /// A number; its form was looked at before.
    pub fn number(&self, name: &str) -> f64 {
        self.text(name).trim().parse().unwrap_or(0.0)
    }

    /// A flag, as Java reads it.
    pub fn flag(&self, name: &str) -> bool {
        self.text(name).trim().eq_ignore_ascii_case("true")
    }

    /// A problem at the place of a property, or of the whole line.
    pub fn wrong(&self, name: &str, problem: Problem) -> Diagnostic {
        match self.values.get(name) {
            Some(property) => at(self.words, &property.origin, problem),
            None => Diagnostic::of_all(GRAMMAR.program, self.words, problem),
        }
    }
}

fn at(words: &[String], origin: &Origin, problem: Problem) -> Diagnostic {
    match origin {
        Origin::Word(index, part) => {
            Diagnostic::of_words(GRAMMAR.program, words, (*index, part.clone()), problem)
        }
        Origin::File(file, number, line) => {
            let begin = line.chars().take_while(|c| c.is_whitespace()).count();
            Diagnostic {
                place: format!("{file}:{number}:{}", begin + 1),
                line: line.clone(),
                marked: begin..line.trim_end().chars().count(),
                problem,
            }
        }
    }
}

/// Reads a command line, without the program's name.
pub fn parse(words: &[String], files: &dyn FileTexts) -> Result<Plan, Diagnostic> {
    check_words(words)?;
    let (mut typed, mut common) = (Typed::default(), Common::default());
    read(&GRAMMAR, words, &mut typed, &mut common)?;
    if common.is_help || words.is_empty() {
        let text = HELP.to_owned() + &help_text(&GRAMMAR);
        return Ok(super::lower::text_plan(common, text));
    }
    let command = command(words, &typed)?;
    let mut values = BTreeMap::new();
    let mut notes = Vec::new();
    for option in &typed.idle {
        notes.push(format!("{option} is not needed: nothing of Java runs"));
    }
    for property in properties(words, &typed, files)? {
        if let Some(note) = check(words, &property)? {
            notes.push(note);
        }
        values.insert(property.name.clone(), property);
    }
    if typed.is_shown {
        return Ok(super::lower::text_plan(common, shown(&typed, &values)));
    }
    let given = Given { words, values, files };
    lower(&given, &command, common, notes)
}

/// The command in words, with a property for each that files and words have.
fn shown(typed: &Typed, values: &BTreeMap<String, Property>) -> String {
    let words = typed.words.iter().map(|word| quoted(&word.text));
    let pair = |property: &Property| format!("{}={}", property.name, property.value);
    let pairs = values.values().map(|property| format!("-p {}", quoted(&pair(property))));
    let all: Vec<String> = words.chain(pairs).collect();
    format!("{} {}", GRAMMAR.program, all.join(" "))
}

/// Refuses an option of several letters that there is not, before it is read letter by letter.
fn check_words(words: &[String]) -> Result<(), Diagnostic> {
    let mut index = 0;
    while let Some(word) = words.get(index) {
        let row = OPTIONS.iter().find(|row| row.name == word);
        let takes_value = match row {
            Some(row) => !matches!(row.takes, Takes::Nothing),
            None if word.starts_with("--") => {
                let row = common_row(word.split('=').next().unwrap_or_default());
                !word.contains('=') && row.is_some_and(|row| !matches!(row.takes, Takes::Nothing))
            }
            None if word.len() > 1 && word.starts_with('-') => {
                let known = OPTIONS.iter().map(|row| row.name);
                let hint = did_you_mean(word, known.clone());
                let problem = Problem::new(
                    format!("there is no option {word}{hint}"),
                    format!("options are {}", known.collect::<Vec<_>>().join(", ")),
                );
                let place = (index, 0..usize::MAX);
                return Err(Diagnostic::of_words(GRAMMAR.program, words, place, problem));
            }
            None => false,
        };
        index += 1 + usize::from(takes_value);
    }
    Ok(())
}

/// The command and its store, if words say so.
fn command(words: &[String], typed: &Typed) -> Result<Command, Diagnostic> {
    let wrong = |word: &Word, problem| {
        Diagnostic::of_words(GRAMMAR.program, words, word.place.clone(), problem)
    };
    let Some(first) = typed.words.first() else { return Ok(Command::default()) };
    let is_load = match first.text.as_str() {
        "load" => true,
        "run" => false,
        "shell" => {
            let problem = Problem::new("there is no shell", "use load or run");
            return Err(wrong(first, problem));
        }
        other => {
            let hint = did_you_mean(other, ["load", "run"]);
            let problem = Problem::new(
                format!("there is no command {other}{hint}"),
                "write load or run, and the store: ycsb load rocksdb ...",
            );
            return Err(wrong(first, problem));
        }
    };
    if let Some(extra) = typed.words.get(2) {
        let what = format!("'{}' is neither an option nor the value of one", extra.text);
        return Err(wrong(extra, Problem::new(what, "leave it out, or write -p before it")));
    }
    let Some(store) = typed.words.get(1) else {
        let problem = Problem::new("no store is named", "write rocksdb, memory or basic after it");
        return Err(Diagnostic::of_words(GRAMMAR.program, words, (usize::MAX, 0..0), problem));
    };
    Ok(Command { is_load: Some(is_load), store: Some(store.clone()) })
}

/// Properties of all files, then those of the command line.
fn properties(
    words: &[String],
    typed: &Typed,
    files: &dyn FileTexts,
) -> Result<Vec<Property>, Diagnostic> {
    let mut found = Vec::new();
    for file in &typed.files {
        let text = files.read(&file.text).map_err(|why| {
            let problem = Problem::new(format!("{}: {why}", file.text), "name a property file");
            Diagnostic::of_words(GRAMMAR.program, words, file.place.clone(), problem)
        })?;
        found.extend(read_properties(&file.text, &text));
    }
    for (name, word) in &typed.properties {
        let origin = Origin::Word(word.place.0, word.place.1.clone());
        found.push(Property { name: name.clone(), value: word.text.clone(), origin });
    }
    Ok(found)
}

/// Looks at a property by its row; answers with a note about one that means nothing.
fn check(words: &[String], property: &Property) -> Result<Option<String>, Diagnostic> {
    let Property { name, value, origin } = property;
    let Some(row) = table::find(name) else {
        let is_option = name.starts_with(OPTION_PREFIX) || name.starts_with(TABLE_PREFIX);
        if is_option {
            return Ok(None);
        }
        return Ok(Some(unknown(name, origin)));
    };
    let wrong = |what: String, remedy: String| at(words, origin, Problem::new(what, remedy));
    if let Standing::Refused(why, instead) = row.standing
        && !matches!(value.trim(), "" | "false")
    {
        return Err(wrong(format!("{name}: {why}"), instead.to_owned()));
    }
    match problem(row, value.trim()) {
        Some((what, remedy)) => Err(wrong(what, remedy)),
        None => Ok(match row.standing {
            Standing::Ignored(why) => Some(format!("{name} changes nothing: {why}")),
            _ => None,
        }),
    }
}

/// Note about a property that no part of the workload has.
fn unknown(name: &str, origin: &Origin) -> String {
    let place = match origin {
        Origin::Word(..) => String::new(),
        Origin::File(file, number, _) => format!("{file}:{number}: "),
    };
    if OF_OTHERS.iter().any(|prefix| name.starts_with(prefix)) {
        return format!("{place}{name} belongs to another client or is not known: it does nothing");
    }
    let hint = did_you_mean(name, PROPERTIES.iter().map(|row| row.name));
    format!("{place}{name} is no property of the core workload: it does nothing{hint}")
}

/// Fault of a value, and advice.
fn problem(row: &PropertyRow, value: &str) -> Option<(String, String)> {
    let name = row.name;
    let is_fit = match row.form {
        ValueForm::Count => value.parse::<u64>().is_ok_and(|count| count <= COUNT_MAX),
        ValueForm::Number => {
            value.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0)
        }
        ValueForm::Flag => {
            value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false")
        }
        ValueForm::Choice(known) => known.contains(&value),
        ValueForm::Text => true,
    };
    if is_fit {
        return None;
    }
    let example = if row.default.is_empty() { "1" } else { row.default };
    let (takes, remedy) = match row.form {
        ValueForm::Count => ("a whole number".to_owned(), format!("as in {name}={example}")),
        ValueForm::Number => ("a number of at least 0".into(), format!("as in {name}={example}")),
        ValueForm::Flag => ("true or false".into(), format!("as in {name}=true")),
        ValueForm::Choice(known) => {
            let hint = did_you_mean(value, known.iter().copied());
            return Some((
                format!("there is no {name} '{value}'{hint}"),
                format!("choose among {}", known.join(", ")),
            ));
        }
        ValueForm::Text => return None,
    };
    Some((format!("{name} takes {takes}, not '{value}'"), remedy))
}

/// Larger numbers are no numbers of records that any store holds.
const COUNT_MAX: u64 = 1 << 48;

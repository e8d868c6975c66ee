//! The typed option table that all dialects share, and the reader of command lines that it drives.
//!
//! One [`OptionRow`] per option says what it is called, what it takes, how far it is done here and
//! how it changes what was typed; help, reference page and error messages come from the same rows.
//! A row's `update` only checks and notes; what the whole means is the business of `lower`.
//!
//! Command lines are read as getopt(3) does: clusters (`-Ra`), attached values (`-s64m`), repeated
//! options. Left out: GNU's permutation of plain words, which a dialect takes or refuses itself,
//! and abbreviated long options. Long options (`--on`) are iolab's own and the same in every
//! dialect, see [`Common`].

use std::fmt::Write as _;
use std::ops::Range;

use iolab_model::nearest::did_you_mean;
use serde::{Deserialize, Serialize};

use crate::columns::two_columns;
use crate::diagnostic::{Diagnostic, Problem};

/// Form of the value behind an option's name.
pub enum Takes<S> {
    /// Nothing.
    Nothing,
    /// A value, attached or in the next word; its name in help texts.
    Value(&'static str),
    /// A value that must be attached, or none: an empty one.
    Attached(&'static str),
    /// A value in the next word, never attached.
    NextWord(&'static str),
    /// Number of words, whatever they look like; how many depends on what was read before.
    Words(&'static str, fn(&S) -> usize),
}

impl<S> Clone for Takes<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Takes<S> {}

/// Degree to which an option is done here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As the original does.
    Done,
    /// Done, with this difference.
    Differs(&'static str),
    /// Accepted, changes nothing; why.
    Ignored(&'static str),
    /// Refused; why, and what to use.
    Refused(&'static str, &'static str),
}

impl Standing {
    /// Standing as a column of the reference page tells it.
    pub fn here(self) -> String {
        match self {
            Self::Done => "as the original".to_owned(),
            Self::Differs(how) => how.to_owned(),
            Self::Ignored(why) => format!("accepted, does nothing: {why}"),
            Self::Refused(why, instead) => format!("**refused**: {why}; {instead}"),
        }
    }

    /// Standing as it follows an option's description in a help; empty where there is none to tell.
    pub fn remark(self) -> String {
        match self {
            Self::Done => String::new(),
            Self::Differs(how) => format!(" [{how}]"),
            Self::Ignored(why) => format!(" [does nothing: {why}]"),
            Self::Refused(why, instead) => format!(" [refused: {why}; {instead}]"),
        }
    }
}

/// Notes a use of an option in what was typed; may refuse its value.
pub type Update<S> = fn(&mut S, &Given<'_>) -> Result<(), Problem>;

/// One option of a dialect.
pub struct OptionRow<S: 'static> {
    /// As typed: `-s`, `-+p`, `--on`.
    pub name: &'static str,
    /// Form of its value.
    pub takes: Takes<S>,
    /// Heading under which help and reference list it.
    pub group: &'static str,
    /// Effect, in one line.
    pub doc: &'static str,
    /// Degree to which it is done.
    pub standing: Standing,
    /// Notes it in what was typed; may refuse the value.
    pub update: Update<S>,
}

impl<S> Clone for OptionRow<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for OptionRow<S> {}

impl<S: 'static> OptionRow<S> {
    /// An option that stands alone.
    pub const fn flag(
        name: &'static str,
        group: &'static str,
        doc: &'static str,
        standing: Standing,
        update: Update<S>,
    ) -> Self {
        Self { name, takes: Takes::Nothing, group, doc, standing, update }
    }

    /// An option with a value.
    pub const fn value(
        (name, metavar): (&'static str, &'static str),
        group: &'static str,
        doc: &'static str,
        standing: Standing,
        update: Update<S>,
    ) -> Self {
        Self { name, takes: Takes::Value(metavar), group, doc, standing, update }
    }
}

/// One use of an option, as its row sees it.
#[derive(Clone, Debug)]
pub struct Given<'a> {
    /// Its name, as in the row.
    pub name: &'static str,
    /// Its value, if it takes one.
    pub value: &'a str,
    /// Its words, if it takes several.
    pub words: &'a [String],
    /// Place of its value (or of itself, without one): word and characters of it.
    pub place: (usize, Range<usize>),
}

impl Given<'_> {
    /// The value as a number that fits `T`; `what` says of what.
    pub fn number<T: std::str::FromStr>(&self, what: &str) -> Result<T, Problem> {
        self.value.parse().map_err(|_| {
            Problem::new(
                format!("{} takes {what}, not '{}'", self.name, self.value),
                format!("write a whole number, for instance {} 4", self.name),
            )
        })
    }
}

/// A dialect's command line.
pub struct Grammar<S: 'static> {
    /// Name of the program, for messages.
    pub program: &'static str,
    /// Its options.
    pub rows: &'static [OptionRow<S>],
    /// Takes a word that is no option; `None` refuses it.
    pub word: Option<Update<S>>,
}

/// Options that iolab adds to every dialect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "CommonOptions")]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Common {
    /// Testbed: `dir:PATH`, `loop:SIZE`, `device:PATH`, `sim:STACK`; absent: where the dialect
    /// would work.
    pub on: Option<String>,
    /// Number of times that the whole is measured; 0 = not said, once.
    pub repeat: u32,
    /// Directory into which the store is written.
    pub out: Option<String>,
    /// True to continue what is stored there.
    #[serde(default)]
    pub is_resumed: bool,
    /// Files of the user's own that may be replaced or changed.
    #[serde(default)]
    pub overwrite: Vec<String>,
    /// Block events are recorded during each trial.
    #[serde(default)]
    pub is_traced: bool,
    /// The events that are recorded, as typed; absent: all of block devices.
    #[serde(default)]
    pub trace_events: Option<String>,
    /// As the original to the letter, its traps included.
    pub is_compat: bool,
    /// Only the help text is wanted.
    pub is_help: bool,
    /// Further testbed options, as (name, value).
    pub testbed: Vec<(String, String)>,
}

impl Common {
    /// Tell whether operations complete at once, by no device, file system or page cache.
    pub fn stores_nothing(&self) -> bool {
        self.on.as_deref().is_some_and(|on| on.split(':').next() == Some("null"))
    }

    /// Tell whether files lie on a simulated device without a file system: on a profile, for only
    /// a stack file can name one.
    pub fn is_bare_simulation(&self) -> bool {
        let profile = self.on.as_deref().and_then(|on| on.strip_prefix("sim:"));
        profile.is_some_and(|name| name.strip_suffix(".toml").is_none() && !name.contains('/'))
    }
}

const GROUP: &str = "Of iolab";

fn repeat(common: &mut Common, given: &Given<'_>) -> Result<(), Problem> {
    match given.number("a number of repetitions")? {
        0 => Err(Problem::new(format!("{} 0 measures nothing", given.name), "write 1 or more")),
        times => {
            common.repeat = times;
            Ok(())
        }
    }
}

/// The options that every dialect has.
pub const COMMON: &[OptionRow<Common>] = &[
    OptionRow {
        name: "--on",
        takes: Takes::Value("TESTBED"),
        group: GROUP,
        doc: "where: dir:PATH, loop:SIZE, device:PATH, sim:STACK, null: (default: the files or \
              the directory that the command line names)",
        standing: Standing::Done,
        update: |common, given| {
            common.on = Some(given.value.to_owned());
            Ok(())
        },
    },
    OptionRow {
        name: "--repeat",
        takes: Takes::Value("N"),
        group: GROUP,
        doc: "run everything N times; the report then has intervals",
        standing: Standing::Done,
        update: repeat,
    },
    OptionRow {
        name: "--rounds",
        takes: Takes::Value("N"),
        group: GROUP,
        doc: "the same as --repeat, as studies call it",
        standing: Standing::Done,
        update: repeat,
    },
    OptionRow {
        name: "--resume",
        takes: Takes::Nothing,
        group: GROUP,
        doc: "continue what --out holds, or the newest run of this program",
        standing: Standing::Done,
        update: |common, _| {
            common.is_resumed = true;
            Ok(())
        },
    },
    OptionRow {
        name: "--out",
        takes: Takes::Value("DIR"),
        group: GROUP,
        doc: "directory of the stored results (default: iolab-out/DIALECT-N)",
        standing: Standing::Done,
        update: |common, given| {
            common.out = Some(given.value.to_owned());
            Ok(())
        },
    },
    OptionRow {
        name: "--overwrite",
        takes: Takes::Value("FILE"),
        group: GROUP,
        doc: "a file that may be replaced although iolab did not make it (may be repeated)",
        standing: Standing::Done,
        update: |common, given| {
            common.overwrite.push(given.value.to_owned());
            Ok(())
        },
    },
    OptionRow {
        name: "--trace",
        takes: Takes::Nothing,
        group: GROUP,
        doc: "record block events while it is measured (root, or --on sim:STACK)",
        standing: Standing::Done,
        update: |common, _| {
            common.is_traced = true;
            Ok(())
        },
    },
    OptionRow {
        name: "--trace-events",
        takes: Takes::Value("LIST"),
        group: GROUP,
        doc: "the same, with these events, separated by commas: block or issue-complete, and \
              layers of the kernel such as syscalls,ext4",
        standing: Standing::Done,
        update: |common, given| {
            (common.is_traced, common.trace_events) = (true, Some(given.value.to_owned()));
            Ok(())
        },
    },
    OptionRow {
        name: "--compat",
        takes: Takes::Nothing,
        group: GROUP,
        doc: "as the original to the letter, its silent substitutions included",
        standing: Standing::Done,
        update: |common, _| {
            common.is_compat = true;
            Ok(())
        },
    },
    OptionRow {
        name: "--image-dir",
        takes: Takes::Value("DIR"),
        group: GROUP,
        doc: "where the image of a loop testbed is made",
        standing: Standing::Done,
        update: |common, given| {
            common.testbed.push(("image_dir".to_owned(), given.value.to_owned()));
            Ok(())
        },
    },
    OptionRow {
        name: "--erase-serial",
        takes: Takes::Value("SERIAL"),
        group: GROUP,
        doc: "confirms by its serial which device may lose all its data (with --on device:)",
        standing: Standing::Done,
        update: |common, given| {
            common.testbed.push(("erase_serial".to_owned(), given.value.to_owned()));
            Ok(())
        },
    },
    OptionRow {
        name: "--help",
        takes: Takes::Nothing,
        group: GROUP,
        doc: "this text",
        standing: Standing::Done,
        update: |common, _| {
            common.is_help = true;
            Ok(())
        },
    },
];

/// Reads a command line (without the program's name) into what was typed.
pub fn read<S>(
    grammar: &Grammar<S>,
    words: &[String],
    typed: &mut S,
    common: &mut Common,
) -> Result<(), Diagnostic> {
    let mut reader = Reader { grammar, words, next: 0 };
    while let Some(word) = words.get(reader.next) {
        let index = reader.next;
        reader.next += 1;
        let read = if word.starts_with("--") {
            reader.long(index, typed, common)
        } else if word.len() > 1 && word.starts_with('-') {
            reader.cluster(index, typed)
        } else {
            reader.plain(index, typed)
        };
        read.map_err(|(place, problem)| {
            Diagnostic::of_words(grammar.program, words, place, problem)
        })?;
    }
    Ok(())
}

/// The option of iolab that a word with two dashes names: `--out`, or `--iolab-out`, which is never
/// an option of the dialect.
pub fn common_row(name: &str) -> Option<&'static OptionRow<Common>> {
    let plain = name.strip_prefix("--iolab-").or_else(|| name.strip_prefix("--"))?;
    COMMON.iter().find(|row| row.name.strip_prefix("--") == Some(plain))
}

/// Characters of an option of one letter: `-a`.
const LETTER_LENGTH: usize = 2;

type Place = (usize, Range<usize>);
type Read = Result<(), (Place, Problem)>;

struct Reader<'a, S: 'static> {
    grammar: &'a Grammar<S>,
    words: &'a [String],
    /// The word after those that are read.
    next: usize,
}

impl<'a, S> Reader<'a, S> {
    fn whole(&self, index: usize) -> Place {
        (index, 0..self.words[index].chars().count())
    }

    fn plain(&self, index: usize, typed: &mut S) -> Read {
        let place = self.whole(index);
        let word = &self.words[index];
        let Some(take) = self.grammar.word else {
            let problem = Problem::new(
                format!("'{word}' is neither an option nor the value of one"),
                "leave it out, or write the option before it",
            );
            return Err((place, problem));
        };
        let given = Given { name: "", value: word, words: &[], place: place.clone() };
        take(typed, &given).map_err(|problem| (place, problem))
    }

    fn long(&mut self, index: usize, typed: &mut S, common: &mut Common) -> Read {
        let word = &self.words[index];
        let (name, attached) =
            word.split_once('=').map_or((word.as_str(), None), |(n, v)| (n, Some(v)));
        if let Some(row) = self.grammar.rows.iter().find(|row| row.name == name) {
            let (value, place) = self.long_value(row.name, &row.takes, (index, attached))?;
            let given = Given { name: row.name, value, words: &[], place: place.clone() };
            return (row.update)(typed, &given).map_err(|problem| (place, problem));
        }
        let Some(row) = common_row(name) else {
            let known = COMMON.iter().map(|row| row.name);
            let hint = did_you_mean(name, known.clone());
            let problem = Problem::new(
                format!("there is no option {name}{hint}"),
                format!("long options are {}", known.collect::<Vec<_>>().join(", ")),
            );
            return Err(((index, 0..name.chars().count()), problem));
        };
        let (value, place) = self.long_value(row.name, &row.takes, (index, attached))?;
        let given = Given { name: row.name, value, words: &[], place: place.clone() };
        (row.update)(common, &given).map_err(|problem| (place, problem))
    }

    /// Value of an option with two dashes, attached with `=` or in the next word.
    fn long_value<T>(
        &mut self,
        name: &str,
        takes: &Takes<T>,
        (index, attached): (usize, Option<&'a str>),
    ) -> Result<(&'a str, Place), (Place, Problem)> {
        let end = self.words[index].chars().count();
        match (takes, attached) {
            (Takes::Nothing, Some(value)) => {
                let problem = Problem::new(format!("{name} takes no value"), "leave it out");
                Err(((index, end - value.chars().count()..end), problem))
            }
            (Takes::Nothing, None) => Ok(("", self.whole(index))),
            (_, Some(value)) => Ok((value, (index, end - value.chars().count()..end))),
            (takes, None) => self.following(name, metavar(takes)),
        }
    }

    /// One word of short options: `-Ras64m`.
    fn cluster(&mut self, index: usize, typed: &mut S) -> Read {
        let word = &self.words[index];
        let letters: Vec<(usize, char)> = word.char_indices().collect();
        let is_word = letters.len() > LETTER_LENGTH;
        if let Some(row) = self.grammar.rows.iter().find(|row| is_word && row.name == word) {
            return self.word_option(row, index, typed);
        }
        let mut at = 1;
        while at < letters.len() {
            let is_plus = letters[at].1 == '+' && letters.len() > at + 1;
            let end = at + if is_plus { 2 } else { 1 };
            let bytes = letters[at].0..letters.get(end).map_or(word.len(), |(byte, _)| *byte);
            let name = format!("-{}", &word[bytes.clone()]);
            let here = (index, at..end);
            let Some(row) = self.grammar.rows.iter().find(|row| row.name == name) else {
                return Err((here, self.unknown(&name)));
            };
            if let Standing::Refused(why, instead) = row.standing {
                return Err((here, Problem::new(format!("{name}: {why}"), instead)));
            }
            let rest = &word[bytes.end..];
            let (given, is_word_used) = self.given(row, (here, rest, letters.len()), typed)?;
            (row.update)(typed, &given).map_err(|problem| (given.place.clone(), problem))?;
            at = if is_word_used { letters.len() } else { end };
        }
        Ok(())
    }

    /// An option of several letters behind one dash: `-threads 4`.
    fn word_option(&mut self, row: &OptionRow<S>, index: usize, typed: &mut S) -> Read {
        let here = self.whole(index);
        if let Standing::Refused(why, instead) = row.standing {
            return Err((here, Problem::new(format!("{}: {why}", row.name), instead)));
        }
        let length = here.1.end;
        let (given, _) = self.given(row, (here, "", length), typed)?;
        (row.update)(typed, &given).map_err(|problem| (given.place.clone(), problem))
    }

    /// Words that belong to one option, and whether the rest of its word does.
    fn given(
        &mut self,
        row: &OptionRow<S>,
        (here, rest, length): (Place, &'a str, usize),
        typed: &S,
    ) -> Result<(Given<'a>, bool), (Place, Problem)> {
        let (name, none) = (row.name, &self.words[0..0]);
        let attached = (here.0, here.1.end..length);
        match &row.takes {
            Takes::Nothing => Ok((Given { name, value: "", words: none, place: here }, false)),
            Takes::Value(_) if !rest.is_empty() => {
                Ok((Given { name, value: rest, words: none, place: attached }, true))
            }
            Takes::Attached(_) => {
                let place = if rest.is_empty() { here } else { attached };
                Ok((Given { name, value: rest, words: none, place }, !rest.is_empty()))
            }
            Takes::NextWord(value) if !rest.is_empty() => {
                let problem = Problem::new(
                    format!("{name} takes its {value} from the next word, not from '{rest}'"),
                    format!("write {name} {rest}"),
                );
                Err((attached, problem))
            }
            Takes::Value(metavar) | Takes::NextWord(metavar) => {
                let (value, place) = self.following(name, metavar)?;
                Ok((Given { name, value, words: none, place }, true))
            }
            Takes::Words(metavar, count) => {
                let wanted = count(typed);
                let first = if rest.is_empty() { self.next } else { self.next - 1 };
                if !rest.is_empty() {
                    let problem = Problem::new(
                        format!("{name} takes its words from the next ones"),
                        format!("write a blank after {name}"),
                    );
                    return Err((attached, problem));
                }
                let words = self.words.get(first..first + wanted).ok_or_else(|| {
                    let problem = Problem::new(
                        format!(
                            "{name} takes {wanted} {metavar}, there are {}",
                            self.words.len() - first
                        ),
                        format!("write {wanted} of them directly after {name}"),
                    );
                    ((self.words.len(), 0..0), problem)
                })?;
                self.next = first + wanted;
                Ok((Given { name, value: "", words, place: here }, true))
            }
        }
    }

    fn following(
        &mut self,
        name: &str,
        metavar: &str,
    ) -> Result<(&'a str, Place), (Place, Problem)> {
        let index = self.next;
        // An option of iolab is never the value of another one.
        let is_value = |word: &&String| {
            let name = word.split('=').next().unwrap_or_default();
            !COMMON.iter().any(|row| row.name == name)
        };
        let Some(word) = self.words.get(index).filter(is_value) else {
            let problem = Problem::new(
                format!("{name} needs a value: {metavar}"),
                format!("write {name} {metavar}"),
            );
            return Err(((index, 0..usize::MAX), problem));
        };
        self.next += 1;
        Ok((word, self.whole(index)))
    }

    fn unknown(&self, name: &str) -> Problem {
        let other_case: String = name
            .chars()
            .map(|c| if c.is_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
            .collect();
        let mut known = self.grammar.rows.iter();
        let hint = match known.find(|row| row.name == other_case) {
            Some(row) => format!("; did you mean {} ({})?", row.name, row.doc),
            None => String::new(),
        };
        Problem::new(
            format!("there is no option {name}{hint}"),
            format!("`iolab {} --help` lists all options", self.grammar.program),
        )
    }
}

fn metavar<S>(takes: &Takes<S>) -> &'static str {
    match takes {
        Takes::Nothing => "",
        Takes::Value(text)
        | Takes::Attached(text)
        | Takes::NextWord(text)
        | Takes::Words(text, _) => text,
    }
}

/// Options by group, for `--help`.
pub fn help_text<S>(grammar: &Grammar<S>) -> String {
    let mut text = String::new();
    let mut group = "";
    for line in lines(grammar) {
        if line.group != group {
            group = line.group;
            let _ = writeln!(text, "\n{group}:");
        }
        let typed = format!("{} {}", line.name, line.metavar);
        let meaning = format!("{}{}", line.doc, line.standing.remark());
        text.push_str(&two_columns(&format!("  {typed}"), 21, &meaning));
    }
    text
}

/// Options by group as Markdown tables, for the reference page.
pub fn reference_text<S>(grammar: &Grammar<S>) -> String {
    let mut text = String::new();
    let mut group = "";
    for line in lines(grammar) {
        if line.group != group {
            group = line.group;
            let _ = writeln!(text, "\n### {group}\n\n| option | does | here |\n|---|---|---|");
        }
        let here = if line.group == GROUP { String::new() } else { line.standing.here() };
        let typed = format!("{} {}", line.name, line.metavar);
        let _ = writeln!(text, "| `{}` | {} | {} |", typed.trim(), line.doc, here);
    }
    text
}

struct Line {
    name: &'static str,
    metavar: &'static str,
    group: &'static str,
    doc: &'static str,
    standing: Standing,
}

impl Line {
    fn of<S>(row: &OptionRow<S>) -> Self {
        let metavar = metavar(&row.takes);
        Self { name: row.name, metavar, group: row.group, doc: row.doc, standing: row.standing }
    }
}

/// All rows, those of one group together, in the order in which the groups first appear.
fn lines<S>(grammar: &Grammar<S>) -> Vec<Line> {
    let rows = grammar.rows.iter().map(Line::of);
    let mut all: Vec<Line> = rows.chain(COMMON.iter().map(Line::of)).collect();
    let mut groups: Vec<&str> = Vec::new();
    for line in &all {
        if !groups.contains(&line.group) {
            groups.push(line.group);
        }
    }
    all.sort_by_key(|line| groups.iter().position(|group| *group == line.group));
    all
}

#[cfg(test)]
mod tests;

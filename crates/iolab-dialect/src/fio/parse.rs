//! From words and job files to jobs.
//!
//! On a command line options count in the order in which they stand; in a section of a file
//! `kb_base` comes first and the file's name last. Left out: abbreviated names of options.

use std::ops::Range;
use std::rc::Rc;

use iolab_model::nearest::did_you_mean;

use super::command::{self, Program};
use super::host::Host;
use super::job::{Job, Typed};
use super::options;
use super::place::Place;
use super::row::Row;
use super::value;
use crate::diagnostic::{Diagnostic, Problem};
use crate::option::{Common, Given, Standing, Takes, common_row};

/// Jobs and clones of one command line, as in fio.
pub const JOBS_MAX: usize = 4096;
/// Bytes of a value: each job keeps its own.
const VALUE_MAX: usize = 16 << 10;
/// Files that include each other.
const INCLUDES_MAX: usize = 16;
/// Options of all job files at most.
const OPTIONS_MAX: usize = 200_000;
/// fio's numbers of the machine.
const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];

/// Everything that was typed.
pub struct Typing {
    /// Options of the program.
    pub program: Program,
    /// Options of iolab.
    pub common: Common,
    /// Jobs in order.
    pub jobs: Vec<Job>,
    /// Options of all global sections.
    pub globals: Vec<Typed>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// True if job files were named.
    pub has_files: bool,
}

/// An option of a section that is not read yet.
struct Raw {
    key: (String, Place),
    value: Option<(String, Place)>,
}

struct Reader<'a, H> {
    host: &'a H,
    words: &'a [String],
    next: usize,
    global: Job,
    /// The job that is being described.
    current: Option<Job>,
    /// Clones of all jobs that are complete.
    clones: u64,
    /// Options of job files so far.
    options: usize,
    typing: Typing,
}

type Result<T> = std::result::Result<T, Diagnostic>;

/// Reads a command line, without the program's name, and the files that it names.
pub fn read(words: &[String], host: &impl Host) -> Result<Typing> {
    let typing = Typing {
        program: Program::default(),
        common: Common::default(),
        jobs: Vec::new(),
        globals: Vec::new(),
        notes: Vec::new(),
        has_files: false,
    };
    let global = Job::new("global", Place::default());
    let mut reader =
        Reader { host, words, next: 0, global, current: None, clones: 0, options: 0, typing };
    reader.read_words()?;
    let mut typing = reader.typing;
    // fio ends the group of whichever job ends first, whoever said so.
    let ends_all = typing.jobs.iter().any(|job| job.ends_all);
    typing.jobs.iter_mut().for_each(|job| job.ends_all = ends_all);
    Ok(typing)
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

impl<H: Host> Reader<'_, H> {
    fn wrong<T>(&self, at: &Place, problem: Problem) -> Result<T> {
        Err(at.tell(self.words, problem))
    }

    fn word_at(&self, index: usize) -> Place {
        Place::Word { index, within: 0..characters(&self.words[index]) }
    }

    fn read_words(&mut self) -> Result<()> {
        let mut files = Vec::new();
        while let Some(word) = self.words.get(self.next) {
            let index = self.next;
            self.next += 1;
            if word.len() > 1 && word.starts_with('-') {
                self.option(index)?;
            } else {
                files.push(index);
            }
        }
        self.finish(None)?;
        self.typing.has_files = !files.is_empty();
        for index in files {
            self.file(index)?;
        }
        Ok(())
    }

    /// One word that is an option.
    fn option(&mut self, index: usize) -> Result<()> {
        let word = &self.words[index];
        let dashes = if word.starts_with("--") { 2 } else { 1 };
        let (name, attached) = match word[dashes..].split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None if word == "-h" => ("help", None),
            None => (&word[dashes..], None),
        };
        let named = dashes..dashes + characters(name);
        let at = Place::Word { index, within: named.clone() };
        let attached = attached.map(|value| {
            let start = named.end + 1;
            let within = start..start + characters(value);
            (value.to_owned(), Place::Word { index, within })
        });
        let is_ours = name.starts_with("iolab-")
            || options::find(name).is_none()
            || !self.is_switched(attached.as_ref().map(|(text, _)| text.as_str()));
        if let Some(row) = common_row(&format!("--{name}")).filter(|_| is_ours) {
            let takes_none = matches!(row.takes, Takes::Nothing);
            if takes_none && attached.is_some() {
                let problem = Problem::new(
                    format!("{} takes no value", row.name),
                    format!("write {}", row.name),
                );
                return self.wrong(&at, problem);
            }
            let value = self.value((row.name, &at), !takes_none, attached)?;
            let (text, place) = value.unwrap_or((String::new(), at));
            let place = match &place {
                Place::Word { index, within } => (*index, within.clone()),
                Place::Line { .. } => (index, named),
            };
            let given = Given { name: row.name, value: &text, words: &[], place: place.clone() };
            let told = (row.update)(&mut self.typing.common, &given);
            return told.map_err(|problem| Diagnostic::of_words("fio", self.words, place, problem));
        }
        if let Some(row) = command::ROWS.iter().find(|row| row.name == name) {
            return self.program_option(row, &at, attached);
        }
        let Some(row) = options::find(name) else {
            return self.unknown(name, &at);
        };
        let must_follow = !row.kind.may_stand_alone();
        let value = self.value((row.name, &at), must_follow, attached)?;
        self.job_option(row, &at, value)
    }

    /// True if an option whose name iolab has as well (`--overwrite`) is meant as fio's switch: it
    /// stands alone, or is 0 or 1. With the name of a file it is iolab's.
    fn is_switched(&self, attached: Option<&str>) -> bool {
        let following = || self.words.get(self.next).map(String::as_str);
        match attached.or_else(following) {
            Some(value) => matches!(value, "0" | "1") || value.starts_with('-'),
            None => true,
        }
    }

    /// The value that is attached to an option or follows it.
    fn value(
        &mut self,
        (name, at): (&str, &Place),
        must_follow: bool,
        attached: Option<(String, Place)>,
    ) -> Result<Option<(String, Place)>> {
        if attached.is_some() || !must_follow {
            return Ok(attached);
        }
        // fio takes the next word whatever it is; none of iolab's values looks like an option.
        let is_ours = name.starts_with("--");
        let next = self.words.get(self.next).filter(|word| !is_ours || !word.starts_with("--"));
        let Some(word) = next else {
            let problem = Problem::new(
                format!("{name} needs a value"),
                format!("write --{}=VALUE", name.trim_start_matches('-')),
            );
            return self.wrong(at, problem);
        };
        self.next += 1;
        if word.starts_with("--") {
            let name = name.trim_start_matches('-');
            let note = format!("'{word}' is taken for the value of --{name}, as in fio");
            self.typing.notes.push(note);
        }
        Ok(Some((word.clone(), self.word_at(self.next - 1))))
    }

    fn program_option(
        &mut self,
        row: &command::CommandRow,
        at: &Place,
        attached: Option<(String, Place)>,
    ) -> Result<()> {
        if let Standing::Refused(why, instead) = row.standing {
            return self.wrong(at, Problem::new(format!("--{}: {why}", row.name), instead));
        }
        let value = match row.takes {
            command::Takes::Nothing if attached.is_some() => {
                let what = format!("--{} takes no value", row.name);
                return self.wrong(at, Problem::new(what, format!("write --{}", row.name)));
            }
            command::Takes::Nothing => None,
            command::Takes::Attached(_) => attached,
            command::Takes::Value(_) => self.value((row.name, at), true, attached)?,
        };
        let (text, place) = value.unwrap_or((String::new(), at.clone()));
        if text.is_empty() && matches!(row.takes, command::Takes::Value(_)) {
            let what = format!("--{} needs a value", row.name);
            return self.wrong(&place, Problem::new(what, format!("write --{}=VALUE", row.name)));
        }
        let told = (row.set)(&mut self.typing.program, &text);
        told.map_err(|problem| place.tell(self.words, problem))
    }

    fn job_option(
        &mut self,
        row: &'static Row,
        at: &Place,
        value: Option<(String, Place)>,
    ) -> Result<()> {
        if let Some((text, place)) = &value
            && let Some(keyword) = KEYWORDS.iter().find(|keyword| text.contains(**keyword))
        {
            let what = format!("{keyword} is replaced in job files alone");
            return self.wrong(place, Problem::new(what, "write the number"));
        }
        if row.name == "name" {
            let name = value.as_ref().map(|(text, _)| text.clone()).unwrap_or_default();
            self.finish(None)?;
            if !is_global(&name) {
                let mut job = Job { at: at.clone(), ..self.global.clone() };
                job.section.clone_from(&name);
                job.globals = self.typing.globals.len();
                self.current = Some(job);
            }
        }
        let mut job = self.current.take();
        let is_global = job.is_none();
        let mut typed = Vec::new();
        let target = job.as_mut().unwrap_or(&mut self.global);
        let told = apply(target, &mut typed, row, (at, value), self.words);
        match &mut job {
            Some(job) => job.typed.extend(typed),
            None => self.typing.globals.extend(typed),
        }
        self.current = job;
        if is_global && row.name == "name" {
            "global".clone_into(&mut self.global.name);
        }
        told
    }

    fn unknown<T>(&self, name: &str, at: &Place) -> Result<T> {
        let known = options::rows().flat_map(|row| std::iter::once(&row.name).chain(row.aliases));
        let program = command::ROWS.iter().map(|row| row.name);
        if command::ROWS.iter().any(|row| row.name == name) {
            let what = format!("{name} is no option of a job");
            return self.wrong(at, Problem::new(what, format!("give it as --{name} of iolab fio")));
        }
        let lower = name.to_lowercase();
        let hint = if let Some(row) = options::find(&lower) {
            format!(" (did you mean `{}`?)", row.name)
        } else {
            // Of names of two and three letters one is always near.
            let is_like = |known: &&str| known.len().abs_diff(name.len()) < 2;
            did_you_mean(name, known.copied().chain(program).filter(is_like))
        };
        let problem = Problem::new(
            format!("there is no option '{}'{hint}", short(name)),
            "`iolab fio --cmdhelp=all` lists all",
        );
        self.wrong(at, problem)
    }

    /// The job that was described is complete.
    fn finish(&mut self, is_wanted: Option<bool>) -> Result<()> {
        let Some(mut job) = self.current.take() else { return Ok(()) };
        job.read_only_if_verified();
        if is_wanted == Some(false) {
            return Ok(());
        }
        let most = match self.typing.program.jobs_max {
            0 => JOBS_MAX,
            most => most.min(JOBS_MAX),
        };
        self.clones += job.clones;
        if self.clones > most as u64 {
            let what = format!("more jobs and clones than --max-jobs={most} allows");
            let problem = Problem::new(what, "write fewer jobs and numjobs");
            return self.wrong(&job.at, problem);
        }
        self.typing.jobs.push(job);
        Ok(())
    }

    /// A job file.
    fn file(&mut self, index: usize) -> Result<()> {
        let name = self.words[index].clone();
        let text = self.host.text(&name).or_else(|why| {
            let what = format!("job file '{}' cannot be read: {why}", short(&name));
            let before = index.checked_sub(1).and_then(|before| self.words.get(before));
            let remedy = match before.map(String::as_str) {
                Some(help @ ("--cmdhelp" | "--enghelp")) => {
                    format!("write {help}={}", short(&name))
                }
                _ => "name a job file; `iolab fio --help` tells more".to_owned(),
            };
            self.wrong(&self.word_at(index), Problem::new(what, remedy))
        })?;
        let file: Rc<str> = name.as_str().into();
        let mut section: Option<(String, Place)> = None;
        let mut raw: Vec<Raw> = Vec::new();
        // Some editors begin a text with a mark of its encoding.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        for (number, line) in text.lines().enumerate() {
            let Some(line) = Line::of(line, &file, number + 1) else { continue };
            if let Some(name) = line.section() {
                let at = line.at.clone();
                let name = name.or_else(|problem| self.wrong(&at, problem))?;
                self.section(section.take(), std::mem::take(&mut raw))?;
                section = Some((name, at));
                continue;
            }
            if section.is_none() {
                let what = format!("option <{}> outside of [] job section", short(&line.text));
                let problem = Problem::new(what, "write a section before it: [global] or [name]");
                return self.wrong(&line.at, problem);
            }
            self.line(&line, &mut raw, 0)?;
        }
        self.section(section, raw)
    }

    /// A line of a section: an option or an include.
    fn line(&mut self, line: &Line, raw: &mut Vec<Raw>, depth: usize) -> Result<()> {
        if line.text.contains('\0') {
            let problem = Problem::new("a byte of value 0", "write text alone");
            return self.wrong(&line.at, problem);
        }
        let Some(wanted) = line.include() else {
            self.options += 1;
            if self.options > OPTIONS_MAX {
                let what = format!("more than {OPTIONS_MAX} options");
                return self.wrong(&line.at, Problem::new(what, "write fewer job files at once"));
            }
            raw.push(line.option());
            return Ok(());
        };
        if depth == INCLUDES_MAX {
            let problem = Problem::new("files include each other", "include fewer");
            return self.wrong(&line.at, problem);
        }
        let beside = match &line.at {
            Place::Line { file, .. } => file.rsplit_once('/').map(|(folder, _)| folder.to_owned()),
            Place::Word { .. } => None,
        };
        let near = beside.map(|folder| format!("{folder}/{wanted}"));
        let found = near.and_then(|path| self.host.text(&path).ok().map(|text| (path, text)));
        let (path, text) = match found {
            Some(found) => found,
            None => match self.host.text(wanted) {
                Ok(text) => (wanted.to_owned(), text),
                Err(why) => {
                    let what = format!("'{}' cannot be included: {why}", short(wanted));
                    let remedy = "name a file beside this one, or in the working directory";
                    return self.wrong(&line.at, Problem::new(what, remedy));
                }
            },
        };
        let file: Rc<str> = path.as_str().into();
        for (number, text) in text.lines().enumerate() {
            let Some(inner) = Line::of(text, &file, number + 1) else { continue };
            if inner.section().is_some() {
                let problem = Problem::new("a section in an included file", "write options alone");
                return self.wrong(&inner.at, problem);
            }
            self.line(&inner, raw, depth + 1)?;
        }
        Ok(())
    }

    /// A whole section.
    fn section(&mut self, name: Option<(String, Place)>, raw: Vec<Raw>) -> Result<()> {
        let Some((name, at)) = name else { return Ok(()) };
        let is_global = is_global(&name);
        let wanted = &self.typing.program.sections;
        let is_wanted = is_global || wanted.is_empty() || wanted.contains(&name);
        if !is_wanted {
            return Ok(());
        }
        let mut job = self.global.clone();
        (job.section, job.name, job.at) = (name.clone(), name, at);
        job.globals = self.typing.globals.len();
        let rank = |raw: &Raw| match raw.key.0.as_str() {
            "kb_base" => 0,
            "filename" => 2,
            _ => 1,
        };
        let mut raw = raw;
        raw.sort_by_key(rank);
        let had_files = job.filename.len();
        let mut typed = Vec::new();
        for Raw { key: (key, at), value } in raw {
            let Some(row) = options::find(&key) else { return self.unknown(&key, &at) };
            let value = value.map(|(text, at)| self.replaced(&text, &at, job.kb_base));
            apply(&mut job, &mut typed, row, (&at, value.transpose()?), self.words)?;
        }
        if is_global {
            self.global = job;
            self.typing.globals.extend(typed);
            return Ok(());
        }
        if had_files > 0 && job.filename.len() > had_files {
            let note = format!(
                "job {}: filename adds to that of the global section, as in fio: it works on {}",
                job.name,
                job.filename.join(" and ")
            );
            self.typing.notes.push(note);
        }
        job.typed = typed;
        self.current = Some(job);
        self.finish(Some(true))
    }

    /// A value with variables and keywords replaced, and then computed.
    fn replaced(&self, text: &str, at: &Place, kb_base: u64) -> Result<(String, Place)> {
        let mut found = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let Some(end) = rest[start..].find('}') else { break };
            let name = &rest[start + 2..start + end];
            let Some(value) = self.host.variable(name).filter(|value| !value.is_empty()) else {
                let what = format!("the environment variable {} is not set, or empty", short(name));
                return self.wrong(at, Problem::new(what, "set it, or write the value"));
            };
            found.push_str(&rest[..start]);
            found.push_str(&value);
            rest = &rest[start + end + 1..];
        }
        found.push_str(rest);
        let numbers = [self.host.page_bytes(), self.host.memory_mib(), self.host.cpus()];
        if found.contains('$') && KEYWORDS.iter().any(|keyword| found.contains(keyword)) {
            for (keyword, number) in KEYWORDS.iter().zip(numbers) {
                found = found.replace(keyword, &number.to_string());
            }
            if let Some(value) = value::arithmetic(&found, kb_base) {
                found = value.to_string();
            }
        }
        Ok((found, at.clone()))
    }
}

/// Takes one use of an option into a job.
fn apply(
    job: &mut Job,
    typed: &mut Vec<Typed>,
    row: &'static Row,
    (at, value): (&Place, Option<(String, Place)>),
    words: &[String],
) -> Result<()> {
    let (text, place) = match value {
        Some((text, place)) => (Some(text), place),
        None => (None, at.clone()),
    };
    if let Some(text) = text.as_ref().filter(|text| text.len() > VALUE_MAX) {
        let what = format!("a value of {} bytes", text.len());
        return Err(place.tell(words, Problem::new(what, "write at most 16384 bytes")));
    }
    if text.as_ref().is_some_and(String::is_empty) && row.name != "name" {
        let problem = Problem::new(
            format!("{} needs a value", row.name),
            format!("write {}=VALUE, or leave it out", row.name),
        );
        return Err(place.tell(words, problem));
    }
    let read = row.read(text.as_deref(), job.kb_base);
    if let Standing::Refused(why, instead) = row.standing {
        // What changes nothing is no reason to refuse a job.
        let usual = row.read(Some(row.default), job.kb_base).ok();
        let is_usual = !row.default.is_empty() && usual == read.as_ref().ok().cloned();
        if !is_usual {
            let shown = text.as_ref().map(|text| format!("={}", short(text))).unwrap_or_default();
            let problem = Problem::new(format!("{}{shown}: {why}", row.name), instead);
            return Err(at.tell(words, problem));
        }
    }
    let told = |(within, problem): (Range<usize>, Problem)| {
        place.part(&within).tell(words, problem.about(row.name))
    };
    let value = read.map_err(told)?;
    (row.set)(job, value).map_err(|problem| place.tell(words, problem.about(row.name)))?;
    typed.push(Typed { row, text, at: at.clone() });
    Ok(())
}

/// Text of a message: nobody reads megabytes.
fn short(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

/// A line of a file that says something.
struct Line {
    /// Without comment and blanks around it.
    text: String,
    at: Place,
}

impl Line {
    fn of(line: &str, file: &Rc<str>, number: usize) -> Option<Self> {
        let end = line.find([';', '#']).unwrap_or(line.len());
        let text = line[..end].trim();
        if text.is_empty() {
            return None;
        }
        let before = line.len() - line.trim_start().len();
        let start = characters(&line[..before]);
        let within = start..start + characters(text);
        let at = Place::Line { file: file.clone(), number, line: line.into(), within };
        Some(Self { text: text.to_owned(), at })
    }

    /// Name of the section that it begins.
    fn section(&self) -> Option<std::result::Result<String, Problem>> {
        let rest = self.text.strip_prefix('[')?;
        let Some(end) = rest.find(']') else {
            return Some(Err(Problem::new("a section without ]", "write [name]")));
        };
        let name = &rest[..end];
        Some(if name.is_empty() {
            Err(Problem::new("a section without a name", "write [name]"))
        } else if name.len() > VALUE_MAX {
            Err(Problem::new("a section with a name of many bytes", "write a shorter one"))
        } else {
            Ok(name.to_owned())
        })
    }

    /// File that it includes.
    fn include(&self) -> Option<&str> {
        let rest = self.text.strip_prefix("include")?;
        rest.starts_with([' ', '\t']).then(|| rest.trim())
    }

    fn option(&self) -> Raw {
        let Some((key, value)) = self.text.split_once('=') else {
            return Raw { key: (self.text.clone(), self.at.clone()), value: None };
        };
        let (name, text) = (key.trim_end(), value.trim_start());
        let length = characters(&self.text);
        let key = (name.to_owned(), self.at.part(&(0..characters(name))));
        let value = self.at.part(&(length - characters(text)..length));
        Raw { key, value: Some((text.to_owned(), value)) }
    }
}

/// True of the name of a section whose options are those of all jobs behind it: fio 3.33 looks at
/// its first six letters, so that `[globals.db]` is none of a job.
fn is_global(name: &str) -> bool {
    name.starts_with("global")
}

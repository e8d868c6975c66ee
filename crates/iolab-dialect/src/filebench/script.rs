//! A script up to its run: what was defined, what is said, and how long it runs.

use std::collections::BTreeMap;

use iolab_model::Ns;
use iolab_model::nearest::did_you_mean;

use super::lex::{ScriptFault, ScriptSpot, Source};
use super::parse::{lone_value, parse};
use super::personality;
use super::scope::{Bound, ScriptScope};
use super::syntax::{Composite, Givens, Placed, Quit, Statement, WmlProcess};
use super::words::{Attribute, RESERVED};
use crate::diagnostic::Problem;

type Result<T> = std::result::Result<T, ScriptFault>;

/// Seconds of a run without a number in mode timeout.
const RUN_S: u64 = 60;
/// Seconds between reports where none are given.
const PERIOD_S: u64 = 10;

/// A file or fileset as defined.
#[derive(Clone, Debug)]
pub struct DefinedFiles {
    /// A single file.
    pub is_file: bool,
    /// Attributes.
    pub given: Givens,
}

/// Reports during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reports {
    /// Seconds between two.
    pub period_s: u64,
    /// `CountedAs` are set back after each.
    pub is_set_back: bool,
}

/// Something that happens before the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A line of text.
    Text(String),
    /// A command for the shell, and its place.
    Command(String, ScriptSpot),
}

/// A script that was gone through up to its run or its end.
#[derive(Clone, Debug)]
pub struct Script {
    /// Variables.
    pub scope: ScriptScope,
    /// Files in the order of their definitions.
    pub files: Vec<DefinedFiles>,
    /// Processes in the order of their definitions.
    pub processes: Vec<WmlProcess>,
    /// Composite operations by name.
    pub composites: BTreeMap<String, Composite>,
    /// Rule that ends the run.
    pub quit: Quit,
    /// Events per second; 0: limits are not active.
    pub events_per_s: u64,
    /// The report has histograms.
    pub has_histograms: bool,
    /// Texts and commands before the run.
    pub said: Vec<Said>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Time of the run; absent: until its rule ends it.
    pub time_ns: Option<Ns>,
    /// Reports during it.
    pub reports: Option<Reports>,
    /// Place of the run; absent: the script ends by itself.
    pub run: Option<ScriptSpot>,
}

/// Requests of the command line about a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Variables with their values, as typed.
    pub variables: Vec<(String, String)>,
    /// Seconds of the run.
    pub run_s: Option<u64>,
}

struct Reader<'a> {
    script: Script,
    overrides: &'a Overrides,
    /// Attributes of the last eventgen.
    events: Option<Givens>,
    is_over: bool,
    is_created: bool,
}

/// Goes through a script.
///
/// # Errors
///
/// The first problem, with its place; of an override without one (`Err(Err)`).
pub fn read(
    source: &Source,
    overrides: &Overrides,
) -> std::result::Result<Script, std::result::Result<ScriptFault, Problem>> {
    let statements = parse(source).map_err(Ok)?;
    let script = Script {
        scope: ScriptScope::default(),
        files: Vec::new(),
        processes: Vec::new(),
        composites: BTreeMap::new(),
        quit: Quit::Timeout,
        events_per_s: 0,
        has_histograms: false,
        said: Vec::new(),
        notes: Vec::new(),
        time_ns: None,
        reports: None,
        run: None,
    };
    let is_created = false;
    let mut reader = Reader { script, overrides, events: None, is_over: false, is_created };
    for (name, value) in &overrides.variables {
        let placed = Placed { value: lone_value(value), spot: ScriptSpot::default() };
        reader.script.scope.variables.insert(name.clone(), placed);
    }
    let mut is_ended = false;
    for placed in statements {
        if reader.is_over {
            break;
        }
        is_ended |= matches!(placed.statement, Statement::End);
        reader.statement(placed.statement, placed.spot).map_err(Ok)?;
    }
    if let (None, Some(seconds), false) = (reader.script.run, overrides.run_s, is_ended) {
        reader.script.run = Some(ScriptSpot::default());
        reader.script.time_ns = Some(Ns::from_seconds(seconds));
    }
    if reader.script.run.is_none() && !is_ended {
        let remedy = "add `run 60` at its end, or --run 60 to the command line";
        return Err(Err(Problem::new("no run command in the WML script", remedy)));
    }
    reader.settle().map_err(Ok)?;
    Ok(reader.script)
}

/// Names of variables that a script sets.
pub fn variables_of(source: &Source) -> Vec<(String, String)> {
    let Ok(statements) = parse(source) else { return Vec::new() };
    let mut all: Vec<(String, String)> = Vec::new();
    for placed in statements {
        if let Statement::Set(name, value) = placed.statement {
            let line = source.text.lines().nth(value.spot.line).unwrap_or_default();
            let written: String = line.chars().skip(value.spot.from).collect();
            let written = written.split('#').next().unwrap_or_default().trim().to_owned();
            all.retain(|known| known.0 != name);
            all.push((name, written));
        }
    }
    all
}

impl Reader<'_> {
    fn statement(&mut self, statement: Statement, spot: ScriptSpot) -> Result<()> {
        let script = &mut self.script;
        match statement {
            Statement::Set(name, value) => {
                let is_overridden = self.overrides.variables.iter().any(|it| it.0 == name);
                if !is_overridden {
                    let value = frozen(&script.scope, &name, value)?;
                    script.scope.variables.insert(name, value);
                }
            }
            Statement::Quit(quit) => script.quit = quit,
            Statement::Files(is_file, given) => {
                self.note_reserved(&given);
                self.script.files.push(DefinedFiles { is_file, given });
            }
            Statement::Process(process) => {
                self.note_reserved(&process.given);
                for thread in &process.threads {
                    self.note_reserved(&thread.given);
                }
                self.script.processes.push(process);
            }
            Statement::Composite(composite) => {
                script.composites.insert(composite.name.clone(), composite);
            }
            Statement::Events(given) => self.events = Some(given),
            Statement::Histograms => script.has_histograms = true,
            Statement::Echo(text) => {
                let text = script.scope.resolve(&text)?.text();
                script.said.push(Said::Text(text));
            }
            Statement::System(text) => {
                let command = script.scope.resolve(&text)?.text();
                script.said.push(Said::Command(command, text.spot));
            }
            Statement::Version => {
                script.said.push(Said::Text("Filebench Version: 1.5-alpha3".to_owned()));
            }
            Statement::Create => {
                if self.is_created {
                    let note = "Attempting to create fileset more than once, ignoring";
                    script.notes.push(note.to_owned());
                }
                self.is_created = true;
            }
            Statement::Noted(note) if note.is_empty() => {}
            Statement::Noted(note) => script.notes.push(note),
            Statement::List => {}
            Statement::Load(name) => self.load(&name, spot)?,
            Statement::End => self.is_over = true,
            Statement::Run(seconds) => self.run(seconds, None, spot)?,
            Statement::ReportingRun(period, seconds) => {
                let period = period.map(|placed| self.script.scope.resolve(&placed)).transpose()?;
                let period = match period {
                    None => PERIOD_S as i64,
                    Some(Bound::Integer(period)) if period != 0 => period,
                    _ => {
                        return Err(ScriptFault::new(
                            spot,
                            "a period of 0",
                            "write for instance psrun 10 60",
                        ));
                    }
                };
                let reports = Reports { period_s: period.unsigned_abs(), is_set_back: period < 0 };
                self.run(seconds, Some(reports), spot)?;
            }
        }
        Ok(())
    }

    fn load(&mut self, name: &str, spot: ScriptSpot) -> Result<()> {
        let Some(preset) = personality::find(name) else {
            let known = personality::PERSONALITIES.iter().map(|row| row.name);
            let what = format!("there is no personality {name}{}", did_you_mean(name, known));
            return Err(ScriptFault::new(spot, what, "`iolab filebench --list` shows all"));
        };
        let source = Source { name: name.to_owned(), text: preset.text.to_owned() };
        let statements = parse(&source).map_err(|wrong| ScriptFault { spot, ..wrong })?;
        for placed in statements {
            // Whoever loads it says when it runs.
            if !matches!(placed.statement, Statement::Run(_)) {
                let done = self.statement(placed.statement, spot);
                done.map_err(|wrong| ScriptFault { spot, ..wrong })?;
            }
        }
        Ok(())
    }

    fn run(
        &mut self,
        seconds: Option<Placed>,
        reports: Option<Reports>,
        spot: ScriptSpot,
    ) -> Result<()> {
        let script = &mut self.script;
        let named = match seconds.map(|placed| script.scope.resolve(&placed)).transpose()? {
            None => None,
            Some(Bound::Integer(seconds)) if seconds > 0 => Some(seconds as u64),
            Some(_) => {
                return Err(ScriptFault::new(spot, "a run of no time", "write run 60, or so"));
            }
        };
        let usual = (script.quit == Quit::Timeout).then_some(RUN_S);
        let seconds = self.overrides.run_s.or(named).or(usual);
        if seconds.is_some_and(|seconds| seconds > 10_000_000) {
            return Err(ScriptFault::new(
                spot,
                "a run of more than 100 days",
                "write run 60, or so",
            ));
        }
        script.time_ns = seconds.map(Ns::from_seconds);
        script.reports = reports;
        script.run = Some(spot);
        self.is_over = true;
        Ok(())
    }

    /// Notes names that the original takes for keywords.
    fn note_reserved(&mut self, given: &Givens) {
        if let Some(given) = given.find(Attribute::Name)
            && let super::syntax::Value::Word(word) = &given.value.value
            && RESERVED.contains(&word.as_str())
        {
            let note = format!("the name {word} is a keyword of Filebench, which refuses it");
            self.script.notes.push(note);
        }
    }

    /// Resolves what must be known at the end, and looks whether overrides meant anything.
    fn settle(&mut self) -> std::result::Result<(), ScriptFault> {
        if let Some(events) = &self.events {
            self.script.events_per_s = self.script.scope.number(events, Attribute::Rate, 0)?;
        }
        Ok(())
    }
}

/// The value of a `set`: one that names other variables is what they are now; a random variable
/// stays as it is.
fn frozen(scope: &ScriptScope, name: &str, placed: Placed) -> Result<Placed> {
    use super::syntax::Value;
    let value = match &placed.value {
        Value::Variable(other) => {
            if let Some(found) = scope.variables.get(other) {
                found.value.clone()
            } else {
                scope.variable(other, placed.spot, 0)?;
                return Ok(placed);
            }
        }
        Value::Calculated(..) | Value::Quoted(_) => match scope.resolve(&placed)? {
            Bound::Integer(value) => Value::Integer(value),
            Bound::Boolean(value) => Value::Boolean(value),
            // Its dollar signs have had their meaning.
            Bound::Text(text) => Value::Quoted(text.replace('\\', "\\\\").replace('$', "\\$")),
            Bound::Random(_) => return Ok(placed),
        },
        _ => return Ok(placed),
    };
    let _ = name;
    Ok(Placed { value, spot: placed.spot })
}

//! Profiles: the parameters of a device as data, each number with unit, provenance and source.
//!
//! A profile is a TOML file; the folder `profiles` is compiled in. A device asks for its parameters
//! by name and unit through a [`Reader`], which refuses what is missing, of another unit, out of
//! range or not known, so that a misspelt name never yields a default in silence.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use iolab_model::nearest::{did_you_mean, with_nearest};
use serde::{Deserialize, Serialize};

use crate::error::SimError;

/// Source of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// A constant of the named implementation.
    Code,
    /// A manual or data sheet.
    Doc,
    /// A published measurement.
    Meas,
    /// Fitted to published measurements.
    Fit,
    /// Computed from other numbers that are named.
    Derived,
    /// Our choice: calibrate before relying on it.
    Assume,
    /// The user's, in a stack file.
    User,
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ProfileValue")]
pub enum Value {
    /// true or false.
    Switch(bool),
    /// A number.
    Number(f64),
    /// A name from a list.
    Text(String),
    /// A list of numbers.
    List(Vec<f64>),
    /// Rows of numbers: a seek table, zones.
    Table(Vec<Vec<f64>>),
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ProfileParameter")]
pub struct Parameter {
    /// Value.
    pub value: Value,
    /// Unit; empty for plain numbers and names.
    #[serde(default)]
    pub unit: String,
    /// Source of the number.
    pub tag: Provenance,
    /// The source in words, precise enough to look it up.
    pub source: String,
}

/// A device's description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name, as in `sim:NAME`; the file's name.
    pub name: String,
    /// Kind of device, a row of the list of devices.
    pub kind: String,
    /// One line for people.
    pub title: String,
    /// Notes to read before relying on it.
    #[serde(default)]
    pub notes: String,
    /// Parameters by name.
    pub parameters: BTreeMap<String, Parameter>,
    /// The profile of the device inside, for wrappers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<String>,
    /// Table of software costs of the machines that have such a device, if not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
}

/// Name and text of every profile in the folder, sorted by name.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

impl Profile {
    /// Names of the profiles that come with iolab, sorted.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|&(name, _)| name)
    }

    /// A profile that comes with iolab.
    pub fn built_in(name: &str) -> Result<Self, SimError> {
        match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Self::parse(&format!("profiles/{name}.toml"), text),
            None => Err(SimError::UnknownName {
                kind: "profile",
                name: name.to_owned(),
                known: Self::names().map(str::to_owned).collect(),
            }),
        }
    }

    /// Parses a profile; `subject` names the file in errors.
    pub fn parse(subject: &str, text: &str) -> Result<Self, SimError> {
        toml::from_str(text).map_err(|error| syntax_error(subject, text, &error))
    }

    /// The least trustworthy provenance and how many parameters have each.
    pub fn provenance(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for parameter in self.parameters.values() {
            *counts.entry(format!("{:?}", parameter.tag).to_lowercase()).or_insert(0) += 1;
        }
        counts
    }

    /// Replaces values (`name = value`), keeping units; the result is tagged as the user's.
    pub fn override_with(&mut self, values: &BTreeMap<String, Value>) -> Result<(), SimError> {
        for (name, value) in values {
            let known = || self.parameters.keys().cloned().collect();
            if !self.parameters.contains_key(name) {
                return Err(SimError::UnknownName {
                    kind: "parameter",
                    name: name.clone(),
                    known: known(),
                });
            }
            if let Some(parameter) = self.parameters.get_mut(name) {
                parameter.value = value.clone();
                parameter.tag = Provenance::User;
                "set by the caller".clone_into(&mut parameter.source);
            }
        }
        Ok(())
    }

    /// Starts reading.
    pub fn reader(&self) -> Reader<'_> {
        Reader { profile: self, used: RefCell::new(BTreeSet::new()) }
    }
}

/// Hands out parameters and remembers which were asked for.
pub struct Reader<'a> {
    profile: &'a Profile,
    used: RefCell<BTreeSet<&'a str>>,
}

impl<'a> Reader<'a> {
    fn bad(&self, name: &str, problem: impl Into<String>) -> SimError {
        SimError::BadParameter {
            profile: self.profile.name.clone(),
            name: name.to_owned(),
            problem: problem.into(),
        }
    }

    /// Tell whether the profile has it.
    pub fn has(&self, name: &str) -> bool {
        self.profile.parameters.contains_key(name)
    }

    fn get(&self, name: &str, unit: &str) -> Result<&'a Value, SimError> {
        let found = self.profile.parameters.get_key_value(name);
        let (name, parameter) = found.ok_or_else(|| self.bad(name, self.missing(name, unit)))?;
        if parameter.unit != unit {
            let problem = match (parameter.unit.as_str(), unit) {
                ("", _) => format!("has no unit, must be in `{unit}`: {}", example(unit)),
                (given, "") => format!("is in `{given}`, must have no unit"),
                (given, _) => format!("is in `{given}`, must be in `{unit}`"),
            };
            return Err(self.bad(name, problem));
        }
        self.used.borrow_mut().insert(name);
        Ok(&parameter.value)
    }

    /// Advice about a parameter that is not there: nearest name, form, a complete example.
    fn missing(&self, name: &str, unit: &str) -> String {
        let used = self.used.borrow();
        let others = self.profile.parameters.keys().map(String::as_str);
        let near = did_you_mean(name, others.filter(|other| !used.contains(other)));
        let near = near.replace("did you mean", "is it what is called").replace("?)", " here?)");
        let whole = Profile::names()
            .find(|known| Profile::built_in(known).is_ok_and(|p| p.kind == self.profile.kind));
        let hint = whole.map_or_else(String::new, |known| {
            format!("; `iolab sim profiles {known}` shows a whole {}", self.profile.kind)
        });
        let form = if unit.is_empty() { String::new() } else { format!(": {}", example(unit)) };
        format!("is missing{near}{form}{hint}")
    }

    /// A number within a range.
    pub fn number(&self, name: &str, unit: &str, range: (f64, f64)) -> Result<f64, SimError> {
        let Value::Number(value) = *self.get(name, unit)? else {
            return Err(self.bad(name, "must be a number"));
        };
        if !(range.0..=range.1).contains(&value) {
            return Err(SimError::OutOfRange {
                name: format!("{}: {name}", self.profile.name),
                value,
                unit: unit.to_owned(),
                min: range.0,
                max: range.1,
            });
        }
        Ok(value)
    }

    /// A whole number within a range.
    pub fn count(&self, name: &str, unit: &str, range: (u64, u64)) -> Result<u64, SimError> {
        let value = self.number(name, unit, (range.0 as f64, range.1 as f64))?;
        if value.fract() != 0.0 {
            return Err(self.bad(name, format!("= {value} must be a whole number")));
        }
        Ok(value as u64)
    }

    /// A duration, given in `ms`, `us` or `ns`; whole nanoseconds.
    pub fn duration(&self, name: &str, unit: &str) -> Result<iolab_model::Ns, SimError> {
        let scale = match unit {
            "ms" => 1e6,
            "us" => 1e3,
            "ns" => 1.0,
            _ => return Err(self.bad(name, "durations are in ms, us or ns")),
        };
        let value = self.number(name, unit, (0.0, 1e12 / scale * 1e3))?;
        Ok(iolab_model::Ns((value * scale).round() as u64))
    }

    /// true or false.
    pub fn switch(&self, name: &str) -> Result<bool, SimError> {
        match self.get(name, "")? {
            Value::Switch(value) => Ok(*value),
            _ => Err(self.bad(name, "must be true or false")),
        }
    }

    /// One of the given names.
    pub fn choice(&self, name: &str, known: &[&'static str]) -> Result<&'static str, SimError> {
        let Value::Text(text) = self.get(name, "")? else {
            return Err(self.bad(name, "must be a name in quotes"));
        };
        known.iter().copied().find(|&k| k == text).ok_or_else(|| SimError::UnknownName {
            kind: "value of a parameter",
            name: text.clone(),
            known: known.iter().map(|&k| k.to_owned()).collect(),
        })
    }

    /// Rows of numbers, each of `width` columns.
    pub fn table(&self, name: &str, unit: &str, width: usize) -> Result<Vec<Vec<f64>>, SimError> {
        let Value::Table(rows) = self.get(name, unit)? else {
            return Err(self.bad(name, "must be a list of rows"));
        };
        match rows.iter().position(|row| row.len() != width) {
            Some(index) => {
                Err(self.bad(name, format!("row {} must have {width} numbers", index + 1)))
            }
            None => Ok(rows.clone()),
        }
    }

    /// A list of numbers.
    pub fn list(&self, name: &str, unit: &str) -> Result<Vec<f64>, SimError> {
        match self.get(name, unit)? {
            Value::List(values) => Ok(values.clone()),
            _ => Err(self.bad(name, "must be a list of numbers")),
        }
    }

    /// Ends reading: a parameter that nobody asked for is an error.
    pub fn finish(self) -> Result<(), SimError> {
        let used = self.used.into_inner();
        match self.profile.parameters.keys().find(|name| !used.contains(name.as_str())) {
            None => Ok(()),
            Some(name) => Err(SimError::UnknownName {
                kind: "parameter",
                name: name.clone(),
                known: used.into_iter().map(str::to_owned).collect(),
            }),
        }
    }
}

/// Fault of a TOML text, with its place: line, column and section, all in one line.
pub(crate) fn syntax_error(subject: &str, text: &str, error: &toml::de::Error) -> SimError {
    let place = error.span().map_or_else(String::new, |span| {
        let before = text.get(..span.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
        // A complaint about a section as a whole points at its header.
        let header = text.lines().take(line).filter_map(header).last();
        let section = header.map_or_else(String::new, |name| format!(", in [{name}]"));
        format!(", line {line}, column {column}{section}")
    });
    let message = error.message().trim_end().replace('\n', "; ");
    let message = as_list(&message).unwrap_or(message);
    SimError::Syntax { subject: format!("{subject}{place}"), problem: with_nearest(&message) }
}

/// A text where a list belongs, in words of a file.
fn as_list(message: &str) -> Option<String> {
    let text =
        message.strip_prefix("invalid type: string ")?.strip_suffix(", expected a sequence")?;
    Some(format!("{text} is a text where a list belongs: write a list, as in [{text}]"))
}

/// The name in a line that opens a section; rows of a list begin with a bracket, too.
fn header(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix('[')?.split(']').next()?.trim_start_matches('[').trim();
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '"')
        && name.chars().all(|c| c.is_alphanumeric() || "_-.\"".contains(c));
    is_name.then_some(name)
}

fn example(unit: &str) -> String {
    format!("write {{ value = ..., unit = \"{unit}\" }}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        name = "x"
        kind = "fixed"
        title = "test"
        [parameters.latency]
        value = 2.5
        unit = "us"
        tag = "assume"
        source = "test"
    "#;

    #[test]
    fn numbers_come_with_their_unit_or_not_at_all() {
        let profile = Profile::parse("x.toml", TEXT).unwrap();
        assert_eq!(profile.reader().duration("latency", "us").unwrap(), iolab_model::Ns(2_500));
        let error = profile.reader().duration("latency", "ms").unwrap_err();
        assert_eq!(error.to_string(), "profile x: parameter latency: is in `us`, must be in `ms`");
    }

    #[test]
    fn every_built_in_profile_is_named_like_its_file_and_says_where_numbers_come_from() {
        for name in Profile::names() {
            let profile = Profile::built_in(name).unwrap();
            assert_eq!(profile.name, name);
            for (parameter, row) in &profile.parameters {
                assert!(row.source.len() > 3, "{name}: {parameter} has no source");
            }
        }
    }

    #[test]
    fn what_nobody_asked_for_is_an_error() {
        let profile = Profile::parse("x.toml", TEXT).unwrap();
        let error = profile.reader().finish().unwrap_err();
        assert!(error.to_string().contains("unknown parameter `latency`"), "{error}");
    }
}

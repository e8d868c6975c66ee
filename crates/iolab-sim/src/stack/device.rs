//! The device of a stack: a built-in profile, one like it with changes, or one of its own.
//!
//! Each number of a device keeps its unit, and says where it comes from or counts as the user's.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::api::layer::Layer;
use crate::device::DeviceKind;
use crate::device::busy::Busy;
use crate::error::SimError;
use crate::profile::{Parameter, Profile, Provenance, Value};

/// Source of what the file does not explain.
const BY_USER: &str = "set by the stack file";

/// A device: exactly one of `profile`, `like` and `model` is named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeviceSpec {
    /// A built-in profile; `parameters` replace values that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// A built-in profile to start from; `parameters` may also add, `without` takes away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// A kind of device, described by `parameters` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Name of a device of one's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// One line for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The profile of the device inside, for a controller or a guest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner: Option<String>,
    /// Parameters of `like` that the device does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Values, alone or with unit, tag and source.
    pub parameters: BTreeMap<String, Given>,
    /// Commands in flight from which the device answers that it is busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuse_above: Option<u32>,
}

/// A parameter as a stack file gives it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Given {
    /// A value alone, in the unit that the profile has.
    Plain(Value),
    /// A value with what is known about it.
    Described(Described),
}

/// A value with what is known about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Described {
    /// Value.
    pub value: Value,
    /// Unit; absent: the profile's, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Source of the value; absent: the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Provenance>,
    /// The source in words; needed with any tag but `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GivenVisitor)
    }
}

/// Tells values from tables by their form, so that a mistake in a table is named as such.
struct GivenVisitor;

impl<'de> Visitor<'de> for GivenVisitor {
    type Value = Given;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value, or a table with value, unit, tag and source")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Given, E> {
        Ok(Given::Plain(Value::Switch(value)))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Given, E> {
        Ok(Given::Plain(Value::Number(value as f64)))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Given, E> {
        Ok(Given::Plain(Value::Number(value as f64)))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Given, E> {
        Ok(Given::Plain(Value::Number(value)))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Given, E> {
        Ok(Given::Plain(Value::Text(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Given, A::Error> {
        let value = Value::deserialize(SeqAccessDeserializer::new(items));
        value.map(Given::Plain).map_err(|_| {
            de::Error::custom("a list must hold numbers, or rows of numbers, and nothing else")
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, items: A) -> Result<Given, A::Error> {
        Described::deserialize(MapAccessDeserializer::new(items)).map(Given::Described)
    }
}

impl DeviceSpec {
    /// A device of a built-in profile, as it is.
    pub fn of_profile(name: &str) -> Self {
        Self { profile: Some(name.to_owned()), ..Self::default() }
    }

    /// The whole description.
    pub fn resolve(&self) -> Result<Profile, SimError> {
        let mut profile = match (&self.profile, &self.like, &self.model) {
            (Some(name), None, None) => return self.replaced(Profile::built_in(name)?),
            (None, Some(name), None) => self.like(Profile::built_in(name)?)?,
            (None, None, Some(model)) => self.own(model)?,
            _ => {
                return Err(wrong(
                    "[device]",
                    "names not exactly one of `profile`, `like` and `model`",
                    "take `profile = NAME` as it is, start from it with `like = NAME`, or describe \
                     another with `model = KIND` and all parameters",
                ));
            }
        };
        if let Some(name) = &self.name {
            profile.name.clone_from(name);
        }
        if let Some(title) = &self.title {
            profile.title.clone_from(title);
        }
        if self.inner.is_some() {
            profile.inner.clone_from(&self.inner);
        }
        self.put_into(&mut profile)?;
        Ok(profile)
    }

    /// The layer, busy from `refuse_above` commands on.
    pub(super) fn limited(&self, layer: Box<dyn Layer>) -> Result<Box<dyn Layer>, SimError> {
        let Some(limit) = self.refuse_above else { return Ok(layer) };
        let depth = layer.info().depth;
        if !(1..=depth).contains(&limit) {
            return Err(SimError::OutOfRange {
                name: "device: refuse_above".into(),
                value: f64::from(limit),
                unit: "commands".into(),
                min: 1.0,
                max: f64::from(depth),
            });
        }
        Ok(Box::new(Busy::new(layer, limit)))
    }

    /// Switches off what a probe must not meet: read cache, answers that it is busy, and flash
    /// larger than needed (its times do not depend on the size, its tables do).
    pub(super) fn prepare_for_probing(&mut self) -> Result<(), SimError> {
        const FLASH_BYTES: f64 = 32_768_000_000.0;
        self.refuse_above = None;
        let profile = self.resolve()?;
        let mut set = |name: &str, value: f64| {
            let unit = profile.parameters[name].unit.clone();
            let described = Described {
                value: Value::Number(value),
                unit: Some(unit),
                tag: None,
                source: None,
            };
            self.parameters.insert(name.to_owned(), Given::Described(described));
        };
        if profile.parameters.contains_key("read_segments") {
            set("read_segments", 0.0);
        }
        let capacity = profile.parameters.get("logical_capacity").map(|p| p.value.clone());
        if matches!(capacity, Some(Value::Number(bytes)) if bytes > FLASH_BYTES) {
            set("logical_capacity", FLASH_BYTES);
        }
        Ok(())
    }

    fn replaced(&self, mut profile: Profile) -> Result<Profile, SimError> {
        let others = [
            ("name", self.name.is_some()),
            ("title", self.title.is_some()),
            ("inner", self.inner.is_some()),
            ("without", !self.without.is_empty()),
        ];
        if let Some((key, _)) = others.into_iter().find(|&(_, is_given)| is_given) {
            return Err(wrong(
                "[device]",
                format!("`{key}` changes more than values of a profile"),
                "write `like = ...` in place of `profile = ...`",
            ));
        }
        if let Some(name) = self.parameters.keys().find(|n| !profile.parameters.contains_key(*n)) {
            return Err(SimError::UnknownName {
                kind: "parameter",
                name: name.clone(),
                known: profile.parameters.into_keys().collect(),
            });
        }
        self.put_into(&mut profile)?;
        Ok(profile)
    }

    fn like(&self, mut profile: Profile) -> Result<Profile, SimError> {
        for name in &self.without {
            if profile.parameters.remove(name).is_none() {
                return Err(SimError::UnknownName {
                    kind: "parameter in `without`",
                    name: name.clone(),
                    known: profile.parameters.into_keys().collect(),
                });
            }
        }
        profile.name = format!("like-{}", profile.name);
        profile.title = format!("Like: {}", profile.title);
        Ok(profile)
    }

    fn own(&self, model: &str) -> Result<Profile, SimError> {
        let kind: DeviceKind = model.parse().map_err(|_| SimError::UnknownName {
            kind: "device model",
            name: model.to_owned(),
            known: DeviceKind::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
        })?;
        if !self.without.is_empty() {
            let remedy = "leave it out: a device of its own has what `parameters` give";
            return Err(wrong("[device]", "`without` takes nothing away from a `model`", remedy));
        }
        Ok(Profile {
            name: format!("own-{}", kind.name()),
            kind: kind.name().to_owned(),
            title: format!("A {} of the stack file", kind.name()),
            notes: String::new(),
            parameters: BTreeMap::new(),
            inner: None,
            software: None,
        })
    }

    fn put_into(&self, profile: &mut Profile) -> Result<(), SimError> {
        for (name, given) in &self.parameters {
            let before = profile.parameters.get(name).map(|known| known.unit.as_str());
            let parameter = given.parameter(before.unwrap_or_default());
            let parameter = parameter.map_err(|problem| SimError::BadParameter {
                profile: profile.name.clone(),
                name: name.clone(),
                problem: problem.to_owned(),
            })?;
            profile.parameters.insert(name.clone(), parameter);
        }
        Ok(())
    }
}

impl Given {
    /// The parameter; `unit` is that of the value replaced.
    fn parameter(&self, unit: &str) -> Result<Parameter, &'static str> {
        let described = match self {
            Self::Plain(value) => {
                Described { value: value.clone(), unit: None, tag: None, source: None }
            }
            Self::Described(described) => described.clone(),
        };
        let Described { value, unit: given, tag, source } = described;
        let has_source = source.as_ref().is_some_and(|text| !text.trim().is_empty());
        let tag = match (tag, has_source) {
            (Some(Provenance::User) | None, false) => Provenance::User,
            (Some(tag), true) => tag,
            (Some(_), false) => return Err("has a tag, but no source; name the source in words"),
            (None, true) => {
                return Err("has a source, but no tag; say whether it is code, doc, meas, fit, \
                            assume or user");
            }
        };
        let source = if has_source { source.unwrap_or_default() } else { BY_USER.to_owned() };
        Ok(Parameter { value, unit: given.unwrap_or_else(|| unit.to_owned()), tag, source })
    }
}

fn wrong(subject: &str, problem: impl Into<String>, remedy: &str) -> SimError {
    SimError::Inconsistent {
        subject: subject.to_owned(),
        problem: problem.into(),
        remedy: remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests;

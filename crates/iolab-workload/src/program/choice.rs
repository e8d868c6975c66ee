//! File and key that a step works on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::is_default;
use super::pick::Pick;

iolab_model::registry! {
    /// Rule by which a file is chosen.
    pub enum FileBy as "choice of a file" {
        /// Any that exists, each as likely.
        Existing = "existing",
        /// Any that does not exist; the step makes it.
        Absent = "absent",
        /// The next that exists, in order of its number; all workers share where that is.
        Next = "next",
        /// The next that does not exist, in order of its number; the step makes it.
        NextAbsent = "next_absent",
        /// The next that exists of those of this worker: its ordinal, and every so many further.
        Own = "own",
        /// By a distribution over the numbers of the set; what does not exist, its next neighbour.
        Pick = "pick",
        /// By an order or a distribution over the numbers of the set, several transfers on each
        /// file (`stay`); a file whose course is used up is left out.
        Served = "served",
        /// The file that is, or was last, open in a slot.
        Slot = "slot",
        /// The file of the last run of an earlier step.
        Same = "same",
        /// The file of a local variable of a composite.
        Local = "local",
    }
}

/// Choice of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileChoice {
    /// Rule of the choice.
    pub by: FileBy,
    /// Set of files (existing, absent, next, `next_absent`, own, pick, served); of which the next
    /// one is taken where nothing was ever open in the slot (slot).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The distribution (pick, served).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick: Option<Pick>,
    /// The slot (slot).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// Id of the earlier step (same).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Name of the local variable (local).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// Transfers on a file before the next one; 0: until it is used up (served).
    #[serde(default, skip_serializing_if = "is_default")]
    pub stay: u64,
    /// Only files of this worker: its ordinal, and every so many further (served).
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_own: bool,
    /// Reaction where no file is left to choose.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when_none: WhenNone,
}

/// Reaction where there is nothing to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenNone {
    /// The worker fails and says so.
    #[default]
    Fail,
    /// The step is left out.
    Skip,
    /// The worker has no more to do: it ends as at its limit.
    End,
    /// Waits until another worker leaves one.
    Wait,
}

impl FileBy {
    /// Tell whether what is chosen does not exist.
    pub fn is_absent(self) -> bool {
        matches!(self, Self::Absent | Self::NextAbsent)
    }
}

impl FileChoice {
    /// Fields that are missing or mean nothing here.
    pub(super) fn problem(&self) -> Option<(String, &'static str)> {
        let of_a_set = matches!(
            self.by,
            FileBy::Existing
                | FileBy::Absent
                | FileBy::Next
                | FileBy::NextAbsent
                | FileBy::Own
                | FileBy::Pick
                | FileBy::Served
        );
        let is_served = self.by == FileBy::Served;
        if !is_served && (self.stay > 0 || self.is_own) {
            let problem = format!("a file by {} with `stay` or `is_own`", self.by.name());
            return Some((problem, "leave it out, or choose by = \"served\""));
        }
        let fields = [
            (
                "set",
                self.set.is_some(),
                of_a_set || (self.by == FileBy::Slot && self.set.is_some()),
            ),
            ("pick", self.pick.is_some(), self.by == FileBy::Pick || is_served),
            ("slot", self.slot.is_some(), self.by == FileBy::Slot),
            ("step", self.step.is_some(), self.by == FileBy::Same),
            ("local", self.local.is_some(), self.by == FileBy::Local),
        ];
        field_problem("file", self.by.name(), &fields).or_else(|| {
            let pick = self.pick.as_ref()?;
            if pick.is_of_keys() {
                return Some(("an order of keys for files".into(), "use zipf"));
            }
            pick.problem()
        })
    }
}

iolab_model::registry! {
    /// Rule by which a key is chosen.
    pub enum KeyBy as "choice of a key" {
        /// By an order or a distribution over the acknowledged keys.
        Pick = "pick",
        /// One that no worker has used: the next number.
        New = "new",
        /// The key of the last run of an earlier step.
        Same = "same",
        /// The key of a local variable of a composite.
        Local = "local",
    }
}

/// Choice of a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyChoice {
    /// Rule of the choice.
    pub by: KeyBy,
    /// Key space (pick, new).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// The order or distribution (pick).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick: Option<Pick>,
    /// Id of the earlier step (same).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Name of the local variable (local).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
}

impl KeyChoice {
    /// Fields that are missing or mean nothing here.
    pub(super) fn problem(&self) -> Option<(String, &'static str)> {
        let of_a_space = matches!(self.by, KeyBy::Pick | KeyBy::New);
        let fields = [
            ("space", self.space.is_some(), of_a_space),
            ("pick", self.pick.is_some(), self.by == KeyBy::Pick),
            ("step", self.step.is_some(), self.by == KeyBy::Same),
            ("local", self.local.is_some(), self.by == KeyBy::Local),
        ];
        let inner = || self.pick.as_ref().and_then(Pick::problem);
        field_problem("key", self.by.name(), &fields).or_else(inner)
    }
}

/// The first field that is there and means nothing, or is missing.
fn field_problem(
    what: &str,
    by: &str,
    fields: &[(&str, bool, bool)],
) -> Option<(String, &'static str)> {
    fields.iter().find_map(|(name, is_there, is_asked)| match (is_there, is_asked) {
        (true, false) => {
            Some((format!("a {what} by {by} with `{name}`"), "leave it out, or choose otherwise"))
        }
        (false, true) => Some((format!("a {what} by {by} without `{name}`"), "name it")),
        _ => None,
    })
}

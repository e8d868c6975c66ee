//! Place of a transfer in a file.

use iolab_model::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::course::Course;
use super::pick::Pick;

/// Begin of a transfer in a file: a place that is picked among those of a region, or one relative
/// to an earlier step's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Choice among the places of the region; not beside `of`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick: Option<Pick>,
    /// Distance of two places; absent: the largest size of the step's transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_bytes: Option<Bytes>,
    /// Begin of the region.
    #[serde(default, skip_serializing_if = "super::node::is_default")]
    pub from_bytes: Bytes,
    /// Length of the region; absent: to the end of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_bytes: Option<Bytes>,
    /// Distance from one worker's region to the next one's.
    #[serde(default, skip_serializing_if = "super::node::is_default")]
    pub worker_step_bytes: Bytes,
    /// Order of the places of a file that is chosen by `served`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// Sharing of the order of places.
    #[serde(default, skip_serializing_if = "super::node::is_default")]
    pub cursor: Cursor,
    /// The place of the last transfer of this step (its id).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Distance behind the place of `of`.
    #[serde(default, skip_serializing_if = "super::node::is_default")]
    pub plus_bytes: i64,
}

/// Sharing of the order of places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cursor {
    /// Each worker goes its own way.
    #[default]
    Worker,
    /// All workers of the phase take from one order.
    Shared,
}

impl Place {
    /// Contradiction, and advice.
    pub(super) fn problem(&self) -> Option<(String, &'static str)> {
        if self.of.is_some() && self.pick.is_some() {
            let problem = "both a pick and the place of another step".to_owned();
            return Some((problem, "name one of `pick` and `of`"));
        }
        if self.of.is_none() && self.plus_bytes != 0 {
            return Some(("`plus` without `of`".into(), "name the step that it is relative to"));
        }
        if self.unit_bytes == Some(Bytes(0)) || self.within_bytes == Some(Bytes(0)) {
            return Some(("a unit or a region of 0 bytes".into(), "leave it out, or use more"));
        }
        if self.course.is_some() && (self.of.is_some() || self.cursor == Cursor::Shared) {
            let problem = "a course beside `of` or a shared cursor".to_owned();
            return Some((problem, "leave one of them out"));
        }
        if let Some(problem) = self.course.as_ref().and_then(Course::problem) {
            return Some(problem);
        }
        if self.pick.as_ref().is_some_and(Pick::is_of_keys) {
            return Some(("an order of keys for places in a file".into(), "use zipf"));
        }
        self.pick.as_ref().and_then(Pick::problem)
    }
}

//! A program with its pace and its limits.

use iolab_model::{Bytes, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::deed::Group;
use super::node::{Node, is_default};
use super::recorded::Recorded;

/// Work of each worker of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Done once before the timed region: files that stay open are opened here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Node>,
    /// Done over and over inside the timed region: one time through is a *pass*.
    #[serde(default)]
    pub steps: Vec<Node>,
    /// Operations come from a recorded stream; each is done as the step that does the same says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// Done once after the timed region.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Node>,
    /// Times at which passes begin.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pace: Pace,
    /// Its passes stay in proportion to those of the other tenants of a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// Name of another tenant of the phase: its workers begin when all of that one's have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins_after: Option<String>,
    /// Name of a barrier: its workers begin when all others that come there have come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins_at: Option<String>,
    /// Name of an earlier phase: random numbers are those of the tenant of this name there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draws_of: Option<String>,
    /// Condition that ends a worker: at whichever comes first; none: after one pass.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limit: Limits,
}

/// Times at which passes begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Pace {
    /// Begin when the one before has ended.
    #[default]
    Closed,
    /// At fixed intervals; who is late begins at once.
    Rate {
        /// Of each worker.
        passes_per_s: f64,
    },
    /// As soon as a rate allows for the bytes of those before; who is late begins at once.
    Bytes {
        /// Of each worker.
        bytes_per_s: f64,
    },
    /// At instants of a Poisson process; who is late begins at once.
    Poisson {
        /// Of each worker, on average.
        passes_per_s: f64,
    },
    /// Reads and writes, each at a rate of its own; who is late begins at once. The one that is
    /// drawn waits, unless the other one is due.
    Directions {
        /// Reads of each worker; 0: any number.
        reads_per_s: f64,
        /// Writes of each worker; 0: any number.
        writes_per_s: f64,
        /// The rates are bytes, not operations.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_in_bytes: bool,
    },
    /// Number of passes one after the other, then a pause.
    Bursts {
        /// Number of passes.
        passes: u64,
        /// From the end of the last to the beginning of the next.
        pause_ns: Ns,
    },
    /// Operations of a recorded stream begin at their recorded times, or later.
    Recorded {
        /// So many times as fast as it was recorded.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        speed: f64,
    },
}

fn one() -> f64 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(speed: &f64) -> bool {
    (*speed - 1.0).abs() < f64::EPSILON
}

/// A proportion between tenants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Name of the flow; tenants of one phase that name the same belong together.
    pub name: String,
    /// Passes of all workers of this tenant, relative to the others.
    pub weight: u64,
}

/// Condition that ends a worker. Each counts for itself; whichever comes first decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// After so many passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u64>,
    /// After so many operations; a pass is not finished for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<u64>,
    /// After so many bytes, read and written together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<Bytes>,
    /// After so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<Ns>,
    /// After so many operations of one id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<CountOf>,
}

/// Number of operations of one id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountOf {
    /// The id.
    pub id: String,
    /// Number of operations.
    pub ops: u64,
}

impl Limits {
    /// Tell whether nothing is limited: one pass then.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Program {
    /// All its nodes, outer ones first, each with its path below the program.
    pub(super) fn nodes(&self) -> Vec<(String, &Node)> {
        let mut all = Vec::new();
        for (name, list) in
            [("before", &self.before), ("steps", &self.steps), ("after", &self.after)]
        {
            walk(name, list, &mut all);
        }
        all
    }

    /// All its nodes, outer ones first.
    pub fn all_nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes().into_iter().map(|(_, node)| node)
    }

    /// Tell whether some step of it works on a set of files.
    pub fn uses_set(&self, name: &str) -> bool {
        super::stage::sets_of(self).any(|used| used == name)
    }

    /// Tell whether its workers come to a barrier.
    pub(super) fn comes_to(&self, barrier: &str) -> bool {
        self.barriers().any(|name| name == barrier)
    }

    /// Names of the barriers that its workers come to.
    pub(super) fn barriers(&self) -> impl Iterator<Item = &str> {
        self.step_barriers().chain(self.begins_at.as_deref())
    }

    /// Names of the barriers that its steps come to.
    pub(super) fn step_barriers(&self) -> impl Iterator<Item = &str> {
        self.nodes().into_iter().filter_map(|(_, node)| node.barrier.as_deref())
    }

    /// Tell whether it ever reads data, or writes them (`is_write`).
    pub fn moves(&self, is_write: bool) -> bool {
        self.nodes().iter().any(|(_, node)| match node.does.group() {
            Group::Transfer(writes) => writes == is_write,
            Group::KeyValue(reads, writes) => {
                if is_write {
                    writes
                } else {
                    reads
                }
            }
            _ => false,
        })
    }

    /// Tell whether some step of it changes files.
    pub fn changes_files(&self) -> bool {
        self.all_nodes().any(|node| node.does.changes_files())
    }

    /// True if operations have a meant beginning.
    pub(super) fn is_paced(&self) -> bool {
        self.rate().is_some()
            || matches!(self.pace, Pace::Recorded { .. } | Pace::Directions { .. })
    }

    /// Passes or bytes per second of each worker, if they have a rate.
    pub(super) fn rate(&self) -> Option<f64> {
        match self.pace {
            Pace::Rate { passes_per_s } | Pace::Poisson { passes_per_s } => Some(passes_per_s),
            Pace::Bytes { bytes_per_s } => Some(bytes_per_s),
            Pace::Closed
            | Pace::Bursts { .. }
            | Pace::Directions { .. }
            | Pace::Recorded { .. } => None,
        }
    }

    /// Bytes of the largest transfer.
    pub fn buffer_bytes(&self) -> Bytes {
        let sizes = self.nodes().into_iter().map(|(_, node)| node.buffer_bytes());
        sizes.max().unwrap_or_default().max(Bytes(512))
    }
}

fn walk<'a>(path: &str, list: &'a [Node], all: &mut Vec<(String, &'a Node)>) {
    for (index, node) in list.iter().enumerate() {
        let here = format!("{path}[{index}]");
        all.push((here.clone(), node));
        walk(&format!("{here}.steps"), &node.steps, all);
    }
}

//! Expectations of the author of a workload file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Shares of operations, which tests count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Share of each operation, by its id, relative to the others that are named.
    #[serde(default)]
    pub operations: BTreeMap<String, f64>,
    /// Share of each system call in the timed region and around it, relative to the others that are
    /// named.
    #[serde(default)]
    pub calls: BTreeMap<String, f64>,
    /// Greatest difference of a share that is no surprise.
    #[serde(default = "tolerance")]
    pub tolerance: f64,
}

fn tolerance() -> f64 {
    0.02
}

impl Expect {
    /// The first share that differs from what was expected, in words.
    pub fn surprise(
        expected: &BTreeMap<String, f64>,
        counted: &BTreeMap<String, u64>,
        tolerance: f64,
    ) -> Option<String> {
        let weight: f64 = expected.values().sum();
        let count = |name: &String| counted.get(name).copied().unwrap_or(0) as f64;
        let sum: f64 = expected.keys().map(count).sum();
        if sum == 0.0 {
            return Some("nothing of what was expected occurred".into());
        }
        expected.iter().find_map(|(name, share)| {
            let (share, found) = (share / weight, count(name) / sum);
            let is_surprise = (found - share).abs() > tolerance;
            is_surprise.then(|| format!("{name}: a share of {found:.4}, not {share:.4}"))
        })
    }
}

//! Size of a script whose composites stand written out, before anything is written out.
//!
//! A composite of ten calls of a composite of ten calls ... is short, and as long as a library when
//! it is expanded. It is counted once per definition, so that counting takes no longer than
//! reading.

use std::collections::BTreeMap;

use super::lex::ScriptFault;
use super::script::Script;
use super::syntax::Flowop;

/// Flow operations of all threads at most, with their composites written out.
const EXPANDED_MAX: u64 = 100_000;
/// Deepest composite in composites.
pub const DEPTH_MAX: usize = 16;

/// Refuses threads that are too long when they stand written out, or a composite in itself.
///
/// # Errors
///
/// Names the call at which it happens.
pub fn check<'a>(
    script: &Script,
    threads: impl Iterator<Item = &'a [Flowop]>,
) -> Result<(), ScriptFault> {
    let mut counter = Counter { script, known: BTreeMap::new(), around: Vec::new() };
    let mut total = 0_u64;
    for flowops in threads {
        for flowop in flowops {
            total = total.saturating_add(counter.size(flowop)?);
            if total > EXPANDED_MAX {
                let what = format!(
                    "more than {EXPANDED_MAX} operations when composites are written out, from \
                     {} on",
                    flowop.kind
                );
                let remedy = "repeat with iters=N instead of writing calls one after the other";
                return Err(ScriptFault::new(flowop.given.spot, what, remedy));
            }
        }
    }
    Ok(())
}

struct Counter<'a> {
    script: &'a Script,
    /// Sizes of composites, by name.
    known: BTreeMap<&'a str, u64>,
    /// Composites around.
    around: Vec<&'a str>,
}

impl Counter<'_> {
    /// Operations of a call; one for what is no composite.
    fn size(&mut self, flowop: &Flowop) -> Result<u64, ScriptFault> {
        let found = self.script.composites.get_key_value(&flowop.kind);
        let Some((name, composite)) = found.filter(|_| flowop.row.is_none()) else { return Ok(1) };
        if let Some(size) = self.known.get(name.as_str()) {
            return Ok(*size);
        }
        if self.around.contains(&name.as_str()) || self.around.len() >= DEPTH_MAX {
            return Err(in_itself(flowop));
        }
        self.around.push(name);
        let mut size = 1_u64;
        for inner in &composite.flowops {
            size = size.saturating_add(self.size(inner)?);
        }
        self.around.pop();
        self.known.insert(name, size);
        Ok(size)
    }
}

/// Error of a composite in itself, or too deep in others.
pub fn in_itself(flowop: &Flowop) -> ScriptFault {
    let what = format!("the composite {} contains itself", flowop.kind);
    ScriptFault::new(flowop.given.spot, what, "write its operations one after the other")
}

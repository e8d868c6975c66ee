//! Names that people may type for an engine, a knob, a test, an option of mkfs and mount, or events
//! of a trace: `iolab-agent names`.
//!
//! The lists of these are the only ones. The front end keeps this text as a file and
//! makes its levels, factors, flags and help of it, so that it needs no agent to read a study;
//! `make docs` writes the file, and a test compares it with this program.

use iolab_model::op::Access;
use iolab_model::{Capabilities, Target};
use iolab_real::engine::{Engine, EngineVisitor};
use iolab_workload::operation::OperationKind;
use iolab_workload::preset::IozoneTest;
use serde::Serialize;

use crate::knob::{self, About};
use crate::protocol::{EventSet, KernelLayer};
use crate::testbed::{Entry, option_entries};

#[derive(Serialize)]
struct Names {
    engines: Vec<EngineEntry>,
    knobs: Vec<KnobEntry>,
    options: Vec<Entry>,
    tests: Vec<TestEntry>,
    trace_layers: Vec<EventsEntry>,
    trace_sets: Vec<EventsEntry>,
}

/// Events that a trace may have: a set of block events, or another layer of the kernel.
#[derive(Serialize)]
struct EventsEntry {
    name: &'static str,
    /// The word of users.
    typed: String,
    help: &'static str,
}

/// A test of `IOzone`: what it does, whatever it is called.
#[derive(Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "a table of independent properties")]
struct TestEntry {
    name: &'static str,
    kind: OperationKind,
    reads: bool,
    writes: bool,
    /// The way to the data; null: the study's.
    access: Option<Access>,
    /// True if it makes calls of its own, whatever engine is chosen.
    has_own_calls: bool,
    /// Records that one call moves at most.
    records_per_call: u64,
    /// True if it makes the file if there is none yet.
    creates: bool,
}

#[derive(Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "a table of independent abilities")]
struct EngineEntry {
    name: &'static str,
    is_asynchronous: bool,
    has_direct: bool,
    has_vectors: bool,
    has_flags: bool,
    has_lock: bool,
    /// Completions are polled for at the device.
    is_polled: bool,
    /// A thread of the kernel submits for each worker.
    has_submitter: bool,
    /// Files are mapped, or streams, unless a workload asks otherwise.
    default_access: Access,
    /// All that its target says of itself.
    abilities: Capabilities,
}

#[derive(Serialize)]
struct KnobEntry {
    name: &'static str,
    /// Another name for the same setting; a trial can ask for one of them.
    twin: Option<&'static str>,
    #[serde(flatten)]
    about: About,
}

/// Everything as JSON.
pub fn text() -> String {
    let engines = Engine::ALL.iter().map(|engine| {
        let can = abilities(*engine);
        EngineEntry {
            name: engine.name(),
            is_asynchronous: can.is_asynchronous,
            has_direct: can.has_direct && can.default_access == Access::Plain,
            has_vectors: can.has_vectors,
            has_flags: can.has_flags,
            has_lock: can.has_lock,
            is_polled: engine.is_polled(),
            has_submitter: engine.has_submitter(),
            default_access: can.default_access,
            abilities: can,
        }
    });
    let (engines, knobs) = (engines.collect(), knobs().collect());
    let tests = IozoneTest::ALL.iter().map(|test| test_entry(*test)).collect();
    let sets = EventSet::ALL.iter().map(|it| (it.name(), it.typed(), it.help()));
    let layers = KernelLayer::ALL.iter().map(|it| (it.name(), it.typed(), it.help()));
    let entry = |(name, typed, help)| EventsEntry { name, typed, help };
    let names = Names {
        engines,
        knobs,
        options: option_entries(),
        tests,
        trace_layers: layers.map(entry).collect(),
        trace_sets: sets.map(entry).collect(),
    };
    serde_json::to_string_pretty(&names).expect("names and texts can be written as JSON")
}

fn test_entry(test: IozoneTest) -> TestEntry {
    let nature = test.nature();
    TestEntry {
        name: test.name(),
        kind: nature.kind,
        reads: nature.reads,
        writes: nature.writes,
        access: nature.access,
        has_own_calls: test.has_own_calls(),
        records_per_call: test.records_per_call(),
        creates: test.creates(),
    }
}

/// Every knob that has a name of its own: the rows, and what a row for many stands for.
fn knobs() -> impl Iterator<Item = KnobEntry> {
    knob::ALL.iter().flat_map(|row| {
        let about = row.knob.about();
        if about.members.is_empty() {
            return vec![KnobEntry { name: row.name, twin: row.knob.twin(row.name), about }];
        }
        let member = |&(name, help): &(&'static str, &'static str)| KnobEntry {
            name,
            twin: row.knob.twin(name),
            about: About { help, ..row.knob.about() },
        };
        about.members.iter().map(member).collect()
    })
}

/// Abilities of an engine.
pub fn abilities(engine: Engine) -> Capabilities {
    engine.visit(Abilities)
}

struct Abilities;

impl EngineVisitor for Abilities {
    type Output = Capabilities;

    fn visit<T: Target + Sync>(self, target: &T) -> Capabilities {
        target.capabilities()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The simulated target has no engines, only their names.
    #[test]
    fn engines_have_the_same_files_in_simulation() {
        for engine in Engine::ALL {
            let (real, simulated) = (abilities(*engine), Access::of_engine(engine.name()));
            assert_eq!(real.default_access, simulated, "{}", engine.name());
        }
    }

    #[test]
    fn every_name_is_one_that_the_agent_takes() {
        let names: Vec<&str> = knobs().map(|entry| entry.name).collect();
        assert!(names.contains(&"bfq.slice_idle") && names.len() > knob::ALL.len());
        for name in names {
            assert!(knob::find(name).is_ok(), "{name}");
        }
    }

    /// A line of `--help` has no room for more, and two equal values are no comparison.
    #[test]
    fn every_knob_says_in_few_words_what_it_is() {
        for KnobEntry { name, twin, about } in knobs() {
            assert!((1..=64).contains(&about.help.len()), "{name}: {}", about.help);
            assert_ne!(about.example[0], about.example[1], "{name}");
            assert!(twin.is_none_or(|twin| knob::find(twin).is_ok()), "{name}: {twin:?}");
            let is_possible = |value: &String| {
                if about.choices.is_empty() {
                    value.parse::<i64>().is_ok()
                } else {
                    about.choices.contains(&value.as_str())
                }
            };
            assert!(about.example.iter().all(is_possible), "{name}: {:?}", about.example);
        }
    }
}

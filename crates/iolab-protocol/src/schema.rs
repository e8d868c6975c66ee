//! The schema of everything that crosses, as one JSON document.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::agent::{
    Checks, Closed, Doctor, ErrorBody, Greeted, Hello, Nothing, OpenedTestbed, Progress, Record,
    RecordSpec, Request, RestoreParams, Restored, ShutDown, TestbedSpec, TraceRecorded, TrialSpec,
    WatchSpec,
};

/// A method of the agent, with the names of its types.
#[derive(Debug, Serialize)]
pub struct Method {
    /// As in a request.
    pub name: &'static str,
    /// Type of its parameters.
    pub params: String,
    /// Type of its answer.
    pub answer: String,
    /// Description of the function.
    pub about: &'static str,
}

/// All types by name, and the methods that use them.
#[derive(Debug, Serialize)]
pub struct Schemas {
    /// Of the agent, in the order of a session.
    pub methods: Vec<Method>,
    /// JSON schemas by the names of the types (`$defs`).
    pub types: Map<String, Value>,
}

/// Declares the methods: name, parameters, answer, purpose.
macro_rules! methods {
    ($generator:ident, $( $name:literal: $params:ty => $answer:ty, $about:literal; )+) => {
        vec![ $( Method {
            name: $name,
            params: named::<$params>(&mut $generator),
            answer: named::<$answer>(&mut $generator),
            about: $about,
        }, )+ ]
    };
}

/// Names of the agent's methods.
pub const METHODS: &[&str] = &[
    "hello",
    "doctor",
    "open_testbed",
    "run_trial",
    "proceed",
    "close_testbed",
    "record_trace",
    "watch_trace",
    "restore",
    "interrupt",
    "shutdown",
];

/// A generator for what this program writes: a key that it always writes is required.
pub fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

/// Adds a type and all that it consists of; answers with its name.
pub fn named<T: JsonSchema>(generator: &mut SchemaGenerator) -> String {
    let _: Schema = generator.subschema_for::<T>();
    T::schema_name().into_owned()
}

/// Everything of the agent's protocol.
pub fn agent(mut generator: SchemaGenerator) -> Schemas {
    let methods = methods! { generator,
        "hello": Hello => Greeted,
            "Agrees on the protocol and names the run; first, or while no testbed is open.";
        "doctor": Doctor => Checks, "Tells what is possible on this machine.";
        "open_testbed": TestbedSpec => OpenedTestbed, "Prepares a testbed.";
        "run_trial": TrialSpec => Record, "Runs one trial.";
        "proceed": Nothing => Nothing, "Lets the trial that waits begin its next phase.";
        "close_testbed": Nothing => Closed, "Takes the testbed apart and restores.";
        "record_trace": RecordSpec => TraceRecorded,
            "Records block events of devices, outside of any testbed, until it is interrupted.";
        "watch_trace": WatchSpec => TraceRecorded,
            "Tells each second what devices do, outside of any testbed, until it is interrupted.";
        "restore": RestoreParams => Restored, "Undoes what earlier runs left.";
        "interrupt": Nothing => Nothing, "Ends the running request early.";
        "shutdown": Nothing => ShutDown, "Restores; the agent exits.";
    };
    named::<Request>(&mut generator);
    named::<Progress>(&mut generator);
    named::<ErrorBody>(&mut generator);
    Schemas { methods, types: generator.take_definitions(true) }
}

/// Everything as JSON: `iolab-agent schema`.
pub fn text() -> String {
    serde_json::to_string_pretty(&agent(generator())).expect("a schema has only text keys")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_methods_is_that_of_the_schema() {
        let schemas = agent(generator());
        let names: Vec<&str> = schemas.methods.iter().map(|method| method.name).collect();
        assert_eq!(names, METHODS);
        for method in &schemas.methods {
            assert!(schemas.types.contains_key(&method.params), "{method:?}");
            assert!(schemas.types.contains_key(&method.answer), "{method:?}");
        }
    }

    /// Python's types and the reference page consist of these texts.
    #[test]
    fn every_key_of_every_type_is_described() {
        let mut bare = Vec::new();
        for (name, schema) in &agent(generator()).types {
            let alternatives = schema.get("oneOf").and_then(Value::as_array);
            // The only key of an alternative is described with the alternative itself.
            let is_named_by_key =
                |part: &&Value| part["properties"].as_object().is_some_and(|keys| keys.len() == 1);
            let named = alternatives.into_iter().flatten().filter(|part| !is_named_by_key(part));
            let parts = named.chain([schema]);
            for properties in parts.filter_map(|part| part["properties"].as_object()) {
                for (key, property) in properties {
                    if property.get("description").is_none() && property.get("const").is_none() {
                        bare.push(format!("{name}.{key}"));
                    }
                }
            }
        }
        assert_eq!(bare, Vec::<String>::new());
    }

    #[test]
    fn a_key_that_may_be_left_out_is_not_required() {
        let types = agent(generator()).types;
        let required = types["PhaseRecord"]["required"].to_string();
        assert!(required.contains("\"elapsed_ns\"") && required.contains("\"own_read_bytes\""));
        assert!(!required.contains("\"marks\"") && !required.contains("\"parent_ns\""));
    }
}

//! Reading a workload file: what it need not say is added, then each part is read alone.

use std::path::Path;

use iolab_model::error::Error;
use iolab_model::nearest::with_nearest;
use iolab_workload::Workload;
use iolab_workload::program::{FileSet, KeySpace, Node, Program};
use iolab_workload::spec::{Phase, Tenant};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::expect::Expect;
use super::place::Places;
use super::{recording, tree};

/// Content of a workload file.
#[derive(Clone, Debug)]
pub struct WorkloadFile {
    /// The workload.
    pub workload: Workload,
    /// Expectations of its author, for tests.
    pub expect: Option<Expect>,
}

/// A problem in a workload file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject}, line {line}: {problem}")]
pub struct FileProblem {
    /// Path of the file.
    pub subject: String,
    /// Line in it.
    pub line: usize,
    /// Fault and advice.
    pub problem: String,
}

/// Reads a workload file; `subject` names it in messages.
///
/// # Errors
///
/// A text that is no TOML, no description of a workload, or contradicts itself; with its line.
pub fn read(subject: &str, text: &str) -> Result<WorkloadFile, FileProblem> {
    let (mut root, places) = tree::read(text).map_err(|(at, problem)| {
        let line = Places::new(text).line(at);
        FileProblem { subject: subject.to_owned(), line, problem }
    })?;
    let problem = |path: &str, problem: String| {
        let line = places.line_of(path, &problem);
        let problem = if path.is_empty() { problem } else { format!("{path}: {problem}") };
        FileProblem { subject: subject.to_owned(), line, problem }
    };
    let expect = root.remove("expect").map(typed::<Expect>).transpose();
    let expect = expect.map_err(|why| problem("expect", why))?;
    complete(&mut root, subject);
    check_parts(&root).map_err(|(path, why)| problem(&path, why))?;
    let workload = typed::<Workload>(Value::Object(root));
    let mut workload = workload.map_err(|why| problem("", why))?;
    refuse_logs(&workload).map_err(|(path, why)| problem(&path, why))?;
    let folder = Path::new(subject).parent().unwrap_or(Path::new(""));
    let taken = recording::take(&mut workload, folder);
    taken.map_err(|(path, why)| problem(&path, why))?;
    for tenant in workload.phases.iter_mut().flat_map(|phase| &mut phase.tenants) {
        if let Some(program) = &tenant.program {
            tenant.io_size_bytes = program.buffer_bytes();
        }
    }
    workload.check().map_err(|error| match &error {
        Error::BadWorkload { problem: what, remedy } => match what.split_once(": ") {
            Some((path, what)) if places.knows(path) => problem(path, format!("{what}; {remedy}")),
            _ => problem("", error.to_string()),
        },
        _ => problem("", error.to_string()),
    })?;
    Ok(WorkloadFile { workload, expect })
}

/// Refuses logs of single operations: a file that others wrote would choose where they are written.
fn refuse_logs(workload: &Workload) -> Result<(), (String, String)> {
    for (index, phase) in workload.phases.iter().enumerate() {
        let number = phase.tenants.iter().position(|tenant| tenant.manner.op_log.is_some());
        if let Some(number) = number {
            let path = format!("phases[{index}].tenants[{number}]");
            let why = "manner.op_log names a directory that is written to, which a workload file \
                must not choose; leave it out (`iolab iozone -Q` logs single operations)";
            return Err((path, why.to_owned()));
        }
    }
    Ok(())
}

/// A part of the description, or what is wrong with it.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| with_nearest(&error.to_string()))
}

/// Adds what a file need not say.
fn complete(root: &mut Map<String, Value>, subject: &str) {
    let stem = subject.rsplit('/').next().unwrap_or(subject);
    let stem = stem.strip_suffix(".toml").unwrap_or(stem).to_owned();
    let mut add = |key: &str, value: Value| {
        root.entry(key).or_insert(value);
    };
    add("version", json!(iolab_workload::spec::VERSION));
    add("name", json!(stem));
    add("engine", json!("psync"));
    add("seed", json!(1));
    let name = root["name"].clone();
    // A workload of one phase may name its tenants at once.
    if let Some(tenants) = root.remove("tenants") {
        let phase = json!({"name": name, "tenants": tenants});
        match root.get_mut("phases").and_then(Value::as_array_mut) {
            Some(phases) => phases.push(phase),
            None => {
                root.insert("phases".into(), json!([phase]));
            }
        }
    }
    let phases = root.get_mut("phases").and_then(Value::as_array_mut);
    let tenants = phases.into_iter().flatten().filter_map(|phase| phase.get_mut("tenants"));
    for tenant in tenants.filter_map(Value::as_array_mut).flatten() {
        complete_tenant(tenant);
    }
}

/// A tenant with a program says nothing of streams.
fn complete_tenant(tenant: &mut Value) {
    let Some(table) = tenant.as_object_mut().filter(|table| table.contains_key("program")) else {
        return;
    };
    let neutral = Tenant::of_program("main", 1, Program::default());
    if let Ok(Value::Object(neutral)) = serde_json::to_value(neutral) {
        for (key, value) in neutral {
            table.entry(key).or_insert(value);
        }
    }
}

/// First fault of the description, with its place: each part is read alone, inner ones first.
fn check_parts(root: &Map<String, Value>) -> Result<(), (String, String)> {
    each::<FileSet>(root.get("file_sets"), "file_sets")?;
    each::<KeySpace>(root.get("key_spaces"), "key_spaces")?;
    for (index, phase) in list(root.get("phases")).enumerate() {
        let path = format!("phases[{index}]");
        for (number, tenant) in list(phase.get("tenants")).enumerate() {
            let here = format!("{path}.tenants[{number}]");
            if let Some(program) = tenant.get("program") {
                check_program(program, &format!("{here}.program"))?;
            }
            alone::<Tenant>(tenant, &here, &["program"])?;
        }
        let empty = |phase: &Value| {
            let mut phase = phase.clone();
            if let Some(table) = phase.as_object_mut() {
                table.insert("tenants".into(), json!([]));
            }
            phase
        };
        alone::<Phase>(&empty(phase), &path, &[])?;
    }
    Ok(())
}

fn check_program(program: &Value, path: &str) -> Result<(), (String, String)> {
    for name in ["before", "steps", "after"] {
        check_nodes(program.get(name), &format!("{path}.{name}"))?;
    }
    let mut bare = program.clone();
    if let Some(table) = bare.as_object_mut() {
        for name in ["before", "after"] {
            table.remove(name);
        }
        if table.contains_key("steps") {
            table.insert("steps".into(), json!([]));
        }
    }
    alone::<Program>(&bare, path, &[])
}

fn check_nodes(nodes: Option<&Value>, path: &str) -> Result<(), (String, String)> {
    for (index, node) in list(nodes).enumerate() {
        let here = format!("{path}[{index}]");
        check_nodes(node.get("steps"), &format!("{here}.steps"))?;
        alone::<Node>(node, &here, &["steps"])?;
    }
    Ok(())
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn each<T: DeserializeOwned>(value: Option<&Value>, path: &str) -> Result<(), (String, String)> {
    for (index, one) in list(value).enumerate() {
        alone::<T>(one, &format!("{path}[{index}]"), &[])?;
    }
    Ok(())
}

/// Reads a part without some of its fields.
fn alone<T: DeserializeOwned>(
    value: &Value,
    path: &str,
    without: &[&str],
) -> Result<(), (String, String)> {
    let mut value = value.clone();
    if let Some(table) = value.as_object_mut() {
        for name in without {
            table.remove(*name);
        }
    }
    typed::<T>(value).map(drop).map_err(|why| (path.to_owned(), why))
}

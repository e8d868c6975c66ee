//! The request to record, outside of any study.

use std::path::Path;
use std::time::{Duration, Instant};

use iolab_trace::native::LAYERS_FACT;
use iolab_trace::source::Facts;

use super::device::{self, Traced};
use super::layers;
use super::order::{BUFFER_BYTES, Order};
use super::output;
use super::processes;
use super::recorder::Recorder;
use super::tracefs::Tracefs;
use crate::boundary::Boundary;
use crate::control::{Control, Urgency};
use crate::error::{Error, Result};
use crate::facts;
use crate::machine::Machine;
use crate::protocol::{
    EventSet, KernelLayer, Progress, RecordSpec, RecordingSoFar, TraceRecorded, Warning,
};

const BUFFER_BYTES_MIN: u64 = 64 << 10;
const BUFFER_BYTES_MAX: u64 = 256 << 20;
const DEVICES_MAX: usize = 32;
const WAIT: Duration = Duration::from_millis(250);

/// Recording: its program and its user.
pub struct Recording<'a> {
    /// The machine; its journal is open.
    pub machine: &'a mut Machine,
    /// Name of the run on this machine.
    pub run: &'a str,
    /// Folder of journals.
    pub state_dir: &'a Path,
    /// Permissions of root, if it works for another user.
    pub boundary: Option<&'a Boundary>,
}

/// Records until the front end interrupts, or the time is over.
pub fn record(
    how: Recording,
    spec: &RecordSpec,
    control: &mut dyn Control,
) -> Result<TraceRecorded> {
    let Recording { machine, run, state_dir, boundary } = how;
    let has_calls = spec.layers.contains(&KernelLayer::FileCalls) && !spec.pids.is_empty();
    let (devices, mut warnings) = if spec.devices.is_empty() && has_calls {
        (Vec::new(), Vec::new())
    } else {
        found(&spec.devices, boundary, state_dir)?
    };
    let bound_uid = check_processes(spec, boundary)?;
    warnings.extend(check_layers(&spec.layers)?);
    let buffer_bytes = buffer(spec.buffer_bytes)?;
    let output = output::open(&spec.output, boundary.map(Boundary::user))?;
    let mut facts = head_facts(machine, &devices, spec.events, buffer_bytes);
    if let Some(command) = &spec.command {
        facts.insert("command".to_owned(), command.clone());
    }
    add_layer_facts(&mut facts, &spec.layers, told_processes(&spec.pids));
    let order = Order {
        layers: spec.layers.clone(),
        pids: spec.pids.clone(),
        bound_uid,
        file_systems: layers::file_systems_on(&devices),
        backend: spec.backend,
        buffer_bytes,
        bytes_max: boundary.map(Boundary::bytes_max),
        ..Order::of_devices(devices.clone(), spec.events, facts)
    };
    let Some(mut recorder) = Recorder::start(machine, run, order, Some(output))? else {
        return Err(Error::protocol("a dry run records nothing"));
    };
    control.progress(progress(RecordingSoFar::default()));
    listen_until(&mut recorder, spec.time_limit_ns, control, |recorder, control| {
        if let Some(so_far) = recorder.listen() {
            control.progress(progress(so_far));
        }
    });
    let outcome = recorder.finish(machine)?;
    let devices = devices.into_iter().map(|device| device.name).collect();
    Ok(TraceRecorded { recorded: outcome, devices, warnings })
}

/// Listens until the front end interrupts, the time is over, or the recorder ends.
pub(super) fn listen_until(
    recorder: &mut Recorder,
    time_limit_ns: Option<u64>,
    control: &mut dyn Control,
    mut heed: impl FnMut(&mut Recorder, &mut dyn Control),
) {
    let limit = time_limit_ns.map(Duration::from_nanos);
    let started = Instant::now();
    while !recorder.has_ended() && control.urgency() == Urgency::Calm {
        let left = limit.map(|limit| limit.saturating_sub(started.elapsed()));
        if left == Some(Duration::ZERO) {
            break;
        }
        control.wait(&mut [recorder.words()], left.map_or(WAIT, |left| left.min(WAIT)));
        heed(recorder, control);
    }
}

/// The event that tells what was recorded so far.
fn progress(so_far: RecordingSoFar) -> Progress {
    Progress { phase: "record".to_owned(), recording: Some(so_far), ..Progress::default() }
}

pub(super) fn found(
    asked: &[String],
    boundary: Option<&Boundary>,
    state_dir: &Path,
) -> Result<(Vec<Traced>, Vec<Warning>)> {
    let (mut devices, mut warnings) = (Vec::<Traced>::new(), Vec::new());
    for asked in asked {
        let (device, warning) = device::find(asked, boundary)?;
        if let Some(boundary) = boundary {
            device::check(&device, boundary, state_dir)?;
        }
        warnings.extend(warning);
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    if devices.is_empty() || devices.len() > DEVICES_MAX {
        let what = format!("{} devices cannot be recorded at once", devices.len());
        return Err(Error::usage(what, format!("name 1 to {DEVICES_MAX}")));
    }
    Ok((devices, warnings))
}

/// The user whose processes alone may be recorded, if there is one.
fn check_processes(spec: &RecordSpec, boundary: Option<&Boundary>) -> Result<Option<u32>> {
    let bound = boundary.filter(|_| !spec.layers.is_empty());
    let bound = bound.filter(|bound| bound.check_all_processes().is_err());
    if let Some(bound) = bound.filter(|_| spec.pids.is_empty()) {
        bound.check_all_processes()?;
    }
    let uid = bound.map(|bound| bound.user().uid);
    processes::check(&spec.pids, uid)?;
    Ok(uid)
}

/// Layers that this kernel does not have are told; if it has none of them, nothing is recorded.
fn check_layers(asked: &[KernelLayer]) -> Result<Vec<Warning>> {
    match missing_layers(asked)? {
        (count, Some(warning)) if count == asked.len() => {
            Err(Error::usage(warning.message, warning.hint))
        }
        (_, warning) => Ok(warning.into_iter().collect()),
    }
}

/// Layers that this kernel does not have: how many, and the warning.
pub(super) fn missing_layers(asked: &[KernelLayer]) -> Result<(usize, Option<Warning>)> {
    if asked.is_empty() {
        return Ok((0, None));
    }
    let tracefs = Tracefs::open()?;
    let missing = asked.iter().filter(|layer| !layers::has(tracefs.root(), **layer));
    let names: Vec<String> = missing.map(|layer| layer.typed()).collect();
    if names.is_empty() {
        return Ok((0, None));
    }
    let what = format!("this kernel has no trace points of {}", names.join(", "));
    let hint = "its module may not be loaded (mount such a file system first), or the kernel is \
                older: read-ahead needs Linux 6.16";
    Ok((names.len(), Some(Warning::new("layer_missing", what, hint))))
}

/// Facts of the layers that are recorded, and of `processes`, whose events of them these are.
pub(super) fn add_layer_facts(facts: &mut Facts, layers: &[KernelLayer], processes: String) {
    if layers.is_empty() {
        return;
    }
    let names: Vec<String> = layers.iter().map(|layer| layer.typed()).collect();
    facts.insert(LAYERS_FACT.to_owned(), names.join(", "));
    facts.insert("processes".to_owned(), processes);
}

/// Processes, for a fact.
fn told_processes(pids: &[u32]) -> String {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    if pids.is_empty() { "all".to_owned() } else { pids.join(" ") }
}

pub(super) fn buffer(asked: Option<u64>) -> Result<u64> {
    let bytes = asked.unwrap_or(BUFFER_BYTES);
    if (BUFFER_BYTES_MIN..=BUFFER_BYTES_MAX).contains(&bytes) {
        return Ok(bytes);
    }
    Err(Error::usage(
        format!("{bytes} bytes are no size of a buffer"),
        "it has 64 KiB to 256 MiB for each CPU",
    ))
}

/// Facts that are known before anything is recorded.
pub(super) fn head_facts(
    machine: &Machine,
    devices: &[Traced],
    events: EventSet,
    buffer_bytes: u64,
) -> Facts {
    let mut told: Facts = facts::machine(machine).into_iter().collect();
    for device in devices {
        let Traced { name, major, minor, .. } = device;
        told.insert(format!("device {major},{minor}"), name.clone());
        told.extend(device.partitions());
        for (fact, value) in facts::device(machine, name) {
            told.insert(fact, value);
        }
    }
    let own = [
        ("recorder", format!("iolab {}", env!("CARGO_PKG_VERSION"))),
        ("backend", "tracefs instance, raw pages of each CPU".to_owned()),
        ("clock", "CLOCK_MONOTONIC".to_owned()),
        ("events", events.typed()),
        ("buffer bytes per CPU", buffer_bytes.to_string()),
    ];
    told.extend(own.map(|(name, value)| (name.to_owned(), value)));
    told
}

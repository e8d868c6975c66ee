//! A recording beside a trial: of the testbed's own devices, while it is measured.

use super::device::Traced;
use super::order::{BUFFER_BYTES, Order};
use super::output;
use super::record::head_facts;
use super::recorder::Recorder;
use crate::boundary::Boundary;
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::protocol::{RecordingResult, TrialSpec, Warning};

/// Request of a recording.
pub struct Asked<'a> {
    /// The trial.
    pub spec: &'a TrialSpec,
    /// Name of the run on this machine.
    pub run: &'a str,
    /// Class and devices of the testbed.
    pub testbed: (&'a str, &'a [String]),
    /// Permissions of root, if it works for another user.
    pub boundary: Option<&'a Boundary>,
}

/// Begins to record, if the trial asks for it; none in a dry run.
///
/// # Errors
///
/// The device is not for this user, or recording cannot begin.
pub fn begin(machine: &mut Machine, asked: &Asked) -> Result<Option<Recorder>> {
    let Asked { spec, run, testbed: (class, names), boundary } = asked;
    let Some(trace) = &spec.trace else { return Ok(None) };
    if names.is_empty() {
        return Err(Error::usage(
            "this testbed lies on no device whose events could be recorded",
            "leave the trace out, or use a loop or device testbed",
        ));
    }
    if machine.is_dry_run() {
        return Ok(None);
    }
    // A private loop device is the run's own; what a directory lies on is everybody's.
    if let Some(boundary) = boundary.filter(|_| *class != "B") {
        names.iter().try_for_each(|name| boundary.check_device(name))?;
    }
    let devices = names.iter().map(|name| Traced::of_name(name)).collect::<Result<Vec<_>>>()?;
    let output = output::open(&trace.output, boundary.map(Boundary::user))?;
    let mut facts = head_facts(machine, &devices, trace.events, BUFFER_BYTES);
    facts.insert("trial".to_owned(), spec.trial.clone());
    let bytes_max = boundary.map(Boundary::bytes_max);
    let order = Order { bytes_max, ..Order::of_devices(devices, trace.events, facts) };
    Recorder::start(machine, run, order, Some(output))
}

/// Ends a recording; what is wrong with it is a warning.
///
/// # Errors
///
/// The instance could not be removed, or the recorder failed.
pub fn end(machine: &mut Machine, recorder: Recorder) -> Result<(RecordingResult, Vec<Warning>)> {
    let found = recorder.finish(machine)?;
    let mut warnings = Vec::new();
    let lost: u64 = found.lost.values().sum();
    if lost > 0 {
        warnings.push(Warning::new(
            "trace_lost_events",
            format!("{lost} block events were lost while recording"),
            "its stage times may belong to other requests; record issues and completions only",
        ));
    }
    if let Some(problem) = &found.problem {
        warnings.push(Warning::new(
            "trace_ends_early",
            format!("the trace could not be written any more: {problem}"),
            "make room; its stage times are those of the part that was written",
        ));
    }
    Ok((found, warnings))
}

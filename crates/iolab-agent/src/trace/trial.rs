//! A recording beside a trial: of the testbed's own devices while it is measured, and of what the
//! measuring process and its workers do in other layers.

use super::device::Traced;
use super::layers;
use super::order::{BUFFER_BYTES, Order};
use super::output;
use super::record::{add_layer_facts, head_facts, missing_layers};
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

/// Begins to record, if the trial asks for it; none in a dry run. Layers that the kernel does not
/// have are warnings: another trial of the same study may have them.
///
/// # Errors
///
/// The device is not for this user, or recording cannot begin.
pub fn begin(machine: &mut Machine, asked: &Asked) -> Result<Option<(Recorder, Vec<Warning>)>> {
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
    let (_, warning) = missing_layers(&trace.layers)?;
    // Whoever may not see what processes of everybody do sees those of his own run alone.
    let bound = boundary.filter(|bound| bound.check_all_processes().is_err());
    let whose = if bound.is_some() {
        "the trial's"
    } else {
        "the trial's; of file systems and the page cache: all on its devices"
    };
    add_layer_facts(&mut facts, &trace.layers, whose.to_owned());
    let order = Order {
        bytes_max: boundary.map(Boundary::bytes_max),
        layers: trace.layers.clone(),
        awaits_process: !trace.layers.is_empty(),
        bound_uid: bound.map(|bound| bound.user().uid),
        file_systems: layers::file_systems_on(&devices),
        ..Order::of_devices(devices, trace.events, facts)
    };
    let recorder = Recorder::start(machine, run, order, Some(output))?;
    Ok(recorder.map(|recorder| (recorder, warning.into_iter().collect())))
}

/// Ends a recording; what is wrong with it is a warning.
///
/// # Errors
///
/// The instance could not be removed, or the recorder failed.
pub fn end(
    machine: &mut Machine,
    mut recorder: Recorder,
) -> Result<(RecordingResult, Vec<Warning>)> {
    let found = recorder.finish(machine)?;
    let warnings = warnings_of(&found);
    Ok((found, warnings))
}

/// Reasons why a trace does not tell everything.
fn warnings_of(found: &RecordingResult) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let lost: u64 = found.lost.values().sum();
    if lost > 0 {
        warnings.push(Warning::new(
            "trace_lost_events",
            format!("{lost} events were lost while recording"),
            "its stage times may belong to other requests; record fewer: issue-complete, no layers",
        ));
    }
    if let Some(problem) = &found.problem {
        warnings.push(Warning::new(
            "trace_ends_early",
            format!("the trace could not be written any more: {problem}"),
            "make room; its stage times are those of the part that was written",
        ));
    }
    if !found.vanished.is_empty() {
        warnings.push(Warning::new(
            "trace_ends_early",
            format!("{} went away while it was recorded", found.vanished.join(", ")),
            "its stage times are those of the time before",
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_trace_lacks_is_a_warning() {
        let whole = RecordingResult { events: 7, ..RecordingResult::default() };
        assert!(warnings_of(&whole).is_empty());
        let lost = RecordingResult { lost: [(0, 60), (1, 2)].into(), ..whole.clone() };
        let (full, gone) = (Some("No space left".to_owned()), vec!["loop3".to_owned()]);
        for (found, code, text) in [
            (lost, "trace_lost_events", "62 events were lost"),
            (RecordingResult { problem: full, ..whole.clone() }, "trace_ends_early", "No space"),
            (RecordingResult { vanished: gone, ..whole }, "trace_ends_early", "loop3 went away"),
        ] {
            let told = warnings_of(&found);
            assert_eq!(told.len(), 1);
            assert!(told[0].code == code && told[0].message.contains(text), "{told:?}");
        }
    }
}

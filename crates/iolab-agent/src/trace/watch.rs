//! The request to watch devices, outside of any study: sums of each second, and no file.

use std::fs::OpenOptions;
use std::path::Path;

use super::order::Order;
use super::record::{Recording, buffer, found, listen_until};
use super::recorder::Recorder;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::protocol::{EventSet, LiveSecond, Progress, TraceRecorded, WatchSpec};

/// Stands for the file of a recording.
const NO_FILE: &str = "/dev/null";

/// Watches until the front end interrupts, or the time is over.
pub fn watch(how: Recording, spec: &WatchSpec, control: &mut dyn Control) -> Result<TraceRecorded> {
    let Recording { machine, run, state_dir, boundary } = how;
    let (devices, warnings) = found(&spec.devices, boundary, state_dir)?;
    let order = Order {
        backend: spec.backend,
        buffer_bytes: buffer(spec.buffer_bytes)?,
        is_live: true,
        ..Order::of_devices(devices.clone(), EventSet::Full, std::collections::BTreeMap::new())
    };
    let opened = OpenOptions::new().write(true).open(NO_FILE);
    let output = opened.map_err(|error| Error::io("open", Path::new(NO_FILE), error))?;
    let Some(mut recorder) = Recorder::start(machine, run, order, Some(output))? else {
        return Err(Error::protocol("a dry run watches nothing"));
    };
    listen_until(&mut recorder, spec.time_limit_ns, control, |recorder, control| {
        recorder.listen();
        tell(recorder, control);
    });
    let outcome = recorder.finish(machine);
    tell(&mut recorder, control);
    let devices = devices.into_iter().map(|device| device.name).collect();
    Ok(TraceRecorded { recorded: outcome?, devices, warnings })
}

fn tell(recorder: &mut Recorder, control: &mut dyn Control) {
    recorder.take_seconds().into_iter().for_each(|second| control.progress(progress(second)));
}

fn progress(second: LiveSecond) -> Progress {
    Progress { phase: "watch".to_owned(), live: Some(Box::new(second)), ..Progress::default() }
}

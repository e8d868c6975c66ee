//! Interface of a testbed, and the closed list of kinds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::boundary::Boundary;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::protocol::{PairsImage, RawDevice, Stack, StackRecord, TestbedSpec, TrialSpec, Warning};

/// Values with which a testbed is opened.
pub struct Opening<'a> {
    /// The machine; its journal is open.
    pub machine: &'a mut Machine,
    /// The wire, for progress and interrupts.
    pub control: &'a mut dyn Control,
    /// Name of the run.
    pub run: &'a str,
    /// Permissions of root, if it works for another user.
    pub boundary: Option<&'a Boundary>,
    /// Name of the place, if it is not where a trial's files lie by themselves.
    pub place: Option<&'a str>,
}

impl Opening<'_> {
    /// Name of the folder that is the run's own at this place.
    pub fn own_name(&self) -> String {
        match self.place {
            Some(place) => format!("{}{PLACE_MARK}{place}", self.run),
            None => self.run.to_owned(),
        }
    }
}

/// Between the name of a run and that of a place; neither has it.
pub const PLACE_MARK: char = '+';

/// Request of a trial to the place where its files lie.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The file system; none for a directory.
    pub stack: Option<&'a Stack>,
    /// File systems of their own for treatments, one on each device made alike; usually none.
    pub images: &'a [PairsImage],
    /// Make it anew even if it is the same.
    pub is_fresh_fs: bool,
    /// Free space that must stay on a user's file system.
    pub reserve_bytes: u64,
}

impl<'a> Asked<'a> {
    /// Request in `spec`.
    pub fn of(spec: &'a TrialSpec) -> Self {
        let TrialSpec { is_fresh_fs, reserve_bytes, .. } = *spec;
        let images = spec.pairs.as_ref().map_or(&[][..], |pairs| &pairs.images);
        Self { stack: spec.stack.as_ref(), images, is_fresh_fs, reserve_bytes }
    }
}

/// A further place of a trial, ready: in the folder of the trial, under its own name.
#[derive(Debug)]
pub struct PreparedPlace {
    /// Its name.
    pub name: String,
    /// Its own folder.
    pub folder: PathBuf,
    /// Content of its token file, if others can reach it.
    pub token: Option<String>,
    /// Free space that the workload must leave there.
    pub reserve_bytes: u64,
}

/// Place for the files of a trial.
#[derive(Debug)]
pub struct Prepared {
    /// The folder.
    pub folder: PathBuf,
    /// The same on the twins of its device, if it has some.
    pub twins: Vec<PathBuf>,
    /// Content of its token file, if others can reach it.
    pub token: Option<String>,
    /// The device itself, if there is no file system.
    pub raw: Option<RawDevice>,
    /// The file system, if it is ours.
    pub stack: Option<StackRecord>,
    /// The file systems of treatments that have their own, by device.
    pub images: Vec<StackRecord>,
    /// Free space that the workload must leave there.
    pub reserve_bytes: u64,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
    /// Places beside the folder.
    pub places: Vec<PreparedPlace>,
}

/// A place for trials, made by us and taken apart again.
///
/// Whatever outlives the process is in the journal; a testbed undoes only what does not.
pub trait Testbed {
    /// Privilege class: `A`, `A+`, `B` or `C`.
    fn class(&self) -> &'static str;

    /// The directory that is ours.
    fn directory(&self) -> &Path;

    /// Tell whether that is the user's own, with what he has in it.
    fn is_users(&self) -> bool {
        false
    }

    /// Block devices under it.
    fn devices(&self) -> &[String];

    /// Those of them whose knobs a trial may change.
    fn knob_devices(&self) -> &[String] {
        self.devices()
    }

    /// The run, if the devices are loop devices of ours.
    fn loop_run(&self) -> Option<&str>;

    /// Facts about what was found and done when it was opened, stored with the study.
    fn facts(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Warnings from when it was opened.
    fn warnings(&self) -> &[Warning];

    /// Space for files.
    fn free_bytes(&self) -> u64;

    /// Refuses knobs that may not change here.
    fn check_knobs(&self, machine: &Machine, knobs: &BTreeMap<String, String>) -> Result<()>;

    /// Refuses to change knobs more often than once a second, as short alternating slices do,
    /// where others use the devices: the running system, or file systems that are not ours.
    fn check_fast_switching(&self) -> Result<()>;

    /// Makes ready for a trial.
    fn prepare(&mut self, machine: &mut Machine, asked: Asked) -> Result<Prepared>;

    /// Removes the files of a trial.
    fn clean(&mut self, machine: &mut Machine) -> Result<()>;

    /// Lets go of what the journal does not know: mounts.
    fn close(&mut self, machine: &mut Machine) -> Result<()>;
}

/// Properties of a testbed that follow from its description.
pub trait Kind {
    /// Privilege class of what it does.
    fn class(&self) -> &'static str;

    /// Tell whether it erases a device of the user's.
    fn is_erasing(&self) -> bool {
        false
    }
}

/// One row of the list.
pub struct Row {
    /// `kind` in the protocol.
    pub name: &'static str,
    /// Privilege class of what it does.
    pub class: &'static str,
    /// True if it erases a device of the user's.
    pub is_erasing: bool,
}

/// Declares the list from rows of `Row = "name" => module`.
macro_rules! testbeds {
    ($( $(#[$meta:meta])* $Row:ident = $name:literal => $module:ident, )+) => {
        /// Properties of the kind that `spec` describes.
        pub fn kind_of(spec: &$crate::protocol::TestbedSpec) -> $crate::testbed::api::Row {
            match spec {
                $( $crate::protocol::TestbedSpec::$Row(spec) => $crate::testbed::api::Row {
                    name: $name,
                    class: $crate::testbed::api::Kind::class(spec),
                    is_erasing: $crate::testbed::api::Kind::is_erasing(spec),
                }, )+
            }
        }

        /// Opens the testbed that `spec` describes.
        pub fn open(
            spec: $crate::protocol::TestbedSpec,
            opening: Opening,
        ) -> $crate::error::Result<Box<dyn Testbed>> {
            match spec {
                $( $crate::protocol::TestbedSpec::$Row(spec) => $module::open(spec, opening), )+
            }
        }
    };
}
pub(super) use testbeds;

/// Refuses what is no kind of testbed; names the nearest.
pub fn check_kind(kind: &str) -> Result<()> {
    if TestbedSpec::KINDS.contains(&kind) {
        return Ok(());
    }
    Err(Error::unknown("kind of testbed", kind, TestbedSpec::KINDS))
}

//! All knobs of a testbed together: from the values a trial names to a machine that has them.
//!
//! Before the first change of a device (or of the machine's own settings) every knob of the list
//! is recorded in the journal, in the opposite order of writing. Restoring backwards then *is*
//! applying the originals in the order of the list, and what a scheduler switch resets cannot be
//! forgotten.
//!
//! Left out: whether a device's knobs may change at all, which is the testbed's to say.

use std::collections::BTreeMap;

use super::api::{Knob, Scope, Site, find, tunable_of};
use super::{ALL, scheduler};
use crate::error::{Error, Result};
use crate::journal::Change;
use crate::machine::{DeviceIdentity, Machine};
use crate::protocol::Warning;

type Values = BTreeMap<String, String>;

/// Result of applying.
#[derive(Debug, Default)]
pub struct Applied {
    /// Every knob of the list as read back.
    pub knobs: Values,
    /// Values that are not what was asked for.
    pub warnings: Vec<Warning>,
}

/// The knobs of a testbed, with their original values once something was changed.
#[derive(Debug)]
pub struct KnobSet {
    devices: Vec<String>,
    loop_run: Option<String>,
    originals: BTreeMap<Option<String>, Values>,
    /// Values last put into effect, by device.
    in_effect: BTreeMap<Option<String>, Values>,
}

impl KnobSet {
    /// Knobs of `devices`, which are loop devices of a run or somebody's.
    pub fn new(devices: &[String], loop_run: Option<&str>) -> Self {
        Self {
            devices: devices.to_vec(),
            loop_run: loop_run.map(str::to_owned),
            originals: BTreeMap::new(),
            in_effect: BTreeMap::new(),
        }
    }

    /// Gives the knobs in `asked` their values and all others their original ones.
    pub fn apply(&mut self, machine: &mut Machine, asked: &Values) -> Result<Applied> {
        check_twins(asked)?;
        let mut applied = Applied::default();
        for scope in [Scope::Machine, Scope::Device] {
            let of_scope = asked
                .iter()
                .filter(|(name, _)| find(name).is_ok_and(|(_, knob)| knob.scope() == scope));
            let named: Values =
                of_scope.map(|(name, value)| (name.clone(), value.clone())).collect();
            for place in self.places(scope) {
                self.apply_at(machine, place.as_deref(), &named, &mut applied.warnings)?;
            }
            if scope == Scope::Device && self.devices.is_empty() && !named.is_empty() {
                let listed = named.into_keys().collect::<Vec<_>>().join(", ");
                return Err(Error::refused(
                    format!("{listed} cannot be set: no block device was found under the testbed"),
                    "use --on loop:1g, or a directory on a disk's file system",
                ));
            }
        }
        applied.knobs = self.read_back(machine);
        Ok(applied)
    }

    /// The same on one of the devices, the others as they are; knobs of the machine cannot be.
    pub fn apply_on(
        &mut self,
        machine: &mut Machine,
        index: usize,
        asked: &Values,
    ) -> Result<Applied> {
        check_twins(asked)?;
        for name in asked.keys() {
            if find(name)?.1.scope() == Scope::Machine {
                return Err(Error::protocol(format!(
                    "{name} belongs to the machine: devices cannot differ in it"
                )));
            }
        }
        let device = self.devices.get(index).cloned();
        let device =
            device.ok_or_else(|| Error::protocol(format!("there is no device {index}")))?;
        let mut applied = Applied::default();
        self.apply_at(machine, Some(&device), asked, &mut applied.warnings)?;
        applied.knobs = snapshot(machine, Some(&device));
        Ok(applied)
    }

    /// Writes what differs between two sets of values that were both in effect before: checked,
    /// noted in the journal, and compared with what the kernel made of them. Nothing else is looked
    /// at, because it happens many times a second.
    pub fn switch(&mut self, machine: &mut Machine, from: &Values, to: &Values) -> Result<()> {
        let differing = to.iter().filter(|(name, value)| from.get(*name) != Some(value));
        let named: Values = differing.map(|(name, value)| (name.clone(), value.clone())).collect();
        for place in self.places(Scope::Device) {
            // What is in effect later is looked at when somebody applies values again.
            self.in_effect.remove(&place);
            for (name, value) in in_order(&named) {
                let site = Site { device: place.as_deref(), knob: name };
                let (_, knob) = find(name)?;
                machine.unlisted(|machine| knob.write(machine, site, value))?;
            }
        }
        Ok(())
    }

    /// Every knob of the list as it is now; of several devices the first one's.
    pub fn read_back(&self, machine: &Machine) -> Values {
        let mut found = Values::new();
        for place in self.places(Scope::Machine).into_iter().chain(self.places(Scope::Device)) {
            for (name, value) in snapshot(machine, place.as_deref()) {
                found.entry(name).or_insert(value);
            }
        }
        found
    }

    fn places(&self, scope: Scope) -> Vec<Option<String>> {
        match scope {
            Scope::Machine => vec![None],
            Scope::Device => self.devices.iter().cloned().map(Some).collect(),
        }
    }

    fn apply_at(
        &mut self,
        machine: &mut Machine,
        device: Option<&str>,
        named: &Values,
        warnings: &mut Vec<Warning>,
    ) -> Result<()> {
        let place = device.map(str::to_owned);
        if named.is_empty() && !self.originals.contains_key(&place) {
            return Ok(());
        }
        let usual = self.originals.get(&place).and_then(|values| values.get("scheduler")).cloned();
        let usual = usual.or_else(|| scheduler::active(machine, device?));
        let target = named.get("scheduler").or(usual.as_ref()).cloned().unwrap_or_default();
        let named = translated(machine, device, (&target, named), warnings)?;
        check_all(machine, device, &named)?;
        let ids = self.protect(machine, device, &named)?;
        let original = &self.originals[&place];
        let wanted = wanted(original, &named);
        if needs_fresh_scheduler(machine, device, original, &wanted, self.in_effect.get(&place)) {
            let site = Site { device, knob: "scheduler" };
            scheduler::KNOB.write(machine, site, "none")?;
        }
        // What is in effect is unknown until all has been written.
        self.in_effect.remove(&place);
        for (name, value) in in_order(&wanted) {
            let site = Site { device, knob: name };
            let (_, knob) = find(name)?;
            if knob.read(machine, site).as_deref() != Some(value) {
                write(machine, knob, site, value, named.contains_key(name))?;
            }
        }
        machine.applied(&ids)?;
        self.in_effect.insert(place, wanted);
        for (name, value) in &named {
            warnings.extend(compare(machine, Site { device, knob: name }, value));
        }
        Ok(())
    }

    /// Records every original value, once; returns the new entries of the journal.
    fn protect(
        &mut self,
        machine: &mut Machine,
        device: Option<&str>,
        named: &Values,
    ) -> Result<Vec<u64>> {
        let place = device.map(str::to_owned);
        let known = self.originals.get(&place).cloned();
        let mut fresh = if known.is_some() { Values::new() } else { snapshot(machine, device) };
        for name in named.keys() {
            let site = Site { device, knob: name };
            let is_known = known.as_ref().is_some_and(|known| known.contains_key(name));
            let presumed = || find(name).ok()?.1.presumed(machine, site);
            if !is_known && !fresh.contains_key(name) {
                fresh.extend(presumed().map(|value| (name.clone(), value)));
            }
        }
        let identity =
            device.map(|name| DeviceIdentity::of(machine, name, self.loop_run.as_deref()));
        let mut changes = Vec::new();
        for (name, old) in in_order(&fresh) {
            changes.push(Change::Knob {
                knob: name.to_owned(),
                path: find(name)?.1.path(Site { device, knob: name }),
                old: old.to_owned(),
                new: named.get(name).cloned(),
                device: identity.clone(),
            });
        }
        changes.reverse();
        let ids = machine.intend(changes)?;
        self.originals.entry(place).or_default().extend(fresh);
        Ok(ids)
    }
}

/// Every knob that a device (or the machine) has, with its value.
fn snapshot(machine: &Machine, device: Option<&str>) -> Values {
    let scope = if device.is_some() { Scope::Device } else { Scope::Machine };
    let rows = ALL.iter().filter(|row| row.knob.scope() == scope);
    let names = rows.flat_map(|row| {
        let names = row.knob.names(machine, device, row.name);
        names.into_iter().map(move |name| (row.knob, name))
    });
    names
        .filter_map(|(knob, name)| {
            let value = knob.read(machine, Site { device, knob: &name })?;
            Some((name, value))
        })
        .collect()
}

/// Names and values in the order of writing.
fn in_order(values: &Values) -> Vec<(&str, &str)> {
    let mut found: Vec<(usize, &str, &str)> = values
        .iter()
        .filter_map(|(name, value)| Some((find(name).ok()?.0, name.as_str(), value.as_str())))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name, value)| (name, value)).collect()
}

/// Drops what belongs to another scheduler; says `nr_requests` under `none` by its right name.
fn translated(
    machine: &Machine,
    device: Option<&str>,
    (target, named): (&str, &Values),
    warnings: &mut Vec<Warning>,
) -> Result<Values> {
    let Some(name) = device else { return Ok(named.clone()) };
    let mut named = named.clone();
    named.retain(|name, _| tunable_of(name).is_none_or(|(owner, _)| owner == target));
    if let Some(value) = named.get("nr_requests").filter(|_| target == "none").cloned() {
        let site = Site { device, knob: "nr_requests" };
        if named.get("driver_queue_depth").is_some_and(|depth| *depth != value) {
            let reason =
                "under 'none' it is the same as driver_queue_depth, which is asked to differ";
            return Err(site.cannot_be(&value, reason));
        }
        named.remove("nr_requests");
        // Checked here, where it is still known what was typed.
        let (_, depth) = find("driver_queue_depth")?;
        depth.check(machine, site.other("driver_queue_depth"), &value).map_err(|error| {
            let Error::KnobValue { reason, .. } = error else { return error };
            site.cannot_be(&value, format!("{reason}; under 'none' it is the driver's depth"))
        })?;
        named.insert("driver_queue_depth".to_owned(), value.clone());
        warnings.push(Warning::new(
            "nr_requests_is_driver_depth",
            format!("under scheduler none nr_requests = {value} is the depth of {name}'s driver"),
            "compare schedulers at the same driver_queue_depth",
        ));
    }
    Ok(named)
}

/// Originals below, named values above; without what a switch resets or a twin contradicts.
fn wanted(original: &Values, named: &Values) -> Values {
    let is_switched =
        named.get("scheduler").is_some_and(|name| original.get("scheduler") != Some(name));
    let mut wanted = original.clone();
    wanted.retain(|name, _| {
        let is_reset = find(name).is_ok_and(|(_, knob)| knob.is_reset_by_scheduler());
        let twin = find(name).ok().and_then(|(_, knob)| knob.twin(name));
        let is_contradicted = twin.is_some_and(|twin| named.contains_key(twin));
        !(is_switched && is_reset || is_contradicted)
    });
    wanted.extend(named.clone());
    if wanted.get("scheduler").is_some_and(|name| name == "none") {
        wanted.remove("nr_requests"); // It is the driver's depth there, which has its own row.
    }
    wanted
}

/// Tell whether a switch away and back must reset what earlier trials tuned under the same
/// scheduler.
fn needs_fresh_scheduler(
    machine: &Machine,
    device: Option<&str>,
    original: &Values,
    wanted: &Values,
    in_effect: Option<&Values>,
) -> bool {
    let Some(target) = wanted.get("scheduler") else { return false };
    let is_tuned = |values: &Values| -> Values {
        let resets = |name: &str| find(name).is_ok_and(|(_, knob)| knob.is_reset_by_scheduler());
        values
            .iter()
            .filter(|(name, _)| resets(name))
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect()
    };
    let is_active =
        device.and_then(|name| scheduler::active(machine, name)).as_ref() == Some(target);
    let is_same = in_effect.is_some_and(|values| is_tuned(values) == is_tuned(wanted));
    is_active && target != "none" && original.get("scheduler") != Some(target) && !is_same
}

/// Refuses wrong values before anything is written; tunables need their scheduler to be active.
fn check_all(machine: &Machine, device: Option<&str>, named: &Values) -> Result<()> {
    for (name, value) in named.iter().filter(|(name, _)| tunable_of(name).is_none()) {
        find(name)?.1.check(machine, Site { device, knob: name }, value)?;
    }
    Ok(())
}

/// Checks and writes one value; an original value was the kernel's own and needs no check.
fn write(
    machine: &mut Machine,
    knob: &dyn Knob,
    site: Site,
    value: &str,
    is_named: bool,
) -> Result<()> {
    if is_named {
        knob.check(machine, site, value)?;
    }
    machine.note_knob(site.device, site.knob);
    knob.write(machine, site, value).map_err(|error| match error {
        Error::Io { source, .. } if source.raw_os_error() == Some(libc::EINVAL) => {
            site.cannot_be(value, "the kernel refuses it (invalid argument)")
        }
        other => other,
    })
}

/// A warning if what is in effect is not what was asked for.
fn compare(machine: &Machine, site: Site, asked: &str) -> Option<Warning> {
    if machine.is_dry_run() {
        return None;
    }
    let (_, knob) = find(site.knob).ok()?;
    let place = site.device.map(|name| format!(" of {name}")).unwrap_or_default();
    let name = site.knob;
    match knob.read(machine, site) {
        None => Some(Warning::new(
            "knob_unverified",
            format!("{name}{place} was set to {asked}, but cannot be read back"),
            "mount debugfs: mount -t debugfs none /sys/kernel/debug",
        )),
        Some(value) if value != asked => Some(Warning::new(
            "knob_changed",
            format!("{name}{place}: {asked} was asked for, the kernel made it {value}"),
            "judge by the value in effect",
        )),
        Some(_) => None,
    }
}

fn check_twins(asked: &Values) -> Result<()> {
    for name in asked.keys() {
        let (_, knob) = find(name)?;
        if let Some(twin) = knob.twin(name).filter(|twin| asked.contains_key(*twin)) {
            return Err(Error::protocol(format!(
                "{name} and {twin} are two ways to say one thing; ask for one of them"
            )));
        }
    }
    Ok(())
}

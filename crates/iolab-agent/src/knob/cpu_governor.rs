//! Governor, which decides on the clock rate of the CPUs: one governor for all of them.
//!
//! Each group of CPUs that share a clock (a policy) has a file of its own. Where they differ, what
//! is recorded and put back is a list, `powersave,performance`, in the order of their numbers.
//! Source: Linux Documentation/admin-guide/pm/cpufreq.rst. Left out: a governor per CPU as a level.

use std::path::{Path, PathBuf};

use super::api::{About, Knob, Scope, Site};
use crate::error::{Result, nearest};
use crate::machine::Machine;

const FOLDER: &str = "/sys/devices/system/cpu/cpufreq";
const FILE: &str = "scaling_governor";
/// Governors of Linux; a driver offers some of them.
const KNOWN: &[&str] =
    &["performance", "powersave", "schedutil", "ondemand", "conservative", "userspace"];

/// The row.
pub const KNOB: CpuGovernor = CpuGovernor;

/// Its type.
pub struct CpuGovernor;

impl Knob for CpuGovernor {
    fn about(&self) -> About {
        About {
            help: "who decides on the clock rate of all CPUs",
            example: ["schedutil", "performance"].map(str::to_owned),
            choices: KNOWN,
            ..About::default()
        }
    }

    fn scope(&self) -> Scope {
        Scope::Machine
    }

    fn path(&self, _site: Site) -> PathBuf {
        Path::new(FOLDER).join("policy0").join(FILE)
    }

    fn check(&self, machine: &Machine, site: Site, value: &str) -> Result<()> {
        let policies = policies(machine);
        if policies.is_empty() {
            let reason = "no CPU of this machine changes its clock rate under Linux; \
                          virtual machines mostly cannot, ask the host for it";
            return Err(site.cannot_be(value, reason));
        }
        for policy in policies {
            let offered = machine.peek(policy.join("scaling_available_governors"));
            let offered = offered.unwrap_or_else(|| KNOWN.join(" "));
            let names: Vec<&str> = offered.split_whitespace().collect();
            if !names.contains(&value) {
                let guess = nearest(value, &names)
                    .map(|name| format!("; did you mean '{name}'?"))
                    .unwrap_or_default();
                let reason = format!("the CPU's driver offers {}{guess}", names.join(", "));
                return Err(site.cannot_be(value, reason));
            }
        }
        Ok(())
    }

    fn read(&self, machine: &Machine, _site: Site) -> Option<String> {
        let read = |policy: PathBuf| machine.peek(policy.join(FILE));
        let mut found: Vec<String> = policies(machine).into_iter().filter_map(read).collect();
        if found.windows(2).all(|pair| pair[0] == pair[1]) {
            found.truncate(1);
        }
        (!found.is_empty()).then(|| found.join(","))
    }

    fn write(&self, machine: &mut Machine, _site: Site, value: &str) -> Result<()> {
        let mut values = value.split(',');
        let mut current = values.next().unwrap_or_default();
        for policy in policies(machine) {
            machine.write_knob(&policy.join(FILE), current)?;
            current = values.next().unwrap_or(current);
        }
        Ok(())
    }
}

/// Folders of the policies, by their numbers.
fn policies(machine: &Machine) -> Vec<PathBuf> {
    let names = machine.list(FOLDER).into_iter();
    let mut found: Vec<(u32, String)> =
        names.filter_map(|name| Some((name.strip_prefix("policy")?.parse().ok()?, name))).collect();
    found.sort();
    found.into_iter().map(|(_, name)| Path::new(FOLDER).join(name)).collect()
}

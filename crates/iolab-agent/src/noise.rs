//! Disturbances of a measurement, as typed warnings with thresholds.
//!
//! Some of it stands (a governor that saves power), some of it happens during a trial (a host that
//! steals CPU time). Left out: noise on the devices themselves, which their counters show.
//! Source: Documentation/accounting/psi.rst; Documentation/filesystems/proc.rst 1.7.

use std::time::Instant;

use crate::machine::Machine;
use crate::protocol::Warning;

/// Share of CPU time that the host may take away.
const STEAL_SHARE_MAX: f64 = 0.01;
/// Share of the time in which somebody waits for a CPU.
const CPU_PRESSURE_SHARE_MAX: f64 = 0.10;
/// Share of the last ten seconds before a trial in which somebody waited for I/O, in percent.
const IO_PRESSURE_PERCENT_MAX: f64 = 20.0;
/// An idle state that takes longer to leave than a fast device needs for an answer.
const IDLE_LATENCY_US_MAX: u64 = 50;

/// Time between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A trial, of which a report tells later.
    Trial,
    /// A moment, of which is told at once.
    Moment,
}

impl Span {
    /// Words for the time, of what was before it, and of the load then.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Trial => (
                "during the trial",
                "ten seconds before the trial",
                "before the trial the load was",
            ),
            Self::Moment => ("in the last moment", "last ten seconds", "the load is"),
        }
    }
}

/// One look at the machine.
#[derive(Clone, Debug)]
pub struct Noise {
    at: Instant,
    cpu_ticks: u64,
    steal_ticks: u64,
    cpu_stalled_us: Option<u64>,
    io_stalled_percent: Option<f64>,
    load: Option<f64>,
    cpus: usize,
}

impl Noise {
    /// Forgets the kernel's averages: they reach back to our own work just before.
    pub fn without_averages(self) -> Self {
        Self { io_stalled_percent: None, load: None, ..self }
    }

    /// Looks now.
    pub fn sample(machine: &Machine) -> Self {
        let stat = machine.peek("/proc/stat").unwrap_or_default();
        let ticks: Vec<u64> = stat
            .lines()
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .skip(1)
            .filter_map(|word| word.parse().ok())
            .collect();
        Self {
            at: Instant::now(),
            // user nice system idle iowait irq softirq steal; guest time is in user time already.
            cpu_ticks: ticks.iter().take(8).sum(),
            steal_ticks: ticks.get(7).copied().unwrap_or(0),
            cpu_stalled_us: pressure(machine, "cpu", "total="),
            io_stalled_percent: pressure(machine, "io", "avg10="),
            load: machine
                .peek("/proc/loadavg")
                .and_then(|text| text.split_whitespace().next()?.parse().ok()),
            cpus: stat.lines().filter(|line| line.starts_with("cpu")).count().saturating_sub(1),
        }
    }

    /// Disturbances until `later`.
    pub fn warnings_until(&self, later: &Self, span: Span) -> Vec<Warning> {
        let (during, before, load_was) = span.words();
        let mut found = Vec::new();
        let ticks = later.cpu_ticks.saturating_sub(self.cpu_ticks).max(1) as f64;
        let stolen = later.steal_ticks.saturating_sub(self.steal_ticks) as f64 / ticks;
        if stolen > STEAL_SHARE_MAX {
            found.push(Warning::new(
                "cpu_steal",
                format!("the host took {:.1} % of the CPU time away {during}", stolen * 100.0),
                "use a machine of its own, or more rounds",
            ));
        }
        if let (Some(before), Some(after)) = (self.cpu_stalled_us, later.cpu_stalled_us) {
            let elapsed_us = later.at.duration_since(self.at).as_micros().max(1) as f64;
            let share = after.saturating_sub(before) as f64 / elapsed_us;
            if share > CPU_PRESSURE_SHARE_MAX {
                found.push(Warning::new(
                    "cpu_pressure",
                    format!("tasks waited for a CPU {:.0} % of the time {during}", share * 100.0),
                    "stop other programs, or use fewer workers than CPUs",
                ));
            }
        }
        if let Some(percent) = self.io_stalled_percent.filter(|it| *it > IO_PRESSURE_PERCENT_MAX) {
            found.push(Warning::new(
                "io_pressure",
                format!("others waited for I/O {percent:.0} % of the {before}"),
                "stop other programs that read or write",
            ));
        }
        if let Some(load) = self.load.filter(|load| *load > self.cpus.max(1) as f64 * 2.0) {
            found.push(Warning::new(
                "load",
                format!("{load_was} {load:.1} on {} CPUs", self.cpus),
                "stop other programs",
            ));
        }
        found
    }
}

/// Disturbances that last.
pub fn standing_warnings(machine: &Machine) -> Vec<Warning> {
    let mut found = Vec::new();
    let governor = machine.peek("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if let Some(governor) = governor.filter(|governor| governor != "performance") {
        found.push(Warning::new(
            "governor",
            format!("the CPU governor is {governor}: the clock rate changes with the load"),
            "cpupower frequency-set -g performance",
        ));
    }
    if let Some((state, latency_us)) = deepest_idle_state(machine) {
        found.push(Warning::new(
            "deep_idle",
            format!(
                "idle state {state} takes {latency_us} us to leave, more than a fast device needs"
            ),
            "boot with intel_idle.max_cstate=1, or cpupower idle-set -D 50",
        ));
    }
    found
}

/// The slowest idle state that is not turned off, if it is slow enough to matter.
fn deepest_idle_state(machine: &Machine) -> Option<(String, u64)> {
    let folder = "/sys/devices/system/cpu/cpu0/cpuidle";
    let states = machine.list(folder).into_iter().filter_map(|state| {
        let read = |file: &str| machine.peek(format!("{folder}/{state}/{file}"));
        let is_on = read("disable").is_none_or(|text| text == "0");
        let latency_us: u64 = read("latency")?.parse().ok()?;
        is_on.then_some((read("name")?, latency_us))
    });
    states.filter(|(_, latency_us)| *latency_us > IDLE_LATENCY_US_MAX).max_by_key(|(_, us)| *us)
}

/// A number from the `some` line of a pressure file.
fn pressure<T: std::str::FromStr>(machine: &Machine, what: &str, key: &str) -> Option<T> {
    let text = machine.peek(format!("/proc/pressure/{what}"))?;
    let line = text.lines().find(|line| line.starts_with("some"))?;
    line.split(' ').find_map(|word| word.strip_prefix(key))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fake_machine;
    use std::fs;

    #[test]
    fn stolen_time_and_pressure_are_told_above_their_thresholds() {
        let (root, machine) = fake_machine();
        fs::create_dir_all(root.path().join("proc/pressure")).unwrap();
        let write =
            |file: &str, text: &str| fs::write(root.path().join("proc").join(file), text).unwrap();
        write("loadavg", "9.5 1 1 1/1 1");
        write("pressure/io", "some avg10=33.00 avg60=0.00 avg300=0.00 total=7");
        write("pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0");
        write("stat", "cpu  100 0 0 900 0 0 0 10 0 0\ncpu0 1 1 1\ncpu1 1 1 1\nintr 5");
        let before = Noise::sample(&machine);
        write("stat", "cpu  150 0 0 930 0 0 0 30 0 0\ncpu0 1 1 1\ncpu1 1 1 1\nintr 5");
        write("pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=99000000");
        let later = Noise::sample(&machine);
        let found = before.warnings_until(&later, Span::Trial);
        let codes: Vec<&str> = found.iter().map(|warning| warning.code.as_str()).collect();
        assert_eq!(codes, ["cpu_steal", "cpu_pressure", "io_pressure", "load"]);
        assert!(found[0].message.contains("20.0 %"), "{}", found[0].message);
        assert!(found.iter().all(|warning| warning.message.contains("the trial")));
        // Newcomers read in `iolab doctor` of a trial that nobody had run.
        let found = before.warnings_until(&later, Span::Moment);
        assert!(found.iter().all(|warning| !warning.message.contains("trial")), "{found:?}");
        assert_eq!(found[3].message, "the load is 9.5 on 2 CPUs");
    }

    #[test]
    fn a_quiet_machine_is_not_scolded() {
        let (_root, machine) = fake_machine();
        let sample = Noise::sample(&machine);
        assert!(sample.warnings_until(&sample, Span::Trial).is_empty());
        assert!(standing_warnings(&machine).is_empty());
    }

    #[test]
    fn governor_and_idle_states_are_told_once() {
        let (root, machine) = fake_machine();
        let cpu = root.path().join("sys/devices/system/cpu/cpu0");
        fs::create_dir_all(cpu.join("cpufreq")).unwrap();
        fs::create_dir_all(cpu.join("cpuidle/state3")).unwrap();
        fs::write(cpu.join("cpufreq/scaling_governor"), "powersave").unwrap();
        fs::write(cpu.join("cpuidle/state3/name"), "C6").unwrap();
        fs::write(cpu.join("cpuidle/state3/latency"), "133").unwrap();
        let found = standing_warnings(&machine);
        assert_eq!((found[0].code.as_str(), found[1].code.as_str()), ("governor", "deep_idle"));
    }
}

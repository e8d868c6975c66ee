//! Costs of schedulers: built-in tables with sources, and a stack's own numbers.
//!
//! A table is a profile of kind `software`: `SCHEDULER.HOOK` in ns for each scheduler and hook, and
//! what all share: `timer`, `switch`. Source: `docs/reference/software-costs.md`.

use std::collections::BTreeMap;

use iolab_files::machine::SLICE;
use iolab_model::Ns;
use serde::{Deserialize, Serialize};

use crate::error::SimError;
use crate::profile::{Profile, Reader};
use crate::sched::SchedulerKind;

/// Name and text of each built-in table.
const TABLES: [(&str, &str); 3] = [
    ("guest", include_str!("../../costs/guest.toml")),
    ("hosted-guest", include_str!("../../costs/hosted-guest.toml")),
    ("native", include_str!("../../costs/native.toml")),
];

/// Name of the table in which nothing costs anything.
const FREE: &str = "free";

/// A call that takes longer is a slip of the pen.
const MOST_NS: u64 = 1_000_000_000;

/// Costs of a scheduler's calls on a processor, ns; each is made under the queue's lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HookCosts {
    /// A request is taken in.
    pub insert_ns: u64,
    /// The next request is asked for, also in vain.
    pub dispatch_ns: u64,
    /// The end of a request is told.
    pub complete_ns: u64,
    /// A request to merge with is sought.
    pub merge_ns: u64,
}

/// Settings of a stack about the costs of its schedulers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Software {
    /// Built-in table, or `free`; absent: what the device's profile names, or else `native`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<String>,
    /// Processors that workers and queues share; 0: one for each worker.
    pub processors: u16,
    /// Time for which a worker keeps a processor that others wait for; absent: 4 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice_us: Option<u32>,
    /// A timer is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_ns: Option<u64>,
    /// Another task of the same processor is woken and runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_ns: Option<u64>,
    /// Schedulers with costs of their own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub schedulers: BTreeMap<SchedulerKind, HookCosts>,
}

impl Software {
    /// Schedulers that cost nothing: for tests of what they decide.
    pub fn free() -> Self {
        Self { costs: Some(FREE.to_owned()), ..Self::default() }
    }

    /// Time for which a worker keeps a processor that others wait for.
    pub fn slice(&self) -> Ns {
        self.slice_us.map_or(SLICE, |us| Ns::from_us(us.into()))
    }

    /// The table in force; `usual` is the name that the device's profile gives.
    pub fn table(&self, usual: Option<&str>) -> Result<CostTable, SimError> {
        let name = self.costs.as_deref().or(usual).unwrap_or("native");
        let mut table = CostTable::built_in(name)?;
        let checked = |name: String, ns: u64| {
            if ns <= MOST_NS {
                return Ok(Ns(ns));
            }
            let (value, max) = (ns as f64, MOST_NS as f64);
            Err(SimError::OutOfRange { name, value, unit: "ns".into(), min: 0.0, max })
        };
        for (name, own, to) in [
            ("timer_ns", self.timer_ns, &mut table.timer),
            ("switch_ns", self.switch_ns, &mut table.switch),
        ] {
            if let Some(ns) = own {
                *to = checked(format!("software: {name}"), ns)?;
            }
        }
        for (&scheduler, &costs) in &self.schedulers {
            let HookCosts { insert_ns, dispatch_ns, complete_ns, merge_ns } = costs;
            for ns in [insert_ns, dispatch_ns, complete_ns, merge_ns] {
                checked(format!("software: {scheduler}"), ns)?;
            }
            table.schedulers.insert(scheduler, costs);
        }
        Ok(table)
    }
}

/// Costs of every scheduler, and of what all of them cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostTable {
    /// Name of the table that it began as.
    pub name: String,
    /// A timer is set.
    pub timer: Ns,
    /// Another task of the same processor is woken and runs.
    pub switch: Ns,
    schedulers: BTreeMap<SchedulerKind, HookCosts>,
}

impl CostTable {
    /// Names of the built-in tables.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLES.iter().map(|&(name, _)| name)
    }

    /// A built-in table as it stands in its file, with sources.
    pub fn profile(name: &str) -> Result<Profile, SimError> {
        match TABLES.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Profile::parse(&format!("costs/{name}.toml"), text),
            None => Err(SimError::UnknownName {
                kind: "table of software costs",
                name: name.to_owned(),
                known: Self::names().chain([FREE]).map(str::to_owned).collect(),
            }),
        }
    }

    fn built_in(name: &str) -> Result<Self, SimError> {
        if name == FREE {
            let (timer, switch, schedulers) = (Ns(0), Ns(0), BTreeMap::new());
            return Ok(Self { name: name.to_owned(), timer, switch, schedulers });
        }
        let profile = Self::profile(name)?;
        let reader = profile.reader();
        let table = Self {
            name: name.to_owned(),
            timer: reader.duration("timer", "ns")?,
            switch: reader.duration("switch", "ns")?,
            schedulers: SchedulerKind::ALL
                .iter()
                .map(|&kind| Ok((kind, hooks(&reader, kind)?)))
                .collect::<Result<_, SimError>>()?,
        };
        reader.finish()?;
        Ok(table)
    }

    /// Tell whether nothing costs anything.
    pub fn is_free(&self) -> bool {
        [self.timer, self.switch] == [Ns(0); 2]
            && self.schedulers.values().all(|costs| *costs == HookCosts::default())
    }

    /// Costs of a scheduler.
    pub fn of(&self, kind: SchedulerKind) -> HookCosts {
        self.schedulers.get(&kind).copied().unwrap_or_default()
    }
}

fn hooks(reader: &Reader<'_>, kind: SchedulerKind) -> Result<HookCosts, SimError> {
    let cost = |hook: &str| -> Result<u64, SimError> {
        Ok(reader.duration(&format!("{kind}.{hook}"), "ns")?.0)
    };
    Ok(HookCosts {
        insert_ns: cost("insert")?,
        dispatch_ns: cost("dispatch")?,
        complete_ns: cost("complete")?,
        merge_ns: cost("merge")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_totals_are_kept_by_the_hooks() {
        // Linux Documentation/block/bfq-iosched.rst: 1.9 us for bfq, 0.7 us for mq-deadline.
        let table = Software::default().table(None).unwrap();
        let total = |kind| {
            let HookCosts { insert_ns, dispatch_ns, complete_ns, .. } = table.of(kind);
            insert_ns + dispatch_ns + complete_ns
        };
        assert!(total(SchedulerKind::Bfq).abs_diff(1_900) <= 10);
        assert!(total(SchedulerKind::MqDeadline).abs_diff(700) <= 10);
        assert!(total(SchedulerKind::Noop) < total(SchedulerKind::Deadline));
        assert!(total(SchedulerKind::Deadline) < total(SchedulerKind::Cfq));
    }

    #[test]
    fn a_stack_replaces_what_it_measured() {
        let own: Software =
            toml::from_str("costs = \"guest\"\ntimer_ns = 5\n[schedulers.cfq]\ninsert_ns = 7\n")
                .unwrap();
        let table = own.table(None).unwrap();
        assert_eq!((table.timer, table.of(SchedulerKind::Cfq).insert_ns), (Ns(5), 7));
        assert_ne!(table.switch, Ns(0));
        assert!(Software::free().table(Some("guest")).unwrap().is_free());
        let unknown = Software { costs: Some("nativ".into()), ..Software::default() };
        let error = unknown.table(None).unwrap_err().to_string();
        assert!(error.contains("native") && error.contains("free"), "{error}");
    }
}

//! Control groups of jobs: `cgroup` and `cgroup_weight`.
//!
//! Facts, from running fio 3.33: jobs that name one group share it, a weight without a group
//! counts for nothing, and the group is removed in the end unless `cgroup_nodelete` is given.

use super::super::host::Host;
use super::super::job::Job;
use super::{Lowering, Result, Work};
use crate::diagnostic::Problem;
use crate::plan::ControlGroup;

/// A named group, and the job that gave it its weight.
struct Named<'a> {
    name: &'a str,
    weighed_by: Option<&'a Job>,
    tenants: Vec<String>,
}

impl<H: Host> Lowering<'_, H> {
    /// Groups of the tenants of all jobs that name one.
    pub(super) fn control_groups(&mut self, works: &[Work]) -> Result<Vec<ControlGroup>> {
        let mut found: Vec<Named<'_>> = Vec::new();
        for work in works {
            let job = &self.typing.jobs[work.unit.job];
            let Some(name) = &job.control_group else {
                if job.control_group_weight.is_some() && work.unit.first == 0 {
                    let note = "cgroup_weight has no effect without cgroup, as in fio";
                    self.notes.push(format!("job {}: {note}", job.name));
                }
                continue;
            };
            let on = self.typing.common.on.as_deref().unwrap_or_default();
            if on.starts_with("null") {
                let what = "control groups do not go with --on null:, which has no processes";
                return self.at(job, ("cgroup", Problem::new(what, "leave one of them out")));
            }
            if work.engine.name == "posixaio" {
                let what = "control groups do not go with ioengine=posixaio, whose transfers are \
                            made by threads";
                let remedy = "use another engine, such as io_uring, or leave cgroup out";
                return self.at(job, ("cgroup", Problem::new(what, remedy)));
            }
            if self.are_threads(works) {
                let what = "control groups take processes, and the clones of these jobs are \
                            threads";
                let remedy = "leave thread=1 out; with several files or sizes, and ioengine=null, \
                              leave cgroup out";
                return self.at(job, ("cgroup", Problem::new(what, remedy)));
            }
            let place = found.iter().position(|group| group.name == name).unwrap_or_else(|| {
                found.push(Named { name, weighed_by: None, tenants: Vec::new() });
                found.len() - 1
            });
            let group = &mut found[place];
            let scheduler = job.scheduler.as_deref();
            let is_weighed = job.control_group_weight.is_some() && work.unit.first == 0;
            if is_weighed && scheduler != Some("bfq") {
                let note = "cgroup_weight counts under bfq alone (and with io.cost): unless the \
                            device uses it, write ioscheduler=bfq";
                self.notes.push(format!("job {}: {note}", job.name));
            }
            if job.control_group_weight.is_some() {
                let other = group
                    .weighed_by
                    .filter(|by| by.control_group_weight != job.control_group_weight);
                if let Some(other) = other {
                    let what = format!(
                        "the control group {name} has one weight, and job {} gives it another",
                        other.name
                    );
                    let remedy = "write the same cgroup_weight, or name another cgroup";
                    return self.at(job, ("cgroup_weight", Problem::new(what, remedy)));
                }
                group.weighed_by = Some(job);
            }
            group.tenants.push(work.tenant.name.clone());
        }
        let made = found.into_iter().map(|group| ControlGroup {
            weight: group.weighed_by.and_then(|job| job.control_group_weight),
            tenants: group.tenants,
        });
        Ok(made.collect())
    }
}

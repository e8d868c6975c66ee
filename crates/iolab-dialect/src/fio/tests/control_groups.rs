//! `cgroup` and `cgroup_weight`: groups of jobs, and what is refused.

use super::super::dialect::plan;
use super::{Paper, words};
use crate::plan::ControlGroup;

fn groups(text: &str) -> Result<(Vec<ControlGroup>, Vec<String>), String> {
    let found = plan(&words(text), &Paper::default()).map_err(|error| error.to_string())?;
    Ok((found.rows[0].control_groups.clone(), found.notes))
}

#[test]
fn jobs_that_name_one_group_share_it() {
    let text = "--size=1m --name=a --cgroup=bulk --cgroup_weight=300 --name=b --cgroup=bulk \
                --name=c --cgroup=own --name=d";
    let (found, _) = groups(text).unwrap();
    let names: Vec<(usize, Option<u32>)> =
        found.iter().map(|group| (group.tenants.len(), group.weight)).collect();
    assert_eq!(names, [(2, Some(300)), (1, None)]);
}

#[test]
fn a_weight_alone_is_told_to_have_no_effect() {
    let (found, notes) = groups("--size=1m --name=a --cgroup_weight=300").unwrap();
    assert!(found.is_empty());
    assert!(notes.iter().any(|note| note.contains("no effect without cgroup")), "{notes:?}");
}

#[test]
fn one_group_has_one_weight_and_takes_processes() {
    let two = "--size=1m --name=a --cgroup=x --cgroup_weight=300 --name=b --cgroup=x \
               --cgroup_weight=400";
    assert!(groups(two).unwrap_err().contains("job a gives it another"));
    let threads = "--size=1m --name=a --cgroup=x --thread";
    assert!(groups(threads).unwrap_err().contains("control groups take processes"));
    let small = "--size=1m --name=a --cgroup=x --cgroup_weight=50";
    assert!(groups(small).is_err(), "fio takes 100 to 1000");
}

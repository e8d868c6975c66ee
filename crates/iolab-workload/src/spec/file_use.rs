//! `FileUse`: what a workload does with a file.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::{Opening, Phase, Tenant};

/// Use of a file, or of a directory of many, by the phases of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileUse {
    /// Its name, below the directory of the workload.
    pub name: String,
    /// First phase that uses it.
    pub phase: String,
    /// Opening by the first tenant that uses it.
    pub opening: Opening,
    /// A tenant of the first phase needs it to be there before.
    pub is_expected: bool,
    /// Some phase makes, removes or changes it.
    pub is_changed: bool,
    /// Kind of what has the name.
    pub kind: NamedKind,
}

/// Kind of what the name of a file stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NamedKind {
    /// A file.
    File,
    /// A directory of many files.
    Folder,
    /// The directory of a key-value store.
    Store,
}

impl NamedKind {
    fn of(tenant: &Tenant) -> Self {
        match tenant {
            _ if tenant.kv.is_some() => Self::Store,
            _ if tenant.is_folder() => Self::Folder,
            _ => Self::File,
        }
    }
}

impl FileUse {
    fn new(name: String, phase: &str, tenant: &Tenant) -> Self {
        Self {
            name,
            phase: phase.to_owned(),
            opening: tenant.opening,
            is_expected: false,
            is_changed: false,
            kind: NamedKind::of(tenant),
        }
    }

    /// Tell whether what is there before is removed and a file of that name is made.
    pub const fn is_made(&self) -> bool {
        matches!(self.opening, Opening::Create | Opening::New)
    }

    /// Uses of all files of some phases, in the order in which they are first named.
    pub fn of_phases(phases: &[Phase]) -> Vec<Self> {
        let (mut found, mut places) = (Vec::<Self>::new(), BTreeMap::new());
        for phase in phases {
            let earlier: BTreeSet<usize> = places.values().copied().collect();
            for tenant in &phase.tenants {
                for name in tenant.file_names() {
                    let place = *places.entry(name).or_insert_with_key(|name| {
                        found.push(Self::new(name.clone(), &phase.name, tenant));
                        found.len() - 1
                    });
                    let is_new = !earlier.contains(&place);
                    found[place].is_expected |= is_new && tenant.opening == Opening::Existing;
                    found[place].is_changed |= tenant.changes_files();
                }
            }
        }
        found
    }
}

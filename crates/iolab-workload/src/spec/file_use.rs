//! `FileUse`: what a workload does with a file.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::{Opening, Phase, Tenant};

/// Use of a file, or of a directory of many, by the phases of a workload. A name that stands for
/// both has a use of each kind: a check of files must not miss one for what else has its name.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
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
    fn new((name, kind): (String, NamedKind), phase: &str, tenant: &Tenant) -> Self {
        Self {
            name,
            phase: phase.to_owned(),
            opening: tenant.opening,
            is_expected: false,
            is_changed: false,
            kind,
        }
    }

    /// Tell whether what is there before is removed and a file of that name is made.
    pub const fn is_made(&self) -> bool {
        matches!(self.opening, Opening::Create | Opening::New)
    }

    /// Uses by name and kind, in the order in which they come first.
    pub fn of_phases(phases: &[Phase]) -> Vec<Self> {
        let (mut found, mut places) = (Vec::<Self>::new(), BTreeMap::new());
        for phase in phases {
            let earlier: BTreeSet<usize> = places.values().copied().collect();
            for tenant in &phase.tenants {
                for name in tenant.file_names() {
                    let key = (name, NamedKind::of(tenant));
                    let place = *places.entry(key).or_insert_with_key(|key| {
                        found.push(Self::new(key.clone(), &phase.name, tenant));
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

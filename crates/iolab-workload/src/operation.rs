//! Kind, size and way to the data of an operation, from its description and never from its name.
//!
//! An id is the user's word: a phase called `fread` may write, and a stream called `write` may
//! read. Whatever is told, judged or bounded asks here. Left out: how fast anything is.

use iolab_model::op::Access;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::file_set::{FileAction, FileSetWork};
use crate::program::{Program, natures};
use crate::spec::{Direction, Phase, Tenant, Workload};

iolab_model::registry! {
    /// Action of an operation.
    pub enum OperationKind as "kind of operation" {
        /// Only reads.
        Read = "read",
        /// Only writes.
        Write = "write",
        /// Each operation reads or writes.
        Mixed = "mixed",
        /// Each operation reads and may write back what it has read.
        Update = "update",
        /// Makes data durable.
        Sync = "sync",
        /// Makes, looks up, renames or removes names, or changes lengths and blocks of files.
        Name = "name",
        /// Puts, gets or scans keys.
        KeyValue = "key_value",
        /// Several kinds that no other row holds.
        Other = "other",
    }
}

impl OperationKind {
    /// The kind of an operation that moves data.
    pub const fn of_transfers(reads: bool, writes: bool) -> Self {
        match (reads, writes) {
            (true, false) => Self::Read,
            (false, true) => Self::Write,
            (true, true) => Self::Mixed,
            (false, false) => Self::Other,
        }
    }

    /// The kind of operations that run side by side.
    fn and(self, other: Self) -> Self {
        let moves = |kind| matches!(kind, Self::Read | Self::Write | Self::Mixed | Self::Update);
        match (self, other) {
            _ if self == other => self,
            _ if moves(self) && moves(other) => Self::Mixed,
            _ => Self::Other,
        }
    }
}

/// Kind, size and way to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nature {
    /// Kind of the operation.
    pub kind: OperationKind,
    /// True if it ever reads data.
    pub reads: bool,
    /// True if it ever writes data.
    pub writes: bool,
    /// Bytes per operation; absent: operations of several sizes, or of none.
    pub io_size_bytes: Option<u64>,
    /// The way to the data; absent: several ways, or none.
    pub access: Option<Access>,
}

impl Nature {
    /// Of nothing at all.
    pub const NONE: Self = Self {
        kind: OperationKind::Other,
        reads: false,
        writes: false,
        io_size_bytes: None,
        access: None,
    };

    /// Nature of a tenant's operations.
    pub fn of_tenant(tenant: &Tenant) -> Self {
        if let Some(work) = &tenant.file_set {
            let own = Self::of_file_set(work);
            return Self { access: own.access.map(|_| tenant.access), ..own };
        }
        if let Some(program) = &tenant.program {
            return Self::of_program(program);
        }
        if tenant.kv.is_some() {
            let (reads, writes) = (tenant.reads(), tenant.writes());
            return Self { kind: OperationKind::KeyValue, reads, writes, ..Self::NONE };
        }
        let (reads, writes) = (tenant.reads(), tenant.writes());
        let is_update = matches!(tenant.direction, Direction::Update { .. }) && writes;
        Self {
            kind: if is_update {
                OperationKind::Update
            } else {
                OperationKind::of_transfers(reads, writes)
            },
            reads,
            writes,
            io_size_bytes: size_of(tenant),
            access: Some(tenant.access),
        }
    }

    /// All operations of a program together.
    fn of_program(program: &Program) -> Self {
        let natures = natures(program).into_iter().map(|(_, nature)| nature);
        natures.reduce(Self::and).unwrap_or(Self::NONE)
    }

    fn of_file_set(work: &FileSetWork) -> Self {
        let has_data = work.size_max_bytes.0 > 0;
        let is_filled = work.action == FileAction::Extend && has_data && !work.is_sparse;
        Self {
            kind: if is_filled { OperationKind::Write } else { OperationKind::Name },
            reads: work.action == FileAction::Read && has_data,
            writes: is_filled || (work.action == FileAction::Create && has_data),
            io_size_bytes: None, // The first write only sets the length.
            access: is_filled.then_some(Access::Plain),
        }
    }

    /// Nature of all operations of a phase together.
    pub fn of_phase(phase: &Phase) -> Self {
        let natures = phase.tenants.iter().map(Self::of_tenant);
        natures.reduce(Self::and).unwrap_or(Self::NONE)
    }

    /// Nature of operations that run side by side.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            kind: self.kind.and(other.kind),
            reads: self.reads || other.reads,
            writes: self.writes || other.writes,
            io_size_bytes: self.io_size_bytes.filter(|size| Some(*size) == other.io_size_bytes),
            access: self.access.filter(|access| Some(*access) == other.access),
        }
    }

    /// The same operation as performed by an engine whose files are `default_access` unless a
    /// workload asks otherwise.
    #[must_use]
    pub fn performed(self, default_access: Access) -> Self {
        let access = match self.access {
            Some(Access::Plain) if self.kind != OperationKind::Name => Some(default_access),
            other => other,
        };
        Self { access, ..self }
    }
}

/// An operation of a workload: its id in the store, its engine and its nature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Operation {
    /// Name of the phase, or `phase/tenant` where several tenants run at once.
    pub id: String,
    /// Engine that performs it.
    pub engine: String,
    /// Nature of the operation.
    #[serde(flatten)]
    pub nature: Nature,
}

/// Operations of a workload, in the order of its phases.
pub fn operations(workload: &Workload) -> Vec<Operation> {
    let mut found = Vec::new();
    for phase in &workload.phases {
        let is_alone = phase.tenants.len() == 1;
        for tenant in &phase.tenants {
            let id = if is_alone {
                phase.name.clone()
            } else {
                format!("{}/{}", phase.name, tenant.name)
            };
            let engine = workload.engine_of_tenant(phase, tenant).to_owned();
            found.push(Operation { id, engine, nature: Nature::of_tenant(tenant) });
        }
    }
    found
}

/// Bytes of each operation, if all have the same number.
fn size_of(tenant: &Tenant) -> Option<u64> {
    let mut lengths = tenant.manner.replay.iter().map(|op| op.length.0);
    let Some(first) = lengths.next() else { return Some(tenant.io_size_bytes.0) };
    lengths.all(|length| length == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::{IozoneRequest, IozoneTest, iozone};

    fn workload(tests: &str) -> Workload {
        let request: IozoneRequest = serde_json::from_str(&format!(
            "{{\"tests\":[{tests}],\"file_bytes\":65536,\"io_size_bytes\":4096,\
             \"access\":\"direct\",\"engine\":\"psync\",\"seed\":1,\"workers\":2}}"
        ))
        .unwrap();
        iozone(&request).unwrap()
    }

    #[test]
    fn a_name_says_nothing_and_the_description_all() {
        let mut workload = workload("\"read\",\"fwrite\",\"mix\"");
        for phase in &mut workload.phases {
            "write".clone_into(&mut phase.name);
        }
        let found: Vec<_> = operations(&workload)
            .into_iter()
            .map(|one| (one.id, one.nature.kind, one.nature.access))
            .collect();
        let expected = [
            ("write", OperationKind::Read, Access::Direct),
            ("write/readers", OperationKind::Read, Access::Direct),
            ("write/writers", OperationKind::Write, Access::Direct),
            ("write", OperationKind::Write, Access::Stdio),
        ];
        assert_eq!(found, expected.map(|(id, kind, way)| (id.to_owned(), kind, Some(way))));
    }

    /// Sizes of 512 B and 1 MiB side by side have no common size; each tenant keeps its own.
    #[test]
    fn tenants_that_differ_have_no_common_size() {
        let mut workload = workload("\"mix\"");
        workload.phases[0].tenants[0].io_size_bytes.0 = 512;
        let phase = &workload.phases[0];
        let sizes: Vec<_> =
            phase.tenants.iter().map(|t| Nature::of_tenant(t).io_size_bytes).collect();
        assert_eq!(sizes, [Some(512), Some(4096)]);
        let both = Nature::of_phase(phase);
        assert_eq!((both.kind, both.io_size_bytes), (OperationKind::Mixed, None));
        assert_eq!((both.reads, both.writes, both.access), (true, true, Some(Access::Direct)));
    }

    #[test]
    fn what_an_engine_does_unless_asked_otherwise_is_what_was_done() {
        let mut workload = workload("\"read\"");
        workload.phases[0].tenants[0].access = Access::Plain;
        let plain = Nature::of_phase(&workload.phases[0]);
        assert_eq!(plain.performed(Access::Mapped).access, Some(Access::Mapped));
        assert_eq!(plain.performed(Access::Plain).access, Some(Access::Plain));
    }

    /// The table of tests and the workload that is built of one say the same.
    #[test]
    fn every_test_of_the_table_is_what_its_phase_does() {
        for test in IozoneTest::ALL {
            let workload = workload(&format!("\"{}\"", test.name()));
            let nature = Nature::of_phase(&workload.phases[0]);
            let told = test.nature();
            assert_eq!(
                (told.kind, told.reads, told.writes),
                (nature.kind, nature.reads, nature.writes)
            );
            assert_eq!(told.access.unwrap_or(Access::Direct), nature.access.unwrap());
        }
    }
}

//! Needs of a workload, compared with the abilities of its target.
//!
//! Asked before anything is opened, so that a missing ability is a sentence with a remedy and not
//! an errno in the middle of a phase; before a run of the whole workload ([`refusals`]), and once
//! more of each worker that gets a lane ([`check`]).

use iolab_lsm::LsmOptions;
use iolab_model::op::{Access, Durability};
use iolab_model::target::Limit;
use iolab_model::{Capabilities, Error, Target};
use iolab_workload::Workload;
use iolab_workload::file_set::{FileSetWork, LinkKind};
use iolab_workload::program::{DataPath, Deed, Group, Node, Positioned, Program};
use iolab_workload::spec::{LockPolicy, Phase, Tenant};
use iolab_workload::verify::Verify;
use schemars::JsonSchema;
use serde::Serialize;

/// Something that a target cannot do for a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refusal {
    /// `snake_case` and stable; the same as in the target's [`Limit`]s.
    pub code: &'static str,
    /// Need: what the workload does, in words: `goes through the page cache`.
    pub what: String,
    /// Phase in which it does that; empty if it is the whole trial.
    pub phase: String,
    /// Tenant that does it; empty if it is not one's own doing.
    pub tenant: String,
    /// Reason why the target cannot.
    pub reason: String,
    /// Advice: a workload to use instead.
    pub hint: String,
}

/// An ability that a tenant needs.
struct Need {
    code: &'static str,
    is_met: bool,
    /// Words for what a tenant does that needs it.
    does: &'static str,
    /// The same after "cannot".
    cannot: &'static str,
    hint: &'static str,
}

const fn need(code: &'static str, is_met: bool, [does, cannot, hint]: [&'static str; 3]) -> Need {
    Need { code, is_met, does, cannot, hint }
}

fn access_need(can: &Capabilities, access: Access) -> Need {
    match access {
        Access::Plain => need(
            "page_cache",
            can.has_plain,
            ["goes through the page cache", "go through a page cache", "use direct I/O"],
        ),
        Access::Direct => need(
            "direct",
            can.has_direct,
            ["does direct I/O", "do direct I/O", "leave out direct, or change the engine"],
        ),
        Access::Append => {
            need("append", can.has_append, ["appends", "append", "write at offsets instead"])
        }
        Access::Mapped => {
            need("mapping", can.has_mapping, ["maps files", "map files", "use the engine mmap"])
        }
        Access::Stdio => need(
            "streams",
            can.has_stream,
            ["opens streams", "open streams", "use the engine stdio"],
        ),
    }
}

/// Store that is simulated: its name among the real ones.
pub(crate) const MODELLED: &str = "rocksdb";

/// Clients of a store need one: no target of files alone is one.
const OF_CLIENTS: [&str; 3] = [
    "asks a key-value store",
    "hold the key-value store of these clients",
    "use --on loop:SIZE, dir:PATH or null:",
];

fn needs(can: &Capabilities, tenant: &Tenant, verify: Verify) -> impl Iterator<Item = Need> {
    let files = tenant.file_set.as_ref().map(|work| needs_of_files(can, work));
    let clients = need("key_value", tenant.kv.is_none() || can.has_store, OF_CLIENTS);
    let is_kept = tenant.kv.as_ref().is_none_or(|work| !work.is_verified);
    let intact = need(
        "verify",
        is_kept || !can.has_store,
        [
            "compares records with what was written",
            "give back what was written",
            "leave dataintegrity out, or use a testbed on the running kernel",
        ],
    );
    let access = [clients, intact, access_need(can, tenant.access)].into_iter();
    let calls = needs_of_calls(can, tenant).into_iter().chain(needs_of_the_kernel(can, tenant));
    let all = access.chain(calls).chain(needs_of_data(can, tenant, verify));
    let is_stream = files.is_none();
    files.into_iter().flatten().chain(all.filter(move |_| is_stream))
}

/// Needs of the way in which each transfer is asked for.
fn needs_of_calls(can: &Capabilities, tenant: &Tenant) -> [Need; 5] {
    [
        need(
            "vectors",
            tenant.vectors <= 1 || can.has_vectors,
            [
                "moves several buffers in one call",
                "move several buffers in one call",
                "use the engine vsync, pvsync, pvsync2 or io_uring",
            ],
        ),
        need(
            "flags",
            tenant.flags.is_empty() || can.has_flags,
            [
                "passes flags with a transfer",
                "pass flags with a transfer",
                "use the engine pvsync2 or io_uring",
            ],
        ),
        need(
            "idle_flags",
            can.flags.contains(tenant.flags),
            [
                "passes flags that mean nothing here",
                "give these flags a meaning",
                "leave them out; dsync and sync are understood everywhere",
            ],
        ),
        need(
            "small_calls",
            tenant.manner.call_bytes == 0 || can.has_small_calls,
            [
                "makes several calls for one record",
                "make several calls for one record",
                "use the engine sync, psync or pvsync",
            ],
        ),
        need(
            "lock",
            tenant.lock == LockPolicy::None || can.has_lock,
            ["locks files", "lock files", "leave out lock"],
        ),
    ]
}

/// Needs of what only the kernel does.
fn needs_of_the_kernel(can: &Capabilities, tenant: &Tenant) -> [Need; 2] {
    [
        need(
            "kernel_threads",
            tenant.manner.kernel_thread_every == 0 || can.has_kernel_threads,
            [
                "has transfers done by threads of the kernel",
                "have transfers done by threads of the kernel",
                "use the engine io_uring",
            ],
        ),
        need(
            "nice",
            tenant.manner.nice == 0 || !can.is_simulated,
            [
                "gives its workers a nice value",
                "give workers a nice value: processors are simulated for nobody else",
                "leave it out, or use a testbed on the running kernel",
            ],
        ),
    ]
}

/// Needs of the treatment of data.
fn needs_of_data(can: &Capabilities, tenant: &Tenant, verify: Verify) -> [Need; 2] {
    let is_in_memory = matches!(tenant.access, Access::Mapped | Access::Stdio);
    [
        need(
            "durability",
            tenant.durability == Durability::None || !is_in_memory,
            [
                "makes each write durable",
                "make each write durable: what goes to a mapped file or a stream is durable only \
                 after a flush",
                "use fsync_every",
            ],
        ),
        need(
            "verify",
            !verify.is_on() || can.can_verify,
            [
                "compares what it reads with what was written",
                "give back what was written",
                "use verify none, or a testbed on the running kernel",
            ],
        ),
    ]
}

/// Needs of a set of files; the way to the data is whichever the target has.
fn needs_of_files(can: &Capabilities, work: &FileSetWork) -> [Need; 2] {
    let is_linked = match work.link {
        LinkKind::None => true,
        LinkKind::Hard | LinkKind::Symbolic => can.has_links,
    };
    [
        need(
            "many_files",
            can.has_namespace,
            [
                "makes and removes many files",
                "make and remove many files",
                "use a testbed with a file system",
            ],
        ),
        need("links", is_linked, ["makes links", "link files", "make files in place of links"]),
    ]
}

/// Everything in `workload` that a target with these abilities cannot do, in the order of phases.
///
/// Where the target has a [`Limit`] of that code, its reason and remedy are told; a worker gets the
/// access that the engine gives to whoever asks for nothing special.
pub fn refusals(
    (name, can, limits): (&str, &Capabilities, &[Limit]),
    workload: &Workload,
) -> Vec<Refusal> {
    let (mut found, verify) = (Vec::new(), workload.verification());
    for phase in &workload.phases {
        for tenant in &phase.tenants {
            if let Some(refusal) = store_refusal(limits, can, (workload, phase, tenant)) {
                found.push(refusal);
                continue;
            }
            let access = match tenant.access {
                Access::Plain => can.default_access,
                other => other,
            };
            if let Some(program) = &tenant.program {
                let mut lacking = program.all_nodes().filter_map(|node| {
                    let refusal = of_step((name, limits), node, missing(can, node, verify)?);
                    let (phase, tenant) = (phase.name.clone(), tenant.name.clone());
                    Some(Refusal { phase, tenant, ..refusal })
                });
                found.extend(lacking.next());
                continue;
            }
            let asked = Tenant { access, ..tenant.clone() };
            for need in needs(can, &asked, verify).filter(|need| !need.is_met) {
                let limit = limits.iter().find(|limit| limit.code == need.code);
                found.push(Refusal {
                    code: need.code,
                    what: need.does.to_owned(),
                    phase: phase.name.clone(),
                    tenant: tenant.name.clone(),
                    reason: limit.map_or_else(
                        || format!("{name} cannot {}", need.cannot),
                        |limit| limit.reason.to_owned(),
                    ),
                    hint: limit.map_or(need.hint, |limit| limit.hint).to_owned(),
                });
            }
        }
    }
    found
}

/// Fault of a tenant's store where that is simulated.
fn store_refusal(
    limits: &[Limit],
    can: &Capabilities,
    (workload, phase, tenant): (&Workload, &Phase, &Tenant),
) -> Option<Refusal> {
    let work = tenant.kv.as_ref().filter(|_| can.has_store)?;
    let name = workload.engine_of(phase);
    let (code, what, reason, hint) = if name == MODELLED {
        let Err(Error::BadWorkload { problem, remedy }) = LsmOptions::of(&work.store.options, 1)
        else {
            return None;
        };
        ("store_option", "sets an option of the store".to_owned(), problem, remedy)
    } else {
        let limit = limits.iter().find(|limit| limit.code == "store")?;
        let what = format!("asks the store {name}");
        ("store", what, limit.reason.to_owned(), limit.hint.to_owned())
    };
    let (phase, tenant) = (phase.name.clone(), tenant.name.clone());
    Some(Refusal { code, what, phase, tenant, reason, hint })
}

/// Refuses a tenant that `target` cannot serve.
///
/// # Errors
///
/// [`Error::Unsupported`] with the first missing ability.
pub fn check<T: Target>(target: &T, tenant: &Tenant, verify: Verify) -> Result<(), Error> {
    let can = target.capabilities();
    match needs(&can, tenant, verify).find(|need| !need.is_met) {
        Some(Need { cannot, hint, .. }) => {
            let what = format!("{cannot}; {hint}");
            Err(Error::Unsupported { target: target.name(), what })
        }
        None => Ok(()),
    }
}

/// Refuses programs that `target` cannot run.
///
/// # Errors
///
/// [`Error::Unsupported`] with the first missing ability, and the step that needs it.
pub fn check_program<T: Target>(target: &T, tenant: &Tenant, verify: Verify) -> Result<(), Error> {
    let can = target.capabilities();
    if tenant.kv.is_some() && !can.has_store {
        let what = format!("{}; {}", OF_CLIENTS[1], OF_CLIENTS[2]);
        return Err(Error::Unsupported { target: target.name(), what });
    }
    let nodes = tenant.program.iter().flat_map(Program::all_nodes);
    for node in nodes {
        if let Some((_, what)) = missing(&can, node, verify) {
            let what = format!("{what} (step {} of tenant {})", node.name(), tenant.name);
            return Err(Error::Unsupported { target: target.name(), what });
        }
    }
    Ok(())
}

/// Sentence about a step that a target cannot do; the caller says where it is.
fn of_step((name, limits): (&str, &[Limit]), node: &Node, (code, what): Missing) -> Refusal {
    let limit = limits.iter().find(|limit| limit.code == code);
    let (cannot, remedy) = what.split_once("; ").unwrap_or((what, "leave the step out"));
    Refusal {
        code,
        what: format!("has the step {}", node.name()),
        phase: String::new(),
        tenant: String::new(),
        reason: limit
            .map_or_else(|| format!("{name} cannot {cannot}"), |limit| limit.reason.to_owned()),
        hint: limit.map_or(remedy, |limit| limit.hint).to_owned(),
    }
}

/// Code of an ability, and what cannot be done without it.
type Missing = (&'static str, &'static str);

/// Ability that a node needs and a target does not have.
fn missing(can: &Capabilities, node: &Node, verify: Verify) -> Option<Missing> {
    let does = node.does;
    let opens = matches!(does, Deed::Open | Deed::Create) || node.file.is_some();
    let is_on_file = matches!(does.group(), Group::Transfer(_) | Group::Sync | Group::Name);
    let is_key = matches!(does.group(), Group::KeyValue(..));
    let needs = [
        (
            !is_on_file || can.has_namespace,
            ("files", "open and name files; use a testbed with files"),
        ),
        (
            !is_key || can.has_key_value,
            ("keys", "get and put keys; use the engine memory, --on null: or dir:PATH"),
        ),
        (
            node.position != Some(Positioned::Append) || can.has_end,
            ("append", "write to the end of a file; use the engine psync or io_uring"),
        ),
        (
            !verify.is_on() || !is_on_file || can.can_verify,
            (
                "verify",
                "give back what was written; use verify = \"none\", or a testbed on the \
                 running kernel",
            ),
        ),
        (node.vectors <= 1 || can.has_vectors, ("vectors", "move several buffers in one call")),
        (node.flags.is_empty() || can.has_flags, ("flags", "pass flags with a transfer")),
        (does != Deed::Allocate || can.has_allocate, ("allocate", "allocate blocks")),
        (
            !matches!(does, Deed::Punch | Deed::Discard) || can.has_deallocate,
            ("deallocate", "give blocks back"),
        ),
        (does != Deed::Zero || can.has_zeroing, ("zero", "clear a range without writing")),
        (
            !matches!(does, Deed::Link | Deed::SymbolicLink | Deed::Copy) || can.has_links,
            ("links", "link or copy files"),
        ),
        (
            !matches!(does, Deed::SyncFileRange) || can.has_plain,
            ("page_cache", "start the write-back of a range"),
        ),
    ];
    let access = match node.path.unwrap_or_default() {
        DataPath::Cached => {
            (can.has_plain, ("page_cache", "go through a page cache; use path = \"direct\""))
        }
        DataPath::Direct => {
            (can.has_direct, ("direct", "do direct I/O; leave out path = \"direct\""))
        }
        DataPath::Mapped => (can.has_mapping, ("mapping", "map files")),
        DataPath::Stdio => (can.has_stream, ("streams", "open streams")),
    };
    let is_opening = opens && (matches!(does, Deed::Open | Deed::Create) || node.uses_handle());
    let access = is_opening.then_some(access);
    needs.into_iter().chain(access).find(|(is_met, _)| !is_met).map(|(_, missing)| missing)
}

#[cfg(test)]
mod tests {
    use iolab_model::op::TransferFlags;

    use super::*;

    fn workload(tenant: &str) -> Workload {
        let text = format!(
            r#"{{"version": 1, "name": "w", "engine": "psync", "seed": 1, "phases": [
                {{"name": "first", "tenants": [{{"name": "main", "workers": 1, "file": "data",
                "file_bytes": 65536, "io_size_bytes": 4096, "pattern": {{"kind": "sequential"}},
                "direction": {{"kind": "write"}}, "opening": "create" {tenant}}}]}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn codes(can: &Capabilities, tenant: &str) -> Vec<&'static str> {
        let found = refusals(("x", can, &[]), &workload(tenant));
        found.iter().map(|refusal| refusal.code).collect()
    }

    #[test]
    fn all_that_is_missing_is_told_at_once() {
        let can = Capabilities { has_plain: false, ..Capabilities::MINIMAL };
        let tenant = r#", "vectors": 2, "lock": "record", "is_preallocated": true"#;
        assert_eq!(codes(&can, tenant), ["page_cache", "vectors", "lock"]);
        assert!(codes(&Capabilities::MINIMAL, "").is_empty());
    }

    #[test]
    fn flags_without_a_meaning_are_another_matter_than_flags() {
        let flags = r#", "flags": ["dsync", "hipri"]"#;
        assert_eq!(codes(&Capabilities::MINIMAL, flags), ["flags"]);
        let some = Capabilities {
            has_flags: true,
            flags: TransferFlags::DATA_SYNC,
            ..Capabilities::MINIMAL
        };
        assert_eq!(codes(&some, flags), ["idle_flags"]);
        assert!(codes(&some, r#", "flags": ["dsync"]"#).is_empty());
    }

    #[test]
    fn a_limit_of_the_target_gives_the_reason() {
        let can = Capabilities { has_plain: false, ..Capabilities::MINIMAL };
        let limit = Limit { code: "page_cache", reason: "it is not there yet", hint: "wait" };
        let found = refusals(("x", &can, &[limit]), &workload(""));
        assert_eq!(
            (found[0].reason.as_str(), found[0].hint.as_str()),
            ("it is not there yet", "wait")
        );
        let found = refusals(("x", &can, &[]), &workload(""));
        assert_eq!(found[0].reason, "x cannot go through a page cache");
        assert_eq!((found[0].phase.as_str(), found[0].tenant.as_str()), ("first", "main"));
    }
}

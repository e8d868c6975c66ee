//! Contradictions in programs, file sets and key spaces.

use std::collections::BTreeSet;

use iolab_model::op::WriteLife;

use super::amount::Amount;
use super::choice::{FileBy, FileChoice, KeyBy, KeyChoice};
use super::deed::{Deed, Group};
use super::description::{Pace, Program};
use super::events;
use super::files::{FILES_MAX, FileSet, KeySpace};
use super::node::{DataPath, Node, Positioned};
use super::problem::Problem;
use crate::operation::OperationKind;
use crate::spec::{Limit, Phase, Tenant, WorkersAs, Workload};

/// Nothing, or the first contradiction.
pub(super) type Found = Result<(), Problem>;

/// Sectors are the unit of direct I/O.
pub(super) const DIRECT_UNIT: u64 = 512;

/// The first contradiction in what belongs to programs.
pub(crate) fn problem(workload: &Workload) -> Found {
    for (index, set) in workload.file_sets.iter().enumerate() {
        check_set(workload, index, set)?;
    }
    for (index, space) in workload.key_spaces.iter().enumerate() {
        check_space(index, space)?;
    }
    if let Some(second) = workload.key_spaces.get(1) {
        let problem = format!("a second key space, {}", second.name);
        return Err(Problem::new("key_spaces[1]", problem, "use one: a target has one store"));
    }
    for (index, phase) in workload.phases.iter().enumerate() {
        for (number, tenant) in phase.tenants.iter().enumerate() {
            let Some(program) = &tenant.program else { continue };
            let path = format!("phases[{index}].tenants[{number}]");
            check_tenant(workload, tenant, &path)?;
            let checker = Checker { workload, phase, program, path: format!("{path}.program") };
            checker.check()?;
        }
    }
    Ok(())
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0', '\n'])
}

fn check_set(workload: &Workload, index: usize, set: &FileSet) -> Found {
    let path = format!("file_sets[{index}]");
    let wrong = |field: &str, problem: String, remedy: &str| {
        Err(Problem::new(format!("{path}{field}"), problem, remedy))
    };
    if !is_plain(&set.name) {
        return wrong(".name", format!("the name {:?}", set.name), "use a plain name");
    }
    if set.place.as_ref().is_some_and(|place| !is_plain(place)) {
        return wrong(".place", format!("the place {:?}", set.place), "use a plain name");
    }
    let is_known = |other: &FileSet| other.name == set.name || other.top() == set.name;
    if workload.file_sets[..index].iter().any(is_known) {
        return wrong(".name", format!("a second set {}", set.name), "give each its own name");
    }
    let is_empty = set.files == 0 && set.tree.leaf_directories == 0;
    if is_empty || set.files > FILES_MAX {
        let remedy = "use 1 to 16777216";
        return wrong(".files", format!("{} files", set.files), remedy);
    }
    if let Some((problem, remedy)) = set.file_bytes.problem() {
        return wrong(".file_bytes", problem, remedy);
    }
    if !(0.0..=100.0).contains(&set.existing_percent) {
        let problem = format!("{} % of the files", set.existing_percent);
        return wrong(".existing_percent", problem, "use a number from 0 to 100");
    }
    let names = &set.tree.names;
    if !names.is_empty() && (names.len() as u64 != set.files || set.tree.width.is_some()) {
        let problem = format!("{} names for {} files", names.len(), set.files);
        return wrong(".tree.names", problem, "name each file, and leave out the width");
    }
    if set.is_flat {
        check_flat(&path, set)?;
    }
    let is_good = |name: &String| name.split('/').all(is_plain);
    if let Some(name) = names.iter().find(|name| !is_good(name)) {
        return wrong(".tree.names", format!("the name {name:?}"), "use plain names");
    }
    if names.iter().collect::<BTreeSet<_>>().len() != names.len() {
        return wrong(".tree.names", "a name that comes twice".into(), "name each file once");
    }
    let is_narrow = set.tree.width == Some(0) && set.tree.branching.is_none();
    if is_narrow || !set.tree.width_shape.is_finite() {
        return wrong(".tree.width", "directories of 0 files".into(), "use at least 1");
    }
    if set.tree.depth.is_some_and(|depth| depth > 64) {
        return wrong(".tree.depth", "more than 64 levels".into(), "use fewer");
    }
    Ok(())
}

/// A set without a directory of its own has names, and nothing that only directories have.
fn check_flat(path: &str, set: &FileSet) -> Found {
    let wrong = |field: &str, problem: &str, remedy: &str| {
        Err(Problem::new(format!("{path}{field}"), problem, remedy))
    };
    if set.tree.names.is_empty() || set.tree.names.iter().any(|name| name.contains('/')) {
        let remedy = "name each file, without /";
        return wrong(".tree.names", "files in the testbed's directory without a name", remedy);
    }
    if set.place.is_some() || set.tree.leaf_directories > 0 {
        return wrong(".is_flat", "a place or directories of a flat set", "leave one of them out");
    }
    Ok(())
}

fn check_space(index: usize, space: &KeySpace) -> Found {
    let path = format!("key_spaces[{index}]");
    if let Some((problem, remedy)) = space.value_bytes.problem() {
        return Err(Problem::new(format!("{path}.value_bytes"), problem, remedy));
    }
    if space.value_bytes.least() == 0 {
        let path = format!("{path}.value_bytes");
        return Err(Problem::new(path, "values of 0 bytes", "use at least 1"));
    }
    Ok(())
}

/// Check the tenant around a program.
fn check_tenant(workload: &Workload, tenant: &Tenant, path: &str) -> Found {
    let wrong = |field: &str, problem: &str, remedy: &str| {
        Err(Problem::new(format!("{path}{field}"), problem, remedy))
    };
    if workload.workers_as == WorkersAs::Processes {
        let problem = "a program whose workers are processes: they share which files exist";
        return wrong(".program", problem, "use workers_as = \"threads\"");
    }
    if tenant.file_set.is_some() || tenant.draws.is_some() {
        return wrong("", "both a program and many files or given draws", "use one of them");
    }
    if tenant.workers == 0 || tenant.depth == 0 {
        return wrong("", "no worker, or a depth of 0", "use at least 1");
    }
    if tenant.limit != Limit::Once {
        return wrong(".limit", "a limit beside a program", "use program.limit");
    }
    if tenant.rate_ops_per_s.is_some() || tenant.think_ns.0 > 0 {
        return wrong("", "a rate or pauses beside a program", "use program.pace, or think");
    }
    Ok(())
}

/// Looks for contradictions in one program.
pub(super) struct Checker<'a> {
    pub(super) workload: &'a Workload,
    pub(super) phase: &'a Phase,
    pub(super) program: &'a Program,
    path: String,
}

/// Fields that few nodes have: whether each is there, may be, must be.
fn rare_fields(node: &Node) -> [(&'static str, bool, bool, bool); 10] {
    let does = node.does;
    let is_semaphore = matches!(does, Deed::Post | Deed::Wait);
    let opens = does.opens() || node.opens_its_slot();
    let (limits, finishes) = (does == Deed::Limit, does == Deed::Finish);
    [
        ("is_broadcast", node.is_broadcast, is_semaphore, false),
        ("skips_closed", node.skips_closed, does == Deed::Fsync, false),
        ("events", node.events.is_some(), limits, limits),
        ("until", node.until.is_some(), finishes, finishes),
        ("under_way_percent", node.under_way_percent.is_some(), does == Deed::Await, false),
        ("rotates", node.rotates > 0, opens, false),
        ("is_write_only", node.is_write_only, does.opens() || does.uses_handle(), false),
        ("advice", node.advice.is_some(), does.opens() || does.uses_handle(), false),
        (
            "write_life",
            node.write_life != WriteLife::Unsaid,
            does.opens() || does.uses_handle(),
            false,
        ),
        ("is_counted", node.is_counted, !does.is_control(), false),
    ]
}

impl Checker<'_> {
    /// A contradiction below the program.
    pub(super) fn wrong(&self, below: &str, problem: impl Into<String>, remedy: &str) -> Found {
        Err(Problem::new(format!("{}.{below}", self.path), problem, remedy))
    }

    fn check(&self) -> Found {
        if self.program.steps.is_empty() && self.program.recorded.is_none() {
            return self.wrong("steps", "no steps", "give at least one");
        }
        self.check_pace()?;
        self.check_recorded()?;
        self.check_turn()?;
        self.check_beginning()?;
        let mut seen = BTreeSet::new();
        for (path, node) in self.program.nodes() {
            self.check_node(&path, node)?;
            let is_counted = node.is_operation() && path.starts_with("steps");
            if is_counted && !seen.insert(node.name()) {
                let problem = format!("a second step is called {}", node.name());
                return self.wrong(&path, problem, "give each an id of its own");
            }
        }
        if let Some(count) = &self.program.limit.count
            && !seen.contains(count.id.as_str())
        {
            let problem = format!("no step is called {}", count.id);
            return self.wrong("limit.count.id", problem, &self.near(&count.id));
        }
        let has_end = |node: &Node| node.does == Deed::Repeat && node.times.is_none();
        let mut all = self.program.before.iter().chain(&self.program.after);
        if all.any(has_end) {
            return self.wrong("before", "a repeat without end", "say how often: times = 3");
        }
        self.check_verified()?;
        self.check_end()?;
        self.check_waits()
    }

    /// Steps after the timed region, which meet nobody: a worker that is done is waited for no
    /// longer, so that a barrier there holds nobody back and opens for nobody.
    fn check_end(&self) -> Found {
        let mut nodes = self.program.nodes().into_iter();
        match nodes.find(|(path, node)| path.starts_with("after") && node.does == Deed::Barrier) {
            Some((path, _)) => {
                let problem = "a barrier after the timed region: nobody is waited for there";
                let remedy = "put it into steps or before, or leave it out";
                self.wrong(&path, problem, remedy)
            }
            None => Ok(()),
        }
    }

    /// Tenants that begin after others: each is there, and none waits for itself.
    fn check_turn(&self) -> Found {
        let mut next = self.program.begins_after.as_deref();
        if next.is_some() && self.phase.is_stonewalled {
            let problem = "a tenant that begins after another, which stops everybody when it ends";
            return self.wrong("begins_after", problem, "use is_stonewalled = false");
        }
        for _ in 0..=self.phase.tenants.len() {
            let Some(name) = next else { return Ok(()) };
            let programs = self.phase.tenants.iter().filter(|tenant| tenant.program.is_some());
            let mut known = programs.clone().filter(|tenant| tenant.name == name);
            let (Some(tenant), None) = (known.next(), known.next()) else {
                let names = programs.map(|tenant| tenant.name.as_str()).collect::<Vec<_>>();
                let remedy = format!("name one of: {}", names.join(", "));
                let problem = format!("{name} is not the name of one tenant with a program");
                return self.wrong("begins_after", problem, &remedy);
            };
            next = tenant.program.as_ref().and_then(|program| program.begins_after.as_deref());
        }
        self.wrong("begins_after", "tenants that wait for each other", "let one begin at once")
    }

    /// A tenant that begins at a barrier: somebody else comes there.
    fn check_beginning(&self) -> Found {
        let Some(name) = &self.program.begins_at else { return Ok(()) };
        if self.program.begins_after.is_some() {
            let problem = "a tenant that begins after another and at a barrier";
            return self.wrong("begins_at", problem, "leave one of them out");
        }
        let others = self.phase.tenants.iter().filter_map(|tenant| tenant.program.as_ref());
        let mut others = others.filter(|program| program.begins_at.as_ref() != Some(name));
        if others.any(|program| program.comes_to(name)) {
            return Ok(());
        }
        let problem = format!("no other tenant of this phase comes to the barrier {name}");
        self.wrong("begins_at", problem, "add a step that does `barrier` to another tenant")
    }

    fn check_pace(&self) -> Found {
        if let Some(rate) = self.program.rate()
            && !(rate.is_finite() && rate > 0.0)
        {
            return self.wrong("pace", format!("a rate of {rate}"), "use a number above 0");
        }
        if let Pace::Directions { reads_per_s, writes_per_s, .. } = self.program.pace {
            let rates = [reads_per_s, writes_per_s];
            if rates.iter().any(|rate| !rate.is_finite() || *rate < 0.0)
                || rates.iter().all(|rate| *rate <= 0.0)
            {
                let problem = format!("rates of {reads_per_s} reads and {writes_per_s} writes");
                return self.wrong("pace", problem, "use numbers from 0, one of them above 0");
            }
            let chooses = |node: &&Node| {
                let has = |does| node.steps.iter().filter(|step| step.does == does).count() == 1;
                node.does == Deed::Choose && has(Deed::Read) && has(Deed::Write)
            };
            if !self.program.steps.first().is_some_and(|first| chooses(&first)) {
                let problem = "rates of reads and of writes without a choice between the two";
                let remedy = "begin with a step that does `choose` of one read and one write";
                return self.wrong("pace", problem, remedy);
            }
        }
        if matches!(self.program.pace, Pace::Bursts { passes: 0, .. }) {
            return self.wrong("pace", "bursts of 0 passes", "use at least 1");
        }
        if self.program.flow.as_ref().is_some_and(|flow| flow.weight == 0) {
            return self.wrong("flow.weight", "a weight of 0", "use at least 1");
        }
        let limit = &self.program.limit;
        if [limit.passes, limit.ops].contains(&Some(0)) {
            return self.wrong("limit", "a limit of 0", "use at least 1");
        }
        Ok(())
    }

    /// Check that a semaphore that is waited for is posted by some tenant.
    fn check_waits(&self) -> Found {
        let programs = || self.phase.tenants.iter().filter_map(|tenant| tenant.program.as_ref());
        let is_posted = |name: &str| {
            let mut nodes = programs().flat_map(Program::nodes);
            nodes
                .any(|(_, node)| node.does == Deed::Post && node.semaphore.as_deref() == Some(name))
        };
        for (path, node) in self.program.nodes() {
            if let (Deed::Wait, Some(name)) = (node.does, &node.semaphore)
                && !is_posted(name)
            {
                let problem = format!("nobody in this phase posts the semaphore {name}");
                return self.wrong(&path, problem, "add a step that does `post`");
            }
        }
        Ok(())
    }

    /// Names of steps, as a hint.
    fn near(&self, name: &str) -> String {
        let nodes = self.program.nodes();
        let known: Vec<&str> = nodes.iter().map(|(_, node)| node.name()).collect();
        let nearest = iolab_model::nearest::nearest(name, known.iter().copied());
        nearest.map_or_else(
            || "name a step by its id".to_owned(),
            |nearest| format!("did you mean `{nearest}`?"),
        )
    }

    fn check_node(&self, path: &str, node: &Node) -> Found {
        self.check_fields(path, node)?;
        if !(node.weight.is_finite() && node.weight > 0.0) {
            return self.wrong(
                path,
                format!("a weight of {}", node.weight),
                "use a number above 0",
            );
        }
        let amounts = [
            ("times", &node.times),
            ("size_bytes", &node.size_bytes),
            ("count", &node.count),
            ("duration_ns", &node.duration_ns),
        ];
        for (field, amount) in amounts {
            if let Some((problem, remedy)) = amount.as_ref().and_then(Amount::problem) {
                return self.wrong(&format!("{path}.{field}"), problem, remedy);
            }
        }
        for (field, file) in [("file", &node.file), ("to_file", &node.to_file)] {
            if let Some(file) = file {
                self.check_file(&format!("{path}.{field}"), path, node, file)?;
            }
        }
        if let Some(key) = &node.key {
            self.check_key(&format!("{path}.key"), path, key)?;
        }
        for (index, local) in node.locals.iter().enumerate() {
            let here = format!("{path}.locals[{index}]");
            if local.file.is_some() == local.key.is_some() {
                return self.wrong(
                    &here,
                    "a variable of no kind, or of two",
                    "name a file or a key",
                );
            }
            if let Some(file) = &local.file {
                self.check_file(&format!("{here}.file"), path, node, file)?;
            }
            if let Some(key) = &local.key {
                self.check_key(&format!("{here}.key"), path, key)?;
            }
        }
        if let Some(every) = &node.every {
            let is_kind = every.of.parse::<OperationKind>().is_ok();
            if every.ops == 0 || !(is_kind || self.has_step(&every.of)) {
                let problem = format!("every {} of {}", every.ops, every.of);
                let remedy = "count at least 1 of a kind (read, write, sync, name, key_value) or \
                              of a step's id";
                return self.wrong(&format!("{path}.every"), problem, remedy);
            }
        }
        self.check_transfer(path, node)
    }

    /// Fields that are missing, or mean nothing for what the node does.
    fn check_fields(&self, path: &str, node: &Node) -> Found {
        let does = node.does;
        let is_key = matches!(does.group(), Group::KeyValue(..));
        let moves = matches!(does, Deed::Read | Deed::Write);
        let is_semaphore = matches!(does, Deed::Post | Deed::Wait);
        let takes_file = does.uses_handle() || does.opens() || does.uses_name();
        let needs_file = does.opens() || does.uses_name();
        let needs_size = (moves && !node.is_whole) || does == Deed::Truncate;
        // The length of a file that is served is set to the place where a transfer would begin.
        let is_served = node.file.as_ref().is_some_and(|file| file.by == FileBy::Served);
        let has_size = moves || does.has_range() || is_key || does == Deed::Truncate;
        let is_time = matches!(does, Deed::Think | Deed::Burn);
        let counts = is_semaphore || does == Deed::Scan;
        let (copies, writes_whole) = (does == Deed::Copy, does == Deed::Write && node.is_whole);
        // Field, whether it is there, whether it may be, whether it must be.
        let fields = [
            ("steps", !node.steps.is_empty(), does.is_control(), does.is_control()),
            ("locals", !node.locals.is_empty(), does == Deed::Composite, false),
            ("file", node.file.is_some(), takes_file, needs_file),
            ("to_file", node.to_file.is_some(), does.has_second_file(), does.has_second_file()),
            ("from_slot", node.from_slot.is_some(), copies || writes_whole, copies),
            (
                "slot",
                node.slot.is_some(),
                does.uses_handle() || does.opens() || does == Deed::Close,
                false,
            ),
            ("at", node.at.is_some(), does.has_range() || is_served, false),
            ("size_bytes", node.size_bytes.is_some(), has_size, needs_size),
            ("is_whole", node.is_whole, moves, false),
            ("position", node.position.is_some(), moves, false),
            ("path", node.path.is_some(), does.opens() || does.uses_handle(), false),
            ("is_truncating", node.is_truncating, does.opens(), false),
            ("flags", !node.flags.is_empty(), moves, false),
            ("vectors", node.vectors > 0, moves, false),
            ("verify", node.verify.is_some(), does == Deed::Read, false),
            ("under_way", node.under_way > 0, does == Deed::Await, false),
            ("key", node.key.is_some(), is_key, is_key),
            ("count", node.count.is_some(), counts, does == Deed::Scan),
            ("duration_ns", node.duration_ns.is_some(), is_time, is_time),
            ("semaphore", node.semaphore.is_some(), is_semaphore, is_semaphore),
            ("high_water", node.high_water.is_some(), does == Deed::Post, false),
            ("barrier", node.barrier.is_some(), does == Deed::Barrier, does == Deed::Barrier),
            (
                "is_submitted_only",
                node.is_submitted_only,
                !does.is_control() && does.is_operation() && !does.opens(),
                false,
            ),
        ];
        for (field, is_there, may_be, must_be) in fields.into_iter().chain(rare_fields(node)) {
            if is_there && !may_be {
                let problem = format!("`{field}` means nothing to a step that does {does}");
                return self.wrong(path, problem, "leave it out");
            }
            if must_be && !is_there {
                let problem = format!("a step that does {does} lacks `{field}`");
                return self.wrong(path, problem, "add it");
            }
        }
        if let Some((problem, remedy)) = events::problem(node) {
            return self.wrong(path, problem, remedy);
        }
        let Some(step) = node.counted_step() else { return Ok(()) };
        if self.has_step(step) {
            return Ok(());
        }
        self.wrong(path, format!("no step is called {step}"), &self.near(step))
    }

    fn has_step(&self, id: &str) -> bool {
        self.program.nodes().iter().any(|(_, node)| node.name() == id)
    }

    /// Tell whether a composite around a node has such a variable; of a key or of a file.
    fn has_local(&self, path: &str, name: &str, is_key: bool) -> bool {
        let is_around = |other: &str| path == other || path.starts_with(&format!("{other}."));
        self.program.nodes().iter().any(|(other, node)| {
            is_around(other)
                && node.locals.iter().any(|l| l.name == name && l.key.is_some() == is_key)
        })
    }

    fn check_file(&self, field: &str, path: &str, node: &Node, file: &FileChoice) -> Found {
        if let Some((problem, remedy)) = file.problem() {
            return self.wrong(field, problem, remedy);
        }
        if let Some(name) = &file.set
            && !self.workload.file_sets.iter().any(|set| set.name == *name)
        {
            let known = self.workload.file_sets.iter().map(|set| set.name.as_str());
            let hint = iolab_model::nearest::did_you_mean(name, known);
            let problem = format!("there is no set of files called {name}{hint}");
            return self.wrong(field, problem, "add it to file_sets");
        }
        if let Some(step) = file.step.as_ref().filter(|step| !self.has_step(step)) {
            return self.wrong(field, format!("no step is called {step}"), &self.near(step));
        }
        if let Some(name) = &file.local
            && !self.has_local(path, name, false)
        {
            let problem = format!("no composite around it has a file called {name}");
            return self.wrong(field, problem, "add it to the locals of the composite");
        }
        self.check_served(field, node, file)?;
        let makes = matches!(node.does, Deed::Create | Deed::MakeDirectory)
            || field.ends_with("to_file")
            || node.does == Deed::Composite;
        let is_absent = file.by.is_absent();
        let is_local = matches!(file.by, FileBy::Local | FileBy::Slot | FileBy::Same);
        if is_absent && !makes {
            let problem = format!("a step that does {} on a file that does not exist", node.does);
            return self.wrong(field, problem, "choose an existing one, or create it before");
        }
        let is_absent = is_absent || file.by == FileBy::Pick;
        if node.does == Deed::Create && !is_absent && !is_local {
            let problem = "a step that creates a file that exists";
            return self.wrong(field, problem, "choose by = \"absent\", or open it");
        }
        if node.does.uses_handle() && !is_local && !node.opens_its_slot() {
            self.check_kept(field, file)?;
        }
        Ok(())
    }

    /// Files that are served have a course; a flat set has no directories.
    fn check_served(&self, field: &str, node: &Node, file: &FileChoice) -> Found {
        let set = self.workload.file_sets.iter().find(|set| Some(&set.name) == file.set.as_ref());
        if node.does.is_of_directories() && set.is_some_and(|set| set.is_flat) {
            let problem = "directories of a set that has none".to_owned();
            return self.wrong(field, problem, "leave is_flat out");
        }
        if file.by != FileBy::Served {
            return Ok(());
        }
        let is_transfer = matches!(
            node.does,
            Deed::Read
                | Deed::Write
                | Deed::Discard
                | Deed::Punch
                | Deed::Allocate
                | Deed::Truncate
        );
        let has_course = node.at.as_ref().is_some_and(|at| at.course.is_some());
        if !is_transfer || !has_course || node.size_bytes.is_none() || node.is_whole {
            let problem = "a file that is served to a step without a course and a size";
            let remedy = "let a transfer, allocation or truncation have size_bytes and at.course";
            return self.wrong(field, problem, remedy);
        }
        Ok(())
    }

    /// Files that are kept open must stay the same files.
    fn check_kept(&self, field: &str, file: &FileChoice) -> Found {
        let Some(set) = &file.set else { return Ok(()) };
        let moves = |node: &Node| {
            matches!(node.does, Deed::Unlink | Deed::Create | Deed::Rename | Deed::Link)
        };
        let programs = self.phase.tenants.iter().filter_map(|tenant| tenant.program.as_ref());
        let is_moving = |own: &Program| {
            own.nodes().iter().any(|(_, node)| {
                let files = node.file.iter().chain(&node.to_file);
                moves(node) && files.filter_map(|f| f.set.as_ref()).any(|name| name == set)
            })
        };
        if programs.into_iter().any(is_moving) {
            let problem = format!("files of the set {set} come and go, and this step keeps them");
            return self.wrong(field, problem, "open one into a slot, use the slot, close it");
        }
        let files = self.workload.file_sets.iter().find(|known| known.name == *set);
        if let Some(files) = files.filter(|files| files.files > OPEN_MAX) {
            let problem = format!("{} files that are kept open", files.files);
            return self.wrong(field, problem, "open one into a slot, use the slot, close it");
        }
        Ok(())
    }

    fn check_key(&self, field: &str, path: &str, key: &KeyChoice) -> Found {
        if let Some((problem, remedy)) = key.problem() {
            return self.wrong(field, problem, remedy);
        }
        if let Some(name) = &key.space
            && !self.workload.key_spaces.iter().any(|space| space.name == *name)
        {
            let problem = format!("there is no key space called {name}");
            return self.wrong(field, problem, "add it to key_spaces");
        }
        if let Some(step) = key.step.as_ref().filter(|step| !self.has_step(step)) {
            return self.wrong(field, format!("no step is called {step}"), &self.near(step));
        }
        if key.by == KeyBy::Local
            && !key.local.as_ref().is_some_and(|name| self.has_local(path, name, true))
        {
            let problem = "no composite around it has such a key".to_owned();
            return self.wrong(field, problem, "add it to the locals of the composite");
        }
        Ok(())
    }

    fn check_transfer(&self, path: &str, node: &Node) -> Found {
        if let Some(at) = &node.at {
            if let Some((problem, remedy)) = at.problem() {
                return self.wrong(&format!("{path}.at"), problem, remedy);
            }
            if let Some(step) = at.of.as_ref().filter(|step| !self.has_step(step)) {
                let problem = format!("no step is called {step}");
                return self.wrong(&format!("{path}.at.of"), problem, &self.near(step));
            }
        }
        let is_served = node.file.as_ref().is_some_and(|file| file.by == FileBy::Served);
        if node.at.as_ref().is_some_and(|at| at.course.is_some()) && !is_served {
            let problem = "a course through a file that is not served";
            return self.wrong(&format!("{path}.at.course"), problem, "use file by = \"served\"");
        }
        let moves = matches!(node.does, Deed::Read | Deed::Write);
        if !moves {
            return Ok(());
        }
        let positioned = node.positioned();
        if positioned == Positioned::At && node.at.is_none() && !node.is_whole {
            return self.wrong(
                path,
                "a transfer at a place without `at`",
                "say where: at = { ... }",
            );
        }
        if positioned != Positioned::At && node.at.is_some() {
            return self.wrong(path, "both a place and another position", "leave one out");
        }
        if positioned == Positioned::Append && node.does == Deed::Read {
            return self.wrong(path, "a read at the end of the file", "read at a place");
        }
        if node.is_submitted_only && positioned == Positioned::Current {
            let problem = "transfers at the handle's position that overtake each other";
            return self.wrong(path, problem, "say where they are: at = { ... }");
        }
        let size = node.size_bytes.as_ref();
        if size.is_some_and(|size| size.most() == 0) {
            return self.wrong(path, "transfers of 0 bytes", "use at least 1");
        }
        self.check_alignment(path, node)
    }

    /// Direct I/O moves whole sectors.
    fn check_alignment(&self, path: &str, node: &Node) -> Found {
        let nodes = self.program.nodes();
        let opens = nodes
            .iter()
            .map(|(_, other)| *other)
            .filter(|other| other.does.opens() && other.slot == node.slot && node.file.is_none());
        let is_direct = opens.chain([node]).any(|opener| opener.path == Some(DataPath::Direct));
        if !is_direct {
            return Ok(());
        }
        let sizes = node.size_bytes.as_ref().map(Amount::corners).unwrap_or_default();
        let unit = node.at.as_ref().and_then(|at| at.unit_bytes).map(|unit| unit.0);
        let from = node.at.as_ref().map(|at| at.from_bytes.0);
        let mut all = sizes.into_iter().chain(unit).chain(from);
        match all.find(|bytes| bytes % DIRECT_UNIT != 0) {
            Some(odd) => {
                let problem = format!("direct I/O in units of {odd} bytes");
                self.wrong(path, problem, "use multiples of 512 bytes, or the page cache")
            }
            None => Ok(()),
        }
    }
}

/// Most files that a step keeps open by itself: a quarter of the descriptors that an agent has.
pub const OPEN_MAX: u64 = 1 << 14;

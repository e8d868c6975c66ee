//! Flow operations as steps of a program.

use std::collections::{BTreeMap, BTreeSet};

use iolab_model::Bytes;
use iolab_model::nearest::did_you_mean;
use iolab_model::op::{Advice, Durability};
use iolab_workload::program::{
    Amount, DataPath, Deed, Events, EventsFor, FileBy, FileChoice, Node, Pick, Place, Positioned,
    Spread, Until, WhenNone,
};

use super::expansion::{DEPTH_MAX, in_itself};
use super::filesets::Lowered;
use super::lex::ScriptFault;
use super::random::scaled;
use super::scope::ScriptScope;
use super::script::Script;
use super::syntax::{Flowop, Givens, Quit};
use super::words::{Attribute, FlowopKind, FlowopRow};

type Result<T> = std::result::Result<T, ScriptFault>;

/// Number of descriptor slots of a thread.
const SLOTS: u64 = 128;
/// Nanoseconds of a store to memory that is repeated.
const STORE_NS: f64 = 0.25;
/// Bytes that direct I/O needs beside a transfer, to lie aligned.
const ALIGNMENT: u64 = 512;
/// Name of the only source of events.
const SOURCE: &str = "eventgen";

/// A flow operation that is told in the report.
#[derive(Clone, Debug)]
pub struct Told {
    /// Name in the report.
    pub name: String,
    /// Kind; absent: a composite.
    pub row: Option<&'static FlowopRow>,
    /// Id of the step; absent: nothing is done.
    pub id: Option<String>,
}

/// Facts about all threads.
pub struct StepsContext<'a> {
    /// The script.
    pub script: &'a Script,
    /// Its filesets.
    pub files: &'a [Lowered],
    /// Instances and highwater of each semblock, by name.
    pub semaphores: &'a BTreeMap<String, (u64, u64)>,
    /// Names of the flowops that block.
    pub blocks: &'a BTreeSet<String>,
}

/// Steps of a thread.
pub struct Steps<'a> {
    context: &'a StepsContext<'a>,
    scope: ScriptScope,
    /// Bytes of its memory; 0: not limited.
    memory: u64,
    /// Flow operations that are told, in order.
    pub told: Vec<Told>,
    ids: BTreeSet<String>,
    /// Composites around.
    around: Vec<String>,
    /// Aiowrites of one time through.
    pub asynchronous: u64,
    /// Slots that hold files of a set: for fsyncset.
    slots: BTreeMap<String, BTreeSet<u64>>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Steps whose target is looked for when all are known.
    targets: Vec<(String, super::lex::ScriptSpot)>,
}

fn wrong<T>(given: &Givens, what: impl Into<String>, remedy: &str) -> Result<T> {
    Err(ScriptFault::new(given.spot, what, remedy))
}

impl<'a> Steps<'a> {
    /// Steps of a thread with so much memory.
    pub fn new(context: &'a StepsContext<'a>, memory: u64) -> Self {
        Self {
            context,
            scope: context.script.scope.clone(),
            memory,
            told: Vec::new(),
            ids: BTreeSet::new(),
            around: Vec::new(),
            asynchronous: 0,
            slots: BTreeMap::new(),
            notes: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// The steps of the loop of a thread.
    pub fn of(&mut self, flowops: &[Flowop]) -> Result<Vec<Node>> {
        self.note_slots(flowops)?;
        let mut nodes = Vec::new();
        self.add_all(flowops, "", 1, &mut nodes)?;
        for (target, spot) in &self.targets {
            if !self.ids.contains(target) {
                let known = self.ids.iter().map(String::as_str);
                let what = format!("flowop {target} not found{}", did_you_mean(target, known));
                return Err(ScriptFault::new(*spot, what, "name a flowop of the same thread"));
            }
        }
        Ok(nodes)
    }

    /// Notes which slots may hold files of which set.
    fn note_slots(&mut self, flowops: &[Flowop]) -> Result<()> {
        for flowop in flowops {
            if let Some(composite) = self.context.script.composites.get(&flowop.kind)
                && flowop.row.is_none()
                && self.around.len() < DEPTH_MAX
            {
                let inner = composite.flowops.clone();
                self.enter(flowop)?;
                let done = self.note_slots(&inner);
                self.leave();
                done?;
            }
            let Some(name) = self.scope.text(&flowop.given, Attribute::FileName)? else { continue };
            let fd = self.slot(&flowop.given, Attribute::Fd)?;
            let slots = self.slots.entry(name).or_default();
            if self.scope.switch(&flowop.given, Attribute::OpenNext)? {
                slots.extend(0..SLOTS);
            } else {
                slots.insert(fd);
            }
        }
        Ok(())
    }

    fn add_all(
        &mut self,
        flowops: &[Flowop],
        prefix: &str,
        times: u64,
        nodes: &mut Vec<Node>,
    ) -> Result<()> {
        for flowop in flowops {
            let Some(name) = self.scope.text(&flowop.given, Attribute::Name)? else {
                return wrong(&flowop.given, "a flowop without a name", "write name=NAME");
            };
            let name = format!("{prefix}{name}");
            match flowop.row {
                None => self.add_composite(flowop, &name, times, nodes)?,
                Some(row) => self.add(flowop, row, (name, times), nodes)?,
            }
        }
        Ok(())
    }

    /// Parameters of a call: resolved where it stands.
    fn enter(&mut self, flowop: &Flowop) -> Result<()> {
        let composite = &self.context.script.composites[&flowop.kind];
        let mut frame = BTreeMap::new();
        for (parameter, default) in &composite.parameters {
            let given = flowop.parameters.iter().rev().find(|(name, _)| name == parameter);
            if let Some(placed) = given.map(|given| &given.1).or(default.as_ref()) {
                frame.insert(parameter.clone(), self.scope.resolve(placed)?);
            }
        }
        for (name, placed) in &flowop.parameters {
            let known = composite.parameters.iter().map(|parameter| parameter.0.as_str());
            if !known.clone().any(|parameter| parameter == name) {
                let hint = did_you_mean(name, known);
                let what = format!("{} has no parameter ${name}{hint}", flowop.kind);
                return Err(ScriptFault::new(placed.spot, what, "write it in its definition"));
            }
        }
        self.scope.parameters.push(frame);
        self.around.push(flowop.kind.clone());
        Ok(())
    }

    fn leave(&mut self) {
        self.scope.parameters.pop();
        self.around.pop();
    }

    fn add_composite(
        &mut self,
        flowop: &Flowop,
        name: &str,
        times: u64,
        nodes: &mut Vec<Node>,
    ) -> Result<()> {
        if self.around.contains(&flowop.kind) || self.around.len() >= DEPTH_MAX {
            return Err(in_itself(flowop));
        }
        self.told.push(Told { name: name.to_owned(), row: None, id: None });
        let iters = self.scope.amount(&flowop.given, Attribute::Iters)?;
        let composite = self.context.script.composites[&flowop.kind].flowops.clone();
        self.enter(flowop)?;
        let mut inner = Vec::new();
        let most = iters.as_ref().map_or(1, Amount::most).max(1);
        let prefix = format!("{name}.");
        let done = self.add_all(&composite, &prefix, times.saturating_mul(most), &mut inner);
        self.leave();
        done?;
        if !inner.is_empty() {
            let repeat = Node { times: iters, steps: inner, ..Node::new(Deed::Sequence) };
            nodes.push(repeat);
        }
        Ok(())
    }

    /// An id of its own for a step of this name.
    fn id(&mut self, name: &str) -> String {
        let mut id = name.to_owned();
        let mut number = 1;
        while !self.ids.insert(id.clone()) {
            number += 1;
            id = format!("{name}#{number}");
        }
        id
    }

    fn add(
        &mut self,
        flowop: &Flowop,
        row: &'static FlowopRow,
        (name, times): (String, u64),
        nodes: &mut Vec<Node>,
    ) -> Result<()> {
        let made = self.nodes(flowop, row, &name)?;
        let iters = self.scope.amount(&flowop.given, Attribute::Iters)?;
        if row.kind == FlowopKind::AioWrite {
            let most = iters.as_ref().map_or(1, Amount::most);
            self.asynchronous = self.asynchronous.saturating_add(times.saturating_mul(most));
        }
        if made.is_empty() {
            self.told.push(Told { name: name.clone(), row: Some(row), id: None });
        }
        for mut node in made {
            let id = self.id(&name);
            self.told.push(Told { name: name.clone(), row: Some(row), id: Some(id.clone()) });
            node.id = Some(id);
            node.times.clone_from(&iters);
            nodes.push(node);
        }
        Ok(())
    }

    fn slot(&self, given: &Givens, attribute: Attribute) -> Result<u64> {
        let slot = self.scope.number(given, attribute, 0)?;
        if slot < SLOTS {
            return Ok(slot);
        }
        wrong(given, format!("descriptor slot {slot}"), "write a number from 0 to 127")
    }

    /// The set that a flow operation names.
    fn set(&self, given: &Givens, name: &str) -> Result<Option<&'a Lowered>> {
        let Some(wanted) = self.scope.text(given, Attribute::FileName)? else { return Ok(None) };
        let found = self.context.files.iter().find(|files| files.set.name == wanted);
        if found.is_none() {
            let known = self.context.files.iter().map(|files| files.set.name.as_str());
            let spot = given.find(Attribute::FileName).map_or(given.spot, |it| it.value.spot);
            let hint = did_you_mean(&wanted, known);
            let what = format!("flowop {name}: file {wanted} not found{hint}");
            return Err(ScriptFault::new(spot, what, "write define file or define fileset for it"));
        }
        Ok(found)
    }

    fn named_set(&self, given: &Givens, name: &str) -> Result<&'a Lowered> {
        match self.set(given, name)? {
            Some(set) => Ok(set),
            None => {
                wrong(given, format!("flowop {name} names no fileset"), "write filesetname=NAME")
            }
        }
    }

    /// Choice of the next file of a set; `is_new`: of one that does not exist.
    fn choice(&self, given: &Givens, set: &Lowered, is_new: bool) -> Result<FileChoice> {
        let indexed = self.scope.amount(given, Attribute::Indexed)?;
        let is_own = self.scope.switch(given, Attribute::OpenNext)?;
        let (by, pick) = match indexed {
            Some(number) => (FileBy::Pick, Some(Pick::Drawn { number })),
            None if is_new => (FileBy::NextAbsent, None),
            // Each thread goes through all of them for itself.
            None if is_own => (FileBy::Pick, Some(Pick::Sequential)),
            None => (FileBy::Next, None),
        };
        Ok(FileChoice { set: Some(set.set.name.clone()), pick, ..self.by(by) })
    }

    /// Way in which a step opens files.
    fn opening(&self, given: &Givens, node: &mut Node, set: &Lowered) -> Result<()> {
        (node.is_read_only, node.is_write_only) = (set.is_read_only, set.is_write_only);
        if self.scope.switch(given, Attribute::DirectIo)? {
            node.path = Some(DataPath::Direct);
        }
        if self.scope.switch(given, Attribute::DSync)? {
            node.durability = Durability::Sync;
        }
        if self.scope.switch(given, Attribute::NoReadahead)? {
            node.advice = Some(Advice::Random);
        }
        Ok(())
    }

    /// Slot of a step, and the file that it opens there where the slot is closed.
    fn on_slot(&self, given: &Givens, name: &str, node: &mut Node) -> Result<()> {
        self.plain_slot(given, node)?;
        if let Some(set) = self.set(given, name)? {
            node.file = Some(self.choice(given, set, false)?);
            self.opening(given, node, set)?;
        }
        Ok(())
    }

    fn plain_slot(&self, given: &Givens, node: &mut Node) -> Result<()> {
        node.slot = Some(self.slot(given, Attribute::Fd)?.to_string());
        if self.scope.switch(given, Attribute::OpenNext)? {
            node.rotates = SLOTS as u16;
        }
        Ok(())
    }

    /// Bytes of an operation, which must be some.
    fn bytes(&self, given: &Givens, name: &str) -> Result<Amount> {
        let amount = self.scope.amount(given, Attribute::IoSize)?.unwrap_or(Amount::Constant(0));
        if amount.most() == 0 {
            return wrong(
                given,
                format!("zero iosize for thread {name}"),
                "write for instance iosize=8k",
            );
        }
        let extra = if self.scope.switch(given, Attribute::DirectIo)? { ALIGNMENT } else { 0 };
        if self.memory > 0 && amount.least().saturating_add(extra) > self.memory {
            let what = format!("tf_memsize smaller than IO size for thread {name}");
            return wrong(given, what, "write a larger memsize, or a smaller iosize");
        }
        Ok(amount)
    }

    /// The steps of a flow operation: one, as a rule.
    fn nodes(&mut self, flowop: &Flowop, row: &'static FlowopRow, name: &str) -> Result<Vec<Node>> {
        let given = &flowop.given;
        let node = match row.kind {
            FlowopKind::OpenFile | FlowopKind::CreateFile => self.open(given, row.kind, name)?,
            FlowopKind::CloseFile => {
                let mut node = Node::new(Deed::Close);
                node.slot = Some(self.slot(given, Attribute::Fd)?.to_string());
                node
            }
            FlowopKind::DeleteFile | FlowopKind::StatFile => self.named(given, row.kind, name)?,
            FlowopKind::Read
            | FlowopKind::Write
            | FlowopKind::AioWrite
            | FlowopKind::AppendFile
            | FlowopKind::AppendFileRand => self.transfer(given, row.kind, name)?,
            FlowopKind::ReadWholeFile | FlowopKind::WriteWholeFile => {
                self.whole(given, row.kind, name)?
            }
            FlowopKind::Fsync => {
                let mut node = Node::new(Deed::Fsync);
                node.slot = Some(self.slot(given, Attribute::Fd)?.to_string());
                node
            }
            FlowopKind::FsyncSet => return self.fsync_set(given, name),
            FlowopKind::MakeDir | FlowopKind::RemoveDir | FlowopKind::ListDir => {
                self.directory(given, row.kind, name)?
            }
            FlowopKind::AioWait => {
                Node { under_way_percent: Some(50), is_counted: true, ..Node::new(Deed::Await) }
            }
            FlowopKind::Delay | FlowopKind::Hog => match self.time(given, row.kind)? {
                Some(node) => node,
                None => return Ok(Vec::new()),
            },
            FlowopKind::Block | FlowopKind::Wakeup => self.block(given, row.kind, name)?,
            FlowopKind::SemBlock | FlowopKind::SemPost => self.semaphore(given, row.kind, name)?,
            FlowopKind::EventLimit
            | FlowopKind::OpsLimit
            | FlowopKind::IopsLimit
            | FlowopKind::BwLimit => match self.limit(given, row.kind)? {
                Some(node) => node,
                None => return Ok(Vec::new()),
            },
            FlowopKind::FinishOnCount | FlowopKind::FinishOnBytes => {
                self.finish(given, row.kind)?
            }
            FlowopKind::Print | FlowopKind::TestRandVar => {
                self.notes
                    .push(format!("{}: {} prints nothing while it is measured", name, row.name));
                return Ok(Vec::new());
            }
        };
        Ok(vec![node])
    }

    fn open(&self, given: &Givens, kind: FlowopKind, name: &str) -> Result<Node> {
        let is_new = kind == FlowopKind::CreateFile;
        let mut node = Node::new(if is_new { Deed::Create } else { Deed::Open });
        let set = self.named_set(given, name)?;
        self.plain_slot(given, &mut node)?;
        node.file = Some(self.choice(given, set, is_new)?);
        self.opening(given, &mut node, set)?;
        Ok(node)
    }

    /// A step on a file by its name: that of a slot above 0, or the next one.
    fn named(&self, given: &Givens, kind: FlowopKind, name: &str) -> Result<Node> {
        let does = if kind == FlowopKind::DeleteFile { Deed::Unlink } else { Deed::Stat };
        let fd = self.slot(given, Attribute::Fd)?;
        let set = self.set(given, name)?;
        let file = match (fd, set) {
            (0, None) => {
                let what = format!("flowop {name} names no fileset");
                return wrong(given, what, "write filesetname=NAME, or fd=1");
            }
            (0, Some(set)) => self.choice(given, set, false)?,
            (fd, set) => FileChoice {
                slot: Some(fd.to_string()),
                set: set.map(|set| set.set.name.clone()),
                when_none: if set.is_some() { self.when_none() } else { WhenNone::Skip },
                ..self.by(FileBy::Slot)
            },
        };
        Ok(Node { file: Some(file), ..Node::new(does) })
    }

    fn transfer(&self, given: &Givens, kind: FlowopKind, name: &str) -> Result<Node> {
        let is_read = kind == FlowopKind::Read;
        let mut node = Node::new(if is_read { Deed::Read } else { Deed::Write });
        self.on_slot(given, name, &mut node)?;
        let bytes = self.bytes(given, name)?;
        let is_random = self.scope.switch(given, Attribute::AtRandom)?;
        match kind {
            FlowopKind::AppendFile => node.position = Some(Positioned::Append),
            FlowopKind::AppendFileRand => {
                node.position = Some(Positioned::Append);
                // Also an operation where chance says 0 bytes.
                node.is_counted = true;
            }
            FlowopKind::AioWrite if !is_random => {
                let what = format!("aiowrite {name} without random");
                return wrong(given, what, "add random: the original fails without it");
            }
            _ if is_random => {
                let within = self.scope.number(given, Attribute::WorkingSet, 0)?;
                let within_bytes = (within > 0).then_some(Bytes(within));
                node.at =
                    Some(Place { pick: Some(Pick::Uniform), within_bytes, ..Place::default() });
            }
            _ => {}
        }
        node.is_submitted_only = kind == FlowopKind::AioWrite;
        node.size_bytes = Some(match (kind, bytes) {
            (FlowopKind::AppendFileRand, Amount::Constant(bytes)) => {
                Amount::Drawn(Spread::Uniform { from: 0, to: bytes - 1, step: 1 })
            }
            (FlowopKind::AppendFileRand, of) => Amount::Drawn(Spread::Below { of: Box::new(of) }),
            (_, bytes) => bytes,
        });
        Ok(node)
    }

    fn whole(&self, given: &Givens, kind: FlowopKind, name: &str) -> Result<Node> {
        let is_read = kind == FlowopKind::ReadWholeFile;
        let mut node = Node::new(if is_read { Deed::Read } else { Deed::Write });
        self.on_slot(given, name, &mut node)?;
        node.is_whole = true;
        node.size_bytes = match self.scope.amount(given, Attribute::IoSize)? {
            Some(amount) if amount.most() > 0 => Some(self.bytes(given, name)?),
            _ => None,
        };
        if !is_read {
            node.from_slot = Some(self.slot(given, Attribute::SrcFd)?.to_string());
            node.position = Some(Positioned::Current);
        }
        Ok(node)
    }

    /// One step for each slot that may hold a file of the set.
    fn fsync_set(&self, given: &Givens, name: &str) -> Result<Vec<Node>> {
        let set = self.named_set(given, name)?;
        let slots = self.slots.get(&set.set.name).cloned().unwrap_or_default();
        let node = |slot: u64| Node {
            slot: Some(slot.to_string()),
            skips_closed: true,
            ..Node::new(Deed::Fsync)
        };
        Ok(slots.into_iter().map(node).collect())
    }

    fn directory(&self, given: &Givens, kind: FlowopKind, name: &str) -> Result<Node> {
        let set = self.named_set(given, name)?;
        let (does, is_new) = match kind {
            FlowopKind::MakeDir => (Deed::MakeDirectory, true),
            FlowopKind::RemoveDir => (Deed::RemoveDirectory, false),
            _ => (Deed::ListDirectory, false),
        };
        if does != Deed::ListDirectory && set.set.tree.leaf_directories == 0 {
            let what = format!("flowop {name}: fileset {} has no leafdirs", set.set.name);
            return wrong(given, what, "write leafdirs=100 in its definition");
        }
        Ok(Node { file: Some(self.choice(given, set, is_new)?), ..Node::new(does) })
    }

    fn time(&self, given: &Givens, kind: FlowopKind) -> Result<Option<Node>> {
        let value = self.scope.amount(given, Attribute::Amount)?.unwrap_or(Amount::Constant(1));
        let (does, factor) = match kind {
            FlowopKind::Delay => (Deed::Think, 1e9),
            _ if self.memory == 0 => return Ok(None),
            _ => (Deed::Burn, STORE_NS),
        };
        let duration_ns = Some(scaled(&value, factor));
        Ok(Some(Node { duration_ns, is_counted: true, ..Node::new(does) }))
    }

    /// Name of the flowop that another one is about.
    fn target(&self, given: &Givens, name: &str) -> Result<String> {
        match self.scope.text(given, Attribute::Target)? {
            Some(target) => Ok(target),
            None => wrong(given, format!("flowop {name} without target"), "write target=FLOWOP"),
        }
    }

    fn block(&self, given: &Givens, kind: FlowopKind, name: &str) -> Result<Node> {
        let is_block = kind == FlowopKind::Block;
        let target = if is_block { name.to_owned() } else { self.target(given, name)? };
        if !self.context.blocks.contains(&target) {
            let known = self.context.blocks.iter().map(String::as_str);
            let what = format!("flowop {target} not found{}", did_you_mean(&target, known));
            return wrong(given, what, "name a flowop that blocks");
        }
        Ok(Node {
            semaphore: Some(format!("block {target}")),
            is_broadcast: true,
            is_counted: true,
            ..Node::new(if is_block { Deed::Wait } else { Deed::Post })
        })
    }

    fn semaphore(&self, given: &Givens, kind: FlowopKind, name: &str) -> Result<Node> {
        let is_block = kind == FlowopKind::SemBlock;
        let target = if is_block { name.to_owned() } else { self.target(given, name)? };
        let Some((instances, highwater)) = self.context.semaphores.get(&target).copied() else {
            let known = self.context.semaphores.keys().map(String::as_str);
            let what = format!("flowop {target} not found{}", did_you_mean(&target, known));
            return wrong(given, what, "name a flowop that is a semblock");
        };
        let value = self.scope.amount(given, Attribute::Amount)?.unwrap_or(Amount::Constant(1));
        // Each instance of the target gets what is posted.
        let count = if is_block { value } else { scaled(&value, instances as f64) };
        let is_blocking = !is_block && self.scope.switch(given, Attribute::Blocking)?;
        Ok(Node {
            semaphore: Some(target),
            count: Some(count),
            high_water: is_blocking.then(|| highwater.saturating_mul(instances)),
            is_counted: true,
            ..Node::new(if is_block { Deed::Wait } else { Deed::Post })
        })
    }

    fn limit(&mut self, given: &Givens, kind: FlowopKind) -> Result<Option<Node>> {
        let of = self.own_target(given)?;
        let rate = self.context.script.events_per_s;
        if rate == 0 {
            return Ok(None);
        }
        let each = match kind {
            FlowopKind::EventLimit => EventsFor::Step,
            FlowopKind::OpsLimit => EventsFor::Operation,
            FlowopKind::IopsLimit => EventsFor::Transfer,
            _ => EventsFor::Mebibyte,
        };
        let of = if each == EventsFor::Step { None } else { of };
        let events = Some(Events { source: SOURCE.into(), per_s: rate as f64, each, of });
        Ok(Some(Node { events, is_counted: true, ..Node::new(Deed::Limit) }))
    }

    /// A flowop of the same thread that another one is about, if it names one.
    fn own_target(&mut self, given: &Givens) -> Result<Option<String>> {
        let Some(target) = self.scope.text(given, Attribute::Target)? else { return Ok(None) };
        self.targets.push((target.clone(), given.spot));
        Ok(Some(target))
    }

    fn finish(&mut self, given: &Givens, kind: FlowopKind) -> Result<Node> {
        let of = self.own_target(given)?;
        let value = self.scope.number(given, Attribute::Amount, 1)?;
        // In mode timeout whoever is done before its time spoils the run.
        let fails = self.context.script.quit == Quit::Timeout;
        let until = match kind {
            FlowopKind::FinishOnCount => Until { ops: Some(value), bytes: None, of, fails },
            _ => Until { ops: None, bytes: Some(value), of, fails },
        };
        Ok(Node { until: Some(until), is_counted: true, ..Node::new(Deed::Finish) })
    }

    /// Reaction where a set has no file left: in mode timeout it spoils the run, otherwise the
    /// thread has no more to do.
    fn when_none(&self) -> WhenNone {
        match self.context.script.quit {
            Quit::Timeout => WhenNone::Fail,
            Quit::FirstDone | Quit::AllDone => WhenNone::End,
        }
    }

    /// A choice by a rule.
    fn by(&self, by: FileBy) -> FileChoice {
        FileChoice {
            by,
            set: None,
            pick: None,
            slot: None,
            step: None,
            local: None,
            stay: 0,
            is_own: false,
            when_none: self.when_none(),
        }
    }
}

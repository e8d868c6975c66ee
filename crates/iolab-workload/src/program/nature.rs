//! Kind, size and way to the data of each operation of a program.

use iolab_model::op::Access;

use super::amount::Amount;
use super::deed::{Deed, Group};
use super::description::Program;
use super::node::{DataPath, Node, Positioned};
use crate::operation::{Nature, OperationKind};

/// Id and nature of each operation that is counted, in the order of the steps; a composite stands
/// before its parts.
pub fn natures(program: &Program) -> Vec<(String, Nature)> {
    let mut found = Vec::new();
    for node in &program.steps {
        add(node, program, &mut found);
    }
    found
}

fn add(node: &Node, program: &Program, found: &mut Vec<(String, Nature)>) {
    if node.is_operation() {
        found.push((node.name().to_owned(), of_node(node, program)));
    }
    for inner in &node.steps {
        add(inner, program, found);
    }
}

/// Nature of a step or a composite.
pub(super) fn of_node(node: &Node, program: &Program) -> Nature {
    if node.does == Deed::Composite {
        return of_composite(node);
    }
    let (reads, writes) = directions(node.does);
    let moves = reads || writes;
    let size = node.size_bytes.as_ref().and_then(Amount::constant);
    Nature {
        kind: node.does.kind(),
        reads,
        writes,
        io_size_bytes: size.filter(|_| moves && !node.is_whole),
        access: access_of(node, program),
    }
}

fn directions(does: Deed) -> (bool, bool) {
    match does.group() {
        _ if does == Deed::Copy => (true, true),
        Group::Transfer(writes) => (!writes, writes),
        Group::KeyValue(reads, writes) => (reads, writes),
        _ => (false, false),
    }
}

/// Nature of a composite as a whole.
fn of_composite(node: &Node) -> Nature {
    let mut nature = Nature::NONE;
    let (mut kinds, mut is_update) = (Vec::new(), false);
    let mut left: Vec<&Node> = node.steps.iter().collect();
    while let Some(inner) = left.pop() {
        left.extend(&inner.steps);
        if inner.does.is_operation() && inner.does != Deed::Composite {
            kinds.push(inner.does.kind());
        }
        let (reads, writes) = directions(inner.does);
        (nature.reads, nature.writes) = (nature.reads || reads, nature.writes || writes);
        let goes_back = inner.at.as_ref().is_some_and(|at| at.of.is_some() && at.plus_bytes == 0);
        is_update |= inner.does == Deed::Write && goes_back;
    }
    let has = |kind| kinds.contains(&kind);
    nature.kind = match kinds.first() {
        _ if has(OperationKind::Read) && has(OperationKind::Write) => {
            if is_update {
                OperationKind::Update
            } else {
                OperationKind::Mixed
            }
        }
        Some(first) if kinds.iter().all(|kind| kind == first) => *first,
        _ if has(OperationKind::Write) => OperationKind::Write,
        _ if has(OperationKind::Read) => OperationKind::Read,
        _ => OperationKind::Other,
    };
    nature
}

impl Program {
    /// Tell whether all of its reads and writes go past the page cache.
    pub fn is_direct(&self) -> bool {
        let nodes = self.nodes();
        let mut ways = nodes
            .iter()
            .filter(|(_, node)| matches!(node.does, Deed::Read | Deed::Write | Deed::Copy))
            .map(|(_, node)| access_of(node, self))
            .peekable();
        ways.peek().is_some() && ways.all(|way| way == Some(Access::Direct))
    }
}

/// Access of a step's file, if that is the same each time.
fn access_of(node: &Node, program: &Program) -> Option<Access> {
    if !matches!(node.does, Deed::Read | Deed::Write | Deed::Copy) {
        return None;
    }
    if node.positioned() == Positioned::Append {
        return Some(Access::Append);
    }
    let way = |path: DataPath| match path {
        DataPath::Cached => Access::Plain,
        DataPath::Direct => Access::Direct,
        DataPath::Mapped => Access::Mapped,
        DataPath::Stdio => Access::Stdio,
    };
    if node.file.is_some() {
        return Some(way(node.path.unwrap_or_default()));
    }
    let nodes = program.nodes();
    let opens = nodes.iter().filter(|(_, other)| other.does.opens() && other.slot == node.slot);
    let mut paths = opens.map(|(_, other)| other.path.unwrap_or_default());
    let first = paths.next()?;
    paths.all(|path| path == first).then(|| way(first))
}

//! A program with its names resolved: what a worker runs.

use super::amount::Amount;
use super::choice::{FileBy, FileChoice, KeyBy, KeyChoice};
use super::deed::Deed;
use super::description::Program;
use super::nature;
use super::node::Node;
use super::stage::Stage;
use crate::operation::{Nature, OperationKind};

/// A program as an arena of nodes.
#[derive(Debug)]
pub struct Code {
    pub(super) flats: Vec<Flat>,
    /// Nodes of `before`, `steps` and `after`.
    pub(super) lists: [Vec<usize>; 3],
    /// Handle slots, by name.
    pub(super) slots: Vec<String>,
    /// Counters, in the order of the nodes.
    pub(super) tallies: Vec<Counted>,
    pub(super) program: Program,
    pub(super) flow: Option<usize>,
    /// Tally whose count is limited, and how many.
    pub(super) counted: Option<(usize, u64)>,
    /// The barrier at which it begins.
    pub(super) begins_at: Option<usize>,
    /// Slots that are taken in turn, in order.
    pub(super) rotation: Vec<usize>,
}

/// Counter of an id.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) id: String,
    pub(super) nature: Nature,
}

/// A node with its names resolved.
#[derive(Debug)]
pub(super) struct Flat {
    pub(super) node: Node,
    pub(super) children: Vec<usize>,
    /// Index of its counter, if it is an operation inside the timed region.
    pub(super) tally: Option<usize>,
    pub(super) slot: usize,
    pub(super) from_slot: usize,
    pub(super) file: Option<Chosen>,
    pub(super) to_file: Option<Chosen>,
    pub(super) key: Option<KeyFrom>,
    pub(super) locals: Vec<LocalFrom>,
    pub(super) semaphore: usize,
    pub(super) barrier: usize,
    /// Source of its events.
    pub(super) source: usize,
    /// Counter of the step that its condition or its events are about.
    pub(super) counted: Option<usize>,
    /// Node whose place this one's is relative to.
    pub(super) place_of: Option<usize>,
    pub(super) every: Option<(u64, Watched)>,
    /// Its trigger holds as long as the number of what has begun is a multiple.
    pub(super) is_repeated: bool,
    /// Its transfers' largest size.
    pub(super) unit: u64,
}

impl Flat {
    /// Tell whether its file is served.
    pub(super) fn is_served(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.choice.by == FileBy::Served)
    }
}

/// A file choice with its names resolved.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) choice: FileChoice,
    pub(super) set: usize,
    pub(super) slot: usize,
    /// Node of the earlier step.
    pub(super) step: usize,
    /// Ordinal of the local variable in the frame of the innermost composite that has it.
    pub(super) local: (usize, usize),
}

/// A key choice with its names resolved.
#[derive(Clone, Debug)]
pub(super) struct KeyFrom {
    pub(super) choice: KeyChoice,
    pub(super) space: usize,
    pub(super) step: usize,
    pub(super) local: (usize, usize),
}

/// A local variable with its names resolved.
#[derive(Clone, Debug)]
pub(super) struct LocalFrom {
    pub(super) file: Option<Chosen>,
    pub(super) key: Option<KeyFrom>,
}

/// Thing that a trigger counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// Every operation of a kind.
    Kind(OperationKind),
    /// One operation, by its tally.
    Tally(usize),
}

struct Builder<'a> {
    code: Code,
    stage: &'a Stage,
    /// Composites that a node is in, innermost last.
    around: Vec<usize>,
}

impl Code {
    /// Resolves a program that was checked.
    pub(super) fn new(program: &Program, stage: &Stage) -> Self {
        let flow = program.flow.as_ref();
        let flow = flow.and_then(|own| stage.flows.iter().position(|known| known.name == own.name));
        let mut slots = vec!["0".to_owned()];
        for (_, node) in program.nodes() {
            let file_slots = node.file.iter().chain(&node.to_file).filter_map(|f| f.slot.as_ref());
            for name in node.slot.iter().chain(&node.from_slot).chain(file_slots) {
                if !slots.contains(name) {
                    slots.push(name.clone());
                }
            }
        }
        let turns = program.nodes().into_iter().map(|(_, node)| node.rotates).max().unwrap_or(0);
        let mut rotation = Vec::new();
        for name in (0..turns).map(|number| number.to_string()) {
            let known = slots.iter().position(|slot| *slot == name);
            rotation.push(known.unwrap_or_else(|| {
                slots.push(name);
                slots.len() - 1
            }));
        }
        let code = Self {
            flats: Vec::new(),
            lists: Default::default(),
            slots,
            tallies: Vec::new(),
            program: program.clone(),
            flow,
            counted: None,
            begins_at: stage.barrier(program.begins_at.as_ref()),
            rotation,
        };
        let mut builder = Builder { code, stage, around: Vec::new() };
        let lists = [&program.before, &program.steps, &program.after];
        for (index, list) in lists.into_iter().enumerate() {
            builder.code.lists[index] = builder.add_all(list, index == 1);
        }
        builder.resolve();
        builder.code.counted = program.limit.count.as_ref().and_then(|count| {
            let tally = builder.code.tallies.iter().position(|known| known.id == count.id);
            tally.map(|tally| (tally, count.ops))
        });
        builder.code
    }

    /// Node of a step, by its id.
    fn step(&self, id: &str) -> Option<usize> {
        self.flats.iter().position(|flat| flat.node.name() == id)
    }

    /// The step that does the recorded operations of a kind.
    pub(super) fn recorded_step(&self, does: Deed) -> Option<usize> {
        self.lists[1].iter().copied().find(|node| self.flats[*node].node.does == does)
    }

    fn slot(&self, name: Option<&String>) -> usize {
        name.and_then(|name| self.slots.iter().position(|known| known == name)).unwrap_or(0)
    }
}

impl Builder<'_> {
    fn add_all(&mut self, list: &[Node], is_timed: bool) -> Vec<usize> {
        list.iter().map(|node| self.add(node, is_timed)).collect()
    }

    fn add(&mut self, node: &Node, is_timed: bool) -> usize {
        let index = self.code.flats.len();
        let tally = (is_timed && node.is_operation()).then(|| {
            let nature = nature::of_node(node, &self.code.program);
            self.code.tallies.push(Counted { id: node.name().to_owned(), nature });
            self.code.tallies.len() - 1
        });
        let unit = node.size_bytes.as_ref().map_or(0, Amount::most);
        self.code.flats.push(Flat {
            slot: self.code.slot(node.slot.as_ref()),
            from_slot: self.code.slot(node.from_slot.as_ref()),
            semaphore: node.semaphore.as_ref().map_or(0, |name| {
                self.stage.semaphores.iter().position(|known| known.name == *name).unwrap_or(0)
            }),
            barrier: self.stage.barrier(node.barrier.as_ref()).unwrap_or(0),
            source: node.events.as_ref().map_or(0, |events| self.stage.source(&events.source)),
            counted: None,
            node: Node { steps: Vec::new(), ..node.clone() },
            children: Vec::new(),
            tally,
            file: None,
            to_file: None,
            key: None,
            locals: Vec::new(),
            place_of: None,
            every: None,
            is_repeated: false,
            unit,
        });
        // Locals are those of composites around the node; a composite's own count for its steps.
        let file = node.file.as_ref().map(|file| self.chosen(file));
        let to_file = node.to_file.as_ref().map(|file| self.chosen(file));
        let key = node.key.as_ref().map(|key| self.key(key));
        let local = |builder: &Self, local: &super::node::Local| LocalFrom {
            file: local.file.as_ref().map(|file| builder.chosen(file)),
            key: local.key.as_ref().map(|key| builder.key(key)),
        };
        let locals = node.locals.iter().map(|one| local(self, one)).collect();
        self.around.push(index);
        let children = self.add_all(&node.steps, is_timed);
        self.around.pop();
        let flat = &mut self.code.flats[index];
        (flat.file, flat.to_file, flat.key) = (file, to_file, key);
        (flat.locals, flat.children) = (locals, children);
        index
    }

    fn local(&self, name: Option<&String>) -> (usize, usize) {
        let Some(name) = name else { return (0, 0) };
        let found = self.around.iter().rev().find_map(|&composite| {
            let locals = &self.code.flats[composite].node.locals;
            locals.iter().position(|local| local.name == *name).map(|at| (composite, at))
        });
        found.unwrap_or((0, 0))
    }

    fn chosen(&self, choice: &FileChoice) -> Chosen {
        let set = choice.set.as_ref().map_or(0, |name| {
            self.stage.sets.iter().position(|set| set.name == *name).unwrap_or(0)
        });
        let slot = self.code.slot(choice.slot.as_ref());
        Chosen {
            choice: choice.clone(),
            set,
            slot,
            step: 0,
            local: self.local(choice.local.as_ref()),
        }
    }

    fn key(&self, choice: &KeyChoice) -> KeyFrom {
        let space = choice.space.as_ref().map_or(0, |name| {
            self.stage.spaces.iter().position(|known| known.space.name == *name).unwrap_or(0)
        });
        KeyFrom { choice: choice.clone(), space, step: 0, local: self.local(choice.local.as_ref()) }
    }

    /// Names of steps, once all of them are known.
    fn resolve(&mut self) {
        for index in 0..self.code.flats.len() {
            let step = |name: Option<&String>| name.and_then(|name| self.code.step(name));
            let flat = &self.code.flats[index];
            let place_of = step(flat.node.at.as_ref().and_then(|at| at.of.as_ref()));
            let same = |chosen: &Option<Chosen>| {
                chosen
                    .as_ref()
                    .filter(|file| file.choice.by == FileBy::Same)
                    .and_then(|file| step(file.choice.step.as_ref()))
            };
            let (file, to_file) = (same(&flat.file), same(&flat.to_file));
            let key = flat.key.as_ref().filter(|key| key.choice.by == KeyBy::Same);
            let key = key.and_then(|key| step(key.choice.step.as_ref()));
            let every = flat.node.every.as_ref().map(|every| (every.ops, self.watched(&every.of)));
            let counted = flat
                .node
                .counted_step()
                .and_then(|id| self.code.tallies.iter().position(|known| known.id == id));
            let flat = &mut self.code.flats[index];
            flat.is_repeated = flat.node.every.as_ref().is_some_and(|every| every.is_repeated);
            (flat.place_of, flat.every, flat.counted) = (place_of, every, counted);
            if let (Some(chosen), Some(step)) = (&mut flat.file, file) {
                chosen.step = step;
            }
            if let (Some(chosen), Some(step)) = (&mut flat.to_file, to_file) {
                chosen.step = step;
            }
            if let (Some(from), Some(step)) = (&mut flat.key, key) {
                from.step = step;
            }
        }
    }

    fn watched(&self, of: &str) -> Watched {
        match self.code.tallies.iter().position(|known| known.id == of) {
            Some(tally) => Watched::Tally(tally),
            None => Watched::Kind(of.parse().unwrap_or(OperationKind::Other)),
        }
    }
}

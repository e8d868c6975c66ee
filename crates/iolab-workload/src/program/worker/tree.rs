//! The way through the tree: which step comes next.

use iolab_model::Ns;

use super::super::choice::WhenNone;
use super::super::code::Watched;
use super::super::deed::Deed;
use super::super::draw;
use super::super::stage::FileId;
use super::leaf::Begun;
use super::{Last, ProgramWorker};
use crate::group::GroupState;
use crate::worker::Step;

/// A node that was begun and has not ended.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) node: usize,
    /// Index of its next step.
    at: usize,
    /// Number of repetitions that are left.
    left: u64,
    /// Its variables are chosen.
    is_open: bool,
    began: Ns,
    pub(super) locals: Vec<Last>,
    /// Bytes at its beginning.
    bytes: u64,
}

/// Answer of the tree.
enum Found {
    Leaf(usize),
    /// A variable cannot be chosen yet.
    Wait,
    End,
}

impl<G: GroupState> ProgramWorker<'_, G> {
    /// Goes on with the list at hand; `None`: it is at its end.
    pub(super) fn go_through(&mut self, now: Ns) -> Option<Step> {
        if now < self.thinking_until {
            return Some(self.sleep_until(self.thinking_until));
        }
        if self.pending.is_none()
            && let Some((node, _)) = self.waiting.step
        {
            self.passed(node, now);
        }
        loop {
            let node = match self.pending.take() {
                Some(node) => node,
                None => match self.next_leaf(now) {
                    Found::Leaf(node) => node,
                    Found::Wait => return Some(Step::Await),
                    Found::End => return None,
                },
            };
            match self.begin_leaf(node, now) {
                Begun::Call(token) => {
                    self.ready.retain(|other| *other != token);
                    let job = self.jobs[token as usize].as_mut();
                    let op = job.and_then(super::Job::next_op);
                    let op = op.expect("a job begins with a call");
                    if self.jobs[token as usize].as_ref().is_some_and(|job| job.is_opening) {
                        self.pending = Some(node);
                    }
                    return Some(self.submit(token, op, now));
                }
                Begun::Nothing => self.passed(node, now),
                Begun::Later => {
                    self.begins_to_wait(node, now);
                    self.pending = Some(node);
                    return Some(Step::Await);
                }
                Begun::Sleep(until) => {
                    self.begins_to_wait(node, now);
                    self.thinking_until = until;
                    return Some(self.sleep_until(until));
                }
                Begun::NoMore => {
                    self.is_out_of_work = true;
                    return None;
                }
            }
            if self.report.errors > 0 {
                return Some(Step::Await);
            }
        }
    }

    /// Sleeps; inside the timed region not beyond its end.
    fn sleep_until(&self, until: Ns) -> Step {
        Step::SleepUntil(if self.is_timed() { until.min(self.deadline) } else { until })
    }

    /// Notes since when a step that is counted waits.
    fn begins_to_wait(&mut self, node: usize, now: Ns) {
        if self.code.flats[node].node.is_counted
            && self.waiting.step.is_none_or(|(of, _)| of != node)
        {
            self.waiting.step = Some((node, now));
        }
    }

    /// Counts a step that passed without a call, if such steps count.
    fn passed(&mut self, node: usize, now: Ns) {
        let since = self.waiting.step.take().filter(|(of, _)| *of == node);
        let flat = &self.code.flats[node];
        if let (true, Some(tally), true) = (flat.node.is_counted, flat.tally, self.is_timed())
            && self.report.errors == 0
        {
            let (does, began) = (flat.node.does, since.map_or(now, |(_, since)| since));
            self.tallies[tally].begun += 1;
            self.count_in((tally, self.intended, began), now, 0);
            if does.is_operation() {
                self.report.ops += 1;
                self.stage.done.count(matches!(does, Deed::Read | Deed::Write), 0);
            }
        }
    }

    fn next_leaf(&mut self, now: Ns) -> Found {
        loop {
            let Some(frame) = self.frames.last_mut() else {
                let list = &self.code.lists[self.list];
                let Some(&node) = list.get(self.at) else { return Found::End };
                self.at += 1;
                self.enter(node, now);
                continue;
            };
            let (node, at) = (frame.node, frame.at);
            let flat = &self.code.flats[node];
            let does = flat.node.does;
            if !does.is_control() {
                if frame.left == 0 {
                    self.frames.pop();
                    continue;
                }
                frame.left -= 1;
                return Found::Leaf(node);
            }
            if !frame.is_open {
                match self.open_frame(now) {
                    Begun::Later => return Found::Wait,
                    Begun::NoMore => {
                        self.is_out_of_work = true;
                        return Found::End;
                    }
                    _ => continue,
                }
            }
            let chosen = match does {
                Deed::Choose if at == 0 && self.directed.next.is_some() => {
                    let does = [Deed::Read, Deed::Write][self.directed.next.take().unwrap_or(0)];
                    let of = |child: &&usize| self.code.flats[**child].node.does == does;
                    flat.children.iter().find(of).copied()
                }
                Deed::Choose if at == 0 => {
                    let weights =
                        flat.children.iter().map(|&child| self.code.flats[child].node.weight);
                    Some(flat.children[draw::weighted(&mut self.random, weights)])
                }
                Deed::Choose => None,
                _ => flat.children.get(at).copied(),
            };
            match chosen {
                Some(child) => {
                    self.frames.last_mut().expect("a frame is at hand").at += 1;
                    self.enter(child, now);
                }
                None => self.round_over(),
            }
        }
    }

    /// Begins a node, unless its trigger says no.
    fn enter(&mut self, node: usize, now: Ns) {
        let flat = &self.code.flats[node];
        if let (Some((every, watched)), true) = (flat.every, flat.is_repeated) {
            let begun = self.begun(watched);
            if begun == 0 || !begun.is_multiple_of(every) {
                return;
            }
        } else if let Some((every, watched)) = flat.every {
            let done = self.watched(watched);
            if done < self.fired[node] + every {
                return;
            }
            // What is left over counts for the next time.
            self.fired[node] += (done - self.fired[node]) / every * every;
        }
        let left = match &flat.node.times {
            Some(times) => times.draw(&mut self.random),
            None if flat.node.does == Deed::Repeat => u64::MAX,
            None => 1,
        };
        let is_open = flat.node.does != Deed::Composite;
        if left > 0 {
            let (locals, bytes) = (Vec::new(), 0);
            self.frames.push(Frame { node, at: 0, left, is_open, began: now, locals, bytes });
        }
    }

    /// Operations that have begun, of those that a trigger counts.
    fn begun(&self, watched: Watched) -> u64 {
        match watched {
            Watched::Tally(tally) => self.tallies[tally].begun,
            Watched::Kind(kind) => {
                let all = self.tallies.iter().zip(&self.code.tallies);
                let leaves = all.filter(|(_, counted)| counted.nature.kind == kind);
                leaves.map(|(tally, _)| tally.begun).sum()
            }
        }
    }

    /// Operations that a trigger counts.
    fn watched(&self, watched: Watched) -> u64 {
        match watched {
            Watched::Tally(tally) => self.tallies[tally].ops,
            Watched::Kind(kind) => {
                let all = self.tallies.iter().zip(&self.code.tallies);
                let leaves = all.filter(|(_, counted)| counted.nature.kind == kind);
                leaves.map(|(tally, _)| tally.ops).sum()
            }
        }
    }

    /// A node went once through its steps.
    fn round_over(&mut self) {
        let frame = self.frames.last_mut().expect("a frame is at hand");
        frame.at = 0;
        if frame.left != u64::MAX {
            frame.left -= 1;
        }
        let is_over = frame.left == 0;
        let (node, began) = (frame.node, frame.began);
        let is_composite = self.code.flats[node].node.does == Deed::Composite;
        if is_composite {
            let bytes = self.report.bytes - frame.bytes;
            let locals = std::mem::take(&mut frame.locals);
            frame.is_open = false;
            self.close_locals(node, &locals);
            if let (Some(tally), true) = (self.code.flats[node].tally, self.is_timed()) {
                let ended = self.ended.max(began);
                self.tallies[tally].begun += 1;
                self.count_in((tally, self.intended, began), ended, bytes);
            }
        }
        if is_over {
            self.frames.pop();
        } else if self.code.flats[node].children.is_empty() {
            self.fail(|| "a node without steps is repeated".into());
        }
    }

    /// Chooses the variables of a composite.
    fn open_frame(&mut self, now: Ns) -> Begun {
        let frame = self.frames.last().expect("a frame is at hand");
        let node = frame.node;
        let code = std::sync::Arc::clone(&self.code);
        let mut locals = Vec::new();
        for local in &code.flats[node].locals {
            let mut last = Last::default();
            if let Some(file) = &local.file {
                match self.choose_local(file) {
                    Ok(id) => last.file = Some(id),
                    Err(when_none) => {
                        self.close_locals(node, &locals);
                        return self.none_left(when_none, node);
                    }
                }
            }
            if let Some(key) = &local.key {
                last.key = Some(self.choose_key(key));
            }
            locals.push(last);
        }
        let bytes = self.report.bytes;
        let frame = self.frames.last_mut().expect("a frame is at hand");
        (frame.locals, frame.is_open, frame.began, frame.bytes) = (locals, true, now, bytes);
        Begun::Nothing
    }

    /// Reaction where a composite has nothing to work on.
    fn none_left(&mut self, when_none: WhenNone, node: usize) -> Begun {
        match when_none {
            WhenNone::Skip => {
                self.frames.pop();
                Begun::Nothing
            }
            WhenNone::End => {
                let code = std::sync::Arc::clone(&self.code);
                self.no_more(code.flats[node].node.name())
            }
            WhenNone::Wait => Begun::Later,
            WhenNone::Fail => {
                let name = self.code.flats[node].node.name().to_owned();
                self.fail(|| no_file(&name));
                Begun::Later
            }
        }
    }

    /// Gives back what the variables of a composite held.
    pub(super) fn close_locals(&mut self, node: usize, locals: &[Last]) {
        let code = std::sync::Arc::clone(&self.code);
        for (local, last) in code.flats[node].locals.iter().zip(locals) {
            if let (Some(file), Some(id)) = (&local.file, last.file) {
                self.give_back(file, id);
            }
        }
    }

    /// Gives back what all composites under way hold.
    pub(super) fn leave_composites(&mut self) {
        for frame in std::mem::take(&mut self.frames) {
            self.close_locals(frame.node, &frame.locals);
        }
    }

    /// The variable of a composite under way.
    pub(super) fn local(&self, (composite, at): (usize, usize)) -> Last {
        let frame = self.frames.iter().rev().find(|frame| frame.node == composite);
        frame.and_then(|frame| frame.locals.get(at)).copied().unwrap_or_default()
    }

    /// The file of a variable.
    pub(super) fn local_file(&self, place: (usize, usize)) -> Option<FileId> {
        self.local(place).file
    }
}

/// Message where no file is left.
pub(super) fn no_file(name: &str) -> String {
    format!(
        "the operation {name} found no file to work on: give its set more files, let another share \
         of them exist, or say what to do (when_none = \"skip\", \"end\" or \"wait\")"
    )
}

//! Contradictions in a program whose operations are a recorded stream.

use iolab_model::Bytes;

use super::check::{Checker, DIRECT_UNIT, Found};
use super::choice::FileBy;
use super::deed::Deed;
use super::description::Pace;
use super::node::{DataPath, Node, Positioned};
use super::recorded::{RECORDED_DEEDS, Recorded, RecordedContent};

impl Checker<'_> {
    /// The recording, its steps, and the files that it works on.
    pub(super) fn check_recorded(&self) -> Found {
        let is_recorded = matches!(self.program.pace, Pace::Recorded { .. });
        let Some(recorded) = &self.program.recorded else {
            if is_recorded {
                let problem = "a pace as recorded without a recorded stream";
                return self.wrong("pace", problem, "use another pace, or name a stream: recorded");
            }
            return Ok(());
        };
        if let Pace::Recorded { speed } = self.program.pace
            && !(speed.is_finite() && speed > 0.0)
        {
            return self.wrong("pace", format!("a speed of {speed}"), "use a number above 0");
        }
        if !is_recorded && self.program.pace != Pace::Closed {
            let problem = "a recorded stream with a pace of its own";
            let remedy = "use pace = { kind = \"recorded\" }, or leave it out: as fast as possible";
            return self.wrong("pace", problem, remedy);
        }
        if !recorded.file.is_absolute() {
            let problem = format!("the recorded stream {}", recorded.file.display());
            return self.wrong("recorded.file", problem, "name a whole path: begin it with /");
        }
        let Some(content) = &recorded.content else {
            let problem = "a recorded stream whose file nobody has read";
            return self.wrong("recorded", problem, "plan it from a workload file");
        };
        let workers = self.phase.tenants.iter().find(|tenant| {
            tenant.program.as_ref().is_some_and(|own| std::ptr::eq(own, self.program))
        });
        if workers.is_some_and(|tenant| tenant.workers != 1) {
            let problem = "one recorded stream for several workers";
            let remedy = "use workers = 1, and depth for operations that overlap";
            return self.wrong("recorded", problem, remedy);
        }
        for (index, step) in self.program.steps.iter().enumerate() {
            self.check_recorded_step(&format!("steps[{index}]"), step, (recorded, content))?;
        }
        let lacks = |does: &&Deed| !self.program.steps.iter().any(|step| step.does == **does);
        if let Some(does) = content.does.iter().find(lacks) {
            let problem = format!("operations that {does} in the stream, and no step that does");
            return self.wrong("steps", problem, "add one, or leave `steps` out");
        }
        self.check_recorded_files((recorded, content))
    }

    /// A step of a recorded program says how the operations of one kind are done.
    fn check_recorded_step(
        &self,
        path: &str,
        step: &Node,
        (recorded, content): (&Recorded, &RecordedContent),
    ) -> Found {
        if !RECORDED_DEEDS.contains(&step.does) {
            let names = RECORDED_DEEDS.map(Deed::name).join(", ");
            let problem = format!("a step that does {}, in a recorded program", step.does);
            return self.wrong(path, problem, &format!("use {names}, or `before` and `after`"));
        }
        if self.program.steps.iter().filter(|other| other.does == step.does).count() > 1 {
            let problem = format!("two steps that do {}, in a recorded program", step.does);
            return self.wrong(path, problem, "keep one");
        }
        let is_set = |set: &Option<String>| set.as_ref() == Some(&recorded.set);
        let is_plain =
            step.file.as_ref().is_some_and(|f| f.by == FileBy::Existing && is_set(&f.set))
                && step.times.is_none()
                && step.every.is_none()
                && !step.is_whole
                && !step.is_submitted_only
                && (!step.does.has_range() || step.positioned() == Positioned::At);
        if !is_plain {
            let problem = "a step that says which file, where or how often";
            let remedy = "leave that out: the stream says it (id, path, flags, vectors may stay)";
            return self.wrong(path, problem, remedy);
        }
        let most = step.size_bytes.as_ref().map_or(0, super::amount::Amount::most);
        if step.does.has_range() && most < content.most_bytes.0 {
            let problem = format!(
                "operations of {} in the stream, and a size of {}",
                content.most_bytes,
                Bytes(most)
            );
            return self.wrong(path, problem, "leave the size out");
        }
        let grain = content.grain_bytes.0;
        if step.path == Some(DataPath::Direct) && !grain.is_multiple_of(DIRECT_UNIT) {
            let problem = format!("direct I/O, and places and lengths in units of {grain} bytes");
            return self.wrong(path, problem, "leave path = \"direct\" out");
        }
        Ok(())
    }

    /// Every operation lies inside a file of the set.
    fn check_recorded_files(&self, (recorded, content): (&Recorded, &RecordedContent)) -> Found {
        let known = self.workload.file_sets.iter().find(|set| set.name == recorded.set);
        let Some(set) = known else {
            let problem = format!("there is no set of files called {}", recorded.set);
            return self.wrong("recorded.set", problem, "add it to file_sets");
        };
        if content.files > set.files || set.existing_percent < 100.0 {
            let problem = format!(
                "{} files in the stream, and a set of {}, {} % of which exist",
                content.files, set.files, set.existing_percent
            );
            return self.wrong("recorded.set", problem, "give the set as many files, all existing");
        }
        let least = Bytes(set.file_bytes.least());
        if content.end_bytes > least {
            let problem = format!(
                "the stream reaches {} into a file, and files of {least}",
                content.end_bytes
            );
            let remedy = format!("use file_bytes = {} or more", content.end_bytes.0);
            return self.wrong("recorded.set", problem, &remedy);
        }
        Ok(())
    }
}

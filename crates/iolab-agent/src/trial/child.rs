//! The measuring child: started, fed one order, listened to, and ended if it must be.
//!
//! It dies with its parent, so that nothing keeps the private mount alive. An interrupt asks it to
//! end early; an abort, or its own time limit and some grace, kills its whole process group.
//! Left out: what it does, which is `measure`'s.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::cgroup::MemoryLimit;
use crate::control::{Control, Urgency};
use crate::error::{Error, Result};
use crate::lines::LineReader;
use crate::machine::command;
use crate::protocol::{MeasureLine, MeasureOrder, MeasureResult, PairsSpec, Status};
use crate::sys;
use crate::trace::Recorder;
use crate::trial::changes::Midway;

/// Time that a child may take beyond its own time limit before it is killed.
const GRACE: Duration = Duration::from_secs(30);
const STDERR_LINES: usize = 8;
const POLL: Duration = Duration::from_millis(250);
/// Of -1000..1000: the workers are killed later than others, for their memory is limited anyway.
const OOM_SCORE: &str = "-500";

/// The program that measures.
#[derive(Clone, Debug)]
pub struct MeasureProgram {
    /// Its path.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl Default for MeasureProgram {
    /// This very program.
    fn default() -> Self {
        Self { program: "/proc/self/exe".into(), arguments: vec!["measure".into()] }
    }
}

/// A running child.
struct Running {
    child: Child,
    answers: LineReader,
    complaints: LineReader,
    last_complaints: VecDeque<String>,
    result: Option<MeasureResult>,
    /// Time at which its timed region began, until that is passed on.
    released_ns: Option<u64>,
    /// The treatments whose knobs it waits for.
    wants: Option<Vec<usize>>,
    /// Pipe through which it is told to go on, if it waits for that.
    input: Option<ChildStdin>,
    /// Reason why it was killed.
    killed: Option<String>,
    is_asked_to_end: bool,
}

/// Surroundings of the child before it opens a file.
#[derive(Default)]
pub struct Place<'a> {
    /// The group that limits its memory.
    pub limit: Option<&'a MemoryLimit>,
    /// The recorder of its calls.
    pub recorder: Option<&'a mut Recorder>,
}

impl Place<'_> {
    fn admit(&mut self, pid: u32) -> Result<()> {
        if let Some(limit) = self.limit {
            limit.admit(pid)?;
        }
        match &mut self.recorder {
            Some(recorder) => recorder.follow(pid),
            None => Ok(()),
        }
    }
}

/// Lets the program measure; a child that fails in any way gives a result that says so.
pub fn measure(
    program: &MeasureProgram,
    order: &MeasureOrder,
    (place, midway): (&mut Place, &mut dyn Midway),
    control: &mut dyn Control,
) -> Result<MeasureResult> {
    let deadline = Instant::now() + Duration::from_nanos(order.time_limit_ns) + GRACE;
    let mut running = Running::start(program, &order.descriptors)?;
    if let Err(error) = running.instruct(order, place) {
        running.end("it could not be instructed");
        let _ = running.reap();
        return Err(error);
    }
    while !running.answers.is_at_end() && !running.has_ended() {
        running.listen(control, midway.due_in().map_or(POLL, |due| due.min(POLL)));
        if let Some(at_ns) = running.released_ns.take() {
            midway.released(at_ns);
        }
        if let Some(treatments) = running.wants.take() {
            match midway.switch_to(&treatments) {
                Ok(()) => running.proceed(),
                Err(error) => running.end(&format!("other knobs could not be set: {error}")),
            }
        }
        if let Err(error) = midway.act() {
            running.end(&format!("a change while it ran failed: {error}"));
        }
        if Instant::now() > deadline {
            running.end("it exceeded its time limit");
        }
        for _ in 0..control.take_proceeds() {
            running.proceed();
        }
        match control.urgency() {
            Urgency::Calm => {}
            Urgency::Interrupt => running.ask_to_end(),
            Urgency::Abort => running.end("the front end aborted it"),
        }
    }
    let status = running.reap();
    // Whatever it said is in the pipes by now.
    running.listen(control, Duration::ZERO);
    Ok(running.result(status))
}

impl Running {
    fn start(program: &MeasureProgram, descriptors: &[RawFd]) -> Result<Self> {
        let mut command = command(&program.program);
        command
            .args(&program.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        sys::die_with_parent(&mut command);
        sys::inherit(&mut command, descriptors.to_vec());
        let mut child =
            command.spawn().map_err(|error| Error::io("start", &program.program, error))?;
        let answers = OwnedFd::from(child.stdout.take().expect("it was piped"));
        let complaints = OwnedFd::from(child.stderr.take().expect("it was piped"));
        Ok(Self {
            child,
            answers: LineReader::new(answers),
            complaints: LineReader::new(complaints),
            last_complaints: VecDeque::new(),
            result: None,
            released_ns: None,
            wants: None,
            input: None,
            killed: None,
            is_asked_to_end: false,
        })
    }

    /// Puts it where it belongs, then tells it what to do: so no file is opened before.
    fn instruct(&mut self, order: &MeasureOrder, place: &mut Place) -> Result<()> {
        let pid = self.child.id();
        place.admit(pid)?;
        if order.is_favoured && nix::unistd::geteuid().is_root() {
            // A container may forbid it; the trial is valid without.
            let _ = std::fs::write(format!("/proc/{pid}/oom_score_adj"), OOM_SCORE);
        }
        let mut line = serde_json::to_string(order).expect("an order has only text keys");
        line.push('\n');
        let mut pipe = self.child.stdin.take().expect("it was piped");
        // A child that is dead already tells more by how it died.
        let _ = pipe.write_all(line.as_bytes());
        let is_asking = order.pairs.is_some_and(PairsSpec::is_switching);
        self.input = (order.waits.is_some() || is_asking).then_some(pipe);
        Ok(())
    }

    /// Lets it begin the phase that it waits with.
    fn proceed(&mut self) {
        if let Some(pipe) = &mut self.input {
            let _ = pipe.write_all(b"\n");
        }
    }

    fn listen(&mut self, control: &mut dyn Control, timeout: Duration) {
        control.wait(&mut [&mut self.answers, &mut self.complaints], timeout);
        while let Some(line) = self.answers.next_line() {
            match serde_json::from_str(&line) {
                Ok(MeasureLine::Progress(progress)) => control.progress(progress),
                Ok(MeasureLine::Released { at_ns, .. }) => self.released_ns = Some(at_ns),
                Ok(MeasureLine::Switch { treatments }) => self.wants = Some(treatments),
                Ok(MeasureLine::Result(result)) => self.result = Some(*result),
                Err(error) => self.complain(format!("'{line}' is not understood: {error}")),
            }
        }
        while let Some(line) = self.complaints.next_line() {
            eprintln!("{line}");
            self.complain(line);
        }
    }

    fn complain(&mut self, line: String) {
        self.last_complaints.push_back(line);
        if self.last_complaints.len() > STDERR_LINES {
            self.last_complaints.pop_front();
        }
    }

    /// Its workers may hold the pipe longer than it lives.
    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn ask_to_end(&mut self) {
        if !self.is_asked_to_end {
            self.is_asked_to_end = true;
            let _ = kill(self.pid(), Signal::SIGTERM);
        }
    }

    fn end(&mut self, why: &str) {
        if self.killed.is_none() {
            self.killed = Some(why.to_owned());
            let _ = killpg(self.pid(), Signal::SIGKILL);
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Waits for its end; its workers, if they are processes, must not outlive it.
    fn reap(&mut self) -> std::io::Result<ExitStatus> {
        let status = self.child.wait();
        let _ = killpg(self.pid(), Signal::SIGKILL);
        status
    }

    fn result(&mut self, status: std::io::Result<ExitStatus>) -> MeasureResult {
        if let (Some(result), None) = (self.result.take(), &self.killed) {
            return result;
        }
        let how = match (&self.killed, status) {
            (Some(why), _) => format!("the measuring process was killed: {why}"),
            (None, Ok(status)) => {
                format!("the measuring process ended without a result ({status})")
            }
            (None, Err(error)) => format!("the measuring process was lost: {error}"),
        };
        let complaints = self.last_complaints.make_contiguous().join(" | ");
        let error = if complaints.is_empty() { how } else { format!("{how}: {complaints}") };
        let is_wanted =
            self.is_asked_to_end || self.killed.as_deref() == Some("the front end aborted it");
        let status = if is_wanted { Status::Interrupted } else { Status::Failed };
        let (phases, warnings, made) = (Vec::new(), Vec::new(), BTreeMap::new());
        MeasureResult { status, error: Some(error), phases, pairs: None, warnings, made }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Cache, Progress};
    use serde_json::json;

    /// A front end that says what it has to say as soon as the child is ready.
    struct Script {
        urgency: Urgency,
        heard: Vec<Progress>,
        /// Waits although nobody is left who could say anything.
        idle_waits: usize,
    }

    impl Control for Script {
        fn progress(&mut self, params: Progress) {
            self.heard.push(params);
        }

        fn urgency(&mut self) -> Urgency {
            if self.heard.is_empty() { Urgency::Calm } else { self.urgency }
        }

        fn wait(&mut self, readers: &mut [&mut LineReader], timeout: Duration) {
            let is_over = readers.iter().all(|reader| reader.is_at_end());
            self.idle_waits += usize::from(is_over && !timeout.is_zero());
            std::thread::sleep(Duration::from_millis(10));
            for reader in readers {
                reader.fill();
            }
        }
    }

    /// Something that is due as soon as the timed region begins.
    #[derive(Default)]
    struct Notebook {
        released_ns: Option<u64>,
    }

    impl Midway for Notebook {
        fn released(&mut self, at_ns: u64) {
            self.released_ns = Some(at_ns);
        }

        fn due_in(&self) -> Option<Duration> {
            self.released_ns.map(|_| Duration::ZERO)
        }

        fn switch_to(&mut self, _: &[usize]) -> Result<()> {
            Ok(())
        }

        fn act(&mut self) -> Result<()> {
            match self.released_ns {
                Some(7) => Err(Error::failed("no such knob", "")),
                _ => Ok(()),
            }
        }
    }

    fn try_script(script: &str, urgency: Urgency) -> (MeasureResult, Vec<Progress>) {
        let program = MeasureProgram {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
        };
        let workload = serde_json::from_value(json!({
            "version": 1, "name": "w", "engine": "psync", "seed": 1, "phases": [],
        }))
        .unwrap();
        let order = MeasureOrder {
            trial: "t0001",
            directory: "/nowhere".into(),
            twins: &[],
            token: None,
            is_ours: false,
            device: None,
            counters: Vec::new(),
            groups: Vec::new(),
            cache: Cache::Cold,
            may_drop_caches: false,
            reserve_bytes: 0,
            place_reserves: BTreeMap::new(),
            time_limit_ns: 1_000_000_000,
            waits: None,
            interim: None,
            run_as: None,
            enters_as_user: false,
            is_favoured: true,
            descriptors: Vec::new(),
            files: None,
            pairs: None,
            workload: &workload,
        };
        let mut control = Script { urgency, heard: Vec::new(), idle_waits: 0 };
        let mut midway = Notebook::default();
        let result =
            measure(&program, &order, (&mut Place::default(), &mut midway), &mut control).unwrap();
        assert_eq!(control.idle_waits, 0, "every trial would take longer");
        (result, control.heard)
    }

    const READY: &str = r#"echo '{"progress":{"phase":"p","message":""}}'"#;
    const RESULT: &str = concat!(
        r#"echo '{"result":{"status":"ok","error":null,"#,
        r#""phases":[],"warnings":[{"code":"a","message":"b","hint":"c"}]}}'"#
    );

    #[test]
    fn the_order_arrives_progress_is_forwarded_and_the_result_taken() {
        let script = format!(
            r#"read order; case "$order" in *t0001*psync*) ;; *) exit 9;; esac
            echo '{{"progress":{{"phase":"p","message":"","share":0.5}}}}'; {RESULT}"#
        );
        let (result, heard) = try_script(&script, Urgency::Calm);
        assert_eq!((result.status, result.warnings.len()), (Status::Ok, 1));
        assert_eq!(heard.iter().map(|one| one.share).collect::<Vec<_>>(), [Some(0.5)]);
    }

    #[test]
    fn a_death_is_told_with_its_last_words() {
        let (result, _) = try_script("echo 'no such luck' >&2; kill -SEGV $$", Urgency::Calm);
        let error = result.error.unwrap();
        assert_eq!(result.status, Status::Failed);
        assert!(error.contains("signal: 11") && error.contains("no such luck"), "{error}");
    }

    #[test]
    fn an_interrupt_lets_it_finish_with_what_it_has() {
        let script =
            format!("finish() {{ {RESULT}; exit; }}; trap finish TERM; {READY}; sleep 9 & wait");
        let started = Instant::now();
        let (result, _) = try_script(&script, Urgency::Interrupt);
        assert_eq!(result.warnings.len(), 1);
        assert!(started.elapsed() < Duration::from_secs(8));
    }

    #[test]
    fn an_abort_does_not_wait() {
        let started = Instant::now();
        let (result, _) =
            try_script(&format!("trap '' TERM; {READY}; sleep 9; sleep 9"), Urgency::Abort);
        assert_eq!(result.status, Status::Interrupted);
        assert!(started.elapsed() < Duration::from_secs(8));
    }

    #[test]
    fn a_change_that_fails_ends_the_trial_and_says_why() {
        let started = Instant::now();
        let script = r#"echo '{"released":{"phase":"p","at_ns":7}}'; sleep 9"#;
        let (result, _) = try_script(script, Urgency::Calm);
        let error = result.error.unwrap();
        assert_eq!(result.status, Status::Failed);
        assert!(error.contains("a change while it ran failed: no such knob"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(8));
    }

    #[test]
    fn nonsense_is_reported() {
        let (result, _) = try_script("read order; echo hello", Urgency::Calm);
        assert!(result.error.unwrap().contains("'hello' is not understood"));
    }
}

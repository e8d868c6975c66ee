//! Events of processes are recorded for root, and for a user only those of his own processes.
//!
//! Issue 17: by way of a rule of sudo block events of the run's own devices are recorded and, of
//! other events, those of processes of the user who asks. A program with the set-user-id bit that
//! such a process starts would be somebody else's: only processes that cannot gain rights count.
//!
//! Needs root, a loop device and setpriv(1).

#[path = "agent/client.rs"]
mod agent;
#[path = "agent/world.rs"]
mod world;

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use agent::{Agent, alone, is_root};
use iolab_trace::event::{Action, Event};
use iolab_trace::format;
use iolab_trace::source::Input;
use serde_json::{Value, json};
use world::{NOBODY, World, refusal};

/// Bytes that the process writes at once: nobody else does.
const OWN: &str = "count=4099";
const FOREIGN: &str = "count=4111";

/// A loop device of the test's own.
struct Loop(String);

impl Loop {
    fn attach(image: &Path) -> Self {
        fs::File::create(image).unwrap().set_len(1 << 20).unwrap();
        let done = Command::new("losetup").args(["--find", "--show"]).arg(image).output().unwrap();
        Self(String::from_utf8(done.stdout).unwrap().trim().trim_start_matches("/dev/").to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(format!("/dev/{}", self.0)).status();
    }
}

/// A process that writes without end, as a user, with or without the right to gain others.
struct Writer(Child);

impl Writer {
    fn start(user: u32, bytes: &str, is_bound: bool) -> Self {
        let script = format!(
            "while :; do dd if=/dev/zero of=/dev/null bs={} count=3 status=none; sleep 0.02; done",
            bytes.trim_start_matches("count=")
        );
        let mut command = Command::new("setpriv");
        command.args(["--clear-groups", &format!("--reuid={user}")]);
        if is_bound {
            command.arg("--no-new-privs");
        }
        let child = command.args(["sh", "-c", &script]).spawn().unwrap();
        agent::wait_until(std::time::Duration::from_secs(10), "the shell", || {
            fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap_or_default() == "sh\n"
        });
        Self(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn asked(output: &Path, device: &str, layers: &Value, pids: &[u32]) -> Value {
    fs::write(output, "").unwrap();
    chown(output, Some(NOBODY), Some(NOBODY)).unwrap();
    let found = fs::metadata(output).unwrap();
    json!({
        "devices": [device], "layers": layers, "pids": pids, "time_limit_ns": 400_000_000_u64,
        "output": {"path": output, "device": found.dev(), "inode": found.ino()},
    })
}

/// Fields of all trace points of other layers in a file.
fn points(path: &Path) -> Vec<String> {
    let input = Input::new("t", fs::File::open(path).unwrap());
    let (_, mut source) = format::open(vec![input]).unwrap();
    let (mut event, mut found) = (Event::default(), Vec::new());
    while source.next(&mut event).unwrap() {
        if event.action == Action::Point {
            found.push(String::from_utf8(event.payload.clone()).unwrap());
        }
    }
    assert!(source.caveats().is_empty(), "{:?}", source.caveats());
    found
}

fn record(agent: &mut Agent, spec: &Value) -> Result<Value, Value> {
    agent.ask("record_trace", spec)
}

#[test]
fn needs_root_a_user_records_what_his_own_processes_do_and_no_others() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let world = World::new(None);
    let device = Loop::attach(&world.path("image"));
    let policy = format!("devices = ['{}']\n", device.0);
    fs::write(world.policy(), &policy).unwrap();
    let output: PathBuf = world.home.path().join("t.iotrace");
    let calls = json!(["syscalls"]);
    let own = Writer::start(NOBODY, OWN, true);
    let foreign = Writer::start(0, FOREIGN, true);
    let unbound = Writer::start(NOBODY, FOREIGN, false);
    let mut agent = world.start("layers-1");
    for (pids, word) in [
        (vec![], "all_processes"),
        (vec![foreign.pid()], "another user"),
        (vec![own.pid(), unbound.pid()], "other rights"),
        (vec![4_000_000_000], "no process"),
    ] {
        let spec = asked(&output, &device.0, &calls, &pids);
        let error = refusal(record(&mut agent, &spec), word);
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!(fs::metadata(&output).unwrap().len(), 0, "nothing was recorded");
    }
    record(&mut agent, &asked(&output, &device.0, &calls, &[own.pid()])).unwrap();
    let found = points(&output);
    assert!(found.iter().any(|it| it.starts_with("syscalls:sys_enter_write") && it.contains(OWN)));
    assert!(found.iter().any(|it| it.starts_with("syscalls:sys_exit_write ret=4099")));
    assert!(!found.iter().any(|it| it.contains(FOREIGN)), "no other process");

    fs::write(world.policy(), format!("{policy}all_processes = true\n")).unwrap();
    assert_eq!(agent.end_input(), Some(0));
    let mut agent = world.start("layers-2");
    record(&mut agent, &asked(&output, &device.0, &calls, &[])).unwrap();
    let found = points(&output);
    assert!(found.iter().any(|it| it.contains(OWN)) && found.iter().any(|it| it.contains(FOREIGN)));
    world.check_guarded();
}

#[test]
fn needs_root_words_that_are_no_layers_are_refused() {
    if !is_root() {
        return;
    }
    let world = World::new(None);
    let mut agent = world.greet(0, "layers-3").0;
    let output = world.home.path().join("t.iotrace");
    let error = record(&mut agent, &asked(&output, "loop0", &json!(["kprobes"]), &[])).unwrap_err();
    assert!(error.to_string().contains("page_cache"), "{error}");
}

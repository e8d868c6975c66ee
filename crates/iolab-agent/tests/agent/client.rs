//! A front end for tests: starts the real binary and talks to it.

#![allow(dead_code, reason = "each test file uses a part")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use serde_json::{Value, json};

/// Copies a program that is then started, by a process that has ended when this returns.
///
/// A copy made here would stay open for writing in whatever another thread's test starts at that
/// moment, and cannot be executed until that has gone on (`ETXTBSY`).
pub fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("--").arg(from).arg(to).status().unwrap().success());
}

/// A running agent.
pub struct Agent {
    pub child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl Agent {
    /// Starts one and says hello.
    pub fn start(run: &str, state_dir: &Path, is_dry_run: bool) -> (Self, Value) {
        let (agent, hello) = Self::greet(run, state_dir, is_dry_run);
        (agent, hello.unwrap())
    }

    /// Starts one and says hello, which may be refused.
    pub fn greet(run: &str, state_dir: &Path, is_dry_run: bool) -> (Self, Result<Value, Value>) {
        let mut agent = Self::of(Command::new(env!("CARGO_BIN_EXE_iolab-agent")));
        let params = json!({"protocol": 1, "run": run, "is_dry_run": is_dry_run,
            "state_dir": state_dir});
        let hello = agent.ask("hello", &params);
        (agent, hello)
    }

    /// The one that `command` starts; it has heard nothing yet.
    pub fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, next_id: 1 }
    }

    /// Sends a request.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let line = json!({"id": id, "method": method, "params": params});
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        id
    }

    /// Next message of any kind.
    pub fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("'{line}': {error}"))
    }

    /// Sends a request and waits for its result or error.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message.get("result").cloned().ok_or_else(|| message["error"].clone());
            }
            assert_eq!(message["event"], "progress", "{message}");
        }
    }

    /// Closes its input and returns the exit code.
    pub fn end_input(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().unwrap().code()
    }
}

/// Turn of one test among all that run on this machine.
pub struct Turn {
    _in_process: MutexGuard<'static, ()>,
    _on_machine: Option<Flock<File>>,
}

/// One test at a time, those of other sessions included: they add and remove loop devices, set
/// `vm.vfs_cache_pressure` and give their runs fixed names.
pub fn alone() -> Turn {
    static ALONE: Mutex<()> = Mutex::new(());
    let in_process = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Without root nothing of the machine changes, and the file of another user may not be opened.
    let path = "/run/lock/iolab-agent-tests";
    let file = File::options().create(true).truncate(false).write(true).open(path).ok();
    let lock = |file| Flock::lock(file, FlockArg::LockExclusive).ok();
    Turn { _in_process: in_process, _on_machine: file.and_then(lock) }
}

/// Tell whether this user is root; a skip prints its reason.
pub fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root() && Path::new("/dev/loop-control").exists();
    if !is_root {
        println!("skipped: needs root and /dev/loop-control");
    }
    is_root
}

/// Waits until something is so.
pub fn wait_until(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A trial; `phases` are of the contract's workload.
pub fn trial(stack: &Value, knobs: &Value, phases: &Value) -> Value {
    json!({
        "trial": "t0001", "stack": stack, "is_fresh_fs": true, "knobs": knobs, "cache": "cold",
        "memory_limit_bytes": null, "reserve_bytes": 0, "time_limit_ns": 60_000_000_000_u64,
        "workload": {"version": 1, "name": "test", "engine": "psync", "workers_as": "threads",
            "seed": 7, "content": "incompressible", "pin_cpus": [], "interval_ns": 100_000_000,
            "is_calibrated": false, "phases": phases}})
}

/// One phase that writes a small file once, or for some time.
pub fn writing(limit: &Value) -> Value {
    json!([{"name": "write", "is_stonewalled": true, "keeps_files": false, "tenants": [
        {"name": "main", "workers": 1, "is_file_shared": false, "file": "data",
         "file_bytes": 4_194_304, "io_size_bytes": 4096, "pattern": {"kind": "sequential"},
         "direction": {"kind": "write"}, "depth": 1, "access": "direct", "durability": "none",
         "fsync": {"kind": "after"}, "opening": "create", "primes_first_record": false,
         "rate_ops_per_s": null, "think_ns": 0, "limit": limit}]}])
}

/// An ext4 without further options.
pub fn ext4() -> Value {
    json!({"fs": "ext4", "mkfs_options": [], "mount_options": ["nodelalloc"],
        "has_external_journal": false})
}

/// A block device as it was when it was looked at: another one under the same name is not it.
///
/// Issue 14, point 9: tests took any device of that name for theirs and failed where something
/// else attached loop devices meanwhile.
pub struct Device {
    pub name: String,
    inode: u64,
}

impl Device {
    /// The device that has this name now.
    pub fn named(name: &str) -> Self {
        let inode = Self::inode_of(name).expect("the device is there");
        Self { name: name.to_owned(), inode }
    }

    /// Tell whether it is still there, attached or not.
    pub fn exists(&self) -> bool {
        Self::inode_of(&self.name) == Some(self.inode)
    }

    /// Tell whether it still has an image.
    pub fn is_attached(&self) -> bool {
        self.exists() && Self::folder(&self.name).join("loop/backing_file").exists()
    }

    fn folder(name: &str) -> std::path::PathBuf {
        Path::new("/sys/block").join(name)
    }

    fn inode_of(name: &str) -> Option<u64> {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(Self::folder(name)).ok().map(|found| found.ino())
    }
}

/// Mounts of these runs that others can see: there must be none. Others mount other things.
pub fn mounts_of(runs: &str) -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point = format!("/run/iolab/{runs}");
    text.lines().filter(|line| line.contains(&point)).map(str::to_owned).collect()
}

/// Loop devices whose images lie below a folder, in place of all loop devices of the machine.
pub fn loops_below(folder: &Path) -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block").unwrap();
    let images = devices.filter_map(|entry| {
        std::fs::read_to_string(entry.unwrap().path().join("loop/backing_file")).ok()
    });
    images.filter(|image| Path::new(image.trim()).starts_with(folder)).collect()
}

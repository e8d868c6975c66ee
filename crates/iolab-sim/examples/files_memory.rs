//! Real memory that simulated files need: far more of them than the simulated memory holds.
//!
//! `cargo run --release -p iolab-sim --example files_memory [FS [FILES_GIB [MEMORY_GIB]]]` writes
//! files of 1 GiB (100 of them, if nobody says), in calls of 1 MiB, reads them again, and prints a
//! JSON object with the most memory that this process has had (`VmHWM` of /proc/self/status).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_model::op::{Access, Handle, OpenHow, PathId, Token};
use iolab_model::target::Content;
use iolab_model::{Bytes, Lane, LaneRequest, Ns, Op, Seed, Submission, Target};
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::{SimLane, SimTarget};

const CALL: u64 = 1 << 20;
const FILE: u64 = 1 << 30;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: u64| words.get(at).map_or(usual, |word| word.parse().unwrap());
    let system = words.first().map_or("ext4", String::as_str);
    let (files, memory) = (number(1, 100), number(2, 32));
    let mut lane = lane(system, files, memory);
    for file in 0..files {
        each_call(&mut lane, file, Op::write);
    }
    for file in 0..files {
        each_call(&mut lane, file, Op::read);
    }
    println!(
        "{{\"fs\":\"{system}\",\"files_gib\":{files},\"memory_gib\":{memory},\
         \"most_resident_mib\":{},\"simulated_s\":{:.1}}}",
        most_resident_kib() / 1024,
        lane.now().0 as f64 / 1e9
    );
}

fn lane(system: &str, files: u64, memory: u64) -> SimLane {
    let sectors = (files + files / 4 + 8) * FILE / 512;
    let text = format!(
        "name = \"large\"\nfiles = {{ fs = {system:?}, memory = \"{memory}g\" }}\n\
         [device]\nlike = \"fixed-100us\"\nname = \"large\"\ntitle = \"large\"\n\
         parameters = {{ capacity = {sectors} }}\n"
    );
    let stack = Stack::parse("large", &text).unwrap();
    let simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
    let paths: Vec<PathBuf> =
        (0..files).map(|file| Path::new("/simulated").join(file.to_string())).collect();
    let request = LaneRequest {
        worker: 0,
        depth: 1,
        buffer_bytes: Bytes(CALL),
        content: Content::Zero,
        seed: Seed(7),
        priority: None,
        submitter_cpu: None,
        paths: Arc::from(paths),
    };
    SimTarget::new(simulation, Vec::new()).open(&request).unwrap()
}

fn each_call(lane: &mut SimLane, file: u64, op: fn(Handle, Bytes, Bytes) -> Op) {
    let (path, handle) = (PathId(file as u32), Handle(0));
    let how = OpenHow {
        access: Access::Plain,
        is_readable: true,
        is_writable: true,
        ..OpenHow::default()
    };
    let is_new = matches!(op(handle, Bytes(0), Bytes(CALL)), Op::Write(_));
    let open =
        if is_new { Op::Create { path, handle, how } } else { Op::Open { path, handle, how } };
    ask(lane, open);
    for call in 0..FILE / CALL {
        ask(lane, op(handle, Bytes(call * CALL), Bytes(CALL)));
    }
    ask(lane, Op::Close { handle });
}

fn ask(lane: &mut SimLane, op: Op) {
    let mut done = Vec::new();
    let now = lane.now();
    let submission = Submission { token: Token(0), op, intended: now, is_timed: true };
    lane.submit_batch(now, &[submission], &mut done);
    lane.reap(1, Ns(u64::MAX - 1), &mut done).unwrap();
    done.pop().unwrap().outcome.unwrap();
}

fn most_resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

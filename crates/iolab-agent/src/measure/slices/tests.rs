use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use iolab_model::op::Durability;
use iolab_model::{Seed, target::Content};
use iolab_real::{Engine, EngineVisitor};
use serde_json::json;

use super::*;

const MIB: u64 = 1 << 20;

fn workload(files: &[(&str, u32, u64)], access: &str) -> Workload {
    let tenants: Vec<_> = files
        .iter()
        .map(|(file, workers, bytes)| {
            json!({"name": file, "workers": workers, "file": file, "file_bytes": bytes,
                "io_size_bytes": 4096, "pattern": {"kind": "sequential"}, "access": access,
                "direction": {"kind": "write"}, "opening": "create"})
        })
        .collect();
    serde_json::from_value(json!({"version": 1, "name": "x", "engine": "psync", "seed": 1,
        "phases": [{"name": "write", "tenants": tenants}]}))
    .unwrap()
}

fn device(end_bytes: u64) -> RawDevice {
    RawDevice { node: ".device".into(), start_bytes: MIB, end_bytes, unit_bytes: 512 }
}

#[test]
fn slices_lie_one_behind_the_other_on_whole_mebibytes() {
    let work = workload(&[("a", 2, 4096 * 300), ("b", 1, 4096)], "direct");
    let table = Table::new(&device(100 * MIB), Path::new("."), &work).unwrap();
    let places: Vec<_> =
        table.slices.iter().map(|(name, it)| (name.as_str(), it.start / MIB, it.length)).collect();
    assert_eq!(places, [("a.0", 1, 2 * MIB), ("a.1", 3, 2 * MIB), ("b.0", 5, MIB)]);
    let error = Table::new(&device(5 * MIB), Path::new("."), &work).unwrap_err().to_string();
    assert!(error.contains("need 5242880 bytes"), "{error}");
    let cached = workload(&[("a", 1, 4096)], "plain");
    let error = Table::new(&device(100 * MIB), Path::new("."), &cached).unwrap_err().to_string();
    assert!(error.contains("page cache"), "{error}");
    let large = RawDevice { unit_bytes: 8192, ..device(100 * MIB) };
    let error = Table::new(&large, Path::new("."), &work).unwrap_err().to_string();
    assert!(error.contains("sectors of 8192"), "{error}");
}

/// Sends ops one by one to a slice of a file that stands for a device.
struct Script<'a> {
    table: &'a Table,
    directory: &'a Path,
}

impl EngineVisitor for Script<'_> {
    type Output = ();

    fn visit<T: Target + Sync>(self, target: &T) {
        let sliced = Sliced::new(target, self.table);
        assert_eq!(sliced.name(), target.name());
        let request = LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes(4096),
            content: Content::Incompressible,
            seed: Seed(1),
            priority: None,
            submitter_cpu: None,
            paths: Arc::from([self.directory.join("a.1")]),
        };
        let mut lane = sliced.open(&request).unwrap();
        let mut send = |op: Op| {
            let submission = Submission { token: Token(0), intended: Ns(0), is_timed: false, op };
            let mut done = Vec::new();
            let accepted = lane.submit_batch(lane.now(), &[submission], &mut done);
            if accepted.queued > 0 {
                lane.kick().unwrap();
                lane.reap(1, Ns(u64::MAX), &mut done).unwrap();
            }
            done.pop().unwrap().outcome
        };
        let (path, handle) = (PathId(0), Handle(0));
        let how = OpenHow {
            access: Access::Direct,
            durability: Durability::None,
            is_readable: true,
            is_writable: true,
            is_truncating: true,
            ..OpenHow::default()
        };
        let at = |at| Op::write(handle, Bytes(at), Bytes(4096));
        assert_eq!(send(Op::Stat { path }), Err(Errno::ENOENT), "nothing is laid out yet");
        assert_eq!(send(Op::Open { path, handle, how }), Err(Errno::ENOENT));
        send(Op::Create { path, handle, how }).unwrap();
        assert_eq!(send(at(0)), Ok(Bytes(4096)));
        assert_eq!(send(at(MIB - 4096)), Ok(Bytes(4096)));
        for outside in [MIB - 512, MIB, u64::MAX - 4096, u64::MAX] {
            assert!(send(at(outside)).is_err(), "{outside}");
            assert!(send(Op::read(handle, Bytes(outside), Bytes(4096))).is_err(), "{outside}");
        }
        let current = Transfer::plain(handle, Position::Current, Bytes(4096));
        assert_eq!(send(Op::Write(current)), Err(INVALID));
        send(Op::Fsync { handle }).unwrap();
        assert_eq!(send(Op::Stat { path }), Ok(Bytes(MIB)));
        send(Op::Truncate { handle, length: Bytes(4096) }).unwrap();
        assert!(send(Op::Truncate { handle, length: Bytes(2 * MIB) }).is_err());
        send(Op::Close { handle }).unwrap();
        assert_eq!(send(Op::Stat { path }), Ok(Bytes(4096)));
        assert_eq!(send(Op::Close { handle }), Err(Errno::EBADF));
        send(Op::Unlink { path }).unwrap();
        assert_eq!(send(Op::Rename { from: path, to: path }), Err(Errno::EOPNOTSUPP));
        assert_eq!(
            send(Op::Allocate { handle, at: Bytes(0), length: Bytes(1), keeps_length: false }),
            Err(Errno::EOPNOTSUPP)
        );
    }
}

#[test]
fn nothing_outside_of_a_slice_is_reached_and_nothing_is_cut_off() {
    for engine in [Engine::Psync, Engine::Sync, Engine::IoUring] {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let node = folder.path().join(".device");
        let disk = File::create_new(&node).unwrap();
        disk.set_len(6 * MIB).unwrap();
        let work = workload(&[("a", 3, 4096)], "direct");
        let table = Table::new(&device(5 * MIB), folder.path(), &work).unwrap();
        engine.visit(Script { table: &table, directory: folder.path() });
        let bytes = fs::read(&node).unwrap();
        assert_eq!(bytes.len() as u64, 6 * MIB, "never truncated, never unlinked");
        let written: Vec<u64> = (0..6 * MIB / 4096)
            .filter(|page| bytes[(page * 4096) as usize..][..4096].iter().any(|&b| b != 0))
            .collect();
        assert_eq!(written, [2 * MIB / 4096, 3 * MIB / 4096 - 1], "the slice of a.1 alone");
        let mut last = [1];
        File::open(&node).unwrap().read_exact_at(&mut last, 6 * MIB - 1).unwrap();
    }
}

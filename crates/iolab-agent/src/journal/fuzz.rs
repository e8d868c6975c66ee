//! Issue 14, point 9: journals with flipped, cut and added bytes.
//!
//! Symptom: one bad line blocked the restore of everything, and a flipped digit was believed: the
//! old value of a knob, the number of a loop device. Cause: lines had no sum and the first that
//! could not be read was the end. Fix: each line has a sum; what is whole is undone, what is not is
//! told.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;

use super::record::VERSION;
use super::{Change, Entry, Line, State, file_of, lines, parse};
use crate::machine::tree;
use crate::owned_directory;
use crate::restore::undo_dead_runs;

/// Damage to a text; places are shares of its length.
#[derive(Clone, Debug)]
enum Harm {
    Flip(f64, u8),
    Cut(f64, usize),
    Add(f64, Vec<u8>),
}

fn harms() -> impl Strategy<Value = Vec<Harm>> {
    let harm = prop_oneof![
        3 => (0.0..1.0, 0_u8..8).prop_map(|(at, bit)| Harm::Flip(at, bit)),
        1 => (0.0..1.0, 1_usize..300).prop_map(|(at, length)| Harm::Cut(at, length)),
        1 => (0.0..1.0, vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Harm::Add(at, bytes)),
    ];
    vec(harm, 1..6)
}

fn harmed(text: &str, harms: &[Harm]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for harm in harms {
        let place = |at: &f64| (at * bytes.len() as f64) as usize;
        match harm {
            _ if bytes.is_empty() => {}
            Harm::Flip(at, bit) => {
                let place = place(at);
                bytes[place] ^= 1 << bit;
            }
            Harm::Cut(at, length) => {
                let place = place(at);
                let end = (place + length).min(bytes.len());
                bytes.drain(place..end);
            }
            Harm::Add(at, more) => {
                let place = place(at);
                bytes.splice(place..place, more.iter().copied());
            }
        }
    }
    bytes
}

/// Lines of a run's journal, each with the entry that it is about.
fn written(run: &str, changes: &[Change]) -> Vec<(Option<u64>, String)> {
    let text = |line: &Line| lines::sealed(&serde_json::to_string(line).unwrap());
    let (run, boot_id) = (run.to_owned(), "boot".to_owned());
    let open = Line::Open { version: VERSION, run, boot_id, uid: None, iolab: "1.2.3".to_owned() };
    let mut found = vec![(None, text(&open))];
    for (id, change) in (1..).zip(changes) {
        found.push((Some(id), text(&Line::Intent { id, change: change.clone() })));
        if id % 2 == 0 {
            found.push((Some(id), text(&Line::State { id, state: State::Applied })));
        }
    }
    found
}

fn joined(lines: &[(Option<u64>, String)]) -> String {
    lines.iter().map(|(_, line)| line.as_str()).collect()
}

fn changes() -> Vec<Change> {
    let knob = |old: &str| Change::Knob {
        knob: "vm.vfs_cache_pressure".to_owned(),
        path: "/proc/sys/vm/vfs_cache_pressure".into(),
        old: old.to_owned(),
        new: Some("73".to_owned()),
        device: None,
    };
    let image = |name: &str| Change::ImageCreated { path: PathBuf::from(name) };
    vec![
        Change::MountPointCreated { path: "/run/iolab/run-1".into() },
        Change::LoopAdded { number: 8 },
        image("/var/tmp/.iolab-run-1-0.img"),
        Change::LoopAdded { number: 19 },
        image("/var/tmp/.iolab-run-1-1.img"),
        knob("100"),
        Change::DirectoryCreated { path: "/tank/.iolab-7".into(), token: "7".to_owned() },
        knob("200"),
        Change::CachesDropped { trial: "t0001".to_owned() },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn damage_invents_nothing_and_hides_only_what_it_hits(harms in harms()) {
        let (lines, changes) = (written("run-1", &changes()), changes());
        let bytes = harmed(&joined(&lines), &harms);
        let parsed = parse(Path::new("/x/run-1.jsonl"), &bytes);
        prop_assert!(parsed.is_ok(), "no harm makes another version");
        let found = parsed.ok().unwrap();
        for Entry { id, change, .. } in found.entries.values() {
            prop_assert_eq!(changes.get(*id as usize - 1), Some(change));
        }
        let text = String::from_utf8_lossy(&bytes);
        for (id, line) in &lines {
            let is_intent = line.contains("\"intent\"");
            if let (Some(id), true) = (id, is_intent && text.contains(line.trim_end())) {
                prop_assert!(found.entries.contains_key(id), "{line} was lost in {text}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_is_whole_is_undone_and_nothing_else_touched(harms in harms()) {
        let (place, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let image = |n: u32| place.path().join(format!(".iolab-run-1-{n}.img"));
        let folder = |n: u32| place.path().join(format!(".iolab-token-{n}"));
        let mut all: Vec<Change> =
            (0..4).map(|n| Change::ImageCreated { path: image(n) }).collect();
        all.extend((0..3).map(|n| {
            Change::DirectoryCreated { path: folder(n), token: format!("token-{n}") }
        }));
        for n in 0..4 {
            fs::write(image(n), "noise").unwrap();
        }
        for n in 0..3 {
            owned_directory::create(&folder(n), &format!("token-{n}")).unwrap();
            fs::write(folder(n).join("data.0"), "noise").unwrap();
        }
        let guarded = place.path().join("guarded");
        fs::create_dir(&guarded).unwrap();
        fs::write(guarded.join("thesis"), "years").unwrap();
        fs::write(guarded.join(".iolab-run-1-0.img"), "a copy").unwrap();
        let before = tree(&guarded);
        let lines = written("run-1", &all);
        let bytes = harmed(&joined(&lines), &harms);
        let path = file_of(state.path(), "run-1");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &bytes).unwrap();
        let outcome = undo_dead_runs(None, state.path(), "boot", None);
        prop_assert_eq!(tree(&guarded), before);
        let text = String::from_utf8_lossy(&bytes);
        for (id, line) in lines.iter().filter(|(_, line)| line.contains("\"intent\"")) {
            let change = &all[id.unwrap() as usize - 1];
            if text.contains(line.trim_end()) {
                prop_assert!(!change.path().unwrap().exists(), "{outcome:?}");
            }
        }
        // A journal that hides something is kept, and named.
        prop_assert_eq!(path.exists(), !outcome.problems.is_empty(), "{:?}", outcome);
        let _ = undo_dead_runs(None, state.path(), "boot", None);
    }
}

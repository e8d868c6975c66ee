use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt as _;

use super::*;

fn change(number: u32) -> Change {
    Change::LoopAdded { number }
}

#[test]
fn what_was_intended_is_found_again_without_the_torn_end() {
    let state = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(state.path(), "run-1", "boot").unwrap();
    let ids = journal.intend(vec![change(8), change(9)]).unwrap();
    journal.mark(&ids[..1], State::Restored).unwrap();
    let path = file_of(state.path(), "run-1");
    drop(journal);
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(br#"{"line":"intent","id":3,"chan"#).unwrap();
    let mut journal = Journal::adopt(&path).unwrap().expect("its owner is dead");
    let left = journal.open_entries();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].change, change(9));
    assert_eq!((journal.header.run.as_str(), journal.boot_id()), ("run-1", "boot"));
    journal.mark(&[left[0].id], State::Obsolete).unwrap();
    journal.finish().unwrap();
    assert!(files(state.path()).is_empty());
}

#[test]
fn a_living_owner_keeps_its_journal() {
    let state = tempfile::tempdir().unwrap();
    let journal = Journal::create(state.path(), "run-1", "boot").unwrap();
    let path = file_of(state.path(), "run-1");
    assert!(Journal::adopt(&path).unwrap().is_none());
    drop(journal);
    assert!(Journal::adopt(&path).unwrap().is_some());
}

fn setting(old: &str) -> Change {
    Change::Knob {
        knob: "vm.vfs_cache_pressure".to_owned(),
        path: "/proc/sys/vm/vfs_cache_pressure".into(),
        old: old.to_owned(),
        new: None,
        device: None,
    }
}

/// Two runs at once changed one setting; the second took the first one's value for the original
/// and left it behind for good.
#[test]
fn a_setting_is_changed_by_one_run_at_a_time() {
    let state = tempfile::tempdir().unwrap();
    let mut first = Journal::create(state.path(), "run-1", "boot").unwrap();
    let mut second = Journal::create(state.path(), "run-2", "boot").unwrap();
    let ids = first.intend(vec![setting("100")]).unwrap();
    let error = second.intend(vec![change(8), setting("73")]).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(error.to_string().contains("run-1"), "{error}");
    assert_eq!(second.open_entries(), []);
    second.intend(vec![change(8)]).expect("what is no setting is not shared");
    first.mark(&ids, State::Restored).unwrap();
    second.intend(vec![setting("100")]).expect("it has its original value again");
}

/// Issue 14, point 4: one user saw, and could restore, what another one's run had changed.
#[test]
fn runs_of_others_are_neither_listed_nor_named() {
    let state = tempfile::tempdir().unwrap();
    let start = |uid, run: &str| Journal::create_for(uid, state.path(), run, "boot").unwrap();
    let mut theirs = start(Some(1000), "run-1");
    let mut own = start(Some(1001), "run-2");
    let mut roots = start(None, "run-3");
    let names = |uid| -> Vec<String> {
        let files = files_of(uid, state.path());
        files.iter().map(|it| it.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(Some(1001)), ["run-2"]);
    assert_eq!(names(Some(1002)), [""; 0]);
    assert_eq!(names(None), ["run-1", "run-2", "run-3"]);
    theirs.intend(vec![setting("100")]).unwrap();
    let error = own.intend(vec![setting("73")]).unwrap_err().to_string();
    assert!(error.contains("another user's run") && !error.contains("run-1"), "{error}");
    let error = roots.intend(vec![setting("73")]).unwrap_err().to_string();
    assert!(error.contains("run-1"), "root is told: {error}");
    drop(own);
    let again = Journal::adopt(&file_of(state.path(), "run-2")).unwrap().unwrap();
    assert_eq!(again.uid(), Some(1001));
}

#[test]
fn a_setting_of_an_earlier_boot_is_free() {
    let state = tempfile::tempdir().unwrap();
    let mut first = Journal::create(state.path(), "run-1", "boot-1").unwrap();
    first.intend(vec![setting("100")]).unwrap();
    let mut second = Journal::create(state.path(), "run-2", "boot-2").unwrap();
    second.intend(vec![setting("100")]).unwrap();
}

#[test]
fn the_same_run_cannot_start_twice() {
    let state = tempfile::tempdir().unwrap();
    let _journal = Journal::create(state.path(), "run-1", "boot").unwrap();
    assert!(Journal::create(state.path(), "run-1", "boot").is_err());
}

/// Issue 14, point 9: one bad line hid all the others, of all runs.
#[test]
fn a_damaged_line_in_the_middle_hides_nothing_else() {
    let state = tempfile::tempdir().unwrap();
    let path = file_of(state.path(), "run-1");
    let mut journal = Journal::create(state.path(), "run-1", "boot").unwrap();
    journal.intend(vec![change(8), change(9), change(10)]).unwrap();
    drop(journal);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"number\":9", "\"number\":7")).unwrap();
    let journal = Journal::adopt(&path).unwrap().unwrap();
    let left: Vec<Change> = journal.open_entries().into_iter().map(|it| it.change).collect();
    assert_eq!(left, [change(8), change(10)]);
    assert_eq!(journal.damaged(), [3]);
    assert_eq!(journal.boot_id(), "boot");
}

/// Issue 14, point 9: the version was written and never looked at.
#[test]
fn a_journal_of_another_version_is_not_acted_on() {
    let state = tempfile::tempdir().unwrap();
    let path = file_of(state.path(), "run-1");
    drop(Journal::create(state.path(), "run-1", "boot").unwrap());
    let line = r#"{"line":"open","version":2,"run":"run-1","boot_id":"b","iolab":"9.8.7","x":1}"#;
    fs::write(&path, lines::sealed(line)).unwrap();
    let message = Journal::adopt(&path).unwrap_err().to_string();
    assert!(message.contains("version 2, written by iolab 9.8.7"), "{message}");
    assert_eq!(fs::read_to_string(&path).unwrap(), lines::sealed(line));
}

#[test]
fn without_its_first_line_a_journal_is_about_the_boot_in_which_it_was_made() {
    let state = tempfile::tempdir().unwrap();
    let path = file_of(state.path(), "run-1");
    let mut journal = Journal::create(state.path(), "run-1", "boot").unwrap();
    journal.intend(vec![change(8)]).unwrap();
    drop(journal);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("boot", "bolt", 1)).unwrap();
    let journal = Journal::adopt(&path).unwrap().unwrap();
    assert_eq!(journal.boot_id(), crate::restore::boot_id());
    assert_eq!((journal.run(), journal.damaged()), ("run-1", &[1][..]));
    assert_eq!(journal.open_entries().len(), 1);
}

/// Issue 14, point 4: a path that is no UTF-8 ended the agent while it wrote the line.
#[test]
fn what_cannot_be_written_is_an_error_and_leaves_no_line() {
    let state = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(state.path(), "run-1", "boot").unwrap();
    let name = std::ffi::OsStr::from_bytes(b"/tank/.iolab-\xff");
    let image = Change::ImageCreated { path: name.into() };
    let error = journal.intend(vec![change(8), image]).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert_eq!(journal.open_entries(), []);
    drop(journal);
    let text = fs::read_to_string(file_of(state.path(), "run-1")).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
}

/// Issue 14, point 9: whose changes they were stood in the first line only.
#[test]
fn the_name_says_whose_a_journal_is_also_without_its_first_line() {
    let state = tempfile::tempdir().unwrap();
    for (run, uid, is_lost) in [("1001.run-1", Some(1001), false), ("run-1", None, true)] {
        let mut journal = Journal::create_for(uid, state.path(), run, "boot").unwrap();
        journal.intend(vec![change(8)]).unwrap();
        drop(journal);
        let path = file_of(state.path(), run);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("boot", "bolt", 1)).unwrap();
        let journal = Journal::adopt(&path).unwrap().unwrap();
        assert_eq!((journal.uid(), journal.is_owner_lost()), (uid, is_lost), "{run}");
        assert_eq!(journal.run(), run);
    }
    assert_eq!(files_of(Some(1001), state.path()).len(), 1);
}

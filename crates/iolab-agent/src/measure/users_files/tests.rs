//! Issue 14, point 2: `-f existing` and `-F existing` removed the user's file, mkfile cut it off;
//! the layout unlinked whatever had the name. Now every file is looked at before one is touched.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::*;

fn tenant(files: &[&str], direction: &str, opening: &str) -> Value {
    json!({"name": "main", "workers": files.len(), "file": "f", "files": files, "file_bytes": 8192,
        "io_size_bytes": 4096, "pattern": {"kind": "sequential"},
        "direction": {"kind": direction}, "access": "plain", "opening": opening})
}

/// A request that works in `folder` as it is; each phase is one tenant.
fn request(folder: &Path, replaceable: &Value, phases: &[Value]) -> Request {
    let phases: Vec<Value> = (0..)
        .zip(phases)
        .map(|(number, tenant)| json!({"name": format!("p{number}"), "tenants": [tenant]}))
        .collect();
    let request = json!({"trial": "t", "directory": folder,
        "files": {"replaceable": replaceable},
        "workload": {"version": 1, "name": "w", "engine": "sync", "workers_as": "threads",
            "seed": 1, "phases": phases}});
    serde_json::from_value(request).unwrap()
}

/// Makes a file as a lane does.
fn make(path: &Path) {
    let file = File::create_new(path).unwrap();
    created::note(file.as_raw_fd());
}

fn take(folder: &Path, replaceable: &Value, phases: &[Value]) -> Result<UsersFiles, String> {
    UsersFiles::take(&mut request(folder, replaceable, phases)).map(Option::unwrap)
}

#[test]
fn a_foreign_file_is_refused_and_its_neighbours_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        fs::write(folder.path().join(name), name).unwrap();
    }
    let phases = [tenant(&["a", "b", "c"], "write", "create")];
    let named = json!({"a": "named", "c": "named"});
    let why = take(folder.path(), &named, &phases).err().unwrap();
    assert!(why.contains("/b is not a file that iolab made"), "{why}");
    for name in ["a", "b", "c"] {
        assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), name);
    }
}

/// A program with one step that works on a file of the user's, which is long enough as it is.
fn program_tenant(does: &str) -> Value {
    json!({"name": "main", "workers": 1, "file": "f", "files": ["a"], "opening": "existing",
        "file_bytes": 8192, "io_size_bytes": 4096, "pattern": {"kind": "sequential"},
        "direction": {"kind": "read"}, "access": "plain",
        "program": {"steps": [{"id": "step", "does": does}]}})
}

#[test]
fn issue_14_point_2_what_changes_a_file_without_a_transfer_writes_it_too() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), [7; 8192]).unwrap();
    for does in ["write", "discard", "punch", "zero", "truncate", "allocate", "unlink", "rename"] {
        let why = take(folder.path(), &json!({}), &[program_tenant(does)]).err();
        assert!(why.is_some_and(|why| why.contains("not a file that iolab made")), "{does}");
    }
    for does in ["read", "stat", "fsync", "open", "close"] {
        take(folder.path(), &json!({}), &[program_tenant(does)]).unwrap();
    }
}

/// A request of an attacker: the name is that of a directory of many first.
#[test]
fn issue_14_point_2_a_name_that_stands_for_a_directory_first_is_a_file_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), [7; 8192]).unwrap();
    let mut of_many = tenant(&["a"], "read", "existing");
    of_many["file_set"] =
        json!({"action": "read", "order": "sequential", "files": 1, "directories": 0});
    for opening in ["existing", "create"] {
        let phases = [of_many.clone(), tenant(&["a"], "write", opening)];
        let why = take(folder.path(), &json!({}), &phases).err();
        assert!(why.is_some_and(|why| why.contains("not a file that iolab made")), "{opening}");
    }
    // The one that has another name may not be written in place, whoever has the name first.
    fs::hard_link(folder.path().join("a"), folder.path().join("b")).unwrap();
    of_many["opening"] = json!("create");
    let phases = [of_many, tenant(&["a"], "write", "existing")];
    assert!(take(folder.path(), &json!({"a": "named"}), &phases).is_err());
    assert!(folder.path().join("a").exists());
}

#[test]
fn a_mark_holds_until_the_file_is_changed_or_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "made").unwrap();
    let made = json!({"a": {"made": mark_of(&path.metadata().unwrap())}});
    let rewrites = [tenant(&["a"], "write", "existing")];
    let taken = take(folder.path(), &made, &rewrites).unwrap();
    assert_eq!(taken.made().keys().collect::<Vec<_>>(), ["a"]);
    fs::copy(&path, folder.path().join("copy")).unwrap();
    fs::rename(folder.path().join("copy"), &path).unwrap();
    assert!(take(folder.path(), &made, &rewrites).is_err());
}

/// fio writes into the file that is there: all its names would have changed, one was named.
#[test]
fn a_file_with_another_name_is_not_written_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a"), folder.path().join("b"));
    fs::write(&path, "mine").unwrap();
    fs::hard_link(&path, &other).unwrap();
    let named = json!({"a": "named"});
    for opening in ["existing", "keep", "laid_out"] {
        let why = take(folder.path(), &named, &[tenant(&["a"], "write", opening)]).err().unwrap();
        assert!(why.contains("/a has 2 names"), "{opening}: {why}");
    }
    // What is made anew takes the name alone; what is only read stays as it is.
    assert!(take(folder.path(), &named, &[tenant(&["a"], "read", "existing")]).is_ok());
    assert!(take(folder.path(), &named, &[tenant(&["a"], "write", "create")]).is_ok());
    assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
}

#[test]
fn what_is_only_read_stays_whoever_made_it_and_whatever_is_allowed() {
    for replaceable in [json!({}), json!({"a": "named"})] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "mine").unwrap();
        let phases = [tenant(&["a"], "read", "existing")];
        let mut request = request(folder.path(), &replaceable, &phases);
        let taken = UsersFiles::take(&mut request).unwrap().unwrap();
        taken.remove(&request.workload.phases[0]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert!(taken.made().is_empty());
    }
}

#[test]
fn what_is_made_is_made_where_nothing_is_and_removed_only_if_it_is_still_that() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "old").unwrap();
    let phases = [tenant(&["a"], "write", "create"), tenant(&["a"], "write", "existing")];
    let mut request = request(folder.path(), &json!({"a": "named"}), &phases);
    let taken = UsersFiles::take(&mut request).unwrap().unwrap();
    let phase = &request.workload.phases[0];
    assert_eq!(phase.tenants[0].opening, Opening::New);
    assert!(!path.exists());
    make(&path);
    assert_eq!(taken.note(phase).keys().collect::<Vec<_>>(), ["a"]);
    assert!(taken.note(phase).is_empty(), "it is no news any more");
    taken.check(phase).unwrap();
    fs::write(folder.path().join("b"), "somebody's").unwrap();
    fs::rename(folder.path().join("b"), &path).unwrap();
    assert!(taken.check(phase).is_err());
    taken.remove(phase);
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's");
    assert!(taken.made().is_empty());
}

#[test]
fn links_directories_and_special_files_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("target"), "mine").unwrap();
    symlink("target", at("link")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (name, what) in
        [("link", "a symbolic link"), ("folder", "a directory"), ("fifo", "a special file")]
    {
        for (direction, opening) in [("write", "create"), ("read", "existing")] {
            let phases = [tenant(&[name], direction, opening)];
            let why = take(folder.path(), &json!({name: "named"}), &phases).err().unwrap();
            assert!(why.contains(what), "{why}");
        }
    }
    assert_eq!(fs::read_to_string(at("target")).unwrap(), "mine");
}

/// Issue 14, point 2 (L8): where somebody's empty file took the name before the layout did, the
/// layout failed and the file was removed, because an empty one was taken for the layout's.
#[test]
fn issue_14_point_2_what_this_run_did_not_make_is_never_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mut request = request(folder.path(), &json!({}), &[tenant(&["a"], "write", "create")]);
    let taken = UsersFiles::take(&mut request).unwrap().unwrap();
    let phase = &request.workload.phases[0];
    fs::write(&path, "").unwrap();
    assert!(taken.note(phase).is_empty());
    taken.remove(phase);
    assert!(path.exists(), "somebody's file was removed");
    fs::remove_file(&path).unwrap();
    make(&path);
    fs::write(&path, "half of it").unwrap();
    taken.remove(phase);
    assert!(!path.exists(), "a layout that failed leaves nothing");
}

/// Issue 14, point 2: after `kill -9` the file of the run was foreign to the next one.
#[test]
fn issue_14_point_2_what_was_begun_is_known_by_its_birth() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "half of it").unwrap();
    let found = created::of_path(&path).unwrap();
    let (device, inode) = (found.device, found.inode);
    let begun = |born_ns: i64| {
        let birth = json!({"device": device, "inode": inode, "born_ns": born_ns});
        json!({"a": {"begun": birth}})
    };
    let phases = [tenant(&["a"], "write", "create")];
    let born_ns = found.born_ns.expect("the file system of the test keeps births");
    assert!(take(folder.path(), &begun(born_ns - 1), &phases).is_err(), "the inode was reused");
    assert!(path.exists());
    fs::copy(&path, folder.path().join("copy")).unwrap();
    take(folder.path(), &begun(born_ns), &phases).unwrap();
    assert!(!path.exists());
    fs::rename(folder.path().join("copy"), &path).unwrap();
    assert!(take(folder.path(), &begun(born_ns), &phases).is_err(), "a copy is somebody's");
}

/// Issue 14, point 2 (L9): the file made in place of one of mode 0600 had mode 0640.
#[test]
fn issue_14_point_2_what_is_made_anew_is_no_more_open_than_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "secret").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o404)).unwrap();
    let phases = [tenant(&["a"], "write", "create")];
    let mut request = request(folder.path(), &json!({"a": "named"}), &phases);
    let taken = UsersFiles::take(&mut request).unwrap().unwrap();
    make(&path);
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    taken.note(&request.workload.phases[0]);
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o604);
}

//! The agent as sudo starts it for a user who may run nothing else as root.
//!
//! Issue 14, point 4. Through its protocol such a caller overwrote a 0600 file, removed a directory
//! with all in it, and wrote anywhere by `op_log`, phase name, whole paths, `in_place` and
//! `state_dir`; programs were searched in the caller's PATH; the watchdog acted on any journal. Now
//! root's policy says what may be done, and whatever is the user's is touched as the user.
//!
//! Needs root. What sudo sets is set here; tests/hostile does the same through a real sudo. Each
//! agent has an /etc/iolab and a /var/lib/iolab of its own, in a mount namespace of its own.

#[path = "agent/client.rs"]
mod agent;
#[path = "agent/world.rs"]
mod world;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use agent::{alone, ext4, is_root, trial, writing};
use serde_json::{Value, json};
use world::{NOBODY, OTHER, World, refusal, small_loop};

fn once() -> Value {
    writing(&json!({"kind": "once"}))
}

/// A trial in which one thing is as an attacker wants it.
fn with(stack: &Value, change: impl Fn(&mut Value)) -> Value {
    let mut asked = trial(stack, &json!({}), &once());
    change(&mut asked);
    asked
}

/// Change that an attacker makes to a trial.
type Spoil<'a> = &'a dyn Fn(&mut Value);

fn tenant(asked: &mut Value) -> &mut Value {
    &mut asked["workload"]["phases"][0]["tenants"][0]
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn needs_root_hello_says_for_whom_and_what_root_allows() {
    if !is_root() {
        return;
    }
    let world = World::new(None);
    let (agent, hello) = world.greet(NOBODY, "hello-1");
    let told = json!({"uid": NOBODY, "policy": "default", "classes": ["B"]});
    let hello = hello.unwrap();
    assert_eq!(hello["boundary"], told, "{hello}");
    assert_eq!(hello["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(agent.end_input(), Some(0));
    fs::write(world.policy(), "classes = ['A+']").unwrap();
    let hello = world.greet(NOBODY, "hello-2").1.unwrap();
    let told = json!({"uid": NOBODY, "policy": "/etc/iolab/agent.toml", "classes": ["A+"]});
    assert_eq!(hello["boundary"], told);
    let root = world.greet(0, "hello-3").1.unwrap();
    assert_eq!(root["boundary"], Value::Null, "root through sudo is root");
}

#[test]
fn needs_root_a_policy_that_others_may_write_or_nobody_understands_is_refused() {
    if !is_root() {
        return;
    }
    let world = World::new(Some("classes = ['B']"));
    let refused = |what: &str| {
        let error = refusal(world.greet(NOBODY, "policy-1").1, what);
        assert!(error["message"].as_str().unwrap().contains("/etc/iolab"), "{error}");
    };
    fs::set_permissions(world.policy(), Permissions::from_mode(0o664)).unwrap();
    refused("written by a group");
    fs::set_permissions(world.policy(), Permissions::from_mode(0o644)).unwrap();
    world.greet(NOBODY, "policy-2").1.unwrap();
    chown(world.policy(), Some(NOBODY), None).unwrap();
    refused("owned by the user");
    chown(world.policy(), Some(0), None).unwrap();
    fs::set_permissions(world.path("etc/iolab"), Permissions::from_mode(0o777)).unwrap();
    refused("exchanged by others");
    fs::set_permissions(world.path("etc/iolab"), Permissions::from_mode(0o755)).unwrap();
    fs::write(world.policy(), "clases = ['C']").unwrap();
    refused("a word that is not known");
    fs::remove_file(world.policy()).unwrap();
    symlink("/nowhere", world.policy()).unwrap();
    refused("a link to nowhere");
}

/// The watchdog would undo an attacker's journal as root; the child would measure as root anywhere.
#[test]
fn needs_root_the_agents_children_are_not_to_be_played() {
    if !is_root() {
        return;
    }
    let world = World::new(None);
    for words in ["watchdog /tmp run-1", "measure", "semaphores remove", "semaphores make 3"] {
        let output = world.output(words);
        assert_eq!(output.status.code(), Some(2), "{words}: {}", stderr(&output));
        assert!(stderr(&output).contains("refused"), "{words}");
    }
    for (words, code) in [("names", 0), ("--version", 0), ("--help", 0), ("dance", 1), ("", 0)] {
        let output = world.output(words);
        assert_eq!(output.status.code(), Some(code), "{words}: {}", stderr(&output));
    }
}

#[test]
fn needs_root_an_agent_that_others_may_change_does_not_work_for_them() {
    if !is_root() {
        return;
    }
    let world = World::new(None);
    let (folder, agent) = (world.path("bin"), world.path("bin/iolab-agent"));
    let refused = |what: &str| {
        let output = world.output("serve");
        assert_eq!(output.status.code(), Some(2), "{what}: {}", stderr(&output));
        assert!(stderr(&output).contains("sudo iolab install-agent"), "{}", stderr(&output));
    };
    for (path, mode) in [(&agent, 0o775), (&agent, 0o757), (&folder, 0o777), (&folder, 0o1777)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        refused(&format!("{} {mode:o}", path.display()));
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    for path in [&agent, &folder] {
        chown(path, Some(NOBODY), None).unwrap();
        refused("owned by a user");
        chown(path, Some(0), None).unwrap();
    }
    assert_eq!(world.output("serve").status.code(), Some(0));
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    let (_, hello) = world.greet(0, "unsafe-1");
    assert_eq!(hello.unwrap()["boundary"], Value::Null, "root answers for itself");
}

#[test]
fn needs_root_what_the_policy_does_not_have_is_refused_with_its_key() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let world = World::new(None);
    let mut agent = world.start("classes-1");
    let device = |path: &str| {
        json!({"kind": "device", "path": path, "erase_serial": null, "study": null,
            "protected": [], "precondition": "none", "precondition_round_ns": 1})
    };
    let linked = world.home.path().join("images");
    symlink("/etc", &linked).unwrap();
    let mut huge = small_loop("/var/tmp");
    huge["size_bytes"] = json!(u64::MAX - 4095);
    huge["device_count"] = json!(2);
    for (spec, key) in [
        (world.directory(&json!({})), "classes = [\"A+\"]"),
        (device("/dev/vda"), "classes = [\"C\"]"),
        (small_loop("/etc"), "image_dirs = [\"/etc\"]"),
        (small_loop("/var/tmp/../../etc"), "image_dirs = [\"/etc\"]"),
        (small_loop(&linked), "image_dirs = [\"/etc\"]"),
        (huge, "max_bytes"),
        // The user could exchange his own directory for another one.
        (small_loop(world.home.path()), "only root can exchange"),
        (small_loop(world.path("guarded")), "image_dirs = [\"/var/lib"),
        (small_loop(world.path("guarded/secret")), "make it first"),
    ] {
        let error = refusal(agent.ask("open_testbed", &spec), &spec.to_string());
        assert!(error["hint"].as_str().unwrap().contains(key), "{key}: {error}");
    }
    refusal(agent.ask("open_testbed", &small_loop("var/tmp")), "a relative path");
    let state = json!({"protocol": 1, "run": "state-1", "is_dry_run": false,
        "state_dir": world.home.path()});
    refusal(agent.ask("hello", &state), "a state directory of the caller");
    assert_eq!(agent.end_input(), Some(0));
    let text = "classes = ['C']\ndevices = ['nosuch0']";
    fs::write(world.policy(), text).unwrap();
    let mut agent = world.start("classes-2");
    for path in ["/dev/null", "/dev/../etc/passwd", "/etc/passwd"] {
        let error = refusal(agent.ask("open_testbed", &device(path)), path);
        assert!(!error["message"].as_str().unwrap().contains("root:"), "{error}");
    }
    assert_eq!(agent.end_input(), Some(0));
    assert_eq!(fs::read_dir(world.path("state/journal")).unwrap().count(), 0);
    world.check_guarded();
}

/// A real trial on a private loop device, and what its requests may not name.
#[test]
fn needs_root_a_loop_testbed_works_and_reaches_nothing_else() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let world = World::new(None);
    // Programs of the user, in front of the system's in PATH.
    for name in ["mkfs.ext4", "mke2fs", "mount"] {
        let path = world.home.path().join(name);
        let touched = world.path("guarded/called").display().to_string();
        fs::write(&path, format!("#!/bin/sh\ntouch {touched}\nexit 1\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    let mut agent = world.start("loop-1");
    let opened = agent.ask("open_testbed", &small_loop("/var/tmp")).unwrap();
    assert_eq!(opened["class"], "B");
    let mode = fs::metadata("/run/iolab").unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
    let secret = json!(world.path("guarded/secret"));
    let guarded = json!(world.path("guarded"));
    let attacks: [(&str, Spoil); 14] = [
        ("trial", &|it| it["trial"] = json!("../t")),
        ("phase", &|it| it["workload"]["phases"][0]["name"] = json!("../x")),
        ("file", &|it| tenant(it)["file"] = secret.clone()),
        ("files", &|it| tenant(it)["files"] = json!([secret])),
        ("relative", &|it| tenant(it)["file"] = json!("../../../etc/x")),
        ("op_log", &|it| tenant(it)["manner"] = json!({"op_log": guarded})),
        ("stem of a set", &|it| {
            tenant(it)["files"] = json!(["x"]);
            tenant(it)["file"] = guarded.clone();
            tenant(it)["file_set"] = json!({"action": "remove", "order": "sequential", "files": 1,
                "directories": 1});
        }),
        ("workers", &|it| tenant(it)["workers"] = json!(u32::MAX)),
        ("size", &|it| tenant(it)["file_bytes"] = json!(u64::MAX)),
        ("root", &|it| it["run_as"] = json!({"uid": 0, "gid": 0, "groups": []})),
        ("group", &|it| it["run_as"] = json!({"uid": NOBODY, "gid": NOBODY, "groups": [0]})),
        ("semaphores", &|it| {
            it["waits"] = json!({"kind": "semaphores", "numbers": {"write": 0}});
        }),
        ("vm", &|it| it["knobs"] = json!({"vm.dirty_ratio": "1"})),
        ("later", &|it| {
            it["changes"] = json!([{"at_ns": u64::MAX, "knobs": {"vm.dirty_ratio": "1"}}]);
        }),
    ];
    for (what, attack) in attacks {
        refusal(agent.ask("run_trial", &with(&ext4(), attack)), what);
    }
    let knobs = json!({"scheduler": "none", "read_ahead_kb": "64"});
    let record = agent.ask("run_trial", &trial(&ext4(), &knobs, &once())).unwrap();
    assert_eq!(record["status"], "ok", "{record}");
    let myself = with(&ext4(), |it| {
        it["run_as"] = json!({"uid": NOBODY, "gid": NOBODY, "groups": [NOBODY]});
    });
    let record = agent.ask("run_trial", &myself).unwrap();
    assert_eq!(record["status"], "ok", "{record}");
    assert_eq!(agent.ask("close_testbed", &json!({})).unwrap()["is_restored"], true);
    assert_eq!(agent.end_input(), Some(0));
    world.check_guarded();
}

/// A file that a user names in his directory is opened with his rights, also behind links.
#[test]
fn needs_root_a_directory_is_worked_in_with_the_users_rights() {
    if !is_root() {
        return;
    }
    let world = World::with_home();
    let mut agent = world.start("dir-1");
    for (path, what) in [(world.path("guarded"), "out of reach"), ("/etc".into(), "not listed")] {
        let mut spec = world.directory(&json!({}));
        spec["path"] = json!(path);
        refusal(agent.ask("open_testbed", &spec), what);
    }
    let knobs = world.directory(&json!({"allow_knobs_on": ["vda"]}));
    let error = refusal(agent.ask("open_testbed", &knobs), "a device that is not listed");
    assert!(error["hint"].as_str().unwrap().contains("devices = [\"vda\"]"), "{error}");

    let opened = agent.ask("open_testbed", &world.directory(&json!({}))).unwrap();
    let own = PathBuf::from(opened["directory"].as_str().unwrap());
    let owner = |path: &Path| std::os::unix::fs::MetadataExt::uid(&fs::metadata(path).unwrap());
    assert_eq!(owner(&own), NOBODY);
    let record = agent.ask("run_trial", &with(&Value::Null, |_| ())).unwrap();
    assert_eq!(record["status"], "ok", "{record}");
    assert_eq!(agent.ask("close_testbed", &json!({})).unwrap()["is_restored"], true);
    assert!(!own.exists());

    // In place, with links and whole paths to what is root's, and a log there.
    symlink(world.path("guarded/secret"), world.home.path().join("link")).unwrap();
    symlink(world.path("guarded"), world.home.path().join("folder")).unwrap();
    let place = world.directory(&json!({"in_place": true}));
    agent.ask("open_testbed", &place).unwrap();
    let files = [world.path("guarded/secret"), "link".into(), world.path("guarded/new")];
    for file in files {
        let asked = with(&Value::Null, |it| {
            it["workload"]["phases"][0]["tenants"][0]["files"] = json!([file]);
        });
        let record = agent.ask("run_trial", &asked).unwrap();
        // A link in the user's own directory is none of iolab's files: it is not followed either.
        assert_ne!(record["status"], "ok", "{}", file.display());
        world.check_guarded();
    }
    let logged = with(&Value::Null, |it| {
        let log = json!({"op_log": world.path("guarded")});
        it["workload"]["phases"][0]["tenants"][0]["manner"] = log;
    });
    assert_ne!(agent.ask("run_trial", &logged).unwrap()["status"], "ok");
    agent.ask("close_testbed", &json!({})).unwrap();
    assert_eq!(agent.end_input(), Some(0));
    world.check_guarded();
}

/// A dead run's journal says whose it is; its user's rights are what it is undone with.
#[test]
fn needs_root_nobody_sees_or_undoes_anothers_run() {
    if !is_root() {
        return;
    }
    let world = World::new(None);
    let journals = world.path("state/journal");
    fs::create_dir_all(&journals).unwrap();
    fs::set_permissions(&journals, Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(world.path("state"), Permissions::from_mode(0o700)).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let victim = world.path("guarded/.iolab-victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join(".iolab-token"), "t").unwrap();
    let journal = |run: &str, uid: u32| {
        let lines = [
            json!({"line": "open", "version": 1, "run": run, "boot_id": boot.trim(), "uid": uid}),
            json!({"line": "intent", "id": 1, "change":
                {"kind": "directory_created", "path": victim, "token": "t"}}),
        ];
        let [first, second] = lines;
        let text = format!("{first}\n{second}\n");
        fs::write(journals.join(format!("{run}.jsonl")), text).unwrap();
    };
    journal("theirs-1", NOBODY);
    journal("other-1", OTHER);
    let (mut other, hello) = world.greet(OTHER, "mine-1");
    assert_eq!(hello.unwrap()["open_journals"], json!([{"run": "other-1", "entries": 1}]));
    let nothing = json!({"restored": [], "obsolete": [], "alive": [], "problems": []});
    for run in ["theirs-1", "nosuch-1"] {
        assert_eq!(other.ask("restore", &json!({"run": run})).unwrap(), nothing, "{run}");
    }
    // Own, but what it names is out of the user's reach.
    let outcome = other.ask("restore", &json!({"run": null})).unwrap();
    assert_eq!(outcome["problems"].as_array().unwrap().len(), 1, "{outcome}");
    assert_eq!(other.end_input(), Some(3));
    assert!(victim.join(".iolab-token").exists());
    let hello = world.greet(0, "roots-1").1.unwrap();
    assert_eq!(hello["open_journals"].as_array().unwrap().len(), 2, "root sees all: {hello}");
    let (mut root, _) = world.greet(0, "roots-2");
    refusal(root.ask("open_testbed", &world.directory(&json!({}))), "root is told of both");
    fs::remove_file(journals.join("other-1.jsonl")).unwrap();
    let mut third = world.greet(OTHER, "mine-2").0;
    let error = refusal(third.ask("open_testbed", &world.directory(&json!({}))), "class");
    assert!(!error["message"].as_str().unwrap().contains("theirs-1"), "{error}");
}

#[test]
fn needs_root_a_request_has_a_largest_size() {
    if !is_root() {
        return;
    }
    let world = World::new(None);
    let mut child = world
        .command(NOBODY, "serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let giver = std::thread::spawn(move || {
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..200 {
            if std::io::Write::write_all(&mut input, &chunk).is_err() {
                return;
            }
        }
    });
    let output = child.wait_with_output().unwrap();
    giver.join().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["error"]["code"], "usage", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("64 MiB"), "{answer}");
    assert_eq!(output.status.code(), Some(0));
}

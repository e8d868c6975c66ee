//! The agent as sudo starts it for a user, with an /etc/iolab and a /var/lib/iolab of its own.

#![allow(dead_code, reason = "each test file uses a part")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::agent::{Agent, copy_program};

pub const NOBODY: u32 = 65534;
pub const OTHER: u32 = 65533;
const AGENT: &str = env!("CARGO_BIN_EXE_iolab-agent");

/// An agent's world: a copy that only root can change, a policy, a guarded file, a user's home.
pub struct World {
    /// Root's, and nobody else may even look.
    place: tempfile::TempDir,
    /// The user's own.
    pub home: tempfile::TempDir,
}

impl World {
    pub fn new(policy: Option<&str>) -> Self {
        let place = tempfile::tempdir_in("/var/lib").unwrap();
        let path = |name: &str| place.path().join(name);
        for folder in ["etc/iolab", "etc-work", "state", "guarded", "bin"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        fs::set_permissions(place.path(), Permissions::from_mode(0o711)).unwrap();
        copy_program(Path::new(AGENT), &path("bin/iolab-agent"));
        fs::set_permissions(path("bin/iolab-agent"), Permissions::from_mode(0o755)).unwrap();
        fs::write(path("guarded/secret"), "root's").unwrap();
        fs::set_permissions(path("guarded"), Permissions::from_mode(0o700)).unwrap();
        if let Some(text) = policy {
            fs::write(path("etc/iolab/agent.toml"), text).unwrap();
        }
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        Self { place, home }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn policy(&self) -> PathBuf {
        self.path("etc/iolab/agent.toml")
    }

    /// A world in which the home is a place for directory testbeds.
    pub fn with_home() -> Self {
        let world = Self::new(None);
        let home = world.home.path().display();
        let text = format!("classes = ['A+', 'B']\ndirectories = ['{home}']\n");
        fs::write(world.policy(), text).unwrap();
        world
    }

    /// The agent as sudo starts it for `uid`.
    pub fn command(&self, uid: u32, words: &str) -> Command {
        let script = "mount -t overlay overlay -o \"lowerdir=/etc,upperdir=$W/etc,\
                      workdir=$W/etc-work\" /etc && mkdir -p /var/lib/iolab && \
                      mount --bind \"$W/state\" /var/lib/iolab && \
                      PATH=\"$THEIRS:$PATH\" exec $W/bin/iolab-agent $WORDS";
        let agent = self.path("bin/iolab-agent").display().to_string();
        let mut command = Command::new("unshare");
        command
            .args(["-m", "sh", "-c", script])
            .env_clear()
            .env("W", self.place.path())
            .env("WORDS", words)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("THEIRS", self.home.path())
            .env("SUDO_UID", uid.to_string())
            .env("SUDO_GID", uid.to_string())
            .env("SUDO_COMMAND", format!("{agent} {words}").trim());
        command
    }

    pub fn greet(&self, uid: u32, run: &str) -> (Agent, Result<Value, Value>) {
        let params = json!({"protocol": 1, "run": run, "is_dry_run": false, "state_dir": null});
        let mut agent = Agent::of(self.command(uid, "serve"));
        let hello = agent.ask("hello", &params);
        (agent, hello)
    }

    pub fn start(&self, run: &str) -> Agent {
        let (agent, hello) = self.greet(NOBODY, run);
        hello.unwrap();
        agent
    }

    pub fn output(&self, words: &str) -> Output {
        self.command(NOBODY, words).stdin(Stdio::null()).output().unwrap()
    }

    pub fn directory(&self, more: &Value) -> Value {
        let mut spec = json!({"kind": "directory", "path": self.home.path(), "allow_knobs_on": []});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        spec
    }

    /// Nothing of root's has changed.
    pub fn check_guarded(&self) {
        let names = |folder: &Path| fs::read_dir(folder).unwrap().count();
        assert_eq!(fs::read_to_string(self.path("guarded/secret")).unwrap(), "root's");
        assert_eq!(names(&self.path("guarded")), 1);
    }
}

/// A request for a small loop testbed.
pub fn small_loop(image_dir: impl AsRef<Path>) -> Value {
    json!({"kind": "loop", "size_bytes": 64 << 20, "image_dir": image_dir.as_ref(),
        "device_count": 1, "logical_block_bytes": 512})
}

/// The error of a request that must be refused, or be no request at all.
pub fn refusal(answer: Result<Value, Value>, what: &str) -> Value {
    let error = answer.expect_err(what);
    let code = error["code"].as_str().unwrap();
    assert!(matches!(code, "refused" | "usage"), "{what}: {error}");
    error
}

//! Bounds of an agent that works as root for a user who may not be root: what it refuses.
//!
//! A rule of sudo may name the agent alone. Whoever uses that rule must gain nothing but what root
//! has written down in the policy, whatever the request says. Root itself, also by way of
//! `sudo iolab ...` or a root shell, is not restricted: sudo says which program it started
//! (`SUDO_COMMAND`) and for whom (`SUDO_UID`), and a caller cannot make it say anything else.
//!
//! Left out: names inside of requests, which are `request`'s; the policy's own text.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::unistd::{Gid, Uid, User, geteuid, getgrouplist, getuid};

use crate::error::{Error, Result};
use crate::identity::on_behalf;
use crate::machine::{command, find_program};
use crate::policy::Policy;
use crate::protocol::{BoundaryOf, RunAs, TrialSpec};
use crate::trusted::{Shared, weakness};
use crate::{knob, request};

const PROGRAM: &str = "/proc/self/exe";
const NAME: &str = "iolab-agent";
/// A program by which its user may do anything as root.
const SHELL: &str = "/bin/sh";
const HINT: &str = "install a copy that only root can change: sudo iolab install-agent";
/// Group of a user whom the system does not know.
const NO_GROUP: u32 = 65534;

/// A user for whom root works, within a policy.
#[derive(Clone, Debug)]
pub struct Boundary {
    user: RunAs,
    policy: Policy,
}

/// The user for whom this program was started as root, and it alone; none if there is no such user.
///
/// # Errors
///
/// Started by a user who cannot be named.
pub fn caller() -> Result<Option<RunAs>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    if !getuid().is_root() {
        return Ok(Some(user_of(getuid().as_raw(), None)));
    }
    // Whatever bytes an argument has, the program in front of it is still understood.
    let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
    caller_in(variable, may_be_root)
}

fn caller_in(
    variable: impl Fn(&str) -> Option<String>,
    may_be_root: impl Fn(u32) -> bool,
) -> Result<Option<RunAs>> {
    let number = |name: &str, text: &str| {
        text.parse::<u32>().map_err(|_| {
            let what = format!("{name} is '{text}', which is no user or group");
            Error::refused(what, "start it by sudo, or from a shell of root")
        })
    };
    if let Some(text) = variable("SUDO_UID") {
        let uid = number("SUDO_UID", &text)?;
        let is_alone = variable("SUDO_COMMAND").is_none_or(|line| names_us(&line));
        // Another command, with us below it, may be all that a rule allows: a wrapper, say.
        if uid != 0 && (is_alone || !may_be_root(uid)) {
            let gid = variable("SUDO_GID").map(|text| number("SUDO_GID", &text)).transpose()?;
            return Ok(Some(user_of(uid, gid)));
        }
    }
    // These two do not say what they started: whoever comes that way is held to the policy.
    if let Some(text) = variable("PKEXEC_UID") {
        let uid = number("PKEXEC_UID", &text)?;
        return Ok((uid != 0).then(|| user_of(uid, None)));
    }
    if let Some(name) = variable("DOAS_USER").filter(|name| name != "root") {
        let found = User::from_name(&name).ok().flatten().ok_or_else(|| {
            Error::refused(format!("DOAS_USER is '{name}', which is no user"), "use sudo")
        })?;
        return Ok(Some(user_of(found.uid.as_raw(), None)));
    }
    Ok(None)
}

/// The user's right to start whatever he likes as root, as sudo itself says; none if it cannot be
/// asked.
fn may_be_root(uid: u32) -> bool {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    let Some((user, sudo)) = user.zip(find_program("sudo")) else { return false };
    let asked = command(sudo)
        .args(["-n", "-l", "-U", &user.name, "--", SHELL])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .status();
    asked.is_ok_and(|status| status.success())
}

/// The command line of sudo has this program's name or path in front. A path may have blanks in it,
/// which the line does not tell from those between words.
fn names_us(line: &str) -> bool {
    let first = line.split(' ').next().unwrap_or_default();
    if Path::new(first).file_name().is_some_and(|name| name == NAME) {
        return true;
    }
    let same = |path: &str| match (fs::metadata(path), fs::metadata(PROGRAM)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    };
    let ends = line.match_indices(' ').map(|(at, _)| at).chain([line.len()]);
    ends.map(|end| &line[..end]).any(same)
}

/// A user with his groups, as the system knows them.
pub fn user_of(uid: u32, gid: Option<u32>) -> RunAs {
    let known = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    let usual = known.as_ref().map(|user| user.gid.as_raw());
    let gid = gid.or(usual).unwrap_or(NO_GROUP);
    let name = known.and_then(|user| CString::new(user.name).ok());
    let listed = name.and_then(|name| getgrouplist(&name, Gid::from_raw(gid)).ok());
    let groups = listed.map_or_else(|| vec![gid], |all| all.iter().map(|g| g.as_raw()).collect());
    RunAs { uid, gid, groups }
}

/// Refuses to be root for others if somebody else than root can change this program.
pub fn check_program() -> Result<()> {
    let refused = |why: String| {
        Error::refused(format!("iolab-agent does not work as root for others: {why}"), HINT)
    };
    let path = fs::read_link(PROGRAM).map_err(|error| Error::io("look at", PROGRAM, error))?;
    let running = fs::metadata(PROGRAM).map_err(|error| Error::io("look at", PROGRAM, error))?;
    if let Some(why) = weakness(&path, Shared::Refused) {
        return Err(refused(why));
    }
    let named = fs::metadata(&path).map_err(|error| Error::io("look at", &path, error))?;
    if !named.is_file() || (named.dev(), named.ino()) != (running.dev(), running.ino()) {
        return Err(refused(format!("{} is another program by now", path.display())));
    }
    Ok(())
}

impl Boundary {
    /// The boundary around `user`, as root's policy draws it now.
    pub fn around(user: RunAs) -> Result<Self> {
        Ok(Self { user, policy: Policy::load()? })
    }

    /// The answer of `hello` about it.
    pub fn told(&self) -> BoundaryOf {
        BoundaryOf {
            uid: self.user.uid,
            policy: self.policy.source().to_owned(),
            classes: self.policy.classes().to_vec(),
        }
    }

    /// Tell whether root works for the user on testbeds of a class.
    pub fn has_class(&self, class: &str) -> bool {
        self.policy.check_class(class).is_ok()
    }

    /// The user that root works for, and the policy.
    pub fn described(&self) -> String {
        format!("root works for user {} by the policy {}", self.user.uid, self.policy.source())
    }

    /// The user for whom root works.
    pub fn user(&self) -> &RunAs {
        &self.user
    }

    /// Refuses a privilege class that the policy does not have.
    pub fn check_class(&self, class: &str) -> Result<()> {
        self.policy.check_class(class)
    }

    /// Bytes that the user may have written at once.
    pub fn bytes_max(&self) -> u64 {
        self.policy.bytes_max()
    }

    /// The directory for images of so many bytes, free of links: nobody but root can exchange it.
    pub fn image_dir(&self, asked: &Path, bytes: u64) -> Result<PathBuf> {
        self.policy.check_bytes(bytes)?;
        let real = on_behalf(Some(&self.user), || resolved(asked))?;
        self.policy.check_image_dir(&real)?;
        if let Some(why) = weakness(&real, Shared::IfSticky) {
            let what = format!("no image is made in {} for others: {why}", real.display());
            let hint = "use a directory that only root can exchange, such as /var/tmp";
            return Err(Error::refused(what, hint));
        }
        Ok(real)
    }

    /// The directory that a testbed may be in, free of links.
    pub fn directory(&self, asked: &Path) -> Result<PathBuf> {
        let real = on_behalf(Some(&self.user), || resolved(asked))?;
        self.policy.check_directory(&real)?;
        Ok(real)
    }

    /// Path in /dev of a whole device, free of links; refused if the policy does not have it.
    pub fn device_path(&self, asked: &Path) -> Result<PathBuf> {
        let outside = || {
            let what = format!("{} is no device for others", asked.display());
            Error::refused(what, "name it as it is in /dev")
        };
        if !asked.starts_with("/dev") {
            return Err(outside());
        }
        let real = on_behalf(Some(&self.user), || resolved(asked))?;
        let name = real.strip_prefix("/dev").ok().and_then(Path::to_str).ok_or_else(outside)?;
        self.check_device(&name.replace('/', "!"))?;
        Ok(real)
    }

    /// Refuses a whole device that the policy does not have.
    pub fn check_device(&self, name: &str) -> Result<()> {
        self.policy.check_device(name)
    }

    /// Refuses the recording of what processes of everybody do.
    pub fn check_all_processes(&self) -> Result<()> {
        self.policy.check_all_processes()
    }

    /// Refuses a trial that the policy does not cover; `devices` are those under the testbed.
    pub fn check_trial(
        &self,
        (class, devices): (&str, &[String]),
        has_paths: bool,
        spec: &TrialSpec,
    ) -> Result<()> {
        let names = spec.knobs.keys().chain(spec.changes.iter().flat_map(|it| it.knobs.keys()));
        let treatments = spec.pairs.iter().flat_map(|pairs| &pairs.treatments);
        let names = names.chain(treatments.clone().flat_map(|it| it.knobs.keys()));
        let mut is_on_device = false;
        for name in names {
            self.policy.check_knob(name)?;
            is_on_device |= knob::find(name)?.1.scope() == knob::Scope::Device;
        }
        // A loop device is ours; what a directory lies on is everybody's.
        if is_on_device && class != "B" {
            devices.iter().try_for_each(|name| self.check_device(name))?;
        }
        self.check_run_as(spec.run_as.as_ref())?;
        let measures_as_root = self.measures_as(class, spec).is_none();
        let bytes = request::check_workload(spec, has_paths, measures_as_root)?;
        self.policy.check_bytes(bytes)?;
        for treatment in treatments {
            let alone =
                TrialSpec { workload: treatment.workload.clone(), pairs: None, ..spec.clone() };
            let bytes = request::check_workload(&alone, has_paths, measures_as_root)?;
            self.policy.check_bytes(bytes)?;
        }
        spec.pairs.iter().try_for_each(request::check_at_once)
    }

    fn check_run_as(&self, asked: Option<&RunAs>) -> Result<()> {
        let Some(asked) = asked else { return Ok(()) };
        let has = |group: &u32| *group == self.user.gid || self.user.groups.contains(group);
        if asked.uid == self.user.uid && has(&asked.gid) && asked.groups.iter().all(has) {
            return Ok(());
        }
        let what = format!("user {} cannot measure as user {}", self.user.uid, asked.uid);
        Err(Error::refused(what, "leave run_as out, or name yourself and your groups"))
    }

    /// The user that the measuring child runs as: where files are the user's, always that user, and
    /// wherever the library of a store is loaded.
    pub fn measures_as(&self, class: &str, spec: &TrialSpec) -> Option<RunAs> {
        let mut tenants = spec.workload.phases.iter().flat_map(|phase| &phase.tenants);
        let is_users = class == "A+" || tenants.any(|tenant| tenant.kv.is_some());
        spec.run_as.clone().or_else(|| is_users.then(|| self.user.clone()))
    }

    /// Tell whether the measuring child may drop the page cache of everybody.
    pub fn may_drop_caches(&self, class: &str) -> bool {
        class != "A+" && self.policy.may_drop_caches()
    }
}

fn resolved(asked: &Path) -> Result<PathBuf> {
    if !asked.is_absolute() {
        let what = format!("{} is no absolute path", asked.display());
        return Err(Error::refused(what, "write it from / on"));
    }
    let real = fs::canonicalize(asked).map_err(|error| {
        let what = format!("{} cannot be reached: {error}", asked.display());
        Error::refused(what, "make it first, or name another")
    })?;
    if real.to_str().is_none() {
        let what = format!("{} leads to a name that is not UTF-8", asked.display());
        return Err(Error::refused(what, "rename it, or name another"));
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOB: u32 = 4242;

    fn asked(variables: &[(&str, &str)]) -> Result<Option<u32>> {
        let find = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        // Bob is the one who may do anything.
        caller_in(find, |uid| uid == BOB).map(|user| user.map(|user| user.uid))
    }

    /// Issue 14, point 4: a rule that named a wrapper of the agent's, or a copy that was replaced
    /// meanwhile, made its user root. Everything but the agent's own name counted as somebody's who
    /// may do anything; now sudo is asked.
    #[test]
    fn who_may_start_a_wrapper_only_is_held_to_the_policy() {
        for line in ["/usr/local/bin/measure", "/opt/agent-0.1 serve", "/bin/sh -c x", "", "gone"] {
            let of = |uid: &'static str| asked(&[("SUDO_UID", uid), ("SUDO_COMMAND", line)]);
            assert_eq!(of("65534").unwrap(), Some(65534), "{line}");
            assert_eq!(of("4242").unwrap(), None, "{line}");
        }
        assert!(!may_be_root(4_000_000_001), "a user without a name");
    }

    /// Issue 14, point 4: the agent could not tell for whom it works.
    #[test]
    fn who_may_only_run_the_agent_is_told_from_root() {
        let (uid, bob) = (("SUDO_UID", "65534"), ("SUDO_UID", "4242"));
        let command = |line: &'static str| ("SUDO_COMMAND", line);
        let agent = "/usr/local/libexec/iolab/iolab-agent";
        assert_eq!(asked(&[]).unwrap(), None, "a shell of root");
        assert_eq!(asked(&[uid, command(agent)]).unwrap(), Some(65534));
        assert_eq!(asked(&[uid, command("/x/iolab-agent serve")]).unwrap(), Some(65534));
        assert_eq!(asked(&[uid]).unwrap(), Some(65534), "what was started is not known");
        assert_eq!(asked(&[bob, command("/usr/bin/iolab run x")]).unwrap(), None);
        assert_eq!(asked(&[bob, command(agent)]).unwrap(), Some(BOB), "his own choice");
        let argument = "/usr/bin/iolab run /opt/iolab-agent";
        assert_eq!(asked(&[bob, command(argument)]).unwrap(), None);
        assert_eq!(asked(&[bob, command("/bin/bash")]).unwrap(), None);
        assert_eq!(asked(&[("SUDO_UID", "0"), command(agent)]).unwrap(), None);
        assert_eq!(asked(&[("PKEXEC_UID", "7")]).unwrap(), Some(7));
        assert_eq!(asked(&[("DOAS_USER", "nobody")]).unwrap(), Some(65534));
        for text in ["", "-1", "4294967296", "root"] {
            assert!(asked(&[("SUDO_UID", text)]).is_err(), "{text}");
        }
    }

    #[test]
    fn this_program_is_known_under_any_name() {
        let own = fs::read_link(PROGRAM).unwrap().display().to_string();
        assert!(names_us(&own) && names_us(&format!("{own} serve")));
        assert!(names_us("/proc/self/exe"));
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("a name with blanks");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        assert!(names_us(&format!("{} serve", link.display())));
        assert!(!names_us("/bin/sh -c x") && !names_us(""));
    }

    #[test]
    fn a_user_has_the_groups_that_the_system_says() {
        let user = user_of(0, Some(0));
        assert!((user.uid, user.gid) == (0, 0) && user.groups.contains(&0));
        let unknown = user_of(4_000_000_001, None);
        assert_eq!((unknown.gid, unknown.groups), (NO_GROUP, vec![NO_GROUP]));
    }
}

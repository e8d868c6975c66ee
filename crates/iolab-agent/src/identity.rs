//! Touching files with the rights of the user for whom root works, and with root's own again.
//!
//! What a user names (his directories, what is in them) must not be reached with more rights than
//! he has: a link or an exchanged component then leads root nowhere that he could not go himself.
//! The kernel judges access to files by the file system's user and groups (setfsuid(2), user
//! namespaces aside), so these are exchanged around a piece of work and put back after it. The
//! agent has one thread. Left out: the measuring child, which becomes the user for good.

use nix::unistd::{Gid, Uid, getgroups, setfsgid, setfsuid, setgroups};

use crate::error::{Error, Result};
use crate::protocol::RunAs;

/// Does `body` with the rights of `user` on files; with our own if there is none.
///
/// # Errors
///
/// Those of `body`, and a refusal if the rights could not be taken.
pub fn on_behalf<T>(user: Option<&RunAs>, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let Some(user) = user else { return body() };
    let _borrowed = Borrowed::take(user)?;
    body()
}

/// Rights of another user, until this goes.
struct Borrowed {
    groups: Vec<Gid>,
}

impl Borrowed {
    fn take(user: &RunAs) -> Result<Self> {
        let failed = |errno: nix::Error| {
            let what = format!("the rights of user {} cannot be taken: {errno}", user.uid);
            Error::refused(what, "nothing was touched; see whether a container forbids it")
        };
        let borrowed = Self { groups: getgroups().map_err(failed)? };
        let groups: Vec<Gid> = user.groups.iter().copied().map(Gid::from_raw).collect();
        setgroups(&groups).map_err(failed)?;
        let is_taken = take_group(Gid::from_raw(user.gid)) && take_user(Uid::from_raw(user.uid));
        if is_taken { Ok(borrowed) } else { Err(failed(nix::Error::EPERM)) }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let is_back = take_user(Uid::from_raw(0)) && take_group(Gid::from_raw(0));
        if !is_back || setgroups(&self.groups).is_err() {
            // Going on with an unknown mixture of rights would be worse; the watchdog restores.
            std::process::abort();
        }
    }
}

/// Takes a user; the answer of the call is the one before, so it is asked again.
fn take_user(uid: Uid) -> bool {
    setfsuid(uid);
    setfsuid(Uid::from_raw(u32::MAX)) == uid
}

fn take_group(gid: Gid) -> bool {
    setfsgid(gid);
    setfsgid(Gid::from_raw(u32::MAX)) == gid
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    const NOBODY: u32 = 65534;

    /// Rights are the thread's, but groups are the process's: this is the only test that runs it.
    #[test]
    fn needs_root_files_are_reached_with_the_users_rights_only() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: needs root");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let secret = place.path().join("secret");
        let own = place.path().join("own");
        fs::write(&secret, "root's").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(&own).unwrap();
        chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
        let user = RunAs { uid: NOBODY, gid: NOBODY, groups: vec![NOBODY] };
        let result = on_behalf(Some(&user), || {
            assert!(fs::read(&secret).is_err());
            assert!(fs::write(place.path().join("new"), "x").is_err());
            fs::write(own.join("new"), "x").map_err(|error| Error::io("write", &own, error))
        });
        result.unwrap();
        assert_eq!(fs::read_to_string(&secret).unwrap(), "root's");
        fs::write(place.path().join("new"), "root again").unwrap();
    }
}

//! I/O priority of the calling thread.

use iolab_model::{Error, LaneRequest, Priority};

use crate::affinity::last_errno;

/// `IOPRIO_WHO_PROCESS` (include/uapi/linux/ioprio.h); 0 then names the calling thread.
const WHO_PROCESS: libc::c_int = 1;

/// Gives the calling thread an I/O priority; best effort for all its later requests.
pub fn set(priority: Priority) -> Result<(), Error> {
    let value = libc::c_long::from(priority.packed());
    // SAFETY: the call takes three integers and touches no memory of ours.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) };
    if result == 0 {
        return Ok(());
    }
    Err(Error::System {
        call: "ioprio_set",
        subject: format!("class {:?}, level {}", priority.class, priority.level),
        errno: last_errno(),
    })
}

/// Apply the priority that a worker asked for with its lane, if any.
pub(crate) fn apply(request: &LaneRequest) -> Result<(), Error> {
    request.priority.map_or(Ok(()), set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::priority::PriorityClass;

    #[test]
    fn the_kernel_gives_back_what_was_set() {
        let wanted = Priority { class: PriorityClass::BestEffort, level: 6 };
        std::thread::spawn(move || {
            set(wanted).unwrap();
            // SAFETY: as above.
            let got = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) };
            assert_eq!(got, libc::c_long::from(wanted.packed()));
        })
        .join()
        .unwrap();
    }
}

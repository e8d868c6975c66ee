//! CPU affinity of the calling thread.

use iolab_model::{Error, error::Errno};

/// Pins the calling thread to one CPU.
pub fn pin_to(cpu: u32) -> Result<(), Error> {
    let failed = || Error::System {
        call: "sched_setaffinity",
        subject: format!("CPU {cpu}"),
        errno: last_errno(),
    };
    if cpu as usize >= libc::CPU_SETSIZE as usize {
        return Err(Error::System {
            call: "sched_setaffinity",
            subject: format!("CPU {cpu}"),
            errno: Errno::EINVAL,
        });
    }
    // SAFETY: a zeroed cpu_set_t is an empty set; `cpu` is below its size.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result == 0 { Ok(()) } else { Err(failed()) }
}

/// The errno of the last failed call of this thread.
pub(crate) fn last_errno() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(Errno::EIO.0))
}

//! CPU affinity of the calling thread.

use iolab_model::{Error, error::Errno};

/// Pins the calling thread to one CPU.
///
/// # Errors
///
/// There is no such CPU, or the thread may not run there.
pub fn pin_to(cpu: u32) -> Result<(), Error> {
    allow(&[cpu])
}

/// Lets the calling thread run on these CPUs alone.
///
/// # Errors
///
/// There is none of them, or the thread may run on none.
pub fn allow(cpus: &[u32]) -> Result<(), Error> {
    let failed = |errno| Error::System {
        call: "sched_setaffinity",
        subject: format!("CPUs {cpus:?}"),
        errno,
    };
    if cpus.iter().any(|cpu| *cpu as usize >= libc::CPU_SETSIZE as usize) {
        return Err(failed(Errno::EINVAL));
    }
    // SAFETY: a zeroed cpu_set_t is an empty set; all numbers are below its size.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus {
            libc::CPU_SET(*cpu as usize, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result == 0 { Ok(()) } else { Err(failed(last_errno())) }
}

/// The errno of the last failed call of this thread.
pub(crate) fn last_errno() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(Errno::EIO.0))
}

//! Memory shared with forked workers.

use std::ops::Deref;
use std::ptr::NonNull;

use iolab_model::Error;

use crate::affinity::last_errno;

/// A value in anonymous shared memory: after fork(2), parent and children see the same one.
pub struct SharedBox<T: Sync> {
    start: NonNull<T>,
}

impl<T: Sync> SharedBox<T> {
    /// Moves `value` into shared memory.
    ///
    /// # Safety
    ///
    /// `T` must mean the same in every process that shares it: no pointers, no process-local
    /// handles, and only atomics may change. It is not dropped.
    pub unsafe fn new(value: T) -> Result<Self, Error> {
        const { assert!(align_of::<T>() <= 4096, "mmap gives page-aligned memory") };
        // SAFETY: a fresh anonymous mapping touches no existing memory.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>().max(1),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(Error::System {
                call: "mmap",
                subject: "shared memory".into(),
                errno: last_errno(),
            });
        }
        let start = NonNull::new(memory.cast::<T>()).expect("mmap never answers with null");
        // SAFETY: the mapping is large enough, aligned, writable and not yet shared.
        unsafe { start.write(value) };
        Ok(Self { start })
    }
}

impl<T: Sync> Deref for SharedBox<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: initialised in `new`, alive until drop, and only changed through atomics.
        unsafe { self.start.as_ref() }
    }
}

impl<T: Sync> Drop for SharedBox<T> {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this size; nobody borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), size_of::<T>().max(1)) };
    }
}

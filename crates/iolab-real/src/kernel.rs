//! The system calls that cached transfers consist of, made in place.
//!
//! A processor that comes back from the kernel has forgotten where its callers are: every return
//! from a function that follows is mispredicted, and a wrapper of the C library is one. They answer
//! as those do: a number, or -1 with errno set. Elsewhere than on x86-64 they are the library's.
//!
//! Source: syscall(2) and syscalls(2); the System V ABI for AMD64, A.2.1 "Calling Conventions".

#[cfg(not(target_pointer_width = "64"))]
compile_error!("an offset must fit into a register: iolab needs a 64-bit system");

use std::ffi::c_void;
use std::os::fd::RawFd;

/// read(2).
///
/// # Safety
///
/// `length` bytes from `start` on must be writable.
#[inline]
pub unsafe fn read(fd: RawFd, start: *mut c_void, length: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { call(libc::SYS_read, [fd as usize, start as usize, length, 0]) }
}

/// write(2).
///
/// # Safety
///
/// `length` bytes from `start` on must be readable.
#[inline]
pub unsafe fn write(fd: RawFd, start: *const c_void, length: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { call(libc::SYS_write, [fd as usize, start as usize, length, 0]) }
}

/// pread(2).
///
/// # Safety
///
/// `length` bytes from `start` on must be writable.
#[inline]
pub unsafe fn pread(fd: RawFd, start: *mut c_void, length: usize, at: u64) -> isize {
    // SAFETY: the caller's promise.
    unsafe { call(libc::SYS_pread64, [fd as usize, start as usize, length, at as usize]) }
}

/// pwrite(2).
///
/// # Safety
///
/// `length` bytes from `start` on must be readable.
#[inline]
pub unsafe fn pwrite(fd: RawFd, start: *const c_void, length: usize, at: u64) -> isize {
    // SAFETY: the caller's promise.
    unsafe { call(libc::SYS_pwrite64, [fd as usize, start as usize, length, at as usize]) }
}

/// lseek(2) from the beginning of the file.
#[inline]
pub fn seek(fd: RawFd, at: u64) -> isize {
    // SAFETY: it touches no memory.
    unsafe { call(libc::SYS_lseek, [fd as usize, at as usize, libc::SEEK_SET as usize, 0]) }
}

/// A system call that takes no pointer but to memory that is valid.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn call(number: libc::c_long, arguments: [usize; 4]) -> isize {
    let [first, second, third, fourth] = arguments;
    let answer: isize;
    // SAFETY: the registers are those of the ABI; the kernel changes rcx, r11 and rax, and no
    // memory but what the caller vouches for.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            in("r10") fourth,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    // The kernel answers with -errno, which is never below -4095.
    if (-4095..0).contains(&answer) { failed(answer) } else { answer }
}

/// Answers as the C library does.
#[cfg(target_arch = "x86_64")]
#[cold]
fn failed(answer: isize) -> isize {
    // SAFETY: the address of this thread's errno.
    unsafe { *libc::__errno_location() = -answer as libc::c_int };
    -1
}

/// The C library's.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
unsafe fn call(number: libc::c_long, [first, second, third, fourth]: [usize; 4]) -> isize {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(number, first, second, third, fourth) as isize }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;
    use crate::affinity::last_errno;

    #[test]
    fn they_do_what_the_library_does() {
        let file = tempfile::tempfile().unwrap();
        let fd = file.as_raw_fd();
        let (out, mut into) = (*b"sixteen bytes ..", [0_u8; 16]);
        let start = into.as_mut_ptr().cast();
        // SAFETY: both arrays have 16 bytes.
        unsafe {
            assert_eq!(write(fd, out.as_ptr().cast(), 16), 16);
            assert_eq!(pwrite(fd, out.as_ptr().cast(), 7, 9), 7);
            assert_eq!(pread(fd, start, 16, 0), 16);
            assert_eq!(into, *b"sixteen bsixteen");
            assert_eq!(seek(fd, 8), 8);
            let start = into.as_mut_ptr().cast();
            assert_eq!(read(fd, start, 16), 8, "the file ends");
            assert_eq!(&into[..8], b"bsixteen");
            assert_eq!(seek(fd, 1 << 63), -1);
            assert_eq!(last_errno().0, libc::EINVAL);
            let start = into.as_mut_ptr().cast();
            assert_eq!((read(-1, start, 16), last_errno().0), (-1, libc::EBADF));
        }
    }
}

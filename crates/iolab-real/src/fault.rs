//! A fault in a mapped file ends an op, not the process.
//!
//! Mapped memory whose page cannot be had (the file was cut, the file system is full, the device
//! failed) raises SIGBUS in the thread that touches it. While a thread copies from or to a mapping
//! it says so ([`copy`]); a fault inside that range gets an empty anonymous page, so that the copy
//! ends, and the copy answers that it faulted. Every other SIGBUS goes to whoever handled it
//! before, or does what it does by default. The handler only calls mmap(2) and touches atomics.
//!
//! Source: sigaction(2), mmap(2).

use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, compiler_fence};

/// Handler of SIGBUS before ours.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();
/// Size of a page; set before the handler is.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// The copy that a thread is in.
struct Copying {
    start: AtomicUsize,
    end: AtomicUsize,
    has_faulted: AtomicBool,
}

thread_local! {
    // Constant and without a destructor: the handler reads it without any set-up.
    static COPYING: Copying = const {
        Copying {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            has_faulted: AtomicBool::new(false),
        }
    };
}

/// Size of a page of this machine.
pub fn page_bytes() -> usize {
    PAGE.load(Relaxed)
}

/// Sets the handler up, once per process.
pub fn install() {
    PREVIOUS.get_or_init(|| {
        // SAFETY: sysconf takes a number and touches no memory of ours.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        PAGE.store(usize::try_from(page).unwrap_or(4096), Relaxed);
        // SAFETY: sigaction is plain data, for which all zeroes is a valid value.
        let (mut new, mut old): (libc::sigaction, libc::sigaction) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
        new.sa_sigaction = handler as libc::sighandler_t;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: both structures are valid; the handler is async-signal-safe. A fault before
        // `PREVIOUS` is set finds no copy, because copies are only made after this.
        unsafe { libc::sigaction(libc::SIGBUS, &raw const new, &raw mut old) };
        old
    });
}

/// Copies bytes of which one side lies in a mapping; answers whether a page could not be had.
///
/// # Safety
///
/// `source` is readable and `target` writable for `length` bytes, but for faults in `mapped`, and
/// they do not overlap. [`install`] was called. After a fault the pages of `mapped` are no longer
/// the file's: the caller maps them again.
#[inline]
pub unsafe fn copy(
    source: *const u8,
    target: *mut u8,
    length: usize,
    mapped: Range<usize>,
) -> bool {
    COPYING.with(|copying| {
        copying.start.store(mapped.start, Relaxed);
        copying.end.store(mapped.end, Relaxed);
        compiler_fence(std::sync::atomic::Ordering::SeqCst);
        // SAFETY: promised by the caller; a fault is repaired by the handler.
        unsafe { ptr::copy_nonoverlapping(source, target, length) };
        compiler_fence(std::sync::atomic::Ordering::SeqCst);
        copying.end.store(0, Relaxed);
        let has_faulted = copying.has_faulted.load(Relaxed);
        if has_faulted {
            copying.has_faulted.store(false, Relaxed);
        }
        has_faulted
    })
}

extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid siginfo; the address is set where the code is positive.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if code > 0 && repair(address) {
        return;
    }
    pass_on(signal, code, info, context);
}

/// Puts an empty page where this thread's copy faulted; `false` if the fault is not ours.
fn repair(address: usize) -> bool {
    let ours = COPYING.try_with(|copying| {
        let range = copying.start.load(Relaxed)..copying.end.load(Relaxed);
        if !range.contains(&address) {
            return false;
        }
        copying.has_faulted.store(true, Relaxed);
        true
    });
    if ours != Ok(true) {
        return false;
    }
    let page = PAGE.load(Relaxed);
    let start = address & !(page - 1);
    // SAFETY: the page lies in a mapping that this thread is copying from or to, so that nothing
    // but file data is replaced; errno, the only global touched, is put back.
    unsafe {
        let errno = *libc::__errno_location();
        let placed = libc::mmap(
            start as *mut libc::c_void,
            page,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        );
        *libc::__errno_location() = errno;
        placed != libc::MAP_FAILED
    }
}

/// Lets the earlier handler, or the default, have a SIGBUS that is not ours.
fn pass_on(
    signal: libc::c_int,
    code: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let (handler, flags) =
        PREVIOUS.get().map_or((libc::SIG_DFL, 0), |old| (old.sa_sigaction, old.sa_flags));
    match handler {
        // The kernel does not let a fault be ignored; a sent signal may be.
        libc::SIG_IGN if code <= 0 => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: both calls are async-signal-safe. On return a fault happens again, now with
            // the default action; a signal that was sent must be sent again.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                if code <= 0 {
                    libc::raise(signal);
                }
            }
        }
        handler if flags & libc::SA_SIGINFO != 0 => {
            type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: sigaction(2): with SA_SIGINFO the handler has this signature.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: sigaction(2): without SA_SIGINFO the handler has this signature.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

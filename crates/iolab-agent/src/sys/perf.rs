//! Ring buffers of `perf_event_open`(2): trace points of one CPU, of all or of single threads.
//!
//! Source: Linux `include/uapi/linux/perf_event.h`, the manual page of the call. Left out: the
//! form of the records, which is `iolab_trace::ring::perf`'s. When the last descriptor is closed,
//! however that comes, the kernel stops and frees everything.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd, FromRawFd as _};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use iolab_trace::ring::perf::{PerfRecord, records};

const TYPE_TRACEPOINT: u32 = 2;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_RAW: u64 = 1 << 10;
/// `disabled`, `use_clockid`.
const FLAGS: u64 = 1 | 1 << 25;
/// Children of the process are recorded, too.
const FLAG_INHERIT: u64 = 1 << 1;
/// Reading an event tells how many of its records were lost; Linux 6.0.
const FORMAT_LOST: u64 = 1 << 4;
const OPEN_CLOEXEC: libc::c_ulong = 8;
const IOC_ENABLE: u64 = 0x2400;
const IOC_DISABLE: u64 = 0x2401;
const IOC_SET_OUTPUT: u64 = 0x2405;
const IOC_SET_FILTER: u64 = 0x4008_2406;
/// Places of `data_head` and `data_tail` in struct `perf_event_mmap_page`.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;

/// struct `perf_event_attr` up to `clockid`: `PERF_ATTR_SIZE_VER3`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_kind: u32,
    configs: [u64; 2],
    branches: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
}

/// Trace points of one CPU that share a buffer.
#[derive(Debug)]
pub struct Ring {
    /// The first one has the buffer.
    events: Vec<File>,
    base: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
    cpu: u32,
}

// SAFETY: the mapping belongs to this value alone, and is not tied to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Opens a buffer of about so many bytes for trace points of a CPU, each with the kernel's
    /// number and its filter; none is recorded yet. `None` if the CPU is not on line.
    pub fn open(cpu: u32, points: &[(u16, String)], bytes: u64) -> io::Result<Option<Self>> {
        let mut events = Vec::new();
        for (id, filter) in points {
            match open_point(cpu, *id, None) {
                Ok(event) => {
                    set_filter(&event, filter)?;
                    events.push(event);
                }
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let Some(first) = events.first() else { return Ok(None) };
        // SAFETY: sysconf takes no pointers.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let pages = (bytes as usize / page_bytes).max(1);
        let data_bytes = page_bytes << pages.ilog2();
        let length = page_bytes + data_bytes;
        let (rights, fd) = (libc::PROT_READ | libc::PROT_WRITE, first.as_raw_fd());
        // SAFETY: the kernel chooses the place; the mapping is unmapped when this value is dropped.
        let base = unsafe { libc::mmap(ptr::null_mut(), length, rights, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let ring = Self { events, base, page_bytes, data_bytes, cpu };
        for event in &ring.events[1..] {
            control(event, IOC_SET_OUTPUT, fd as u64)?;
        }
        Ok(Some(ring))
    }

    /// Adds trace points of one thread and of all that it starts from now on, on this CPU, to the
    /// buffer; `is_on` if recording has begun. A thread that has ended has none.
    pub fn add(&mut self, thread: u32, points: &[(u16, String)], is_on: bool) -> io::Result<()> {
        let output = self.events[0].as_raw_fd() as u64;
        for (id, filter) in points {
            let event = match open_point(self.cpu, *id, Some(thread)) {
                Ok(event) => event,
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
                Err(error) => return Err(error),
            };
            set_filter(&event, filter)?;
            control(&event, IOC_SET_OUTPUT, output)?;
            if is_on {
                control(&event, IOC_ENABLE, 0)?;
            }
            self.events.push(event);
        }
        Ok(())
    }

    /// Records that were lost so far, as the kernel counts them; `None` before Linux 6.0.
    pub fn lost(&self) -> Option<u64> {
        self.events.iter().try_fold(0, |sum, mut event| {
            let mut answer = [0; 16];
            let count = event.read(&mut answer).ok()?;
            let lost = answer.get(8..count)?.first_chunk()?;
            Some(sum + u64::from_ne_bytes(*lost))
        })
    }

    /// Begins or ends recording.
    pub fn switch(&self, is_on: bool) -> io::Result<()> {
        let request = if is_on { IOC_ENABLE } else { IOC_DISABLE };
        self.events.iter().try_for_each(|event| control(event, request, 0))
    }

    /// Counter of bytes in the head of the mapping.
    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the mapping's first page has 64-bit counters at these two places, which the
        // kernel and this process access with barriers; it lives as long as `self`.
        unsafe { self.base.add(at).cast::<AtomicU64>().as_ref() }
    }

    /// Copies bytes of the buffer out, which may begin again at its beginning.
    fn copy(&self, from: u64, length: usize, out: &mut Vec<u8>) {
        let at = from as usize % self.data_bytes;
        let first = length.min(self.data_bytes - at);
        for (at, length) in [(at, first), (0, (length - first).min(self.data_bytes))] {
            // SAFETY: both pieces lie within the data pages of the mapping; the kernel does not
            // write between tail and head.
            let piece = unsafe {
                std::slice::from_raw_parts(self.base.add(self.page_bytes + at).as_ptr(), length)
            };
            out.extend_from_slice(piece);
        }
    }

    /// Gives what has been recorded so far, in order, and frees it; how many bytes that were.
    pub fn read(&mut self, sink: impl FnMut(PerfRecord<'_>)) -> u64 {
        let head = self.counter(HEAD_AT).load(Ordering::Acquire);
        let begin = self.counter(TAIL_AT).load(Ordering::Relaxed);
        let end = records(begin..head, |from, length, out| self.copy(from, length, out), sink);
        self.counter(TAIL_AT).store(end, Ordering::Release);
        end.wrapping_sub(begin)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nobody has a reference into it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}

/// Opens a trace point on a CPU: of one thread and what it starts, or of all.
pub(super) fn open_point(cpu: u32, id: u16, thread: Option<u32>) -> io::Result<File> {
    match open_point_with(FORMAT_LOST, cpu, id, thread) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            open_point_with(0, cpu, id, thread)
        }
        opened => opened,
    }
}

fn open_point_with(format: u64, cpu: u32, id: u16, thread: Option<u32>) -> io::Result<File> {
    let attributes = Attributes {
        kind: TYPE_TRACEPOINT,
        size: u32::try_from(size_of::<Attributes>()).unwrap_or(0),
        config: u64::from(id),
        sample_period: 1,
        sample_type: SAMPLE_TIME | SAMPLE_RAW,
        read_format: format,
        flags: if thread.is_some() { FLAGS | FLAG_INHERIT } else { FLAGS },
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    let whom = thread.map_or(-1, u32::cast_signed);
    let (cpu, alone) = (cpu.cast_signed(), -1 as libc::c_int);
    // SAFETY: the attributes live during the call, which only reads them, and say their size.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            whom,
            cpu,
            alone,
            OPEN_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

fn set_filter(event: &File, filter: &str) -> io::Result<()> {
    if filter.is_empty() {
        return Ok(());
    }
    let text = CString::new(filter).map_err(io::Error::other)?;
    control(event, IOC_SET_FILTER, text.as_ptr() as u64)
}

pub(super) fn control(event: &File, request: u64, value: u64) -> io::Result<()> {
    // SAFETY: these requests take a number, or a pointer to text that lives during the call.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), request as libc::Ioctl, value) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_the_kernels_size() {
        assert_eq!(size_of::<Attributes>(), 96, "PERF_ATTR_SIZE_VER3");
    }

    /// Recording on a CPU that is not there; a trace point that is not there.
    #[test]
    fn what_cannot_be_opened_is_told() {
        assert!(Ring::open(0, &[], 4096).unwrap().is_none());
        if nix::unistd::geteuid().is_root() {
            assert!(Ring::open(0, &[(u16::MAX, String::new())], 4096).is_err());
        }
    }
}

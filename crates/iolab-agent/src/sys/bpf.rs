//! Small programs that the kernel checks and runs at a trace point, and the memory that they share
//! with this process.
//!
//! Source: Linux `include/uapi/linux/bpf.h`, Documentation/bpf/standardization/instruction-set.rst
//! and Documentation/bpf/ringbuf.rst. Left out: everything but the few instructions, maps and
//! helpers that iolab's programs need. When the last descriptor is closed, however that comes, the
//! kernel takes the program off its trace point and frees everything.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::perf;

const COMMAND_MAP_CREATE: libc::c_long = 0;
const COMMAND_MAP_UPDATE: libc::c_long = 2;
const COMMAND_PROG_LOAD: libc::c_long = 5;
const TYPE_TRACEPOINT: u32 = 5;
/// `PERF_EVENT_IOC_SET_BPF`.
const IOC_SET_BPF: u64 = 0x4004_2408;
/// The helper that reads memory of a program wants a license that goes with the kernel's.
const LICENSE: &CStr = c"Dual MIT/GPL";

/// A register: 1 to 5 are arguments of helpers, 6 to 9 survive them, 10 is the stack's end.
pub type Register = u8;

/// Functions of the kernel that a program may call.
#[derive(Clone, Copy, Debug)]
pub enum Helper {
    /// Pointer to the value of a key, or null.
    MapLookup = 1,
    /// Sets the value of a key.
    MapUpdate = 2,
    /// `CLOCK_MONOTONIC`, in ns.
    Clock = 5,
    /// Process in the upper half, thread in the lower.
    ProcessAndThread = 14,
    /// Copies bytes of the kernel's memory.
    ReadKernel = 113,
    /// Copies text out of a program's memory; its length with the 0, or a negative error.
    ReadUserText = 114,
    /// Appends bytes to a ring; what finds no room is not appended.
    RingOutput = 130,
    /// The task that runs.
    Task = 158,
    /// Registers of a task as its program had them.
    Registers = 175,
}

/// Kinds of memory that programs share.
#[derive(Clone, Copy, Debug)]
pub enum MapKind {
    /// One value per CPU.
    PerCpu = 6,
    /// Values by key, of which the one that was unused longest gives way.
    Recent = 9,
    /// Records in the order in which they were written.
    Ring = 27,
}

/// Memory that programs share with this process.
#[derive(Debug)]
pub struct Map(OwnedFd);

impl Map {
    /// Makes one; sizes in bytes, and how many entries it has, which is a ring's bytes.
    pub fn create(kind: MapKind, key: u32, value: u32, entries: u32) -> io::Result<Self> {
        let attributes = [kind as u32, key, value, entries, 0, 0];
        // SAFETY: the attributes live during the call, which only reads them.
        unsafe { call(COMMAND_MAP_CREATE, attributes.as_ptr().cast(), size_of_val(&attributes)) }
            .map(Self)
    }

    /// Sets the value of a key, both of 32 bits.
    pub fn set(&self, key: u32, value: u32) -> io::Result<()> {
        let number = self.0.as_raw_fd() as u64;
        let attributes = [number, &raw const key as u64, &raw const value as u64, 0];
        let bytes = size_of_val(&attributes);
        // SAFETY: attributes, key and value live during the call, which only reads them; the map
        // was made for sizes of 32 bits.
        let done =
            unsafe { libc::syscall(libc::SYS_bpf, COMMAND_MAP_UPDATE, attributes.as_ptr(), bytes) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// A program, instruction by instruction.
#[derive(Debug, Default)]
pub struct Program {
    code: Vec<u64>,
    /// Jumps, and where they go.
    jumps: Vec<(usize, Label)>,
    /// Places of labels.
    places: Vec<usize>,
}

/// A place to which a program jumps, which lies behind the jump.
#[derive(Clone, Copy, Debug)]
pub struct Label(usize);

impl Program {
    fn push(&mut self, code: u8, (to, from): (Register, Register), offset: i16, value: i32) {
        let registers = u64::from(from) << 4 | u64::from(to);
        self.code.push(
            u64::from(code)
                | registers << 8
                | u64::from(offset.cast_unsigned()) << 16
                | u64::from(value.cast_unsigned()) << 32,
        );
    }

    /// Copies a register.
    pub fn copy(&mut self, to: Register, from: Register) {
        self.push(0xbf, (to, from), 0, 0);
    }

    /// Sets a register to a number.
    pub fn set(&mut self, to: Register, value: i32) {
        self.push(0xb7, (to, 0), 0, value);
    }

    /// Adds a number to a register.
    pub fn add(&mut self, to: Register, value: i32) {
        self.push(0x07, (to, 0), 0, value);
    }

    /// Reads 32 bits of memory.
    pub fn load_half(&mut self, to: Register, base: Register, offset: i16) {
        self.push(0x61, (to, base), offset, 0);
    }

    /// Reads 64 bits of memory.
    pub fn load(&mut self, to: Register, base: Register, offset: i16) {
        self.push(0x79, (to, base), offset, 0);
    }

    /// Writes 32 bits to memory.
    pub fn store_half(&mut self, base: Register, offset: i16, from: Register) {
        self.push(0x63, (base, from), offset, 0);
    }

    /// Writes 64 bits to memory.
    pub fn store(&mut self, base: Register, offset: i16, from: Register) {
        self.push(0x7b, (base, from), offset, 0);
    }

    /// Sets a register to a map.
    pub fn map(&mut self, to: Register, map: &Map) {
        const MAP: Register = 1;
        self.push(0x18, (to, MAP), 0, map.0.as_raw_fd());
        self.push(0, (0, 0), 0, 0);
    }

    /// Calls a helper, whose result is in register 0.
    pub fn call(&mut self, helper: Helper) {
        self.push(0x85, (0, 0), 0, helper as i32);
    }

    /// A place that is not reached yet.
    pub fn label(&mut self) -> Label {
        self.places.push(usize::MAX);
        Label(self.places.len() - 1)
    }

    /// Jumps to the label come here.
    pub fn here(&mut self, label: Label) {
        self.places[label.0] = self.code.len();
    }

    /// Goes on elsewhere.
    pub fn go(&mut self, label: Label) {
        self.jump(0x05, (0, 0), 0, label);
    }

    /// Goes on elsewhere if a register is this number.
    pub fn go_if(&mut self, register: Register, value: i32, label: Label) {
        self.jump(0x15, (register, 0), value, label);
    }

    /// Goes on elsewhere if a register, as a number with a sign, is below 0.
    pub fn go_if_negative(&mut self, register: Register, label: Label) {
        self.jump(0xc5, (register, 0), 0, label);
    }

    fn jump(&mut self, code: u8, registers: (Register, Register), value: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(code, registers, 0, value);
    }

    /// Ends the program.
    pub fn end(&mut self) {
        // Others that watch the trace point get its events only if this is not 0.
        self.set(0, 1);
        self.push(0x95, (0, 0), 0, 0);
    }

    /// Loads the program into the kernel, which checks it, and runs it at trace points from now on,
    /// on all CPUs and undisturbed by other tasks, until what this gives is dropped.
    pub fn run_at(mut self, points: &[u16]) -> io::Result<Vec<File>> {
        for (at, label) in std::mem::take(&mut self.jumps) {
            let distance =
                self.places[label.0].checked_sub(at + 1).and_then(|it| it.try_into().ok());
            let distance: i16 = distance.ok_or(io::ErrorKind::InvalidInput)?;
            self.code[at] |= u64::from(distance.cast_unsigned()) << 16;
        }
        let program = self.load_into_kernel()?;
        let number = u64::from(program.as_raw_fd().cast_unsigned());
        let run = |point: &u16| {
            let event = perf::open_point(0, *point, None)?;
            perf::control(&event, IOC_SET_BPF, number).map(|()| event)
        };
        points.iter().map(run).collect()
    }

    fn load_into_kernel(&self) -> io::Result<OwnedFd> {
        /// The first fields of the attributes of `BPF_PROG_LOAD`.
        #[repr(C)]
        struct Attributes {
            kind: u32,
            count: u32,
            instructions: u64,
            license: u64,
            log_level: u32,
            log_bytes: u32,
            log: u64,
            version: u32,
            flags: u32,
        }
        let attributes = Attributes {
            kind: TYPE_TRACEPOINT,
            count: u32::try_from(self.code.len()).map_err(io::Error::other)?,
            instructions: self.code.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            log_level: 0,
            log_bytes: 0,
            log: 0,
            version: 0,
            flags: 0,
        };
        let bytes = size_of::<Attributes>();
        // SAFETY: the attributes, the instructions and the license live during the call, which
        // only reads them.
        unsafe { call(COMMAND_PROG_LOAD, (&raw const attributes).cast(), bytes) }
    }
}

/// bpf(2), for commands that give a descriptor.
///
/// # Safety
///
/// The attributes are those of the command, and what they point to lives during the call.
unsafe fn call(
    command: libc::c_long,
    attributes: *const libc::c_void,
    bytes: usize,
) -> io::Result<OwnedFd> {
    // SAFETY: said above.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, bytes) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, which it closes at execve, and nobody
    // else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Reader of a ring.
#[derive(Debug)]
pub struct RingReader {
    /// The page of the place up to which records have been read.
    taken: NonNull<u8>,
    /// The page of the place up to which they have been written, and the records, twice: one that
    /// goes beyond the end is in one piece.
    written: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
}

// SAFETY: the mappings belong to this value alone, and are not tied to a thread.
unsafe impl Send for RingReader {}

const IS_BUSY: u32 = 1 << 31;
const IS_DISCARDED: u32 = 1 << 30;
const HEAD_BYTES: usize = 8;

impl RingReader {
    /// Reader of a map that was made with so many bytes.
    pub fn open(map: &Map, data_bytes: u32) -> io::Result<Self> {
        // SAFETY: sysconf takes no pointers.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let data_bytes = data_bytes as usize;
        let pages = |length: usize, rights, at: usize| {
            let (fd, shared) = (map.0.as_raw_fd(), libc::MAP_SHARED);
            // SAFETY: the kernel chooses the place; it is unmapped when this value is dropped.
            let base =
                unsafe { libc::mmap(ptr::null_mut(), length, rights, shared, fd, at as i64) };
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            NonNull::new(base.cast::<u8>()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
        };
        let taken = pages(page_bytes, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        match pages(page_bytes + 2 * data_bytes, libc::PROT_READ, page_bytes) {
            Ok(written) => Ok(Self { taken, written, page_bytes, data_bytes }),
            Err(error) => {
                // SAFETY: it was made with this length, and nobody has a reference into it.
                unsafe { libc::munmap(taken.as_ptr().cast(), page_bytes) };
                Err(error)
            }
        }
    }

    /// Gives the records that are complete, in order, and frees their room.
    pub fn read(&mut self, mut sink: impl FnMut(&[u8])) {
        let written = self.counter(self.written).load(Ordering::Acquire);
        let mut at = self.counter(self.taken).load(Ordering::Relaxed);
        while at < written {
            let place = self.page_bytes + (at as usize & (self.data_bytes - 1));
            // SAFETY: records begin at multiples of 8 within the data pages; the kernel writes the
            // length last, with a barrier.
            let head = unsafe { self.written.add(place).cast::<AtomicU32>().as_ref() };
            let head = head.load(Ordering::Acquire);
            let length = (head & !(IS_BUSY | IS_DISCARDED)) as usize;
            if head & IS_BUSY != 0 || length > self.data_bytes - HEAD_BYTES {
                break;
            }
            if head & IS_DISCARDED == 0 {
                // SAFETY: the pages are mapped twice in a row, so a record is in one piece; the
                // kernel does not write where nothing was freed.
                let record = unsafe {
                    let first = self.written.add(place + HEAD_BYTES).as_ptr();
                    std::slice::from_raw_parts(first, length)
                };
                sink(record);
            }
            at += (length + HEAD_BYTES).next_multiple_of(8) as u64;
            self.counter(self.taken).store(at, Ordering::Release);
        }
    }

    /// The counter at the beginning of a page.
    #[expect(clippy::unused_self, reason = "the mappings live as long as this value")]
    fn counter(&self, page: NonNull<u8>) -> &AtomicU64 {
        // SAFETY: both pages begin with a 64-bit counter, which the kernel and this process access
        // with barriers.
        unsafe { page.cast::<AtomicU64>().as_ref() }
    }
}

impl Drop for RingReader {
    fn drop(&mut self) {
        let length = self.page_bytes + 2 * self.data_bytes;
        // SAFETY: they were made with these lengths, and nobody has a reference into them.
        unsafe {
            libc::munmap(self.taken.as_ptr().cast(), self.page_bytes);
            libc::munmap(self.written.as_ptr().cast(), length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_kernels_form() {
        let mut program = Program::default();
        program.load(6, 1, -8);
        program.set(0, -100);
        program.call(Helper::ReadUserText);
        let expected = [0x0000_0000_fff8_1679, 0xffff_ff9c_0000_00b7, 0x0000_0072_0000_0085];
        assert_eq!(program.code, expected);
    }

    #[test]
    fn a_jump_that_leads_nowhere_is_not_run() {
        let mut program = Program::default();
        let label = program.label();
        program.go(label);
        let error = program.run_at(&[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}

//! The bare system-call loop that engines are measured against: no clock, no histogram, no choice.
//!
//! `bare_loop ENGINE FILE OPS sequential|random DEPTH` reads 4 KiB records of an existing file with
//! the calls of that engine. It does what a minimal C program would do, and nothing else; `make
//! bench` runs it beside the engines.

use std::fs::File;
use std::os::fd::{AsRawFd as _, RawFd};

use io_uring::{IoUring, opcode, squeue, types::Fd};
use iolab_model::Seed;

const RECORD: usize = 4096;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, engine, path, ops, order, depth] = &arguments[..] else {
        eprintln!("usage: bare_loop ENGINE FILE OPS sequential|random DEPTH");
        std::process::exit(1);
    };
    let file = File::open(path).expect("the file exists");
    let records = file.metadata().expect("it has a size").len() / RECORD as u64;
    let ops: u64 = ops.parse().expect("OPS is a number");
    let depth: u32 = depth.parse().expect("DEPTH is a number");
    let mut random = Seed(7).stream("bare", 0);
    let mut next = 0;
    let is_random = order == "random";
    let mut offset = || {
        if is_random {
            return random.below(records) * RECORD as u64;
        }
        let record = next;
        next = if next + 1 == records { 0 } else { next + 1 };
        record * RECORD as u64
    };
    let mut storage = vec![0_u8; (depth as usize + 1) * RECORD];
    let start = storage.as_ptr().align_offset(RECORD);
    let buffers = &mut storage[start..start + depth as usize * RECORD];
    let (fd, buffer) = (file.as_raw_fd(), buffers.as_mut_ptr().cast::<libc::c_void>());
    let part = libc::iovec { iov_base: buffer, iov_len: RECORD };
    let mut position = 0;
    match engine.as_str() {
        // SAFETY: the buffer is RECORD bytes long and writable, here and below.
        "psync" => each(ops, &mut offset, |at| unsafe { libc::pread(fd, buffer, RECORD, at) }),
        "pvsync" => each(ops, &mut offset, |at| {
            // SAFETY: as above, and so says `part`.
            unsafe { libc::preadv(fd, &raw const part, 1, at) }
        }),
        "pvsync2" => each(ops, &mut offset, |at| {
            // SAFETY: as above.
            unsafe { libc::preadv2(fd, &raw const part, 1, at, 0) }
        }),
        "sync" => each(ops, &mut offset, |at| {
            seek(fd, at, &mut position);
            // SAFETY: as above.
            unsafe { libc::read(fd, buffer, RECORD) }
        }),
        "vsync" => each(ops, &mut offset, |at| {
            seek(fd, at, &mut position);
            // SAFETY: as above.
            unsafe { libc::readv(fd, &raw const part, 1) }
        }),
        "mmap" => mapped(&file, buffers, ops, &mut offset),
        "libaio" => libaio(fd, buffers, ops, &mut offset),
        _ => uring(fd, buffers, ops, (engine, &mut offset)),
    }
}

fn each(ops: u64, offset: &mut impl FnMut() -> u64, mut call: impl FnMut(i64) -> isize) {
    for _ in 0..ops {
        let at = offset() as i64;
        assert_eq!(call(at), RECORD as isize, "short read at {at}");
    }
}

fn seek(fd: RawFd, at: i64, position: &mut i64) {
    if *position != at {
        // SAFETY: a plain system call on an open descriptor.
        unsafe { libc::lseek(fd, at, libc::SEEK_SET) };
    }
    *position = at + RECORD as i64;
}

fn mapped(file: &File, buffer: &mut [u8], ops: u64, offset: &mut impl FnMut() -> u64) {
    let length = file.metadata().expect("it has a size").len() as usize;
    let (fd, null) = (file.as_raw_fd(), std::ptr::null_mut());
    // SAFETY: a mapping at an address that the kernel chooses touches no existing memory.
    let start =
        unsafe { libc::mmap(null, length, libc::PROT_READ, libc::MAP_PRIVATE, fd, 0) }.cast::<u8>();
    assert_ne!(start.cast(), libc::MAP_FAILED, "the file can be mapped");
    for _ in 0..ops {
        let at = offset() as usize;
        // SAFETY: the record lies inside the mapping; the buffer has room for it.
        unsafe { std::ptr::copy_nonoverlapping(start.add(at), buffer.as_mut_ptr(), RECORD) };
        std::hint::black_box(&buffer[0]);
    }
}

fn libaio(fd: RawFd, buffers: &mut [u8], ops: u64, offset: &mut impl FnMut() -> u64) {
    let depth = buffers.len() / RECORD;
    let mut context: libc::c_ulong = 0;
    // SAFETY: `context` is writable and zero.
    let made = unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) };
    assert_eq!(made, 0, "fs.aio-max-nr is not used up");
    // Words of struct iocb: token; key and flags; command (0 reads), priority and descriptor;
    // address; length; offset; two that are zero. Words of struct io_event: token, iocb, result, 0.
    let mut controls = vec![[0_u64; 8]; depth];
    let mut events = vec![[0_u64; 4]; depth];
    let mut free: Vec<usize> = (0..depth).collect();
    let mut list: Vec<usize> = Vec::with_capacity(depth);
    let (mut issued, mut ended) = (0, 0);
    while ended < ops {
        list.clear();
        while let Some(slot) = free.pop_if(|_| issued < ops) {
            let buffer = buffers[slot * RECORD..].as_mut_ptr() as u64;
            controls[slot] =
                [slot as u64, 0, (fd as u64) << 32, buffer, RECORD as u64, offset(), 0, 0];
            list.push(controls[slot].as_ptr() as usize);
            issued += 1;
        }
        let (count, null) = (list.len(), std::ptr::null::<libc::timespec>());
        // SAFETY: the list holds addresses of control blocks that stay in place; the buffer of a
        // slot is used by one of them at a time; `events` has room for `depth` events.
        let got = unsafe {
            let taken = libc::syscall(libc::SYS_io_submit, context, count, list.as_ptr());
            assert_eq!(taken, count as i64, "all are taken");
            libc::syscall(libc::SYS_io_getevents, context, 1, depth, events.as_mut_ptr(), null)
        };
        for event in &events[..got as usize] {
            assert_eq!(event[2], RECORD as u64, "short read");
            free.push(event[0] as usize);
            ended += 1;
        }
    }
}

fn uring(
    fd: RawFd,
    buffers: &mut [u8],
    ops: u64,
    (engine, offset): (&str, &mut impl FnMut() -> u64),
) {
    let depth = buffers.len() / RECORD;
    let (is_fixed, has_thread) = (engine == "io_uring_fixed", engine == "io_uring_sqpoll");
    let mut builder = IoUring::builder();
    if has_thread {
        builder.setup_sqpoll(1000);
    } else {
        builder.setup_single_issuer().setup_defer_taskrun();
    }
    // A kernel thread gives entries back later than completions.
    let entries = if has_thread { 2 * depth } else { depth };
    let mut ring: IoUring =
        builder.build(entries.next_power_of_two() as u32).expect("io_uring is allowed");
    if is_fixed {
        let parts: Vec<libc::iovec> = buffers
            .chunks_exact_mut(RECORD)
            .map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: RECORD })
            .collect();
        // SAFETY: the buffers outlive the ring.
        unsafe { ring.submitter().register_buffers(&parts) }.expect("the memory can be locked");
        ring.submitter().register_files(&[fd]).expect("the file can be registered");
    }
    let mut free: Vec<usize> = (0..depth).collect();
    let (mut issued, mut ended) = (0, 0);
    while ended < ops {
        while let Some(slot) = free.pop_if(|_| issued < ops) {
            let buffer = buffers[slot * RECORD..].as_mut_ptr();
            let (length, at) = (RECORD as u32, offset());
            let entry = if is_fixed {
                let read = opcode::ReadFixed::new(Fd(0), buffer, length, slot as u16);
                read.offset(at).build().flags(squeue::Flags::FIXED_FILE)
            } else {
                opcode::Read::new(Fd(fd), buffer, length).offset(at).build()
            };
            // SAFETY: the buffer of a slot is used by one entry at a time.
            unsafe { ring.submission().push(&entry.user_data(slot as u64)) }
                .expect("there is room");
            issued += 1;
        }
        if has_thread {
            ring.submit().expect("io_uring_enter works");
            while ring.completion().is_empty() {
                std::hint::spin_loop();
            }
        } else {
            ring.submit_and_wait(1).expect("io_uring_enter works");
        }
        for entry in ring.completion() {
            assert_eq!(entry.result(), RECORD as i32, "short read");
            free.push(entry.user_data() as usize);
            ended += 1;
        }
    }
}

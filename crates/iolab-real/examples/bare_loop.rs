//! The bare system-call loop that engines are measured against: no clock, no histogram, no choice.
//!
//! `bare_loop pread|io_uring FILE OPS sequential|random DEPTH` reads 4 KiB records of an existing
//! file. It does what a minimal C program would do, and nothing else; `make bench` runs it beside
//! the engines.

use std::fs::File;
use std::os::fd::AsRawFd as _;

use io_uring::{IoUring, opcode, types::Fd};
use iolab_model::Seed;

const RECORD: usize = 4096;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, method, path, ops, order, depth] = &arguments[..] else {
        eprintln!("usage: bare_loop pread|io_uring FILE OPS sequential|random DEPTH");
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
    match method.as_str() {
        "pread" => pread(&file, ops, &mut offset),
        _ => uring(&file, ops, depth, &mut offset),
    }
}

fn pread(file: &File, ops: u64, offset: &mut impl FnMut() -> u64) {
    let mut storage = vec![0_u8; 2 * RECORD];
    let start = storage.as_ptr().align_offset(RECORD);
    let buffer = &mut storage[start..start + RECORD];
    for _ in 0..ops {
        let at = offset() as i64;
        // SAFETY: the buffer is RECORD bytes long and writable.
        let n = unsafe { libc::pread(file.as_raw_fd(), buffer.as_mut_ptr().cast(), RECORD, at) };
        assert_eq!(n, RECORD as isize, "short read at {at}");
    }
}

fn uring(file: &File, ops: u64, depth: u32, offset: &mut impl FnMut() -> u64) {
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(depth.next_power_of_two())
        .expect("io_uring is allowed");
    let mut storage = vec![0_u8; (depth as usize + 1) * RECORD];
    let start = storage.as_ptr().align_offset(RECORD);
    let fd = Fd(file.as_raw_fd());
    let mut free: Vec<usize> = (0..depth as usize).collect();
    let (mut issued, mut ended) = (0, 0);
    while ended < ops {
        while let Some(slot) = free.pop_if(|_| issued < ops) {
            let read =
                opcode::Read::new(fd, storage[start + slot * RECORD..].as_mut_ptr(), RECORD as u32);
            let entry = read.offset(offset()).build().user_data(slot as u64);
            // SAFETY: the buffer of a slot is used by one entry at a time.
            unsafe { ring.submission().push(&entry).expect("there is room for every slot") };
            issued += 1;
        }
        ring.submit_and_wait(1).expect("io_uring_enter works");
        for entry in ring.completion() {
            assert_eq!(entry.result(), RECORD as i32, "short read");
            free.push(entry.user_data() as usize);
            ended += 1;
        }
    }
}

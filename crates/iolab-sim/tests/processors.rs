//! Workers that share the processors of a simulated machine.

mod race;

use iolab_model::op::{Access, Handle, OpenHow, PathId};
use iolab_model::{Bytes, Ns, Op};
use iolab_sim::target::SimTarget;
use race::workers::{flushed_writes, race, race_at_depth, stack};

fn machine(processors: u16, more: &str) -> SimTarget {
    let text = format!(
        "name = \"x\"\n[queue]\ncpus = 2\n[software]\nprocessors = {processors}\n[device]\n\
         like = \"fixed-100us\"\nname = \"x\"\ntitle = \"x\"\n\
         parameters = {{ depth = 1, latency = 20 }}\n[files]\nfs = \"ext4\"\n{more}\n"
    );
    stack(&text)
}

fn burn(us: u64) -> Op {
    Op::Burn { duration: Ns::from_us(us) }
}

/// Instant at which the last worker ends.
fn all_done(ends: &[Vec<Ns>]) -> Ns {
    *ends.iter().filter_map(|ends| ends.last()).max().unwrap()
}

#[test]
fn no_more_is_computed_than_the_processors_can() {
    // 100 calls of 100 us and 1 us for the call itself.
    let calls = [burn(100); 100];
    for (processors, workers, expected) in [
        (0, 4, 10_100),
        (4, 4, 10_100),
        (2, 2, 10_100),
        (2, 4, 20_200),
        (1, 4, 40_400),
        (3, 2, 10_100),
        // The third one runs wherever a slice is over; the last slice may leave a processor idle.
        (2, 3, 15_150),
    ] {
        let took = all_done(&race(&machine(processors, ""), workers, &calls)).0 / 1_000;
        let most = expected + if workers % 2 == 1 { 4_100 } else { 20 };
        assert!(
            (expected..most).contains(&took),
            "{processors} processors, {workers} workers: {took} us, not {expected}"
        );
    }
}

#[test]
fn who_has_a_processor_keeps_it_for_a_slice() {
    let calls = [burn(100); 100];
    for (slice, longest) in [("", 4_000), ("slice_us = 1000", 1_000)] {
        let more = format!("[software]\nprocessors = 1\n{slice}\n");
        let text = format!(
            "name = \"x\"\n{more}[device]\nprofile = \"fixed-100us\"\n[files]\nfs = \"ext4\"\n"
        );
        let ends = race(&stack(&text), 2, &calls);
        let gaps = ends[0].windows(2).map(|pair| (pair[1].0 - pair[0].0) / 1_000);
        let waits: Vec<u64> = gaps.filter(|gap| *gap > 200).collect();
        assert_eq!(waits.len() as u64, 10_100 / (longest + 101), "{waits:?}");
        for wait in waits {
            // The other one's slice, and the call that was begun when it ended.
            assert!((longest..longest + 203).contains(&wait), "{wait} us, slice {longest} us");
        }
    }
}

#[test]
fn who_waits_for_the_device_leaves_its_processor() {
    let calls = flushed_writes(50, 4096);
    let alone = all_done(&race(&machine(1, ""), 1, &calls));
    // A worker that computes all the time takes half of the processor, not half of the device.
    let target = machine(1, "");
    let beside = all_done(&race(&target, 2, &calls));
    assert!(beside < Ns(alone.0 * 2), "{} us alone, {} us both", alone.0 / 1_000, beside.0 / 1_000);
}

#[test]
fn the_same_race_ends_the_same_each_time() {
    let calls = [burn(70); 50];
    assert_eq!(race(&machine(2, ""), 5, &calls), race(&machine(2, ""), 5, &calls));
}

/// Workers that read the device directly, beside one that only computes: nobody starves, and
/// nothing runs on a processor that there is not.
#[test]
fn readers_that_saturate_the_processors_share_them() {
    for (processors, workers, depth) in [(1_u16, 8, 1), (2, 16, 1), (1, 3, 16), (2, 5, 4)] {
        let more = "memory = \"1g\"";
        let text = format!(
            "name = \"x\"\n[software]\nprocessors = {processors}\nslice_us = 200\n[device]\n\
             like = \"fixed-100us\"\nname = \"x\"\ntitle = \"x\"\n\
             parameters = {{ depth = 64, latency = 20 }}\n[files]\nfs = \"ext4\"\n{more}\n"
        );
        let target = stack(&text);
        let how = OpenHow {
            access: Access::Direct,
            is_readable: true,
            is_writable: true,
            ..OpenHow::default()
        };
        let (path, handle) = (PathId(0), Handle(0));
        let length = Bytes(4 << 20);
        let made = [
            Op::Create { path, handle, how },
            Op::Allocate { handle, at: Bytes(0), length, keeps_length: false },
            Op::Close { handle },
        ];
        race(&target, workers, &made);

        let worked = || target.inspect(|all| all.machine().unwrap().worked().0);
        let (before, begun) = (worked(), iolab_model::VirtualTime::now(&target));
        // Handles are a lane's own: each reader opens its file first.
        let mut calls = vec![Op::Open { path, handle, how }];
        calls.resize(depth as usize, burn(100));
        calls.extend((0..1000).map(|index| Op::read(handle, Bytes(index * 4096), Bytes(4096))));
        let ends = race_at_depth(&target, (workers, depth), &calls);
        let took = all_done(&ends);
        let computed = worked() - before;
        let about = format!("{processors} processors, {workers} workers, depth {depth}");
        assert!(iolab_model::VirtualTime::now(&target) - begun >= took, "{about}");
        let most = Ns(took.0 * u64::from(processors));
        assert!(computed <= most, "{about}: {computed:?} of {most:?}");
        // The processors are what limits them: little of their time is lost.
        assert!(computed.0 * 10 > most.0 * 7, "{about}: {computed:?} of {most:?}");
        // In the middle of the first one's calls the last one has done a good part of its own.
        let middle = ends.iter().map(|ends| ends[ends.len() / 2]).min().unwrap();
        let done = |ends: &Vec<Ns>| ends.iter().filter(|end| **end <= middle).count();
        let least = ends.iter().map(done).min().unwrap();
        assert!(least > 150, "{about}: the slowest has done {least} of 1000 calls");
    }
}

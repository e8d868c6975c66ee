//! Volumes without parity: mapping, splitting, copies, who is read, when a parent is done.

use iolab_model::{Ns, Sector, Seed};
use proptest::prelude::*;

use super::super::single::Single;
use super::super::stripe::Stripe;
use super::super::testing::{Line, bio, commands, counter, parameters, recorded, run};
use super::super::{VolumeKind, VolumeParameters, build};
use crate::api::bio::{Bio, Ended, Flags, Operation, ProcessId};
use crate::api::layer::{Layer, WriteCache};
use crate::device::fixed::Fixed;
use VolumeKind::{Raid0, Raid1, Raid10};

const KIB: u32 = 2;
const UNIT: u64 = 128 * KIB as u64;

/// RAID-4: 512 KiB aligned read on 7 disks: 4 requests of 128 KiB; 896 KiB: 7, one per disk.
#[test]
fn raid_4_striping_counts() {
    for (kib, expected) in [(512, 4), (896, 7)] {
        let (mut volume, log) = recorded(&parameters(Raid0, UNIT), 7, 1 << 20, |_, _| ());
        run(&mut *volume, &[(Ns(0), bio(0, Operation::Read, 0, kib * KIB))]);
        assert_eq!(commands(&log), (expected, 0));
        let mut members: Vec<u16> = log.borrow().iter().map(|line| line.member).collect();
        assert!(log.borrow().iter().all(|line| line.bio.sectors == 128 * KIB));
        members.sort_unstable();
        members.dedup();
        assert_eq!(members.len(), expected);
    }
}

#[test]
fn a_long_read_is_one_command_per_disk_and_max_transfer_cuts_it() {
    let (mut volume, log) = recorded(&parameters(Raid0, UNIT), 4, 1 << 20, |_, _| ());
    run(&mut *volume, &[(Ns(0), bio(0, Operation::Read, UNIT / 2, 1024 * KIB))]);
    assert_eq!(commands(&log), (4, 0));
    let short = VolumeParameters { max_transfer_bytes: Some(56 << 10), ..parameters(Raid0, UNIT) };
    let (mut volume, log) = recorded(&short, 4, 1 << 20, |_, _| ());
    run(&mut *volume, &[(Ns(0), bio(0, Operation::Read, 0, 512 * KIB))]);
    // 128 KiB as 56 + 56 + 16 KiB on each of four disks.
    assert_eq!(commands(&log), (12, 0));
}

/// RAID-Z: a record of 128 KiB on 4 + 1 disks moves four heads, a record of one sector one, and
/// what is lost is computed from the rest of its row.
#[test]
fn raidz_reads_data_alone_and_reads_nothing_to_write() {
    let whole = VolumeParameters::new(VolumeKind::Raidz1);
    let of = |parameters: &VolumeParameters, operation, (sector, sectors)| {
        let (mut volume, log) = recorded(parameters, 5, 1 << 20, |_, _| ());
        assert_eq!(volume.info().capacity, Sector(4 << 20));
        run(&mut *volume, &[(Ns(0), bio(0, operation, sector, sectors))]);
        let log = log.borrow();
        let sent = log.iter().filter(|line| !line.is_end);
        let mut sent: Vec<(u16, u32)> = sent.map(|line| (line.member, line.bio.sectors)).collect();
        sent.sort_unstable();
        sent
    };
    let record = (0, 256);
    let data = [(1, 64), (2, 64), (3, 64), (4, 64)];
    assert_eq!(of(&whole, Operation::Read, record), data);
    assert_eq!(of(&whole, Operation::Read, (8, 8)), [(2, 8)]);
    assert_eq!(of(&whole, Operation::Write, (8, 8)), [(0, 8), (2, 8)]);
    let written = of(&whole, Operation::Write, record);
    assert_eq!(written, [(0, 64), (1, 64), (2, 64), (3, 64), (4, 64)]);
    let lost = VolumeParameters { lost_member: Some(2), ..whole };
    assert_eq!(of(&lost, Operation::Read, (8, 8)), [(0, 8), (1, 8), (3, 8), (4, 8)]);
    assert_eq!(of(&lost, Operation::Read, (0, 8)), [(1, 8)], "what is there is read alone");
    assert_eq!(of(&lost, Operation::Write, record), [(0, 64), (1, 64), (3, 64), (4, 64)]);
    // Other disks have the parity of what lies further on: 32 rows of four sectors of 4 KiB.
    let whole = VolumeParameters::new(VolumeKind::Raidz1);
    assert_eq!(of(&whole, Operation::Write, (32 * 32, 8)), [(1, 8), (2, 8)]);
}

/// A read that fails is computed from others, once; a member that fails a write is left out.
#[test]
fn raidz_goes_on_where_a_member_fails() {
    use iolab_model::error::Errno;
    let device = |fails: bool| -> Box<dyn Layer> {
        let fixed = Fixed::new(Ns::from_us(100), 4, false);
        if fails { Box::new(Broken(fixed)) } else { Box::new(fixed) }
    };
    let layers = (0..5).map(|member| device(member == 1)).collect();
    let mut volume = build(layers, &VolumeParameters::new(VolumeKind::Raidz1)).unwrap();
    let mut done = Vec::new();
    let mut one = |operation, at: u64| {
        volume.submit(Ns(at), &bio(0, operation, 0, 8));
        while volume.next_event() < Ns::MAX {
            volume.advance(volume.next_event(), &mut done);
        }
        done.pop().unwrap().status
    };
    assert_eq!(one(Operation::Read, 0), Ok(()));
    assert_eq!(one(Operation::Write, 1_000_000), Ok(()));
    assert_eq!(one(Operation::Read, 2_000_000), Ok(()), "the member is left out");
    let layers = (0..5).map(|member| device(member < 2)).collect();
    let mut volume = build(layers, &VolumeParameters::new(VolumeKind::Raidz1)).unwrap();
    volume.submit(Ns(0), &bio(0, Operation::Read, 0, 8));
    let mut done = Vec::new();
    while volume.next_event() < Ns::MAX {
        volume.advance(volume.next_event(), &mut done);
    }
    assert_eq!(done[0].status, Err(Errno::EIO), "one parity is not enough for two");
}

/// A device all of whose transfers fail.
struct Broken(Fixed);

impl Layer for Broken {
    fn info(&self) -> crate::api::layer::Info {
        self.0.info()
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        self.0.submit(now, bio);
    }

    fn next_event(&self) -> Ns {
        self.0.next_event()
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        let before = done.len();
        self.0.advance(now, done);
        for ended in &mut done[before..] {
            ended.status = Err(iolab_model::error::Errno::EIO);
        }
    }
}

fn first_commands(log: &[Line]) -> Vec<(u16, u64)> {
    log.iter().filter(|line| !line.is_end).map(|line| (line.member, line.bio.sector.0)).collect()
}

#[test]
fn a_mirror_reads_the_nearest_head_and_streams_stay() {
    let (mut volume, log) = recorded(&parameters(Raid1, 1), 2, 1 << 20, |_, _| ());
    let read = |id, sector| (Ns::from_ms(u64::from(id)), bio(id, Operation::Read, sector, 8));
    // Two streams far apart, interleaved; then a read nearer to the second stream.
    let reads =
        [read(0, 0), read(1, 500_000), read(2, 8), read(3, 500_008), read(4, 16), read(5, 400_000)];
    run(&mut *volume, &reads);
    // Both heads start at 0 and the tie goes to the first; then head 0 is at 8 and nearer to the
    // second stream, which it keeps; the first stream moves to head 1 and stays there.
    let members: Vec<u16> = first_commands(&log.borrow()).iter().map(|line| line.0).collect();
    assert_eq!(members, [0, 0, 1, 0, 1, 0]);
}

#[test]
fn a_stream_stays_although_a_write_has_moved_the_heads() {
    let (mut volume, log) = recorded(&parameters(Raid1, 1), 2, 1 << 20, |_, _| ());
    let at = |id, operation, sector| (Ns::from_ms(u64::from(id)), bio(id, operation, sector, 8));
    let read = |id, sector| at(id, Operation::Read, sector);
    // Head 0 goes to 500000, so the stream from 0 is on disk 1; the write leaves a tie.
    let write = at(2, Operation::Write, 900_000);
    run(&mut *volume, &[read(0, 500_000), read(1, 0), write, read(3, 8)]);
    assert_eq!(first_commands(&log.borrow()).last(), Some(&(1, 8)));
}

#[test]
fn a_mirror_without_heads_reads_the_least_busy() {
    let (mut volume, log) = recorded(&parameters(Raid1, 1), 3, 1 << 20, |_, info| {
        info.is_rotational = false;
    });
    let reads: Vec<(Ns, Bio)> = (0..6)
        .map(|id| (Ns(0), bio(id, Operation::Read, 1000 * u64::from(id * 7 % 5), 8)))
        .collect();
    run(&mut *volume, &reads);
    let mut members: Vec<u16> = first_commands(&log.borrow()).iter().map(|line| line.0).collect();
    members.sort_unstable();
    assert_eq!(members, [0, 0, 1, 1, 2, 2]);
}

fn fixed(latencies: &[u64]) -> Vec<Box<dyn Layer>> {
    let device = |&us: &u64| Box::new(Fixed::new(Ns::from_us(us), 32, false)) as Box<dyn Layer>;
    latencies.iter().map(device).collect()
}

#[test]
fn a_mirrored_write_is_done_with_the_last_or_the_first_copy() {
    let write = [(Ns(0), bio(7, Operation::Write, 64, 8))];
    let mut volume = build(fixed(&[100, 300]), &parameters(Raid1, 1)).unwrap();
    assert_eq!(run(&mut *volume, &write)[&7], Ns::from_us(300));
    let behind = VolumeParameters { write_behind: Some(true), ..parameters(Raid1, 1) };
    let mut volume = build(fixed(&[100, 300]), &behind).unwrap();
    assert_eq!(run(&mut *volume, &write)[&7], Ns::from_us(100));
    assert_eq!(counter(&*volume, "copy_bytes"), 8 * 512);
}

#[test]
fn a_lost_copy_is_neither_read_nor_written() {
    let lost = VolumeParameters { lost_member: Some(1), ..parameters(Raid10, UNIT) };
    let (mut volume, log) = recorded(&lost, 4, 1 << 20, |_, _| ());
    let each = |id| (Ns(0), bio(id, Operation::Read, UNIT * u64::from(id), 8));
    let mut all: Vec<(Ns, Bio)> = (0..16).map(each).collect();
    all.push((Ns(0), bio(16, Operation::Write, 0, 4 * UNIT as u32)));
    all.push((Ns(0), bio(17, Operation::Flush, 0, 0)));
    run(&mut *volume, &all);
    assert!(log.borrow().iter().all(|line| line.member != 1));
    // Two columns: the first has one copy left, the second two; a flush to the three that are left.
    assert_eq!(commands(&log).1, 3);
    let flushes = log.borrow().iter().filter(|line| line.bio.operation == Operation::Flush).count();
    assert_eq!(flushes, 2 * 3);
}

#[test]
fn flushes_go_to_all_members_and_flags_and_submitter_down() {
    let (mut volume, log) = recorded(&parameters(Raid0, UNIT), 3, 1 << 20, |member, info| {
        info.write_cache = WriteCache::Back { has_fua: member != 1 };
    });
    assert_eq!(volume.info().write_cache, WriteCache::Back { has_fua: false });
    let mut write = bio(0, Operation::Write, 0, 8);
    write.flags = Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC);
    write.submitter.process = ProcessId(42);
    run(&mut *volume, &[(Ns(0), write)]);
    let log = log.borrow();
    let is_flush = |line: &&Line| line.bio.operation == Operation::Flush;
    assert_eq!(log.iter().filter(is_flush).filter(|line| !line.is_end).count(), 3);
    let flushed = log.iter().filter(is_flush).filter(|line| line.is_end).map(|line| line.at).max();
    let written: Vec<&Line> =
        log.iter().filter(|line| line.bio.operation == Operation::Write && !line.is_end).collect();
    assert_eq!(written.len(), 1);
    assert!(written[0].at >= flushed.unwrap());
    assert_eq!(written[0].bio.flags, Flags::FUA.with(Flags::SYNC));
    assert!(log.iter().all(|line| line.bio.submitter.process == ProcessId(42)));
}

#[test]
fn the_depth_of_a_member_is_kept_first_come_first_served() {
    let (mut volume, log) = recorded(&parameters(Raid0, UNIT), 2, 1 << 20, |_, info| {
        info.depth = 1;
    });
    let write = |id| (Ns(0), bio(id, Operation::Write, 2 * UNIT * u64::from(9 - id), 8));
    run(&mut *volume, &(0..9).map(write).collect::<Vec<_>>());
    let order: Vec<u64> = first_commands(&log.borrow()).iter().map(|line| line.1).collect();
    assert_eq!(order, (1..=9).rev().map(|row| row * UNIT).collect::<Vec<_>>());
}

/// RAID 0 over two RAID 1: volumes stack, and do what RAID 1+0 does.
#[test]
fn volumes_stack() {
    let mirror = || build(fixed(&[100, 100]), &parameters(Raid1, 1)).unwrap();
    let mut stacked = build(vec![mirror(), mirror()], &parameters(Raid0, UNIT)).unwrap();
    let mut flat = build(fixed(&[100; 4]), &parameters(Raid10, UNIT)).unwrap();
    let write = [(Ns(0), bio(0, Operation::Write, 64, 4 * UNIT as u32))];
    assert_eq!(run(&mut *stacked, &write), run(&mut *flat, &write));
    let deep = (0..2).flat_map(|i| (0..2).map(move |j| format!("member.{i}.member.{j}.writes")));
    for (name, j) in deep.zip(0..) {
        assert_eq!(counter(&*stacked, &name), counter(&*flat, &format!("member.{j}.writes")));
    }
}

/// Mean rate of a closed loop of `depth` random 8 KiB bios, in operations per service time.
pub(super) fn closed_loop(volume: &mut dyn Layer, operation: Operation, depth: u32) -> f64 {
    let places = volume.info().capacity.0 / 16;
    let mut random = Seed(11).stream("closed loop", 0);
    let mut next = |id| bio(id, operation, random.below(places) * 16, 16);
    for id in 0..depth {
        let first = next(id);
        volume.submit(Ns(0), &first);
    }
    let mut done = Vec::new();
    let mut ended = 0_u32;
    let mut now = Ns(0);
    while ended < 40_000 {
        now = volume.next_event();
        volume.advance(now, &mut done);
        for Ended { id, .. } in done.drain(..) {
            ended += 1;
            let following = next(id.0);
            volume.submit(now, &following);
        }
    }
    f64::from(ended) / (now.0 as f64 / SERVICE.0 as f64)
}

/// Service time of the members in [`closed_loop`].
pub(super) const SERVICE: Ns = Ns::from_ms(1);

/// RAID-8, first half: read capacity 8 disks, write capacity 4; by counting and by simulation.
#[test]
fn raid_8_mirrored_pairs() {
    let disks = || {
        let one = |_| Box::new(Fixed::new(SERVICE, 1, false)) as Box<dyn Layer>;
        build((0..8).map(one).collect(), &parameters(Raid10, UNIT)).unwrap()
    };
    let reads = closed_loop(&mut *disks(), Operation::Read, 512);
    assert!((7.9..=8.0).contains(&reads), "{reads}");
    let mut volume = disks();
    let writes = closed_loop(&mut *volume, Operation::Write, 512);
    assert!((3.95..=4.0).contains(&writes), "{writes}");
    // Every write costs two commands, so eight disks do four writes per service time.
    let (mut volume, log) = recorded(&parameters(Raid10, UNIT), 8, 1 << 20, |_, _| ());
    run(&mut *volume, &[(Ns(0), bio(0, Operation::Write, 48, 16))]);
    assert_eq!(commands(&log), (0, 2));
}

proptest! {
    #[test]
    fn striping_is_a_bijection(disks in 1_u16..12, unit in 1_u32..300, address in 0_u64..1 << 40) {
        let stripe = Stripe { disks, unit };
        let (disk, sector) = stripe.locate(Sector(address));
        prop_assert!(disk < disks);
        prop_assert_eq!(stripe.address(disk, sector), Sector(address));
        // And back, from any place on any disk.
        let (disk, sector) = ((address % u64::from(disks)) as u16, Sector(address / 7));
        prop_assert_eq!(stripe.locate(stripe.address(disk, sector)), (disk, sector));
    }

    #[test]
    fn concatenation_is_a_bijection(sizes in proptest::collection::vec(1_u64..1000, 1..8)) {
        let single = Single::new(sizes.iter().copied().map(Sector));
        let mut address = 0;
        for (member, &size) in sizes.iter().enumerate() {
            for sector in 0..size {
                let place = (member as u16, Sector(sector));
                prop_assert_eq!(single.locate(Sector(address)), place);
                prop_assert_eq!(single.address(place.0, place.1), Sector(address));
                address += 1;
            }
        }
    }

    /// Every bio is done once, its sectors go where the map says, and bytes are conserved.
    #[test]
    fn random_bios_arrive_where_the_map_says(
        seed in any::<u64>(),
        (kind, members) in prop_oneof![
            (Just(VolumeKind::Single), 1_u16..5),
            (Just(Raid0), 2_u16..7),
            (Just(Raid1), 2_u16..4),
            (Just(Raid10), (2_u16..4).prop_map(|pairs| 2 * pairs)),
        ],
        unit in 1_u64..40,
        limits in (1_u32..50, prop_oneof![Just(0_u32), 1_u32..30], 1_u32..5),
    ) {
        let (mut volume, log) = recorded(&parameters(kind, unit), members, 1000, |_, info| {
            (info.max_sectors, info.chunk_sectors, info.depth) = limits;
        });
        let capacity = volume.info().capacity.0;
        let mut random = Seed(seed).stream("bios", 0);
        let mut arrivals = Vec::new();
        for id in 0..40 {
            let sector = random.below(capacity);
            let sectors = 1 + random.below((capacity - sector).min(200)) as u32;
            let operation = [Operation::Read, Operation::Write][random.below(2) as usize];
            arrivals.push((Ns(3_000 * u64::from(id)), bio(id, operation, sector, sectors)));
        }
        run(&mut *volume, &arrivals);
        let mut expected = Vec::new();
        for (_, bio) in &arrivals {
            for address in bio.sector.0..bio.end().0 {
                let copies = copies_of(kind, members, unit, Sector(address));
                let is_write = bio.operation == Operation::Write;
                let count = if is_write { copies.len() } else { 1 };
                expected.extend(copies.into_iter().take(count).map(|(member, sector)| {
                    (is_write, if is_write { member } else { family(kind, member) }, sector)
                }));
            }
        }
        let mut seen = Vec::new();
        for line in log.borrow().iter().filter(|line| !line.is_end) {
            let is_write = line.bio.operation == Operation::Write;
            let member = if is_write { line.member } else { family(kind, line.member) };
            let sectors = line.bio.sector.0..line.bio.end().0;
            seen.extend(sectors.map(|sector| (is_write, member, Sector(sector))));
        }
        expected.sort_unstable();
        seen.sort_unstable();
        prop_assert_eq!(expected, seen);
        let above = counter(&*volume, "read_bytes") + counter(&*volume, "write_bytes");
        let below: u64 = (0..members)
            .flat_map(|i| ["read_bytes", "write_bytes"].map(|n| format!("member.{i}.{n}")))
            .map(|name| counter(&*volume, &name))
            .sum();
        prop_assert_eq!(below, above + counter(&*volume, "copy_bytes"));
    }
}

/// Naive twin of the mapping, all copies.
fn copies_of(kind: VolumeKind, members: u16, unit: u64, at: Sector) -> Vec<(u16, Sector)> {
    let columns = match kind {
        VolumeKind::Single => return vec![((at.0 / 1000) as u16, Sector(at.0 % 1000))],
        Raid1 => return (0..members).map(|member| (member, at)).collect(),
        Raid10 => u64::from(members) / 2,
        _ => u64::from(members),
    };
    let k = at.0 / unit;
    let (column, sector) = ((k % columns) as u16, Sector(k / columns * unit + at.0 % unit));
    match kind {
        Raid10 => vec![(2 * column, sector), (2 * column + 1, sector)],
        _ => vec![(column, sector)],
    }
}

/// Copies of the same data are one family: a read may go to any of them.
fn family(kind: VolumeKind, member: u16) -> u16 {
    match kind {
        Raid1 => 0,
        Raid10 => member / 2 * 2,
        _ => member,
    }
}

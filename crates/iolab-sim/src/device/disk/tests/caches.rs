//! Read-ahead, write cache, flush and FUA.

use super::*;

fn single(disk: &mut Disk, host: &mut Host, pause: Ns, request: Bio) -> f64 {
    host.idle_until(disk, host.now + pause);
    let mut next = Some(request);
    host.sent.clear();
    host.closed(disk, 1, |_| next.take());
    (host.sent[0].done - host.sent[0].sent).0 as f64 * 1e-6
}

#[test]
fn a_full_hit_costs_overhead_and_bus() {
    let mut disk = disk("scsi10k-1998", &[], 3);
    let mut host = Host::new();
    let miss = single(&mut disk, &mut host, Ns(0), bio(0, Operation::Read, 1_000, 8));
    assert!(miss > 0.9, "{miss}");
    // After 20 ms the segment of 561 sectors is full.
    let pause = Ns::from_ms(20);
    let hit = single(&mut disk, &mut host, pause, bio(0, Operation::Read, 1_400, 16));
    near(hit, 0.273 + 16.0 * 0.0064, 1e-6);
    assert_eq!(counter(&disk, "cache_hits").to_bits(), 1_f64.to_bits());
    let past = single(&mut disk, &mut host, Ns(0), bio(0, Operation::Read, 1_561, 8));
    assert!(past > 0.4, "{past}");
    // The segment ends at 1561: 561 sectors after the first read's start.
    assert_eq!(counter(&disk, "read_ahead_bytes").to_bits(), (553_f64 * 512.0).to_bits());
}

#[test]
fn a_partial_hit_waits_for_the_media() {
    let mut disk = disk("scsi10k-1998", &[], 3);
    let mut host = Host::new();
    single(&mut disk, &mut host, Ns(0), bio(0, Operation::Read, 0, 8));
    // One millisecond of reading ahead is 42 of 254 sectors; the last wanted one is number 88.
    let partial = single(&mut disk, &mut host, Ns::from_ms(1), bio(0, Operation::Read, 8, 80));
    let period = 60e3 / 10_045.0;
    let media = 80.0 / 254.0 * period - 1.0;
    near(partial, media, 0.02);
    assert_eq!(counter(&disk, "cache_partial_hits").to_bits(), 1_f64.to_bits());
}

#[test]
fn a_new_command_stops_the_read_ahead_and_a_write_invalidates_it() {
    let mut disk = disk("scsi10k-1998", &[], 3);
    let mut host = Host::new();
    single(&mut disk, &mut host, Ns(0), bio(0, Operation::Read, 0, 8));
    single(&mut disk, &mut host, Ns(0), bio(0, Operation::Read, 9_000_000, 8));
    let ahead = counter(&disk, "read_ahead_bytes");
    assert!(ahead < 3.0 * 512.0, "{ahead}");
    single(&mut disk, &mut host, Ns::from_ms(20), bio(0, Operation::Write, 9_000_100, 8));
    let again = single(&mut disk, &mut host, Ns(0), bio(0, Operation::Read, 9_000_100, 8));
    assert!(again > 0.5, "{again}");
}

#[test]
fn only_a_sequence_starts_the_read_ahead_where_the_drive_does_so() {
    let mut disk = disk("atlas3", &[], 3);
    let mut host = Host::new();
    let pause = Ns::from_ms(30);
    let times =
        [0, 8, 16].map(|at| single(&mut disk, &mut host, pause, bio(0, Operation::Read, at, 8)));
    assert!(times[1] > 1.0, "the second read of the sequence is a miss: {times:?}");
    near(times[2], 0.374 + 8.0 * 0.0128, 1e-6);
}

#[test]
fn cached_writes_take_overhead_and_bus_until_the_cache_is_full() {
    let mut disk = disk("sata7200-4tb", &[("write_cache", number(4_096.0))], 3);
    let next = random(&disk, Operation::Write, 8, 3_000);
    let mut host = Host::new();
    host.closed(&mut disk, 1, next);
    let response = |index: usize| (host.sent[index].done - host.sent[index].sent).0;
    // 0.1 ms and eight sectors at 600 MB/s (853 ns each).
    assert_eq!(response(0), 100_000 + 8 * 853);
    // The cache has room for 512 such writes.
    assert!((0..500).all(|index| response(index) == response(0)));
    let tail: Vec<u64> = (1_000..3_000).map(response).collect();
    let mean = tail.iter().sum::<u64>() as f64 / tail.len() as f64 * 1e-6;
    // Then one leaves for each that comes: SPTF among 512 takes less than half a random access.
    within(mean, (1.5, 5.5));
    assert!(counter(&disk, "held_writes") > 1_000.0);
}

#[test]
fn contiguous_cached_writes_coalesce_and_run_at_the_media_rate() {
    let mut disk = disk("sata7200-4tb", &[], 3);
    let mut host = Host::new();
    // 512 MiB, eight times the cache.
    host.closed(&mut disk, 4, |id| {
        (id < 1_024).then(|| bio(id, Operation::Write, u64::from(id) * 1_024, 1_024))
    });
    let media = 3_100.0 * 512.0 * 120.0 / 1.1 / 1e6;
    let rate = (1_024.0 - 128.0) * 1_024.0 * 512.0 / host.now.as_seconds() / 1e6;
    near(rate, media, 0.04 * media);
    assert!(counter(&disk, "destages") <= 530.0);
}

#[test]
fn a_flush_waits_until_everything_is_on_the_media() {
    let mut disk = disk("sata7200-4tb", &[], 3);
    let mut host = Host::new();
    let next = random(&disk, Operation::Write, 8, 100);
    host.closed(&mut disk, 32, next);
    assert!(counter(&disk, "dirty_bytes") > 0.0);
    let flush = single(&mut disk, &mut host, Ns(0), bio(0, Operation::Flush, 0, 0));
    assert_eq!(counter(&disk, "dirty_bytes").to_bits(), 0_f64.to_bits());
    assert_eq!(counter(&disk, "media_written_bytes").to_bits(), 409_600_f64.to_bits());
    assert!(flush > 100.0, "100 random positions in {flush} ms");
    let empty = single(&mut disk, &mut host, Ns(0), bio(0, Operation::Flush, 0, 0));
    near(empty, 0.1, 1e-6);
}

#[test]
fn fua_waits_for_the_media_and_preflush_for_what_was_dirty() {
    let mut disk = disk("sata7200-4tb", &[], 3);
    let mut host = Host::new();
    let through = Bio { flags: Flags::FUA, ..bio(0, Operation::Write, 5_000_000, 8) };
    let time = single(&mut disk, &mut host, Ns(0), through);
    assert!(time > 1.5, "{time}");
    assert_eq!(counter(&disk, "media_written_bytes").to_bits(), 4_096_f64.to_bits());
    let next = random(&disk, Operation::Write, 8, 20);
    host.sent.clear();
    host.closed(&mut disk, 1, next);
    let barrier = Bio { flags: Flags::PREFLUSH, ..bio(0, Operation::Write, 0, 8) };
    single(&mut disk, &mut host, Ns(0), barrier);
    assert!(counter(&disk, "media_written_bytes") >= 21.0 * 4_096.0);
    assert_eq!(counter(&disk, "dirty_bytes").to_bits(), 4_096_f64.to_bits());
}

#[test]
fn a_read_of_dirty_data_is_a_hit() {
    let mut disk = disk("sata7200-4tb", &[], 3);
    let mut host = Host::new();
    single(&mut disk, &mut host, Ns(0), bio(0, Operation::Write, 7_000, 64));
    let read = single(&mut disk, &mut host, Ns(0), bio(0, Operation::Read, 7_008, 8));
    near(read, 0.1 + 8.0 * 0.000_853, 1e-6);
}

#[test]
fn what_waits_too_long_is_next() {
    let changes = [("ageing", number(0.0)), ("age_limit", number(50.0))];
    let mut disk = disk("scsi10k-1998", &changes, 3);
    let mut host = Host::new();
    let next = random(&disk, Operation::Read, 8, 3_000);
    host.closed(&mut disk, 32, next);
    // At most all that were there before it are older, each within its own full service.
    let longest = host.sent.iter().map(|r| (r.done - r.sent).0).max().unwrap();
    assert!(longest < 50_000_000 + 32 * 20_000_000, "{longest}");
    let mut free = super::disk("scsi10k-1998", &[("ageing", number(0.0))], 3);
    let mut host = Host::new();
    let next = random(&free, Operation::Read, 8, 3_000);
    host.closed(&mut free, 32, next);
    let without = host.sent.iter().map(|r| (r.done - r.sent).0).max().unwrap();
    assert!(longest < without, "{longest} against {without}");
}

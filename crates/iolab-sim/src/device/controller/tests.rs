//! A controller in front of disks and of a device of fixed latency.

use std::collections::BTreeMap;

use iolab_model::seed::Stream;
use iolab_model::{Ns, Seed};
use proptest::prelude::*;

use super::Controller;
use crate::api::bio::{Bio, Flags, Operation};
use crate::api::layer::{Layer, WriteCache};
use crate::device::disk::tests::{Host, bio, counter, disk, near, number, within};
use crate::device::fixed::Fixed;
use crate::profile::{Profile, Value};

const PROFILE: &str = "scsi10k-1998-nvram";

fn controller(changes: &[(&str, Value)], below: Box<dyn Layer>) -> Controller {
    let mut profile = Profile::built_in(PROFILE).unwrap();
    let changes: BTreeMap<String, Value> =
        changes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    profile.override_with(&changes).unwrap();
    Controller::from_profile(&profile, below).unwrap()
}

fn of_disk(changes: &[(&str, Value)]) -> Controller {
    controller(changes, Box::new(disk("scsi10k-1998", &[], 5)))
}

fn single(layer: &mut Controller, host: &mut Host, pause: Ns, request: Bio) -> f64 {
    host.idle_until(layer, host.now + pause);
    let mut next = Some(request);
    host.sent.clear();
    host.closed(layer, 1, |_| next.take());
    (host.sent[0].done - host.sent[0].sent).0 as f64 * 1e-6
}

#[test]
fn a_write_takes_overhead_and_link_and_is_durable_at_once() {
    let mut layer = of_disk(&[]);
    assert_eq!(layer.info().write_cache, WriteCache::Through);
    let mut host = Host::new();
    let through = Bio { flags: Flags::FUA, ..bio(0, Operation::Write, 1_000_000, 16) };
    // 0.3 ms and 16 sectors at 100 MB/s.
    near(single(&mut layer, &mut host, Ns(0), through), 0.3 + 16.0 * 0.005_12, 1e-6);
    near(single(&mut layer, &mut host, Ns(0), bio(0, Operation::Flush, 0, 0)), 0.3, 1e-6);
    near(counter(&layer, "controller_dirty_bytes"), 8_192.0, 0.0);
    let read = single(&mut layer, &mut host, Ns(0), bio(0, Operation::Read, 1_000_004, 8));
    near(read, 0.3 + 8.0 * 0.005_12, 1e-6);
    host.idle_until(&mut layer, Ns::from_seconds(1));
    near(counter(&layer, "controller_dirty_bytes"), 0.0, 0.0);
    near(counter(&layer, "media_written_bytes"), 8_192.0, 0.0);
}

#[test]
fn a_full_cache_writes_at_the_destage_rate() {
    // 32 commands below, each 10 ms, 8 at once: 800 writes a second.
    let below = Box::new(Fixed::new(Ns::from_ms(10), 32, true));
    let mut layer = controller(&[("write_cache", number(4_096.0))], below);
    let mut host = Host::new();
    let mut places: Stream = Seed(3).stream("addresses", 0);
    host.closed(&mut layer, 4, |id| {
        (id < 6_000).then(|| bio(id, Operation::Write, places.below(1 << 30) * 64, 8))
    });
    let late = (host.sent[5_999].done - host.sent[1_999].done).as_seconds();
    near(4_000.0 / late, 800.0, 8.0);
    assert!(counter(&layer, "controller_held_writes") > 1_000.0);
}

#[test]
fn sequential_small_writes_become_large_ones() {
    let mut layer = of_disk(&[]);
    let mut host = Host::new();
    host.closed(&mut layer, 1, |id| {
        (id < 4_096).then(|| bio(id, Operation::Write, u64::from(id) * 16, 16))
    });
    host.idle_until(&mut layer, host.now + Ns::from_seconds(30));
    // 32 MiB in pieces of 256 KiB, where the disk alone would have made 4096 revolutions.
    near(counter(&layer, "controller_destages"), 128.0, 2.0);
    near(counter(&layer, "media_written_bytes"), 4_096.0 * 8_192.0, 0.0);
}

#[test]
fn read_ahead_starts_with_the_second_read_of_a_stream() {
    let below = Box::new(Fixed::new(Ns::from_ms(10), 32, true));
    let mut layer = controller(&[], below);
    let mut host = Host::new();
    host.one_at_a_time(&mut layer, |id| {
        (id < 40).then(|| (Ns::from_ms(1), bio(id, Operation::Read, u64::from(id) * 16, 16)))
    });
    let times: Vec<f64> = host.sent.iter().map(|r| (r.done - r.sent).0 as f64 * 1e-6).collect();
    assert!(times[0] > 10.0 && times[1] > 10.0, "{times:?}");
    // The third waits for what is on its way, the others find it.
    within(times[2], (8.0, 10.0));
    near(times[3], 0.3 + 16.0 * 0.005_12, 1e-6);
    assert!(times[4..].iter().all(|&ms| ms < 1.0), "{times:?}");
    near(counter(&layer, "controller_fetched_bytes"), 2.0 * 8_192.0, 0.0);
    // Random reads do not read ahead.
    let ahead = counter(&layer, "controller_read_ahead_bytes");
    single(&mut layer, &mut host, Ns::from_ms(50), bio(0, Operation::Read, 9_000_000, 16));
    single(&mut layer, &mut host, Ns::from_ms(50), bio(0, Operation::Read, 5_000_000, 16));
    near(counter(&layer, "controller_read_ahead_bytes"), ahead, 512.0 * 512.0);
}

#[test]
fn without_its_caches_it_passes_everything_on() {
    let off = [("write_cache", number(0.0)), ("read_segments", number(0.0))];
    let mut layer = of_disk(&off);
    let mut host = Host::new();
    let write = single(&mut layer, &mut host, Ns(0), bio(0, Operation::Write, 2_000_000, 16));
    let mut alone = disk("scsi10k-1998", &[], 5);
    let mut other = Host::new();
    other.closed(&mut alone, 1, |id| (id < 1).then(|| bio(0, Operation::Write, 2_000_000, 16)));
    near(write, other.mean_ms(0) + 0.3, 1e-6);
    assert_eq!(layer.info().depth, 256);
}

#[test]
fn more_than_the_layer_below_takes_waits_above_it() {
    let below = Box::new(Fixed::new(Ns::from_ms(10), 2, true));
    let mut layer = controller(&[("read_segments", number(0.0))], below);
    let mut host = Host::new();
    host.closed(&mut layer, 10, |id| {
        (id < 100).then(|| bio(id, Operation::Read, u64::from(id) * 1_000, 8))
    });
    near(host.now.as_seconds(), 0.5, 0.002);
}

#[test]
fn the_device_inside_comes_from_the_profile() {
    let profile = Profile::built_in(PROFILE).unwrap();
    let layer = crate::device::build(&profile, Seed(1), "a").unwrap();
    let alone = disk("scsi10k-1998", &[], 1);
    assert_eq!(layer.info().capacity, alone.info().capacity);
    let mut hollow = profile;
    hollow.inner = None;
    let error = crate::device::build(&hollow, Seed(1), "a").err().unwrap().to_string();
    assert!(error.contains("there is no device inside"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Every bio is done exactly once and bytes add up, whatever the caches do.
    #[test]
    fn nothing_is_lost(
        words in proptest::collection::vec((0_u8..10, 0_u64..3_000, 1_u32..100, 0_u8..9), 1..200),
        room in prop::sample::select(vec![0.0, 300.0, 4_000.0]),
        segments in prop::sample::select(vec![0.0, 3.0]),
        depth in 1_usize..20,
    ) {
        let changes = [
            ("write_cache", number(room)),
            ("read_segments", number(segments)),
            ("segment_length", number(600.0)),
        ];
        let mut layer = of_disk(&changes);
        let mut host = Host::new();
        host.closed(&mut layer, depth, |id| {
            words.get(id as usize).map(|&(kind, at, sectors, flag)| {
                let (operation, sectors) = match kind {
                    0 => (Operation::Flush, 0),
                    1..=4 => (Operation::Write, sectors),
                    _ => (Operation::Read, sectors),
                };
                // Streams and overlaps: half of the places are the next ones of a stream.
                let at = if kind % 2 == 0 { at } else { u64::from(id) * 40 };
                let flags = if flag == 0 { Flags::FUA.with(Flags::PREFLUSH) } else { Flags::NONE };
                Bio { flags, ..bio(id, operation, at, sectors) }
            })
        });
        prop_assert!(host.sent.iter().all(|response| response.done != Ns::MAX));
        let mut done = Vec::new();
        while layer.next_event() != Ns::MAX {
            host.step(&mut layer, &mut done);
        }
        prop_assert!(done.is_empty());
        let value = |name: &str| counter(&layer, &format!("controller_{name}")) as u64;
        prop_assert_eq!(value("read_bytes"), value("cache_hit_bytes") + value("fetched_bytes"));
        prop_assert_eq!(value("dirty_bytes"), 0);
        prop_assert_eq!(
            value("written_bytes"),
            value("written_through_bytes") + value("destaged_bytes") + value("absorbed_bytes")
        );
        let below = |name: &str| counter(&layer, name) as u64;
        prop_assert_eq!(
            below("read_bytes"),
            value("fetched_bytes") + value("read_ahead_bytes")
        );
        prop_assert_eq!(
            below("written_bytes"),
            value("written_through_bytes") + value("destaged_bytes")
        );
    }
}

//! The delay station against closed forms and against the published measurement.

use std::collections::BTreeMap;

use iolab_model::{Ns, Sector, Seed};

use super::{Guest, GuestParameters};
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, Submitter};
use crate::api::layer::Layer;
use crate::device::fixed::Fixed;
use crate::profile::{Profile, Value};

fn bio(id: u32, operation: Operation, sectors: u32) -> Bio {
    let submitter = Submitter::default();
    Bio {
        id: BioId(id),
        operation,
        sector: Sector(0),
        sectors,
        flags: Flags::NONE,
        submitter,
        segments: 0,
    }
}

/// Mean time of `count` requests, one at a time.
fn mean_us(guest: &mut Guest, operation: Operation, kib: u32, count: u32) -> f64 {
    let mut now = Ns(0);
    let mut done = Vec::new();
    for id in 0..count {
        guest.submit(now, &bio(id, operation, kib * 2));
        while done.is_empty() {
            now = guest.next_event();
            guest.advance(now, &mut done);
        }
        assert_eq!(std::mem::take(&mut done), [Ended::ok(BioId(id))]);
    }
    now.0 as f64 / f64::from(count) / 1e3
}

fn vmware(variation: f64) -> Guest {
    let mut profile = Profile::built_in("vmware-guest").unwrap();
    let values = BTreeMap::from([("variation".to_owned(), Value::Number(variation))]);
    profile.override_with(&values).unwrap();
    let inner = Box::new(Fixed::new(Ns::from_us(100), 32, false));
    Guest::from_profile(&profile, inner, Seed(5), "test").unwrap()
}

const SOFTWARE_US: f64 = 6.41;

#[test]
fn ssd_5_the_guest_repeats_the_published_times() {
    let mut guest = vmware(0.0);
    // Calls, submission, end and noop's hooks of the guest, which the published times include.
    let small = SOFTWARE_US + mean_us(&mut guest, Operation::Write, 4, 10);
    let large = SOFTWARE_US + mean_us(&mut vmware(0.0), Operation::Write, 32, 10);
    // 191.05 + 0.48 * 4 + 6.41 = 199.38 us, 4 KiB / 199.38 us = 20 062 KiB/s.
    assert!((small - 199.38).abs() < 0.001, "{small}");
    assert!((4e6 / small - 20_062.0).abs() < 1.0, "{}", 4e6 / small);
    // 191.05 + 0.48 * 32 + 6.41 = 212.82 us, 32 KiB / 212.82 us = 150 362 KiB/s; published 150 360.
    assert!((large - 212.82).abs() < 0.001, "{large}");
    assert!((32e6 / large - 150_360.0).abs() < 10.0, "{}", 32e6 / large);
    let read = SOFTWARE_US + mean_us(&mut vmware(0.0), Operation::Read, 32, 10);
    assert!((read - 204.272).abs() < 0.001, "{read}");
}

#[test]
fn ssd_5_variation_does_not_change_the_mean() {
    let mean = mean_us(&mut vmware(0.15), Operation::Write, 4, 20_000);
    // Standard error: 0.15 * 191.05 / sqrt(20000) = 0.20 us; four of them.
    assert!((mean - 192.97).abs() < 0.84, "{mean}");
}

#[test]
fn without_host_cache_the_device_inside_adds_its_time() {
    let mut profile = Profile::built_in("vmware-guest").unwrap();
    let values = BTreeMap::from([
        ("variation".to_owned(), Value::Number(0.0)),
        ("host_cache".to_owned(), Value::Switch(false)),
    ]);
    profile.override_with(&values).unwrap();
    let inner = Box::new(Fixed::new(Ns::from_us(100), 32, false));
    let mut guest = Guest::from_profile(&profile, inner, Seed(5), "test").unwrap();
    let mean = mean_us(&mut guest, Operation::Read, 4, 3);
    assert!((mean - (182.63 + 4.0 * 0.476 + 100.0)).abs() < 0.001, "{mean}");
}

/// Mean time in the system of requests that arrive at random instants (Poisson), in units of the
/// mean service time.
fn mean_response(variation: f64, load: f64) -> f64 {
    let service = 100_000.0;
    let parameters = GuestParameters {
        delay: [Ns(100_000); 2],
        transfer_ps_per_kib: [0; 2],
        variation,
        servers: 1,
        has_host_cache: true,
        depth: u32::MAX,
        is_rotational: false,
    };
    let inner = Box::new(Fixed::new(Ns(0), 1, false));
    let mut guest = Guest::new(parameters, inner, Seed(11), "queue");
    let mut arrivals = Seed(11).stream("arrivals", 0);
    let count = 400_000_u32;
    let (mut clock, mut begun, mut total) = (0.0, Vec::new(), 0_u64);
    let mut done = Vec::new();
    for id in 0..count {
        clock -= libm::log(1.0 - arrivals.unit()) * service / load;
        let now = Ns(clock.round() as u64);
        while guest.next_event() <= now {
            let at = guest.next_event();
            guest.advance(at, &mut done);
            total +=
                done.drain(..).map(|Ended { id, .. }| (at - begun[id.0 as usize]).0).sum::<u64>();
        }
        begun.push(now);
        guest.submit(now, &bio(id, Operation::Read, 8));
    }
    while guest.next_event() < Ns::MAX {
        let at = guest.next_event();
        guest.advance(at, &mut done);
        total += done.drain(..).map(|Ended { id, .. }| (at - begun[id.0 as usize]).0).sum::<u64>();
    }
    total as f64 / f64::from(count) / service
}

/// Pollaczek and Khinchine: 1 + load * (1 + variation^2) / (2 * (1 - load)) service times. With
/// variation 1 this is the 1 / (1 - load) of M/M/1, with 0 that of M/D/1.
#[test]
fn one_server_queues_as_pollaczek_and_khinchine_say() {
    for (variation, load) in [(0.0, 0.5), (0.0, 0.8), (1.0, 0.5), (1.0, 0.7)] {
        let expected = 1.0 + load * (1.0 + variation * variation) / (2.0 * (1.0 - load));
        let measured = mean_response(variation, load);
        let error = measured / expected - 1.0;
        assert!(error.abs() < 0.03, "variation {variation}, load {load}: {error:+.4}");
    }
}

#[test]
fn the_list_of_devices_builds_the_guest_around_its_drive() {
    let profile = Profile::built_in("vmware-guest").unwrap();
    let guest = crate::device::build(&profile, Seed(1), "disk").unwrap();
    let info = guest.info();
    assert_eq!((info.capacity, info.depth), (Sector(500_118_192), 64));
    assert!(info.is_rotational);
    let mut bare = profile;
    bare.inner = None;
    let error = crate::device::build(&bare, Seed(1), "disk").err().unwrap();
    assert!(error.to_string().contains("there is no device inside"), "{error}");
    bare.inner = Some("vmware-guest".to_owned());
    let error = crate::device::build(&bare, Seed(1), "disk").err().unwrap();
    assert!(error.to_string().contains("inside another"), "{error}");
}

/// Two servers, a device that takes one request at a time, four requests at once.
#[test]
fn servers_and_the_depth_of_the_device_are_respected() {
    let parameters = GuestParameters {
        delay: [Ns(100); 2],
        transfer_ps_per_kib: [0; 2],
        variation: 0.0,
        servers: 2,
        has_host_cache: false,
        depth: 8,
        is_rotational: false,
    };
    let inner = Box::new(Fixed::new(Ns(1_000), 1, false));
    let mut guest = Guest::new(parameters, inner, Seed(1), "order");
    for id in 0..4 {
        guest.submit(Ns(0), &bio(id, Operation::Read, 8));
    }
    let (mut done, mut ended) = (Vec::new(), Vec::new());
    while guest.next_event() < Ns::MAX {
        let now = guest.next_event();
        guest.advance(now, &mut done);
        ended.extend(done.drain(..).map(|Ended { id: BioId(id), .. }| (id, now.0)));
    }
    // The delays end at 100, 100, 200, 200; then the device works alone on each.
    assert_eq!(ended, [(0, 1_100), (1, 2_100), (2, 3_100), (3, 4_100)]);
}

//! kyber against its specification.

use iolab_model::Sector;

use super::*;
use crate::api::bio::{BioId, Submitter};

fn kyber() -> Kyber {
    Kyber::attach(&SchedulerContext {
        is_rotational: false,
        hz: Hz(1_000),
        slots: 256,
        depth: 32,
        cpus: 2,
        attached: Ns(0),
    })
}

fn bio(operation: Operation, sector: u64) -> Bio {
    let submitter = Submitter::default();
    Bio {
        id: BioId(0),
        operation,
        sector: Sector(sector),
        sectors: 8,
        flags: Flags::NONE,
        submitter,
        segments: 0,
    }
}

/// Completes `count` requests that took `total` altogether and `device` at the device.
fn complete(kyber: &mut Kyber, operation: Operation, count: u32, (total, device): (Ns, Ns)) {
    let mut requests = Requests::default();
    let now = Ns::from_seconds(100);
    for _ in 0..count {
        let mut request = Request::of(&bio(operation, 0), now - total);
        request.issued = now - device;
        let id = requests.add(request);
        kyber.has_token.set(id, false);
        kyber.complete(now, &requests, id);
        requests.remove(id);
    }
}

#[test]
fn buckets_are_quarters_of_the_target() {
    // formula_checks: kyber_bucket, target 2 ms.
    let cases = [(500_000, 0), (500_001, 1), (2_000_000, 3), (2_000_001, 4), (9_000_000, 7)];
    for (latency, expected) in cases {
        assert_eq!(bucket(Ns(latency), Ns::from_ms(2)), expected, "{latency} ns");
    }
    assert_eq!(bucket(Ns(0), Ns(0)), 0);
}

#[test]
fn tokens_follow_the_99th_percentile() {
    // formula_checks: kyber_depth.
    let cases = [
        (WRITE, 128, 1, 64),
        (WRITE, 64, 4, 80),
        (READ, 100, 7, 200),
        (READ, 200, 7, 256),
        (DISCARD, 3, 0, 1),
    ];
    for (domain, tokens, p99, expected) in cases {
        assert_eq!(resized(tokens, p99, TOKENS_MAX[domain]), expected, "{}", NAMES[domain]);
    }
}

#[test]
fn slow_reads_shrink_writes_that_meet_their_target() {
    let mut kyber = kyber();
    // Writes: 99th percentile in bucket 1 (2.5 to 5 ms of 10). Reads: bucket 7.
    complete(&mut kyber, Operation::Write, 500, (Ns::from_ms(4), Ns::from_ms(1)));
    complete(&mut kyber, Operation::Read, 500, (Ns::from_ms(20), Ns::from_ms(20)));
    kyber.tokens[READ] = 100;
    let requests = Requests::default();
    assert_eq!(kyber.next_timer(), Ns::from_ms(100_100));
    kyber.timer(Ns::from_ms(100_100), &requests);
    assert_eq!(kyber.tokens, [200, 64, 64, 16]);
    assert_eq!(kyber.next_timer(), Ns::MAX);
}

#[test]
fn without_congestion_a_percentile_is_remembered_for_one_congestion() {
    let mut kyber = kyber();
    let requests = Requests::default();
    complete(&mut kyber, Operation::Write, 500, (Ns::from_ms(4), Ns::from_ms(1)));
    kyber.timer(Ns::from_ms(100_100), &requests);
    assert_eq!((kyber.tokens[WRITE], kyber.monitors[WRITE].p99), (128, Some(1)));
    for expected in [64, 64] {
        complete(&mut kyber, Operation::Read, 500, (Ns::from_ms(20), Ns::from_ms(20)));
        kyber.timer(Ns::from_ms(100_200), &requests);
        assert_eq!((kyber.tokens[WRITE], kyber.monitors[WRITE].p99), (expected, None));
    }
}

#[test]
fn few_samples_wait_for_a_second_and_the_device_is_looked_at_first() {
    let mut kyber = kyber();
    let requests = Requests::default();
    kyber.tokens[READ] = 16;
    complete(&mut kyber, Operation::Read, 499, (Ns::from_ms(20), Ns::from_ms(20)));
    kyber.timer(Ns::from_ms(100_100), &requests);
    assert_eq!((kyber.tokens[READ], kyber.monitors[READ].timeout), (16, Some(101_100)));
    kyber.timer(Ns::from_ms(101_099), &requests);
    assert_eq!(kyber.tokens[READ], 16);
    // The device's percentile takes the clock with it; the total one starts another.
    kyber.timer(Ns::from_ms(101_100), &requests);
    assert_eq!((kyber.tokens[READ], kyber.monitors[READ].timeout), (16, Some(102_100)));
    assert_eq!(kyber.monitors[READ].device, [0; BUCKETS]);
    // No device samples since: now the total one is due, and the domain is bad by itself.
    kyber.timer(Ns::from_ms(102_100), &requests);
    assert_eq!(kyber.tokens[READ], 32);
}

#[test]
fn bios_merge_into_the_last_eight_of_their_cpu_newest_first() {
    let mut kyber = kyber();
    let mut requests = Requests::default();
    let ids: Vec<_> = (0..9)
        .map(|i| {
            let id = requests.add(Request::of(&bio(Operation::Read, i * 100), Ns(0)));
            kyber.insert(Ns(0), &requests, id);
            id
        })
        .collect();
    let mut merge = |bio: &Bio| kyber.merge_bio(Ns(0), &requests, bio);
    let back = Merge { into: ids[1], end: MergeEnd::Back };
    assert_eq!(merge(&bio(Operation::Read, 108)), Some(back));
    let front = Merge { into: ids[8], end: MergeEnd::Front };
    assert_eq!(merge(&bio(Operation::Read, 792)), Some(front));
    assert_eq!(merge(&bio(Operation::Read, 8)), None, "the ninth is too old");
    assert_eq!(merge(&bio(Operation::Write, 108)), None);
    let mut elsewhere = bio(Operation::Read, 108);
    elsewhere.submitter.cpu = 1;
    assert_eq!(merge(&elsewhere), None);
    let mut alone = bio(Operation::Read, 108);
    alone.flags = Flags::FUA;
    assert_eq!(merge(&alone), None);
    // Once flushed they are out of reach.
    assert_eq!(kyber.dispatch(Ns(0), &requests), Some(ids[0]));
    assert_eq!(kyber.merge_bio(Ns(0), &requests, &bio(Operation::Read, 108)), None);
}

#[test]
fn a_token_is_held_until_completion_or_refusal() {
    let mut kyber = kyber();
    assert!(kyber.preset("write domain depth resized to 1 token (read 256, discard 64, other 16)"));
    assert!(!kyber.preset("half of the tokens are gone"));
    let mut requests = Requests::default();
    let ids = [0, 8].map(|sector| {
        let id = requests.add(Request::of(&bio(Operation::Write, sector), Ns(0)));
        kyber.insert(Ns(0), &requests, id);
        id
    });
    assert_eq!(kyber.dispatch(Ns(0), &requests), Some(ids[0]));
    assert_eq!(kyber.dispatch(Ns(0), &requests), None);
    kyber.requeue(Ns(0), &requests, ids[0]);
    assert_eq!(kyber.dispatch(Ns(0), &requests), Some(ids[0]));
    kyber.complete(Ns(1), &requests, ids[0]);
    assert_eq!(kyber.dispatch(Ns(1), &requests), Some(ids[1]));
}

#[test]
fn async_operations_may_use_three_quarters_of_the_slots() {
    let kyber = kyber();
    let mut write = bio(Operation::Write, 0);
    assert_eq!(kyber.limit_depth(&write, 256), 192);
    write.flags = Flags::SYNC;
    assert_eq!(kyber.limit_depth(&write, 256), 256);
    assert_eq!(kyber.limit_depth(&bio(Operation::Read, 0), 256), 256);
}

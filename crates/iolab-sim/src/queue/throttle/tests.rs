//! Each rule of write-back throttling alone.

use iolab_model::{Ns, Sector};

use super::*;
use crate::api::bio::{BioId, Submitter};
use crate::queue::chain::Owner;

const HASTY: Flags = Flags::SYNC.with(Flags::NO_IDLE);

fn context() -> ThrottleContext {
    ThrottleContext { target: Ns::from_ms(2), depth: 256, has_write_cache: false, hz: Hz(1000) }
}

fn bio(operation: Operation, flags: Flags, id: u32) -> Bio {
    let submitter = Submitter { process: ProcessId(id), ..Submitter::default() };
    Bio {
        id: BioId(id),
        operation,
        sector: Sector(u64::from(id) * 8),
        sectors: 8,
        flags,
        submitter,
        segments: 0,
    }
}

fn write(flags: Flags) -> Bio {
    bio(Operation::Write, flags, 0)
}

fn read() -> Bio {
    bio(Operation::Read, Flags::SYNC, 0)
}

fn waiter(bio: Bio) -> Waiter {
    Waiter { bio, owner: Owner::Bio(bio.id), needs_only_slot: true }
}

/// Number of these that pass, one after the other.
fn admitted(throttle: &mut Throttle, now: Ns, bio: &Bio) -> usize {
    (0..1_000).take_while(|_| throttle.admits(now, bio)).count()
}

/// A read of this duration, which ends now.
fn finish_read(throttle: &mut Throttle, now: Ns, took: Ns) {
    let mut request = Request::of(&read(), now);
    request.issued = now - took;
    throttle.completed(now, RequestId(7), &request);
}

fn finish_write(throttle: &mut Throttle, now: Ns, bio: &Bio) {
    let request = Request::of(bio, now);
    throttle.completed(now, RequestId(8), &request);
    throttle.left(&request);
}

/// Writes of the window up to its end, beside reads of the given duration.
fn window(throttle: &mut Throttle, reads: &[Ns], writes: u64) {
    let end = throttle.next_timer();
    for &took in reads {
        finish_read(throttle, end, took);
    }
    throttle.seen.writes += writes;
    throttle.timer(end);
}

/// A gate with one write under way, so that windows follow each other.
fn busy() -> Throttle {
    let mut throttle = Throttle::new(context());
    assert!(throttle.admits(Ns(0), &write(Flags::NONE)));
    throttle
}

fn depths(throttle: &Throttle) -> [u32; 3] {
    [throttle.background, throttle.normal, throttle.depth.most()]
}

#[test]
fn a_quarter_half_or_all_of_sixteen() {
    let fresh = || Throttle::new(context());
    assert_eq!(depths(&fresh()), [4, 8, 16]);
    assert_eq!(admitted(&mut fresh(), Ns(0), &write(Flags::BACKGROUND)), 4);
    assert_eq!(admitted(&mut fresh(), Ns(0), &write(Flags::NONE)), 8);
    for flags in [HASTY, Flags::META, Flags::PRIORITY, HASTY.with(Flags::BACKGROUND)] {
        assert_eq!(admitted(&mut fresh(), Ns(0), &write(flags)), 16, "{flags:?}");
    }
}

#[test]
fn reads_direct_writes_and_flushes_pass_freely_and_leave_no_trace() {
    let mut throttle = Throttle::new(context());
    let flush = bio(Operation::Flush, Flags::SYNC, 0);
    for free in [read(), write(Flags::SYNC), flush] {
        assert_eq!(admitted(&mut throttle, Ns(0), &free), 1_000);
        throttle.left(&Request::of(&free, Ns(0)));
    }
    assert_eq!((throttle.under_way(), throttle.next_timer()), (0, Ns::MAX));
}

#[test]
fn discards_have_a_line_of_their_own_and_always_a_quarter() {
    let mut throttle = Throttle::new(context());
    assert_eq!(admitted(&mut throttle, Ns(0), &write(Flags::NONE)), 8);
    let discard = bio(Operation::Discard, Flags::SYNC, 0);
    assert_eq!(admitted(&mut throttle, Ns(0), &discard), 4);
}

#[test]
fn beside_reads_of_the_last_tenth_of_a_second_a_write_counts_as_background() {
    let admitted_after = |throttle: &mut Throttle, ms| {
        let count = admitted(throttle, Ns::from_ms(ms), &write(Flags::NONE));
        for _ in 0..count {
            throttle.left(&Request::of(&write(Flags::NONE), Ns(0)));
        }
        count
    };
    let mut throttle = Throttle::new(context());
    assert!(throttle.admits(Ns::from_ms(1_000), &read()));
    assert_eq!(admitted_after(&mut throttle, 1_099), 4);
    assert_eq!(admitted_after(&mut throttle, 1_100), 8);
    finish_read(&mut throttle, Ns::from_ms(1_500), Ns(1));
    assert_eq!(admitted_after(&mut throttle, 1_599), 4);
    assert_eq!(admitted_after(&mut throttle, 1_600), 8);
}

#[test]
fn slow_reads_halve_and_quick_ones_double() {
    let mut throttle = busy();
    let (slow, quick) = (Ns::from_us(2_001), Ns::from_us(2_000));
    window(&mut throttle, &[slow], 3);
    assert_eq!(depths(&throttle), [2, 4, 8]);
    window(&mut throttle, &[slow, slow], 3);
    assert_eq!(depths(&throttle), [1, 2, 4]);
    window(&mut throttle, &[slow], 3);
    assert_eq!(depths(&throttle), [1, 2, 2]);
    window(&mut throttle, &[slow], 3);
    window(&mut throttle, &[slow], 3);
    assert_eq!((depths(&throttle), throttle.depth.step()), ([1, 1, 1], 4));
    // The fastest read of a window decides.
    window(&mut throttle, &[slow, quick], 3);
    assert_eq!(depths(&throttle), [1, 2, 2]);
}

#[test]
fn windows_shrink_with_the_root_of_the_halvings() {
    let mut throttle = busy();
    let mut seen = vec![throttle.next_timer().0 / 1_000_000];
    for _ in 0..4 {
        let begun = throttle.next_timer();
        window(&mut throttle, &[Ns::from_ms(3)], 3);
        seen.push(throttle.next_timer().since(begun).0 / 1_000_000);
    }
    // 100 ms over the root of 1, 2, 3, 4, 5, in whole ticks.
    assert_eq!(seen, [100, 72, 59, 50, 45]);
}

#[test]
fn a_window_ends_on_a_tick() {
    let mut throttle = Throttle::new(ThrottleContext { hz: Hz(250), ..context() });
    assert!(throttle.admits(Ns::from_us(5_500), &write(Flags::NONE)));
    assert_eq!(throttle.next_timer(), Ns::from_ms(104));
}

#[test]
fn without_reads_the_depth_grows_to_three_quarters_of_the_queue() {
    let mut throttle = busy();
    for expected in [31, 61, 121, 192, 192] {
        window(&mut throttle, &[], 10);
        assert_eq!(throttle.depth.most(), expected);
        assert_eq!(throttle.next_timer().0 % WINDOW.0, 0, "a boost does not change the window");
    }
    // The first window with slow reads takes all of it back.
    window(&mut throttle, &[Ns::from_ms(3)], 3);
    assert_eq!(depths(&throttle), [4, 8, 16]);
}

#[test]
fn too_few_writes_are_no_reason_to_blame_them() {
    let mut throttle = busy();
    window(&mut throttle, &[Ns::from_ms(50)], 2);
    assert_eq!(throttle.depth.step(), -1, "two writes: as if there were only writes");
}

#[test]
fn a_read_that_does_not_come_back_counts_as_slow() {
    let issue = |throttle: &mut Throttle, at: Ns| {
        let mut request = Request::of(&read(), at);
        request.issued = at;
        throttle.issued(RequestId(7), &request);
    };
    let mut throttle = busy();
    issue(&mut throttle, Ns::from_ms(97));
    window(&mut throttle, &[], 10);
    assert_eq!(throttle.depth.step(), 1, "3 ms without an end, and no other read");
    // Beside other reads it must last longer than the window.
    let mut throttle = busy();
    issue(&mut throttle, Ns::from_ms(50));
    throttle.seen = Seen { reads: 1, writes: 3, fastest_read: Ns::from_ms(1) };
    throttle.timer(throttle.next_timer());
    assert_eq!(throttle.depth.step(), -1);
    throttle.seen = Seen { reads: 1, writes: 3, fastest_read: Ns::from_ms(1) };
    throttle.timer(throttle.next_timer());
    assert_eq!(throttle.depth.step(), 0, "150 ms, more than a window");
    finish_read(&mut throttle, Ns::from_ms(201), Ns::from_ms(151));
    assert_eq!(throttle.watched_read, None);
}

#[test]
fn five_windows_without_a_verdict_are_a_step_towards_rest() {
    for (first, reads) in [(1, vec![Ns::from_ms(3)]), (-1, vec![])] {
        let mut throttle = busy();
        window(&mut throttle, &reads, 3);
        throttle.left(&Request::of(&write(Flags::NONE), Ns(0)));
        for _ in 0..4 {
            window(&mut throttle, &[], 0);
            assert_eq!(throttle.depth.step(), first);
        }
        window(&mut throttle, &[], 0);
        assert_eq!(throttle.depth.step(), 0);
        assert_eq!(throttle.next_timer(), Ns::MAX, "at rest and idle nothing is watched");
    }
}

#[test]
fn nothing_is_watched_for_ever() {
    for depth in 1..40 {
        let mut throttle = Throttle::new(ThrottleContext { depth, ..context() });
        assert!(throttle.admits(Ns(0), &write(Flags::NONE)));
        window(&mut throttle, &[], 1);
        throttle.left(&Request::of(&write(Flags::NONE), Ns(0)));
        for _ in 0..100 {
            if throttle.next_timer() != Ns::MAX {
                window(&mut throttle, &[], 0);
            }
        }
        assert_eq!(throttle.next_timer(), Ns::MAX, "queue of {depth}");
    }
}

/// Fills the gate and puts three more in line.
fn crowded(has_write_cache: bool) -> Throttle {
    let mut throttle = Throttle::new(ThrottleContext { has_write_cache, ..context() });
    assert_eq!(admitted(&mut throttle, Ns(0), &write(Flags::NONE)), 8);
    for id in 1..4 {
        throttle.wait(waiter(bio(Operation::Write, Flags::NONE, id)));
    }
    throttle
}

fn woken(throttle: &mut Throttle) -> Vec<u32> {
    std::iter::from_fn(|| throttle.next_woken(Ns(0))).map(|waiter| waiter.bio.id.0).collect()
}

#[test]
fn sleepers_are_woken_in_order_once_half_the_background_depth_is_free() {
    let mut throttle = crowded(false);
    assert!(throttle.is_waiting(ProcessId(2)) && !throttle.is_waiting(ProcessId(9)));
    finish_write(&mut throttle, Ns(0), &write(Flags::NONE));
    assert!(!throttle.has_woken(), "one of eight is not enough");
    finish_write(&mut throttle, Ns(0), &write(Flags::NONE));
    assert_eq!(woken(&mut throttle), [1, 2]);
    assert!(!throttle.has_woken() && throttle.is_waiting(ProcessId(3)));
    assert_eq!(throttle.under_way(), 8);
}

#[test]
fn in_front_of_a_write_cache_sleepers_wait_until_all_is_done() {
    let mut throttle = crowded(true);
    for _ in 0..7 {
        finish_write(&mut throttle, Ns(0), &write(Flags::NONE));
        assert!(!throttle.has_woken());
    }
    finish_write(&mut throttle, Ns(0), &write(Flags::NONE));
    assert_eq!(woken(&mut throttle), [1, 2, 3]);
}

#[test]
fn nobody_overtakes_a_sleeper() {
    let mut throttle = crowded(true);
    finish_write(&mut throttle, Ns(0), &write(Flags::NONE));
    assert!(!throttle.admits(Ns(0), &write(HASTY)), "there would be room");
}

#[test]
fn the_first_who_may_not_go_on_ends_the_wake_up() {
    let mut throttle = Throttle::new(context());
    assert_eq!(admitted(&mut throttle, Ns(0), &write(HASTY)), 16);
    throttle.wait(waiter(bio(Operation::Write, Flags::BACKGROUND, 1)));
    throttle.wait(waiter(bio(Operation::Write, HASTY, 2)));
    for _ in 0..11 {
        finish_write(&mut throttle, Ns(0), &write(HASTY));
        assert_eq!(woken(&mut throttle), [0_u32; 0]);
    }
    finish_write(&mut throttle, Ns(0), &write(HASTY));
    assert_eq!(woken(&mut throttle), [0_u32; 0], "four background writes: its limit");
    finish_write(&mut throttle, Ns(0), &write(HASTY));
    assert_eq!(woken(&mut throttle), [1, 2]);
}

#[test]
fn a_deeper_gate_wakes_at_once() {
    let mut throttle = crowded(true);
    window(&mut throttle, &[], 10);
    assert_eq!(throttle.depth.most(), 31);
    assert_eq!(woken(&mut throttle), [1, 2, 3]);
}

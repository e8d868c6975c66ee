//! Order and time of write-back.

use super::*;
use crate::api::block::NodeId;
use crate::api::write_back::BackingId;

const BANDWIDTH: (u64, u64) = (25_600, 10_000_000);

fn file(number: u32) -> FileKey {
    FileKey { backing: BackingId(0), node: NodeId(number) }
}

fn writer() -> Writer {
    Writer::new(VmSettings::default(), Kernel::DEFAULT)
}

/// Files and times of everything that a flusher writes until a time; each is clean afterwards.
fn written(flusher: &mut Writer, until: Ns) -> Vec<(u32, Ns)> {
    let mut seen = Vec::new();
    loop {
        let now = flusher.next_timer();
        if now > until {
            return seen;
        }
        while let Some(chunk) = flusher.poll(now, false, BANDWIDTH) {
            seen.push((chunk.file.node.0, now));
            flusher.sent(now, ChunkEnd { file: chunk.file, pages: 1, is_still_dirty: false });
        }
    }
}

#[test]
fn wb_11_first_flush() {
    for start in [0, 700, 4_321] {
        let mut flusher = writer();
        let dirtied = Ns::from_ms(start);
        flusher.dirtied(dirtied, file(1));
        let seen = written(&mut flusher, Ns::from_seconds(100));
        assert_eq!(seen, [(1, dirtied + Ns::from_seconds(30))]);
    }
}

#[test]
fn pc_6_a_page_is_written_30_to_35_seconds_after_it_was_dirtied() {
    for late in 0..10u64 {
        let mut flusher = writer();
        flusher.dirtied(Ns(0), file(1));
        let dirtied = Ns::from_ms(500 * late);
        flusher.dirtied(dirtied, file(2));
        let seen = written(&mut flusher, Ns::from_seconds(100));
        let age = seen.iter().find(|(node, _)| *node == 2).unwrap().1.since(dirtied);
        assert!((30.0..=35.0).contains(&age.as_seconds()), "{age:?}");
    }
}

#[test]
fn wb_12_round_robin() {
    let mut flusher = writer();
    let mut left = [51_200u64; 2];
    flusher.dirtied(Ns(0), file(0));
    flusher.dirtied(Ns(1), file(1));
    let mut now = Ns::from_seconds(1);
    flusher.wake(now, false);
    let mut pieces = Vec::new();
    while let Some(chunk) = flusher.poll(now, left.iter().sum::<u64>() > 0, BANDWIDTH) {
        let rest = &mut left[chunk.file.node.0 as usize];
        let pages = chunk.pages_max.min(*rest);
        *rest -= pages;
        pieces.push((chunk.file.node.0, pages));
        now += Ns::from_ms(500);
        let is_still_dirty = *rest > 0;
        flusher.sent(now, ChunkEnd { file: chunk.file, pages, is_still_dirty });
    }
    let alternating: Vec<u32> = pieces.iter().map(|(node, _)| *node).collect();
    assert_eq!(alternating, [0, 1, 0, 1, 0, 1, 0, 1]);
    assert!(pieces[..6].iter().all(|(_, pages)| *pages == 13_312), "{pieces:?}");
    assert_eq!(left, [0, 0]);
}

#[test]
fn background_write_back_stops_at_its_limit_and_gives_way_to_a_sync() {
    let mut flusher = writer();
    for number in 0..10 {
        flusher.dirtied(Ns(0), file(number));
    }
    let now = Ns::from_ms(10);
    flusher.wake(now, false);
    let chunk = flusher.poll(now, true, BANDWIDTH).unwrap();
    assert!(chunk.is_background);
    flusher.wake(now, true);
    let later = now + Ns::from_ms(150);
    let end = ChunkEnd { file: chunk.file, pages: chunk.pages_max, is_still_dirty: true };
    flusher.sent(later, end);
    let chunk = flusher.poll(later, true, BANDWIDTH).unwrap();
    assert_eq!((chunk.pages_max, chunk.is_background), (u64::MAX, false));
    flusher.sent(later, ChunkEnd { file: chunk.file, pages: 9, is_still_dirty: false });
    let mut rest = Vec::new();
    while let Some(chunk) = flusher.poll(later, false, BANDWIDTH) {
        rest.push(chunk.file.node.0);
        flusher.sent(later, ChunkEnd { file: chunk.file, pages: 9, is_still_dirty: false });
    }
    assert_eq!(rest, [2, 3, 4, 5, 6, 7, 8, 9, 0]);
    assert_eq!(flusher.next_timer(), Ns::MAX);
}

#[test]
fn a_file_dirtied_while_it_is_written_starts_its_30_seconds_again() {
    let mut flusher = writer();
    flusher.dirtied(Ns(0), file(1));
    flusher.dirtied(Ns::from_seconds(20), file(2));
    let now = Ns::from_seconds(30);
    let chunk = flusher.poll(now, false, BANDWIDTH).unwrap();
    flusher.sent(now, ChunkEnd { file: chunk.file, pages: 3, is_still_dirty: true });
    assert_eq!(flusher.poll(now, false, BANDWIDTH), None);
    let seen = written(&mut flusher, Ns::from_seconds(200));
    let seconds: Vec<(u32, u64)> = seen.iter().map(|(n, t)| (*n, t.0 / 1_000_000_000)).collect();
    assert_eq!(seconds, [(2, 50), (1, 60)]);
}

#[test]
fn without_an_interval_nothing_is_written_by_age() {
    let settings = VmSettings { dirty_writeback_centisecs: 0, ..VmSettings::default() };
    let mut flusher = Writer::new(settings, Kernel::DEFAULT);
    flusher.dirtied(Ns(0), file(1));
    assert_eq!(flusher.next_timer(), Ns::MAX);
}

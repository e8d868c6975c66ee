//! Checks PC-1 to PC-3 and RA-1 to RA-10 of the specification of read-ahead, under their names.

use super::{TestFile, ideal};
use crate::api::make::Kernel;
use crate::api::read_ahead::{Hint, ReadAhead};
use crate::readahead::{LinuxReadAhead, ReadAheadEra, ReadAheadRules};

const ERAS: [ReadAheadEra; 4] =
    [ReadAheadEra::Ra1, ReadAheadEra::Ra2, ReadAheadEra::Ra3, ReadAheadEra::Ra4];
/// Windows of a sequential reader of single pages in a kernel without large folios.
const RAMP: &str = "0:[0,4) 1:[4,12) 4:[12,28) 12:[28,60) 28:[60,92) 60:[92,124)";
const RAMP_LARGE: &str = "0:[0,4) 1:[4,12) 4:[12,16) 12:[16,24) 16:[24,32) 24:[32,48) \
                          32:[48,64) 48:[64,96) 64:[96,128)";

fn era(era: ReadAheadEra, is_large: bool) -> TestFile {
    TestFile::new(ReadAheadRules::of_era(era, is_large), 32)
}

#[test]
fn pc_1_a_sequential_reader_ramps_up() {
    for each in ERAS {
        assert_eq!(era(each, false).pages(0..92), RAMP, "{each}");
    }
    assert_eq!(era(ReadAheadEra::Ra4, true).pages(0..96), RAMP_LARGE);
}

#[test]
fn pc_2_a_lone_read_is_read_as_it_is() {
    for each in ERAS {
        let mut file = era(each, false);
        let before = file.state;
        assert_eq!(file.read(1000 * 4096, 4096), [(1000, 1001)], "{each}");
        assert_eq!((file.state.start, file.state.size), (before.start, before.size), "{each}");
    }
    for kernel in [Kernel::new(5, 4), Kernel::new(6, 18)] {
        let mut file = TestFile::new(ReadAheadRules::of(kernel, false), 32);
        assert_eq!(file.read(1000 * 4096, 64 * 4096), [(1000, 1064)], "{kernel}");
        assert_eq!(file.state.size, 0, "{kernel}: no window");
    }
    let mut old = TestFile::new(ReadAheadRules::of(Kernel::new(4, 4), false), 32);
    assert_eq!(old.read(1000 * 4096, 64 * 4096)[0], (1000, 1064), "the first window is doubled");
    let rules = ReadAheadRules::of(Kernel::new(4, 4), false);
    let mut capped = TestFile::new(ReadAheadRules { caps_self_trigger: true, ..rules }, 32);
    assert_eq!(capped.read(1000 * 4096, 64 * 4096)[0], (1000, 1032));
}

#[test]
fn pc_3_a_first_read_of_a_window_reads_two() {
    let rules = ReadAheadRules::of_era(ReadAheadEra::Ra2, false);
    let mut capped = TestFile::new(rules, 32);
    assert_eq!(capped.read(0, 131_072), [(0, 32), (32, 64)]);
    assert_eq!((capped.state.start, capped.state.size), (32, 32));
    let mut uncapped = TestFile::new(ReadAheadRules { caps_self_trigger: false, ..rules }, 32);
    assert_eq!(uncapped.read(0, 131_072), [(0, 64)]);
    assert_eq!((uncapped.state.start, uncapped.state.size, uncapped.state.ahead), (0, 64, 32));
}

#[test]
fn ra_1_single_pages_in_sequence() {
    for each in [ReadAheadEra::Ra2, ReadAheadEra::Ra3, ReadAheadEra::Ra4] {
        assert_eq!(era(each, false).pages(0..92), RAMP, "{each}");
    }
    // The marker lies on the first folio, so that the first access starts the second window, too.
    let large = "0:[0,4) 0:[4,12) 4:[12,28) 12:[28,60) 28:[60,92) 60:[92,124)";
    assert_eq!(era(ReadAheadEra::Ra3, true).pages(0..92), large);
    assert_eq!(era(ReadAheadEra::Ra4, true).pages(0..96), RAMP_LARGE);
}

#[test]
fn ra_2_windows_end_on_the_lowest_bit_of_the_limit() {
    let mut file = TestFile::new(ReadAheadRules::of_era(ReadAheadEra::Ra4, true), 24);
    let expected = "0:[0,2) 1:[2,4) 2:[4,8) 4:[8,16) 8:[16,32) 16:[32,56) 32:[56,80) 56:[80,104)";
    assert_eq!(file.pages(0..80), expected);
}

#[test]
fn ra_3_records_of_a_window() {
    for each in ERAS {
        for is_large in [false, true] {
            let mut file = era(each, is_large);
            let first = file.read(0, 131_072);
            assert!(first == [(0, 32), (32, 64)] || first == [(0, 64)], "{each}: {first:?}");
            for window in 2..6 {
                let found = file.read((window - 1) * 131_072, 131_072);
                assert_eq!(found, [(window * 32, window * 32 + 32)], "{each}");
            }
        }
    }
}

#[test]
fn ra_4_records_longer_than_a_window() {
    for each in [ReadAheadEra::Ra3, ReadAheadEra::Ra4] {
        let mut file = era(each, true);
        assert_eq!(file.read(0, 1 << 20), [(0, 256), (256, 512)], "{each}");
        assert_eq!(file.read(1 << 20, 1 << 20), [(512, 768)], "{each}");
    }
}

#[test]
fn ra_5_every_second_page() {
    let pages = || (0..20).step_by(2);
    assert_eq!(era(ReadAheadEra::Ra2, false).pages(pages()), "0:[0,4) 4:[4,28) 12:[28,60)");
    let found = era(ReadAheadEra::Ra4, true).pages(pages());
    assert_eq!(found, "0:[0,4) 4:[4,8) 8:[8,12) 12:[12,16) 16:[16,20)");
}

#[test]
fn ra_6_every_third_page_is_random() {
    for each in [ReadAheadEra::Ra3, ReadAheadEra::Ra4] {
        let mut file = era(each, true);
        let found = file.pages((1000..1030).step_by(3));
        let expected: Vec<String> =
            (1000..1030).step_by(3).map(|page| format!("{page}:[{page},{})", page + 1)).collect();
        assert_eq!(found, expected.join(" "), "{each}");
        assert_eq!(file.state.size, 0, "{each}");
    }
}

#[test]
fn ra_7_pairs_of_pages_from_an_odd_one() {
    let read = |mut file: TestFile, reads: u64| {
        let each = |index: u64| {
            let page = 1001 + 2 * index;
            let found = file.read(page * 4096, 8192);
            found.iter().map(|(first, end)| format!("{page}:[{first},{end})")).collect::<Vec<_>>()
        };
        (0..reads).flat_map(each).collect::<Vec<_>>().join(" ")
    };
    let second = "1001:[1001,1003) 1003:[1003,1007) 1005:[1007,1015) 1007:[1015,1031) \
                  1015:[1031,1063)";
    assert_eq!(read(era(ReadAheadEra::Ra2, false), 10), second);
    let fourth = "1001:[1001,1003) 1003:[1003,1007) 1005:[1007,1012) 1007:[1012,1022) \
                  1011:[1022,1024) 1021:[1024,1028) 1023:[1028,1036) 1027:[1036,1052)";
    assert_eq!(read(era(ReadAheadEra::Ra4, true), 15), fourth);
}

#[test]
fn ra_8_two_streams_and_the_two_walks() {
    let rules = ReadAheadRules::of_era(ReadAheadEra::Ra4, true);
    let first_stream = |rules: ReadAheadRules| {
        let mut file = TestFile::new(rules, 32);
        let mut found = Vec::new();
        for page in 0..20 {
            found.push(file.pages([page]));
            file.pages([5000 + page]);
        }
        found.retain(|windows| !windows.is_empty());
        found.join(" ")
    };
    let exact = first_stream(rules);
    assert!(exact.ends_with("4:[13,32) 12:[12,13) 13:[32,64)"), "{exact}");
    let searched = first_stream(ideal(rules));
    assert!(searched.contains("4:[12,28)"), "{searched}");
}

#[test]
fn ra_9_advice_reads_what_the_device_takes_at_once() {
    let file = era(ReadAheadEra::Ra4, true);
    let rule = LinuxReadAhead::new(ReadAheadRules::of_era(ReadAheadEra::Ra4, true));
    let window = rule.will_need(&file.state, file.access(0, 16_384));
    let mut new = Vec::new();
    rule.folios(window, file.file_pages, &file, &mut new);
    assert_eq!(new.len(), 320);
    assert!(new.iter().all(|folio| folio.order == 0 && !folio.is_marked));
}

#[test]
fn ra_10_random_reads_read_what_is_asked_for() {
    let mut file = era(ReadAheadEra::Ra4, true);
    file.hint = Hint::Random;
    assert_eq!(file.read(0, 1 << 20), [(0, 256)]);
    let mut off = TestFile::new(ReadAheadRules::of_era(ReadAheadEra::Ra4, true), 0);
    assert_eq!(off.read(0, 16_384), [(0, 1), (1, 2), (2, 3), (3, 4)], "one page at a time");
}

#[test]
fn a_sequential_reader_doubles_its_limit_when_it_says_so() {
    let rule = LinuxReadAhead::new(ReadAheadRules::of_era(ReadAheadEra::Ra4, false));
    let mut file = era(ReadAheadEra::Ra4, false);
    rule.advised(&mut file.state, Hint::Sequential, 32);
    file.pages(0..200);
    assert_eq!((file.state.pages_max, file.state.size), (64, 64));
}

#[test]
fn a_window_ends_with_the_file() {
    for each in ERAS {
        let mut file = era(each, true);
        file.file_pages = 10;
        let mut seen = std::collections::BTreeSet::new();
        for page in 0..10 {
            for (first, end) in file.read(page * 4096, 4096) {
                assert!(end <= 10, "{each}");
                assert!((first..end).all(|page| seen.insert(page)), "{each}: once each");
            }
        }
        assert_eq!(seen.len(), 10, "{each}");
        assert_eq!(file.read(10 * 4096, 4096), [], "{each}: behind the end");
    }
}

//! Check PC-4: faults of mappings.

use super::TestFile;
use crate::api::read_ahead::{Hint, ReadAhead, ReadWindow};
use crate::readahead::reader::ReadPages;
use crate::readahead::{LinuxReadAhead, ReadAheadEra, ReadAheadRules};

fn rule() -> LinuxReadAhead {
    LinuxReadAhead::new(ReadAheadRules::of_era(ReadAheadEra::Ra4, true))
}

/// A fault on an absent page: pages read, the page alone if nothing else is.
fn fault(file: &mut TestFile, page: u64) -> u64 {
    let mut state = file.state;
    let window = rule().fault_miss(&mut state, file.access(page, 1), file);
    file.state = state;
    let Some(window) = window else {
        file.submit_alone(page);
        return 1;
    };
    file.submit(window);
    window.size
}

#[test]
fn pc_4_a_fault_reads_around() {
    let mut file = TestFile::new(ReadAheadRules::of_era(ReadAheadEra::Ra4, true), 32);
    let mut state = file.state;
    let window = rule().fault_miss(&mut state, file.access(100, 1), &file);
    assert_eq!(window, Some(ReadWindow { start: 84, size: 32, ahead: 8, order: Some(0) }));
    file.submit(window.unwrap());
    assert_eq!(file.state(108).map(|folio| folio.is_marked), Some(true));
}

#[test]
fn pc_4_write_faults_that_only_miss_give_up_after_a_hundred() {
    let mut file = TestFile::new(ReadAheadRules::of_era(ReadAheadEra::Ra4, true), 32);
    file.file_pages = 1 << 20;
    let sizes: Vec<u64> = (0..120).map(|index| fault(&mut file, 100 + 200 * index)).collect();
    assert_eq!(sizes.iter().position(|&size| size == 1), Some(100));
    assert!(sizes[100..].iter().all(|&size| size == 1));
}

#[test]
fn pc_4_read_faults_never_leave_read_around() {
    let mut file = TestFile::new(ReadAheadRules::of_era(ReadAheadEra::Ra4, true), 32);
    file.file_pages = 1 << 20;
    for index in 0..1000 {
        let page = 100 + 200 * index;
        assert_eq!(fault(&mut file, page), 32);
        let around = page / 16 * 16..page / 16 * 16 + 16;
        let present = around.filter(|page| file.state(*page).is_some()).count() as u64;
        let mut state = file.state;
        rule().mapped_around(&mut state, present);
        file.state = state;
    }
}

#[test]
fn advice_of_a_mapping_is_followed() {
    let mut file = TestFile::new(ReadAheadRules::of_era(ReadAheadEra::Ra4, true), 32);
    file.hint = Hint::Random;
    assert_eq!(fault(&mut file, 100), 1);
    file.hint = Hint::Sequential;
    assert_eq!(fault(&mut file, 0), 32);
}

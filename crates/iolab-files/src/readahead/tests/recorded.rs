//! Every recorded case of kernel 6.18 on ext4, page by page.

use super::TestFile;
use crate::api::make::Kernel;
use crate::readahead::ReadAheadRules;

const RECORDED: &str =
    include_str!("../../../../../tests/golden/readahead/readahead-6.18-ext4.csv");

/// Runs of pages as the recording writes them: `0-4 9-10`, the end not included.
fn text(mut runs: Vec<(u64, u64)>) -> String {
    runs.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (first, end) in runs {
        match joined.last_mut() {
            Some(last) if last.1 == first => last.1 = end,
            _ => joined.push((first, end)),
        }
    }
    joined.iter().map(|(first, end)| format!("{first}-{end}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_recorded_case_is_repeated_page_by_page() {
    let rules = ReadAheadRules::of(Kernel::new(6, 18), true);
    let (mut cases, mut wrong) = (0, Vec::new());
    let mut current: Option<(String, TestFile)> = None;
    for line in RECORDED.lines().skip(1) {
        let [case, kib, access, offset, length, pages] =
            line.split(',').collect::<Vec<_>>().try_into().unwrap();
        let name = format!("{case},{kib}");
        if current.as_ref().is_none_or(|(running, _)| *running != name) {
            assert_eq!(access, "0", "cases begin at their first access");
            cases += 1;
            let file = TestFile::new(rules, kib.parse::<u64>().unwrap() / 4);
            current = Some((name.clone(), file));
        }
        let file = &mut current.as_mut().unwrap().1;
        let found = text(file.read(offset.parse().unwrap(), length.parse().unwrap()));
        if found != pages {
            wrong.push(format!("{name} access {access}: {found:?}, recorded {pages:?}"));
        }
    }
    assert_eq!(cases, 76);
    assert!(wrong.is_empty(), "{} wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}

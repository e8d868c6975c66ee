//! Recorded pages of the kernel's ring buffer give the events that the kernel printed itself:
//! `tests/golden/trace/README.md` says where they come from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use iolab_trace::event::{Action, Event};
use iolab_trace::format;
use iolab_trace::ring::{
    Description, LostBefore, Merger, Page, PageLayout, RecordDecoder, check_event_header,
};
use iolab_trace::source::Input;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/trace").join(name)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// `RecordDecoder` and layout of a recorded kernel.
fn kernel(folder: &Path) -> (RecordDecoder, PageLayout) {
    let events = folder.join("events");
    check_event_header(&text(&events.join("header_event"))).unwrap();
    let mut decoder = RecordDecoder::default();
    for entry in std::fs::read_dir(events.join("block")).unwrap() {
        let path = entry.unwrap().path().join("format");
        decoder.learn(&Description::parse("format", &text(&path)).unwrap()).unwrap();
    }
    (decoder, PageLayout::parse(&text(&events.join("header_page"))).unwrap())
}

/// Events without notes, in order of time, and what each CPU's pages say of losses.
fn decoded(formats: &str, pages: &str) -> (Vec<Event>, BTreeMap<u32, Vec<LostBefore>>) {
    let (mut decoder, layout) = kernel(&folder(formats));
    let mut merger = Merger::default();
    let mut lost = BTreeMap::<u32, Vec<LostBefore>>::new();
    for cpu in [0, 1] {
        let bytes = std::fs::read(folder(pages).join(format!("cpu{cpu}.raw"))).unwrap();
        for bytes in bytes.chunks(layout.page_bytes) {
            let mut page = Page::new(bytes, &layout);
            lost.entry(cpu).or_default().push(page.lost());
            let (mut event, mut note) = (Event::default(), None);
            for record in page.by_ref() {
                let place = (record.time_ns, cpu);
                if decoder.read(record.content, place, &mut event, &mut note) {
                    merger.push(event.clone());
                }
            }
            assert!(!page.is_damaged());
        }
    }
    (merger.take_all().collect(), lost)
}

/// The same from the kernel's own text.
fn printed(name: &str) -> Vec<Event> {
    let path = folder(name).join("trace.txt");
    let content = std::fs::File::open(&path).unwrap();
    let mut source = format::open(vec![Input::new("trace.txt", content)]).unwrap().1;
    let (mut event, mut found) = (Event::default(), Vec::new());
    while source.next(&mut event).unwrap() {
        let is_plug = matches!(event.action, Action::Plugged | Action::Unplugged);
        if !event.action.is_note() && !is_plug {
            found.push(event.clone());
        }
    }
    found
}

/// Text has microseconds, and events of one of them in any order.
fn comparable(mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        event.time_ns = (event.time_ns + 500) / 1000 * 1000;
        event.sequence = 0;
    }
    events.sort_by_key(|it| (it.time_ns, it.cpu, it.action.code(), it.sector, it.pid));
    events
}

const RENAME: &str = "name: task_rename\nID: 9\nformat:\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:char newcomm[16];\toffset:8;\tsize:16;\tsigned:0;\n";

#[test]
fn a_task_that_gets_a_name_is_a_note() {
    let mut decoder = RecordDecoder::default();
    assert!(decoder.learn_rename(&Description::parse("format", RENAME).unwrap()));
    let mut content = vec![0_u8; 24];
    content[..2].copy_from_slice(&9_u16.to_ne_bytes());
    content[4..8].copy_from_slice(&77_u32.to_ne_bytes());
    content[8..10].copy_from_slice(b"dd");
    let (mut event, mut note) = (Event::default(), None);
    assert!(decoder.read(&content, (5, 1), &mut event, &mut note));
    assert_eq!((event.action, event.pid, event.name()), (Action::NoteProcess, 77, &b"dd"[..]));
    assert_eq!((event.time_ns, event.cpu, note), (5, 1, None));
    assert!(
        !decoder.is_first_of(1, 77) && decoder.is_first_of(1, 78) && !decoder.is_first_of(1, 78)
    );
}

#[test]
fn pages_of_two_kernels_give_what_the_kernel_printed() {
    for name in ["tracefs", "tracefs-6.1"] {
        let (events, lost) = decoded(name, name);
        let (mine, theirs) = (comparable(events), comparable(printed(name)));
        assert!(mine.len() > 100, "{name}: {}", mine.len());
        assert_eq!(mine.len(), theirs.len(), "{name}");
        for (mine, theirs) in mine.iter().zip(&theirs) {
            assert_eq!(mine, theirs, "{name}");
        }
        assert!(lost.values().flatten().all(|it| *it == LostBefore::None), "{name}");
    }
}

/// `cpuN.stats` say 60 and 582; only the first page says so itself.
#[test]
fn lost_events_are_seen_and_the_others_survive() {
    let (events, lost) = decoded("tracefs", "tracefs-lost");
    let count = |action| events.iter().filter(|event| event.action == action).count();
    assert_eq!((count(Action::Issued), count(Action::Completed)), (317, 241));
    assert!(lost[&0].contains(&LostBefore::Count(60)), "{lost:?}");
    assert!(lost[&1].contains(&LostBefore::Some), "{lost:?}");
}

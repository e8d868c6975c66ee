//! Decode after encode is the identity; damaged, cut and foreign files are told with their place,
//! and what comes before can be used.

use std::io::Cursor;

use iolab_trace::convert::{Output, convert};
use iolab_trace::error::Place;
use iolab_trace::event::{Action, Categories, Device};
use iolab_trace::source::Facts;
use iolab_trace::{Error, Event, Input, Source, format, native};
use proptest::prelude::*;

fn input(content: impl Into<Vec<u8>>) -> Input {
    Input::new("trace", Cursor::new(content.into()))
}

fn open(content: impl Into<Vec<u8>>) -> Result<Box<dyn Source>, Error> {
    format::open(vec![input(content)]).map(|(_, source)| source)
}

fn all(source: &mut dyn Source) -> Vec<Event> {
    let (mut events, mut event) = (Vec::new(), Event::default());
    while source.next(&mut event).unwrap() {
        events.push(event.clone());
    }
    events
}

fn encoded(source: &mut dyn Source, output: Output) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut sink = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    convert(source, output, &Facts::new(), &mut sink).unwrap();
    bytes
}

/// Events that are there already.
struct Given(std::vec::IntoIter<Event>);

impl Source for Given {
    fn next(&mut self, event: &mut Event) -> Result<bool, Error> {
        self.0.next().map_or(Ok(false), |next| {
            *event = next;
            Ok(true)
        })
    }

    fn caveats(&self) -> &[iolab_trace::error::Caveat] {
        &[]
    }
}

fn any_event() -> impl Strategy<Value = Event> {
    let sectors = prop_oneof![0_u64..64, any::<u64>()];
    let small = prop_oneof![0_u32..4, any::<u32>()];
    let numbers =
        (any::<u64>(), sectors, small.clone(), small.clone(), small.clone(), small.clone());
    let action = prop::sample::select(Action::ALL);
    let payload = prop::collection::vec(any::<u8>(), 0..24);
    let rest =
        (action, any::<u16>(), any::<u16>(), any::<u16>(), any::<Option<u64>>(), payload, small);
    (numbers, rest).prop_map(|((time_ns, sector, bytes, pid, cpu, sequence), rest)| {
        let (action, categories, error, priority, cgroup, payload, device) = rest;
        let categories = Categories(categories);
        let device = Device(device);
        Event {
            time_ns,
            sector,
            bytes,
            action,
            categories,
            pid,
            device,
            cpu,
            error,
            priority,
            sequence,
            cgroup,
            payload,
        }
    })
}

proptest! {
    /// Our own format and CSV lose nothing.
    #[test]
    fn decode_after_encode_is_the_identity(events in prop::collection::vec(any_event(), 1..200)) {
        for output in [Output::Iolab, Output::Csv] {
            let bytes = encoded(&mut Given(events.clone().into_iter()), output);
            let mut source = open(bytes).unwrap();
            prop_assert_eq!(&all(&mut *source), &events, "{}", output);
            prop_assert!(source.caveats().is_empty(), "{:?}", source.caveats());
        }
    }

    /// blktrace has no place for priorities and joined requests, notes come first, and names have
    /// the kernel's 16 bytes: btt read on into the next record where the zero was missing.
    #[test]
    fn records_of_blktrace_are_read_back(events in prop::collection::vec(any_event(), 1..100)) {
        let mut expected: Vec<Event> = events
            .into_iter()
            .filter(|event| !matches!(event.action, Action::Joined | Action::Point))
            .map(|event| {
                let notify = Categories::NOTIFY;
                let is_note = event.action.is_note();
                let own = Categories(event.categories.0 & !notify.0);
                let categories = if is_note { own.with(notify) } else { own };
                let mut payload = event.payload;
                if event.action == Action::NoteProcess && payload.len() < 16 {
                    payload.resize(16, 0);
                }
                Event { priority: 0, categories, payload, ..event }
            })
            .collect();
        let bytes = encoded(&mut Given(expected.clone().into_iter()), Output::Blktrace);
        expected.sort_by_key(|e| !matches!(e.action, Action::NoteProcess | Action::NoteTime));
        if !bytes.is_empty() {
            prop_assert_eq!(all(&mut *open(bytes).unwrap()), expected);
        }
    }

    /// A byte-swapped file says the same.
    #[test]
    fn foreign_byte_order_says_the_same(events in prop::collection::vec(any_event(), 1..50)) {
        let native = encoded(&mut Given(events.into_iter()), Output::Blktrace);
        let mut foreign = Vec::new();
        let mut rest = native.as_slice();
        while let Some((head, behind)) = rest.split_first_chunk::<48>() {
            let mut head = *head;
            let code = u32::from_le_bytes(head[28..32].try_into().unwrap());
            let length = usize::from(u16::from_le_bytes([head[46], head[47]]));
            for (at, size) in [(0, 4), (4, 4), (8, 8), (16, 8), (24, 4), (28, 4), (32, 4), (36, 4),
                (40, 4), (44, 2), (46, 2)] {
                head[at..at + size].reverse();
            }
            let mut payload = behind[..length].to_vec();
            let has_cgroup = code & 0x100 != 0;
            if has_cgroup {
                payload[..8].reverse();
            }
            if code & 0x400_ffff & !0x100 == 0x400_0001 {
                let words = &mut payload[if has_cgroup { 8 } else { 0 }..];
                words.chunks_exact_mut(4).for_each(<[u8]>::reverse);
            }
            foreign.extend_from_slice(&head);
            foreign.extend_from_slice(&payload);
            rest = &behind[length..];
        }
        if !native.is_empty() {
            prop_assert_eq!(all(&mut *open(foreign).unwrap()), all(&mut *open(native).unwrap()));
        }
    }

    /// No bytes make a reader panic, hang, or give events without end.
    #[test]
    fn any_bytes_are_refused_or_read(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        head in prop::sample::select(vec![
            &b""[..], b"\x07tae", b"eat\x07", b"fio version 3 iolog\n", b"fio version 2 iolog\n",
            b"ts_ns,event,device,payload\n", b"# tracer: nop\n", b"1,h,0,Read,0,512,1\n",
            b"0.5 0 8 8 1\n", b"\x50\x2a\x4d\x18\x0e\0\0\0IOLTRACE\x01\0\0\0{}",
        ]),
    ) {
        if let Ok(mut source) = open([head, &bytes].concat()) {
            prop_assert!(all(&mut *source).len() <= bytes.len() + 8);
        }
    }

    /// A file of which a byte is wrong is refused or read, and never takes down the reader.
    #[test]
    fn a_wrong_byte_is_survived(
        events in prop::collection::vec(any_event(), 1..60),
        place in any::<prop::sample::Index>(),
        flip in 1_u8..,
        output in prop::sample::select(vec![Output::Iolab, Output::Blktrace, Output::Csv]),
    ) {
        let mut bytes = encoded(&mut Given(events.into_iter()), output);
        if !bytes.is_empty() {
            let at = place.index(bytes.len());
            bytes[at] ^= flip;
            if let Ok(mut source) = open(bytes) {
                all(&mut *source);
            }
        }
    }
}

/// Events of a plain load: 5 events per transfer.
fn load(transfers: u64) -> Vec<Event> {
    let mut events = Vec::new();
    for number in 0..transfers {
        let steps =
            [Action::Queued, Action::Got, Action::Inserted, Action::Issued, Action::Completed];
        for (step, action) in steps.into_iter().enumerate() {
            let categories = Categories::WRITE.with(Categories::of_action(action));
            let time_ns = 10_000 * number + 900 * step as u64;
            let sector = number.wrapping_mul(0x9e37_79b9) % (1 << 24) * 8;
            let sequence = (number * 5) as u32 + step as u32 + 1;
            let (bytes, pid, device) = (4096, 77, Device::new(8, 0));
            events.push(Event {
                time_ns,
                sector,
                bytes,
                action,
                categories,
                pid,
                device,
                sequence,
                ..Event::default()
            });
        }
    }
    events
}

#[test]
fn a_file_that_was_cut_off_is_read_up_to_its_last_block() {
    let events = load(20_000);
    let bytes = encoded(&mut Given(events.clone().into_iter()), Output::Iolab);
    let mut seen = std::collections::BTreeSet::new();
    for cut in (0..bytes.len()).step_by(313).chain([bytes.len() - 1]) {
        let Ok(mut source) = open(&bytes[..cut]) else {
            assert!(cut < 40, "{cut}");
            continue;
        };
        let read = all(&mut *source);
        assert_eq!(read, events[..read.len()]);
        assert!(!source.caveats().is_empty() && !source.caveats()[0].is_damage, "{cut}");
        seen.insert(read.len());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 32768, 65536, 98304, 100_000]);
}

#[test]
fn a_damaged_block_is_left_out_and_the_others_are_read() {
    let events = load(20_000);
    let mut bytes = encoded(&mut Given(events.clone().into_iter()), Output::Iolab);
    let index = native::Index::read(&mut Cursor::new(&bytes)).unwrap().unwrap();
    assert_eq!(index.events(), 100_000);
    let place = index.blocks[1].offset as usize + 48 + 100;
    bytes[place] ^= 0x55;
    let mut source = open(bytes).unwrap();
    let read = all(&mut *source);
    assert_eq!(read.len(), 100_000 - 32_768);
    assert_eq!(read[..32_768], events[..32_768]);
    assert_eq!(read[32_768..], events[65_536..]);
    assert!(source.caveats()[0].is_damage);
    assert_eq!(source.caveats()[0].what, "a block of 32768 events is damaged and left out");
}

/// Symptom: 600,000 damaged blocks took 344 MB and as many lines, 700 facts of 1 MiB 744 MB.
#[test]
fn of_very_many_faults_and_facts_the_first_are_kept() {
    let frame = |magic: u32, content: &[u8]| {
        let mut bytes = magic.to_le_bytes().to_vec();
        bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
        bytes.extend_from_slice(content);
        bytes
    };
    let mut bytes = encoded(&mut Given(load(3).into_iter()), Output::Iolab);
    for number in 0..40 {
        let facts = format!("{{\"{number}\": \"{}\"}}", "x".repeat(1 << 20));
        bytes.extend(frame(0x184D_2A53, facts.as_bytes()));
        bytes.extend(frame(0x184D_2A53, b"no facts"));
    }
    let mut source = open(bytes).unwrap();
    assert_eq!(all(&mut *source).len(), 15);
    let facts: usize = source.facts().values().map(String::len).sum();
    assert!((10 << 20..=17 << 20).contains(&facts), "{facts}");
    assert!((10..=20).contains(&source.caveats().len()), "{}", source.caveats().len());
    assert!(source.caveats().iter().any(|caveat| caveat.what.contains("more faults")));
}

#[test]
fn a_name_of_a_device_is_no_command_to_a_terminal() {
    let facts = Facts::from([("device 7,0".to_owned(), "a\x1b[31m\nb".to_owned())]);
    let mut bytes = Vec::new();
    let mut writer = native::Writer::new(&facts, &mut bytes).unwrap();
    for event in &load(1) {
        writer.push(event, &mut bytes).unwrap();
    }
    writer.finish(&mut bytes).unwrap();
    let source = open(bytes).unwrap();
    let name = &source.devices()[0].1;
    assert!(name.chars().all(|letter| !letter.is_control()), "{name:?}");
}

#[test]
fn a_file_is_read_from_a_block_on() {
    let events = load(20_000);
    let bytes = encoded(&mut Given(events.clone().into_iter()), Output::Iolab);
    let index = native::Index::read(&mut Cursor::new(&bytes)).unwrap().unwrap();
    let offset = index.offset_of(events[70_000].time_ns).unwrap();
    let window = iolab_trace::source::Window::new(input(&bytes[offset as usize..]));
    let read = all(&mut native::Reader::at_block(window).unwrap());
    assert_eq!(read, events[65_536..]);
    assert_eq!(native::Index::read(&mut Cursor::new(&bytes[..bytes.len() - 1])).unwrap(), None);
}

/// Every event of this load has a random sector and changing times; a recorded trace has less to
/// tell.
#[test]
fn our_own_format_needs_less_than_eight_bytes_per_event() {
    let events = load(40_000);
    let bytes = encoded(&mut Given(events.clone().into_iter()), Output::Iolab);
    assert!(bytes.len() < 8 * events.len(), "{} bytes, {} events", bytes.len(), events.len());
}

#[test]
fn what_is_no_trace_is_refused_with_what_it_begins_with() {
    let error = open("hello\nworld\n").err().unwrap().to_string();
    assert!(
        error.starts_with(
            "trace is no block trace in a known format: it begins with `hello?world?`"
        ),
        "{error}"
    );
    assert!(
        error.ends_with("formats are iolab, blktrace, iolog, csv, msr, disksim, ftrace, blkparse")
    );
    let error = open("").err().unwrap().to_string();
    assert!(error.contains("it is empty"), "{error}");
}

#[test]
fn a_blktrace_file_that_is_cut_or_of_another_version_is_told_with_its_offset() {
    let whole = encoded(&mut Given(load(3).into_iter()), Output::Blktrace);
    let mut source = open(&whole[..48 * 7 + 20]).unwrap();
    assert_eq!(all(&mut *source).len(), 7);
    let caveat = &source.caveats()[0];
    assert_eq!((caveat.place, caveat.is_damage), (Place::Offset(336), false));
    assert_eq!(caveat.what, "the last record is cut off after 20 bytes and is not used");

    let mut damaged = whole.clone();
    damaged[48 * 4] = 0;
    let mut source = open(damaged).unwrap();
    assert_eq!(all(&mut *source).len(), 4);
    assert!(source.caveats()[0].is_damage);
    assert_eq!(source.caveats()[0].place, Place::Offset(192));

    let mut newer = whole;
    newer[0] = 8;
    let error = open(newer).err().unwrap().to_string();
    assert_eq!(error, "trace, offset 0: a record of version 8, only 7 is known");
}

#[test]
fn the_text_of_the_kernel_is_read() {
    let text = "# tracer: nop\n\
        \x20             dd-22158   [001] .....  1550.177421: block_bio_queue: 7,2 RS 0 + 8 [dd]\n\
        \x20     a b-c-7 (    7) [001] .....  1550.177429: block_getrq: 7,2 RS 0 + 8 [a b-c]\n\
        \x20             dd-22158   [001] .....  1550.177432: block_plug: [dd]\n\
        \x20             dd-22158   [001] .....  1550.177434: block_unplug: [dd] 3\n\
        \x20             dd-22158   [001] ...1.  1550.177436: block_rq_issue: 7,2 RS 4096 () 0 + 8 \
         be,0,4 [dd]\n\
        CPU:0 [LOST 60 EVENTS]\n\
        \x20    ksoftirqd/1-22      [001] ..s..  1550.177472: block_rq_complete: 7,2 RS () 0 + 8 \
         be,0,4 [-5]\n\
        perf 99 [002]  1551.000001:   block:block_bio_remap: 8,0 W 2112 + 8 <- (8,17) 64\n\
        \x20             dd-22158   [001] .....  1551.2: block_rq_issue: nonsense\n";
    let mut source = open(text).unwrap();
    let events: Vec<Event> =
        all(&mut *source).into_iter().filter(|e| e.action != Action::NoteProcess).collect();
    let letters: Vec<&str> = events.iter().map(|event| event.action.name()).collect();
    assert_eq!(letters, ["Q", "G", "P", "U", "D", "C", "A"]);
    assert_eq!((events[1].pid, events[1].cpu), (7, 1));
    assert_eq!((events[3].device, events[3].number()), (Device::new(7, 2), 3));
    assert_eq!((events[4].priority, events[4].bytes), (0x4004, 4096));
    assert_eq!(events[5].error, 5_u16.wrapping_neg());
    assert_eq!(events[6].remap().unwrap().sector, 64);
    assert_eq!(events[0].time_ns, 1_550_177_421_000);
    let caveats: Vec<String> = source.caveats().iter().map(ToString::to_string).collect();
    assert!(caveats[0].starts_with("trace, line 10: 1 line is no event"), "{caveats:?}");
    assert!(caveats[1].contains("the kernel lost 60 events"), "{caveats:?}");
}

#[test]
fn rows_of_the_msr_traces_become_beginnings_and_ends_in_order_of_time() {
    let text = "128166372003061629,hm,1,Read,383496192,32768,1331\n\
                128166372003062629,hm,1,Write,4096,512,100\n\
                128166372003063629,hm,2,Read,0,512,100\n";
    let mut source = open(text).unwrap();
    let events = all(&mut *source);
    let seen: Vec<(&str, u64)> =
        events.iter().map(|event| (event.action.name(), event.sector)).collect();
    assert_eq!(seen, [("Q", 749_016), ("Q", 8), ("C", 8), ("C", 749_016), ("Q", 0), ("C", 0)],);
    assert_eq!(events[2].time_ns - events[1].time_ns, 10_000);
    let names: Vec<String> = source.devices().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["hm.1", "hm.2"]);
    let mut broken = open(format!("{text}oh\n1,h,0,Read,0,1,1\n")).unwrap();
    assert_eq!(all(&mut *broken).len(), 6);
    let caveat = &broken.caveats()[0];
    assert_eq!((caveat.place, caveat.is_damage), (Place::Line(4), true));
}

#[test]
fn iologs_of_fio_are_read_and_written() {
    let text = "fio version 3 iolog\n0 /dev/sdb add\n1 /dev/sdb open\n5 /dev/sdb read 8192 4096\n\
                9 /dev/sdb write 0 512\n12 /dev/sdb datasync 0 0\n15 /dev/sdb trim 4096 4096\n\
                20 /dev/sdb close\n";
    let events = all(&mut *open(text).unwrap());
    let times: Vec<(u64, u64, u32)> =
        events.iter().map(|event| (event.time_ns, event.sector, event.bytes)).collect();
    assert_eq!(times, [(5000, 16, 4096), (9000, 0, 512), (12000, 0, 0), (15000, 8, 4096)]);
    let written = encoded(&mut *open(text).unwrap(), Output::Iolog);
    let again = all(&mut *open(written.clone()).unwrap());
    let without_begin: Vec<(u64, u64, u32)> =
        again.iter().map(|event| (event.time_ns + 5000, event.sector, event.bytes)).collect();
    assert_eq!(without_begin, times);
    assert!(String::from_utf8(written).unwrap().contains("\n0 /dev/sdb read 8192 4096\n"));
    let old = "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 250 0\nf write 0 4096\n";
    let events = all(&mut *open(old).unwrap());
    assert_eq!(events[1].time_ns - events[0].time_ns, 250_000);
}

#[test]
fn a_trace_of_disksim_is_read() {
    let events = all(&mut *open("0.5 0 100 8 1\n1.25 3 200 16 0\n").unwrap());
    assert_eq!((events[0].time_ns, events[0].sector, events[0].is_write()), (500_000, 100, false));
    let second = &events[1];
    assert_eq!((second.time_ns, second.bytes, second.is_write()), (1_250_000, 8192, true));
    assert_eq!(second.device.to_string(), "0,3");
}

#[test]
fn blkparse_text_gives_the_events_back() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/trace");
    for name in ["syn", "nb", "tracefsbin"] {
        let text = std::fs::read_to_string(format!("{folder}/{name}.blkparse.txt")).unwrap();
        let lines: Vec<&str> = text.lines().take_while(|line| !line.starts_with("CPU0")).collect();
        let mut source = open(text.clone()).unwrap();
        let written = encoded(&mut *source, Output::Blkparse);
        assert_eq!(
            String::from_utf8(written).unwrap().lines().collect::<Vec<_>>(),
            lines,
            "{name}"
        );
        assert!(source.caveats().is_empty(), "{:?}", source.caveats());
    }
}

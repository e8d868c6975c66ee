//! Events of a few bios as the block layer's tracer would see them.

use iolab_model::{Ns, Sector, TraceEvent};

use super::{BlockQueue, QueueParameters};
use crate::api::bio::{Bio, BioId, Flags, Operation, Submitter};
use crate::api::layer::Layer;
use crate::device::fixed::Fixed;
use crate::sched::SchedulerKind;

fn bio(id: u32, sector: u64, sectors: u32) -> Bio {
    Bio {
        id: BioId(id),
        operation: Operation::Read,
        sector: Sector(sector),
        sectors,
        flags: Flags::NONE,
        submitter: Submitter::default(),
        segments: 0,
    }
}

/// Actions and extents, in order.
fn observed(parameters: &QueueParameters, bios: &[Bio]) -> String {
    let device = Fixed::new(Ns::from_us(100), 2, true);
    let mut queue = BlockQueue::new(Ns(0), parameters, Box::new(device)).unwrap();
    queue.record_events(&mut 0);
    for bio in bios {
        queue.submit(Ns(0), bio);
    }
    let mut done = Vec::new();
    while queue.next_event() != Ns::MAX {
        let now = queue.next_event();
        queue.advance(now, &mut done);
    }
    assert_eq!(done.len(), bios.len());
    let text = |e: &TraceEvent| format!("{}{}+{}", e.action, e.sector.0, e.sectors);
    let mut events = Vec::new();
    queue.take_events(&mut events);
    events.iter().map(text).collect::<Vec<_>>().join(" ")
}

fn parameters() -> QueueParameters {
    QueueParameters {
        scheduler: SchedulerKind::MqDeadline,
        look_ahead: 0,
        ..QueueParameters::default()
    }
}

#[test]
fn a_merged_bio_is_seen_as_one() {
    assert_eq!(
        observed(&parameters(), &[bio(0, 8, 8), bio(1, 16, 8)]),
        "Q8+8 G8+8 P8+8 U8+8 I8+8 Q16+8 M16+8 D8+16 C8+16"
    );
}

#[test]
fn a_long_bio_is_split() {
    let parameters = QueueParameters { max_sectors_kb: Some(4), nomerges: 2, ..parameters() };
    assert_eq!(
        observed(&parameters, &[bio(0, 0, 16)]),
        "Q0+16 X0+8 G0+8 P0+8 G8+8 U0+8 I0+8 I8+8 D0+8 D8+8 C0+8 C8+8"
    );
    let thrice = observed(&parameters, &[bio(0, 0, 20)]);
    let cuts: Vec<&str> = thrice.split(' ').filter(|event| event.starts_with('X')).collect();
    assert_eq!(cuts, ["X0+8", "X8+8"], "one for each cut, with the piece that is cut off");
}

#[test]
fn a_refused_request_comes_back_first() {
    let parameters = QueueParameters { refuse_every: 2, nomerges: 2, ..parameters() };
    let bios = [bio(0, 0, 8), bio(1, 100, 8), bio(2, 50, 8)];
    let events = observed(&parameters, &bios);
    let order: Vec<&str> = events.split(' ').filter(|e| e.starts_with(['D', 'R'])).collect();
    assert_eq!(order, ["D0+8", "R50+8", "D50+8", "R100+8", "D100+8"]);
}

//! Software RAID: members are queues with schedulers of their own.

use iolab_model::Ns;
use proptest::prelude::*;

use super::super::testing::{bio, counter, parameters, run};
use super::super::{VolumeKind, VolumeParameters, build};
use super::array::random_bios;
use crate::api::bio::{Bio, Operation};
use crate::api::layer::Layer;
use crate::device::fixed::Fixed;
use crate::queue::{BlockQueue, QueueParameters};
use crate::sched::SchedulerKind;

fn queue(scheduler: SchedulerKind) -> Box<dyn Layer> {
    let device = Box::new(Fixed::new(Ns::from_us(100), 1, true));
    let parameters = QueueParameters { scheduler, ..QueueParameters::default() };
    Box::new(BlockQueue::new(Ns(0), &parameters, device).unwrap())
}

fn volume(scheduler: SchedulerKind, members: u16, parameters: &VolumeParameters) -> Box<dyn Layer> {
    build((0..members).map(|_| queue(scheduler)).collect(), parameters).unwrap()
}

/// The stripe's pieces of one instant are merged again by each member's own queue.
#[test]
fn a_member_queue_merges_what_several_bios_left_adjacent() {
    let mut striped = volume(SchedulerKind::Deadline, 2, &parameters(VolumeKind::Raid0, 8));
    // One long read for each member keeps the devices busy; then eight units, one bio each.
    let mut bios = vec![(Ns(0), bio(99, Operation::Read, 1 << 20, 16))];
    let unit = |id: u32| (Ns(1_000), bio(id, Operation::Read, u64::from(id) * 8, 8));
    bios.extend((0..8).map(unit));
    let done = run(&mut *striped, &bios);
    let instants: std::collections::BTreeSet<Ns> = done.values().copied().collect();
    assert_eq!(counter(&*striped, "member.0.reads"), 1 + 4);
    // Two commands per device: the first read, and all four units of this member as one.
    assert_eq!(instants.len(), 2, "{instants:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A hardware array: one queue with a scheduler in front of a volume over bare devices.
    #[test]
    fn any_scheduler_over_any_volume(
        seed in any::<u64>(),
        kind in prop::sample::select(VolumeKind::ALL),
        scheduler in prop::sample::select(SchedulerKind::ALL),
        (unit, gap) in (1_u64..40, 0_u64..60_000),
    ) {
        let device = |_| Box::new(Fixed::new(Ns::from_us(100), 2, true)) as Box<dyn Layer>;
        let array = build((0..4).map(device).collect(), &parameters(kind, unit)).unwrap();
        let options = QueueParameters { scheduler, ..QueueParameters::default() };
        let mut top = BlockQueue::new(Ns(0), &options, array).unwrap();
        let bios = random_bios(seed, 2_000, 60, Ns(gap));
        run(&mut top, &bios);
        let asked = |operation| -> u64 {
            let ours = bios.iter().filter(|(_, bio)| bio.operation == operation);
            ours.map(|(_, bio)| u64::from(bio.sectors) * 512).sum()
        };
        prop_assert_eq!(counter(top.below(), "read_bytes"), asked(Operation::Read));
        prop_assert_eq!(counter(top.below(), "write_bytes"), asked(Operation::Write));
    }

    /// Every bio is done exactly once whatever stands above and below, and the bytes add up.
    #[test]
    fn any_volume_over_any_scheduler(
        seed in any::<u64>(),
        kind in prop::sample::select(VolumeKind::ALL),
        scheduler in prop::sample::select(SchedulerKind::ALL),
        (unit, gap) in (1_u64..40, 0_u64..60_000),
    ) {
        let mut top = volume(scheduler, 4, &parameters(kind, unit));
        let bios: Vec<(Ns, Bio)> = random_bios(seed, 2_000, 60, Ns(gap));
        run(&mut *top, &bios);
        let sum = |name: &str| -> u64 {
            (0..4).map(|member| counter(&*top, &format!("member.{member}.{name}"))).sum()
        };
        let count = |name: &str| counter(&*top, name);
        let has_parity = matches!(kind, VolumeKind::Raid5 | VolumeKind::Raid6);
        if has_parity {
            let modified = count("modify_read_bytes");
            prop_assert_eq!(sum("read_bytes"), count("read_bytes") + modified);
            let written = count("write_bytes") + count("parity_bytes");
            prop_assert_eq!(sum("write_bytes"), written - count("absorbed_bytes"));
        } else if kind.is_of_pools() {
            // A pool moves whole sectors of its own, whatever is asked for.
            let moved = sum("read_bytes") + sum("write_bytes");
            let asked = count("read_bytes") + count("write_bytes");
            prop_assert_eq!(moved, asked + count("copy_bytes"));
        } else {
            prop_assert_eq!(sum("read_bytes"), count("read_bytes"));
            prop_assert_eq!(sum("write_bytes"), count("write_bytes") + count("copy_bytes"));
        }
    }
}

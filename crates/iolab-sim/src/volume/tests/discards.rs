//! Discards: who advertises them, and where they go.

use iolab_model::Ns;

use super::super::testing::{Log, bio, counter, parameters, recorded, run};
use super::super::{VolumeKind, VolumeParameters};
use crate::api::bio::Operation;
use crate::api::layer::Layer;

fn volume(kind: VolumeKind, without: Option<u16>) -> (Box<dyn Layer>, Log) {
    let unit = if kind == VolumeKind::Single { 0 } else { 8 };
    let parameters: VolumeParameters = parameters(kind, unit);
    let members = if kind == VolumeKind::Single { 1 } else { 4 };
    recorded(&parameters, members, 1 << 12, |member, info| {
        info.can_discard = Some(member) != without;
    })
}

fn has_parity(kind: VolumeKind) -> bool {
    matches!(kind, VolumeKind::Raid5 | VolumeKind::Raid6)
}

/// Linux md, `devices_handle_discard_safely` = 0: never with parity.
#[test]
fn parity_never_advertises_discards_and_others_do_if_all_members_can() {
    for &kind in VolumeKind::ALL {
        assert_eq!(volume(kind, None).0.info().can_discard, !has_parity(kind), "{kind}");
        assert!(!volume(kind, Some(0)).0.info().can_discard, "{kind}");
    }
}

#[test]
fn a_discard_reaches_the_members_that_hold_the_data_and_no_other_sector() {
    for (kind, copies) in [
        (VolumeKind::Single, 1),
        (VolumeKind::Raid0, 1),
        (VolumeKind::Raid1, 4),
        (VolumeKind::Raid10, 2),
        (VolumeKind::Raid5, 0),
        (VolumeKind::Raid6, 0),
    ] {
        let (mut volume, log) = volume(kind, None);
        run(&mut *volume, &[(Ns(0), bio(0, Operation::Discard, 4, 24))]);
        let log = log.borrow();
        let sent = log.iter().filter(|line| !line.is_end);
        let sectors: u32 = sent
            .map(|line| {
                assert_eq!(line.bio.operation, Operation::Discard, "{kind}");
                line.bio.sectors
            })
            .sum();
        assert_eq!(sectors, 24 * copies, "{kind}");
        if has_parity(kind) {
            assert_eq!(counter(&*volume, "discards_ignored"), 1, "{kind}");
        }
    }
}

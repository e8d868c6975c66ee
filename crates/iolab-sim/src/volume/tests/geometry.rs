//! Address arithmetic of RAID 5 and 6.

use iolab_model::Sector;
use proptest::prelude::*;

use super::super::ParityLayout;
use super::super::parity::geometry::{Geometry, Place, Role};

fn geometry(disks: u16, parities: u16, layout: ParityLayout) -> Geometry {
    Geometry { disks, parities, unit: 256, layout }
}

fn rows(geometry: Geometry, row: u64) -> Vec<u16> {
    (0..geometry.data()).map(|index| geometry.disk(row, Role::Data(index))).collect()
}

/// RAID-5: left-symmetric n = 5: parity of rows 0 to 5 on 4, 3, 2, 1, 0, 4; row 0 data on 0 to 3;
/// row 1 data units 4 to 7 on 4, 0, 1, 2.
#[test]
fn raid_5_left_symmetric() {
    let five = geometry(5, 1, ParityLayout::LeftSymmetric);
    let parity: Vec<u16> = (0..6).map(|row| five.disk(row, Role::P)).collect();
    assert_eq!(parity, [4, 3, 2, 1, 0, 4]);
    assert_eq!(rows(five, 0), [0, 1, 2, 3]);
    assert_eq!(rows(five, 1), [4, 0, 1, 2]);
    for (k, disk) in [(4, 4), (5, 0), (6, 1), (7, 2)] {
        let place = five.locate(Sector(k * 256));
        assert_eq!(five.disk(place.row, Role::Data(place.index)), disk);
    }
}

/// RAID-6, geometry: row 0 of six disks: P on 5, Q on 0, data on 1 to 4; row 1: P 4, Q 5, data
/// 0 to 3.
#[test]
fn raid_6_geometry() {
    let six = geometry(6, 2, ParityLayout::LeftSymmetric);
    assert_eq!(
        (six.disk(0, Role::P), six.disk(0, Role::Q), rows(six, 0)),
        (5, 0, vec![1, 2, 3, 4])
    );
    assert_eq!(
        (six.disk(1, Role::P), six.disk(1, Role::Q), rows(six, 1)),
        (4, 5, vec![0, 1, 2, 3])
    );
}

#[test]
fn the_other_rotations() {
    // Spec 5.1: right layouts p = s mod n; asymmetric data skip the parity disk.
    let right = geometry(5, 1, ParityLayout::RightAsymmetric);
    assert_eq!((right.disk(1, Role::P), rows(right, 1)), (1, vec![0, 2, 3, 4]));
    let right = geometry(5, 1, ParityLayout::RightSymmetric);
    assert_eq!((right.disk(1, Role::P), rows(right, 1)), (1, vec![2, 3, 4, 0]));
    let left = geometry(5, 1, ParityLayout::LeftAsymmetric);
    assert_eq!((left.disk(1, Role::P), rows(left, 1)), (3, vec![0, 1, 2, 4]));
}

/// Tell whether any `count` consecutive units are on different disks.
fn all_differ(geometry: Geometry, count: u64) -> bool {
    (0..60).all(|k| {
        let mut disks: Vec<u16> = (k..k + count)
            .map(|k| geometry.locate(Sector(k * 256)))
            .map(|place| geometry.disk(place.row, Role::Data(place.index)))
            .collect();
        disks.sort_unstable();
        disks.dedup();
        disks.len() as u64 == count
    })
}

#[test]
fn consecutive_units_hit_different_disks() {
    assert!(all_differ(geometry(5, 1, ParityLayout::LeftSymmetric), 5));
    assert!(!all_differ(geometry(5, 1, ParityLayout::LeftAsymmetric), 5));
    // RAID 6, n disks: a row's data are P + 2 to P - 1 (mod n), the next row has P - 1 for P and
    // so starts at P + 1: in sequence only disk P is skipped, and n - 1 units never meet; n may.
    for disks in 4..12 {
        let six = geometry(disks, 2, ParityLayout::LeftSymmetric);
        assert!(all_differ(six, u64::from(disks) - 1), "{disks} disks");
        assert!(!all_differ(six, u64::from(disks)), "{disks} disks");
    }
}

/// The specification (5.1) guarantees only n - 2 units on RAID 6; by its own mapping n - 1 differ,
/// as derived in the test above, so the statement "n - 1 may meet" fails.
#[test]
#[should_panic(expected = "n - 1 units meet")]
fn raid_6_guarantees_only_n_minus_2() {
    let six = geometry(6, 2, ParityLayout::LeftSymmetric);
    assert!(!all_differ(six, 5), "n - 1 units meet somewhere");
}

pub(super) fn layouts() -> impl Strategy<Value = ParityLayout> {
    prop::sample::select(ParityLayout::ALL)
}

proptest! {
    #[test]
    fn parity_mapping_is_a_bijection(
        parities in 1_u16..3,
        data in 2_u16..10,
        unit in 1_u32..100,
        layout in layouts(),
        address in 0_u64..1 << 40,
    ) {
        let geometry = Geometry { disks: data + parities, parities, unit, layout };
        let place = geometry.locate(Sector(address));
        prop_assert_eq!(geometry.address(place), Sector(address));
        prop_assert!(place.index < data && place.offset < unit);
        // In this row every disk has one role, every role one disk: data never meet parity.
        let roles: Vec<Role> = (0..geometry.disks).map(|d| geometry.role(place.row, d)).collect();
        for (disk, &role) in roles.iter().enumerate() {
            prop_assert_eq!(geometry.disk(place.row, role), disk as u16);
            if let Role::Data(index) = role {
                let place = Place { index, ..place };
                prop_assert_eq!(geometry.locate(geometry.address(place)), place);
            }
        }
        let count = |wanted: Role| roles.iter().filter(|&&role| role == wanted).count();
        prop_assert_eq!(count(Role::P), 1);
        prop_assert_eq!(count(Role::Q), usize::from(parities) - 1);
        // The part that is written to a disk stays inside this row's unit of that disk.
        let transfer = geometry.transfer(place.row, Role::Data(place.index), 0, u64::from(unit));
        prop_assert_eq!(transfer.sector.0, place.row * u64::from(unit));
    }
}

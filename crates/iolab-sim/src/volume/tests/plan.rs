//! Write plans: counts worked out by hand, and a twin that executes plans on block versions.

use proptest::prelude::*;

use super::super::parity::geometry::{Geometry, Role};
use super::super::parity::plan::{Method, RowPlan, RowWrite, Rule};
use super::super::ranges::Ranges;
use super::super::{ParityLayout, Tie, WriteRule};
use super::geometry::layouts;

const UNIT: u64 = 256;

const MD: Rule = Rule {
    write_rule: WriteRule::ReadCount,
    tie: Tie::Reconstruct,
    granularity: UNIT as u32,
    raid6_rmw: true,
};

fn array(data: u16, parities: u16) -> Geometry {
    let layout = ParityLayout::LeftSymmetric;
    Geometry { disks: data + parities, parities, unit: UNIT as u32, layout }
}

/// The first `sectors` of a row starting at `from`.
fn touch(data: u16, from: u64, sectors: u64) -> Vec<Ranges> {
    let mut touched = vec![Ranges::default(); usize::from(data)];
    for (unit, start) in touched.iter_mut().zip((0..).step_by(UNIT as usize)) {
        let end = start + UNIT;
        let (a, b) = (from.clamp(start, end), (from + sectors).clamp(start, end));
        unit.add(a - start, b - start);
    }
    touched
}

fn plan(geometry: Geometry, rule: Rule, touched: &[Ranges], lost: Option<Role>) -> RowPlan {
    let mut plan = RowPlan::default();
    plan.make(rule, RowWrite { geometry, row: 0, touched, lost });
    plan
}

fn counts(geometry: Geometry, rule: Rule, units: u64) -> (usize, usize) {
    plan(geometry, rule, &touch(geometry.data(), 0, units * UNIT), None).counts()
}

/// RAID-1: RAID 5, 4+1, aligned writes of 1 to 4 units: (2,2), (2,3), (1,4), (0,5).
#[test]
fn raid_1_reads_and_writes_by_width() {
    let found: Vec<(usize, usize)> = (1..=4).map(|w| counts(array(4, 1), MD, w)).collect();
    assert_eq!(found, [(2, 2), (2, 3), (1, 4), (0, 5)]);
    // Read-modify and reconstruct reads of the first three: 2 vs 3, 3 vs 2, 4 vs 1. A lost unit
    // forces each way: an untouched one read-modify, a touched one (itself not read) reconstruct.
    for (w, rmw, rcw) in [(1, 2, 3), (2, 3, 2), (3, 4, 1)] {
        let touched = touch(4, 0, w * UNIT);
        let modify = plan(array(4, 1), MD, &touched, Some(Role::Data(3)));
        assert_eq!((modify.method, modify.reads.len()), (Some(Method::ReadModify), rmw));
        let rebuild = plan(array(4, 1), MD, &touched, Some(Role::Data(0)));
        assert_eq!((rebuild.method, rebuild.reads.len()), (Some(Method::Reconstruct), rcw));
    }
}

/// RAID-2: RAID 5, 3+1, one unit: both ways read 2, tie to reconstruct; 2 reads, 2 writes anyhow.
#[test]
fn raid_2_tie() {
    let one = touch(3, 0, UNIT);
    for (tie, method) in
        [(Tie::Reconstruct, Method::Reconstruct), (Tie::ReadModify, Method::ReadModify)]
    {
        let plan = plan(array(3, 1), Rule { tie, ..MD }, &one, None);
        assert_eq!((plan.counts(), plan.method), ((2, 2), Some(method)));
    }
}

/// RAID-6, writes: 4+2, one unit: both 3 reads, tie to reconstruct (the three other data units),
/// 3 writes; full stripe 6 writes, no reads.
#[test]
fn raid_6_writes() {
    let six = array(4, 2);
    let one = plan(six, MD, &touch(4, 0, UNIT), None);
    assert_eq!((one.counts(), one.method), ((3, 3), Some(Method::Reconstruct)));
    let read: Vec<u16> = one.reads.as_slice().iter().map(|read| read.member).collect();
    assert_eq!(read, [2, 3, 4]);
    let modify = plan(six, Rule { tie: Tie::ReadModify, ..MD }, &touch(4, 0, UNIT), None);
    assert_eq!((modify.counts(), modify.method), ((3, 3), Some(Method::ReadModify)));
    let full = plan(six, MD, &touch(4, 0, 4 * UNIT), None);
    assert_eq!((full.counts(), full.method), ((0, 6), Some(Method::FullStripe)));
}

#[test]
fn the_half_stripe_rule_reads_as_much_on_raid_5_but_not_on_odd_raid_6() {
    let half = Rule { write_rule: WriteRule::HalfStripe, ..MD };
    for data in 2..=16 {
        for w in 1..=u64::from(data) {
            assert_eq!(counts(array(data, 1), MD, w), counts(array(data, 1), half, w));
        }
    }
    let differs = |data: u16| {
        (1..=u64::from(data))
            .any(|w| counts(array(data, 2), MD, w) != counts(array(data, 2), half, w))
    };
    for data in 3..=16 {
        assert_eq!(differs(data), data % 2 == 1, "{data} data units");
    }
}

#[test]
fn before_read_modify_came_to_raid_6() {
    let old = Rule { raid6_rmw: false, ..MD };
    assert_eq!(counts(array(8, 2), MD, 1), (3, 3));
    assert_eq!(counts(array(8, 2), old, 1), (7, 3));
    // A lost unit that stays has to be computed from everything else: 7 data units and P.
    let lost = plan(array(8, 2), old, &touch(8, 0, UNIT), Some(Role::Data(5)));
    assert_eq!((lost.counts(), lost.method), ((8, 3), Some(Method::Recover)));
}

#[test]
fn a_small_write_per_unit_and_per_column() {
    // 4 KiB in a unit of 128 KiB on 3+1: by units reconstruct would read 3, so read-modify-write;
    // by columns the column is full and both read 2: reconstruct, from two disks.
    let small = touch(3, 16, 8);
    let by_unit = plan(array(3, 1), MD, &small, None);
    assert_eq!((by_unit.counts(), by_unit.method), ((2, 2), Some(Method::ReadModify)));
    let by_column = plan(array(3, 1), Rule { granularity: 8, ..MD }, &small, None);
    assert_eq!((by_column.counts(), by_column.method), ((2, 2), Some(Method::Reconstruct)));
    assert_eq!(by_column.reads.sectors() + by_column.writes.sectors(), 4 * 8);
}

#[test]
fn degraded_writes() {
    let geometry = array(4, 1);
    let one = touch(4, 0, UNIT);
    // To the lost unit: read the three others, write parity only.
    let lost = plan(geometry, MD, &one, Some(Role::Data(0)));
    assert_eq!((lost.counts(), lost.lost_sectors), ((3, 1), UNIT));
    // Parity is lost: data only.
    let bare = plan(geometry, MD, &one, Some(Role::P));
    assert_eq!((bare.counts(), bare.method), ((0, 1), Some(Method::DataOnly)));
    // RAID 6 with Q lost is RAID 5.
    let no_q = plan(array(4, 2), MD, &one, Some(Role::Q));
    assert_eq!(no_q.counts(), (2, 2));
}

/// Multiplication in GF(2^8) with the polynomial 0x11d, the field of RAID 6 (H. P. Anvin).
fn gf_multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b > 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { 0x1d };
        b >>= 1;
    }
    product
}

/// Weight of data unit `index` in a parity: 1 in P, 2^index in Q.
fn weight(parity: Role, index: u16) -> u8 {
    match parity {
        Role::Q => (0..index).fold(1, |power, _| gf_multiply(power, 2)),
        _ => 1,
    }
}

/// One row as stored on the disks: a version (byte) per role and offset.
pub(super) struct Twin {
    geometry: Geometry,
    row: u64,
    /// By disk, then offset; the lost disk holds rubbish.
    disks: Vec<Vec<u8>>,
    lost: Option<u16>,
}

impl Twin {
    pub(super) fn new(geometry: Geometry, row: u64, lost: Option<u16>) -> Self {
        let disks = vec![vec![0; geometry.unit as usize]; usize::from(geometry.disks)];
        Self { geometry, row, disks, lost }
    }

    fn disk(&self, role: Role) -> usize {
        usize::from(self.geometry.disk(self.row, role))
    }

    fn parities(&self) -> impl Iterator<Item = Role> + use<> {
        [Role::P, Role::Q].into_iter().take(usize::from(self.geometry.parities))
    }

    /// Carries out one row operation with only what it has read; `new` gives the new version of a
    /// data unit's sector. Panics if the reads do not suffice.
    pub(super) fn execute(
        &mut self,
        reads: &[(u16, u64, u64)],
        writes: &[(u16, u64, u64)],
        new: &dyn Fn(u16, u64) -> Option<u8>,
    ) {
        let data = self.geometry.data();
        let mut stored = Vec::new();
        for offset in 0..u64::from(self.geometry.unit) {
            let is_in = |list: &[(u16, u64, u64)], disk: usize| {
                list.iter().any(|&(d, a, b)| usize::from(d) == disk && (a..b).contains(&offset))
            };
            let old = |role: Role| {
                let disk = self.disk(role);
                is_in(reads, disk).then(|| {
                    assert_ne!(self.lost, Some(disk as u16), "the lost disk was read");
                    self.disks[disk][offset as usize]
                })
            };
            for index in 0..data {
                let disk = self.disk(Role::Data(index));
                let is_new = new(index, offset).is_some();
                let is_lost = self.lost == Some(disk as u16);
                assert_eq!(is_in(writes, disk), is_new && !is_lost, "data {index} at {offset}");
                if let (Some(version), false) = (new(index, offset), is_lost) {
                    stored.push((disk, offset, version));
                }
            }
            for parity in self.parities() {
                let disk = self.disk(parity);
                if is_in(writes, disk) {
                    let value = self.parity(parity, &|index| new(index, offset), &old);
                    stored.push((disk, offset, value));
                } else if self.lost != Some(disk as u16) {
                    assert!(
                        (0..data).all(|index| new(index, offset).is_none()),
                        "{parity:?} stale"
                    );
                }
            }
        }
        for (disk, offset, value) in stored {
            assert_ne!(self.lost, Some(disk as u16), "the lost disk was written");
            self.disks[disk][offset as usize] = value;
        }
    }

    /// New parity from new data and old values, by whichever way they allow.
    fn parity(
        &self,
        parity: Role,
        new: &dyn Fn(u16) -> Option<u8>,
        old: &dyn Fn(Role) -> Option<u8>,
    ) -> u8 {
        let data = self.geometry.data();
        let term = |index: u16, value: u8| gf_multiply(weight(parity, index), value);
        let touched = || (0..data).filter(|&index| new(index).is_some());
        let unknown: Vec<u16> = (0..data)
            .filter(|&index| new(index).is_none() && old(Role::Data(index)).is_none())
            .collect();
        if unknown.is_empty() {
            let value = |index| new(index).or(old(Role::Data(index))).expect("known");
            return (0..data).fold(0, |sum, index| sum ^ term(index, value(index)));
        }
        let has_old_data = touched().all(|index| old(Role::Data(index)).is_some());
        if let (Some(old_parity), true) = (old(parity), has_old_data) {
            return touched().fold(old_parity, |sum, index| {
                let change = new(index).expect("touched") ^ old(Role::Data(index)).expect("read");
                sum ^ term(index, change)
            });
        }
        // The one unknown unit is the XOR of P and all other old data.
        assert!(unknown.len() == 1 && has_old_data, "{unknown:?} are not known");
        let mut missing = old(Role::P).expect("P was read");
        for index in (0..data).filter(|&index| index != unknown[0]) {
            missing ^= old(Role::Data(index)).expect("read");
        }
        let known = |index| new(index).or(old(Role::Data(index))).expect("known");
        let value = |index| if index == unknown[0] { missing } else { known(index) };
        (0..data).fold(0, |sum, index| sum ^ term(index, value(index)))
    }

    /// Checks that present data are `expected`, that a lost unit can be computed, and Q.
    pub(super) fn verify(&self, expected: &[Vec<u8>]) {
        for offset in 0..self.geometry.unit as usize {
            let is_present = |role| self.lost != Some(self.disk(role) as u16);
            let stored = |role| self.disks[self.disk(role)][offset];
            for (index, unit) in (0..self.geometry.data()).zip(expected) {
                if is_present(Role::Data(index)) {
                    assert_eq!(stored(Role::Data(index)), unit[offset], "data {index} at {offset}");
                }
            }
            for parity in self.parities().filter(|&parity| is_present(parity)) {
                let sum = (0..self.geometry.data()).zip(expected).fold(0, |sum, (index, unit)| {
                    sum ^ gf_multiply(weight(parity, index), unit[offset])
                });
                assert_eq!(stored(parity), sum, "{parity:?} at {offset}");
            }
        }
    }
}

fn as_parts(row: u64, unit: u64, plan: &super::super::transfer::Transfers) -> Vec<(u16, u64, u64)> {
    let part = |t: &super::super::transfer::Transfer| {
        (t.member, t.sector.0 - row * unit, t.end().0 - row * unit)
    };
    plan.as_slice().iter().map(part).collect()
}

pub(super) fn rules(unit: u32) -> impl Strategy<Value = Rule> {
    let columns: Vec<u32> = (1..=unit).filter(|&column| unit.is_multiple_of(column)).collect();
    let granularity = prop::sample::select(columns);
    let write_rule = prop::sample::select(WriteRule::ALL);
    let tie = prop::sample::select(Tie::ALL);
    (write_rule, tie, granularity, any::<bool>()).prop_map(
        |(write_rule, tie, granularity, raid6_rmw)| Rule {
            write_rule,
            tie,
            granularity,
            raid6_rmw,
        },
    )
}

/// One write of a row: data unit, first sector, length.
fn parts() -> impl Strategy<Value = Vec<(u16, u64, u64)>> {
    prop::collection::vec((0_u16..7, 0_u64..12, 1_u64..13), 1..5)
}

proptest! {
    /// Plans keep parity for any write, any rule and any lost member: the reads of the plan suffice
    /// to compute the parity of the new data, and nothing else is written.
    #[test]
    fn plans_keep_parity(
        (parities, data, row, layout) in (1_u16..3, 2_u16..7, 0_u64..20, layouts()),
        rule in rules(12),
        lost in prop::option::of(0_u16..8),
        writes in prop::collection::vec(parts(), 1..12),
    ) {
        let geometry = Geometry { disks: data + parities, parities, unit: 12, layout };
        let lost = lost.filter(|&lost| lost < geometry.disks);
        let mut twin = Twin::new(geometry, row, lost);
        let mut expected = vec![vec![0_u8; 12]; usize::from(data)];
        let mut plan = RowPlan::default();
        for (version, parts) in (1_u8..).zip(writes) {
            let mut touched = vec![Ranges::default(); usize::from(data)];
            for (index, from, length) in parts {
                touched[usize::from(index % data)].add(from, (from + length).min(12));
            }
            let role = lost.map(|lost| geometry.role(row, lost));
            plan.make(rule, RowWrite { geometry, row, touched: &touched, lost: role });
            let new = |index: u16, offset: u64| {
                let is_new = touched[usize::from(index)].covers(offset, offset + 1);
                let salt = index as u8 * 17 + offset as u8;
                is_new.then(|| gf_multiply(version, 3).wrapping_add(salt))
            };
            twin.execute(&as_parts(row, 12, &plan.reads), &as_parts(row, 12, &plan.writes), &new);
            for (index, unit) in (0..).zip(&mut expected) {
                for (offset, value) in (0..).zip(unit) {
                    *value = new(index, offset).unwrap_or(*value);
                }
            }
            twin.verify(&expected);
            let sum: u64 = touched.iter().map(Ranges::sectors).sum();
            prop_assert_eq!(plan.writes.sectors(), sum + plan.parity_sectors - plan.lost_sectors);
        }
    }
}

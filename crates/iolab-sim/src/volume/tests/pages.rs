//! The reference pages show what the model does: each table there is rendered here.

use core::fmt::Write as _;

use iolab_model::Bytes;

use super::super::testing::parameters;
use super::super::{VolumeKind, VolumeParameters, plan_write};
use VolumeKind::{Raid0, Raid1, Raid5, Raid6, Raid10, Single};

const KIB: u64 = 1024;
const UNIT: u64 = 256;

/// The commands of one write (offset and length in KiB), as the pages print them.
fn table(parameters: &VolumeParameters, members: u16, write: (u64, u64)) -> String {
    let (from, length) = (Bytes(write.0 * KIB), Bytes(write.1 * KIB));
    let counts = plan_write(parameters, members, from, length).unwrap();
    let (reads, writes) = counts.total();
    let mut text =
        format!("write of {} KiB at {} KiB: {reads} reads, {writes} writes\n", write.1, write.0);
    let numbers: Vec<u64> = (0..u64::from(members)).collect();
    for (name, row) in [("member", &numbers), ("reads", &counts.reads), ("writes", &counts.writes)]
    {
        let _ = write!(text, "  {name:<7}");
        for value in row {
            let _ = write!(text, "{value:>3}");
        }
        text.push('\n');
    }
    text
}

fn check(page: &str, text: &str, tables: &[String]) {
    let missing = tables.iter().filter(|table| !text.contains(*table)).cloned();
    let wanted = missing.collect::<Vec<String>>().join("\n");
    assert!(wanted.is_empty(), "docs/reference/volumes/{page}.md lacks\n\n{wanted}");
}

macro_rules! page {
    ($name:literal) => {
        include_str!(concat!("../../../../../docs/reference/volumes/", $name, ".md"))
    };
}

#[test]
fn single_raid0_and_mirrors() {
    check("single", page!("single"), &[table(&parameters(Single, 1), 2, (1000, 64))]);
    let striped = parameters(Raid0, UNIT);
    let short = VolumeParameters { max_transfer_bytes: Some(56 * KIB), ..striped.clone() };
    check(
        "raid0",
        page!("raid0"),
        &[table(&striped, 4, (0, 128)), table(&striped, 4, (64, 1024)), table(&short, 4, (0, 512))],
    );
    check("raid1", page!("raid1"), &[table(&parameters(Raid1, 1), 2, (0, 64))]);
    let pairs = parameters(Raid10, UNIT);
    let lost = VolumeParameters { lost_member: Some(1), ..pairs.clone() };
    check(
        "raid10",
        page!("raid10"),
        &[table(&pairs, 8, (0, 8)), table(&pairs, 8, (64, 256)), table(&lost, 8, (0, 8))],
    );
}

#[test]
fn raid5() {
    let five = parameters(Raid5, UNIT);
    let columns = VolumeParameters { granularity_bytes: Some(4 * KIB), ..five.clone() };
    let lost = |member| VolumeParameters { lost_member: Some(member), ..five.clone() };
    let mut tables: Vec<String> = [(0, 128), (0, 256), (0, 384), (0, 512), (128, 512), (64, 128)]
        .map(|write| table(&five, 5, write))
        .into();
    tables.push(table(&columns, 5, (64, 128)));
    tables.extend([0, 1, 4].map(|member| table(&lost(member), 5, (0, 128))));
    check("raid5", page!("raid5"), &tables);
}

#[test]
fn raidz() {
    use VolumeKind::{Raidz1, Raidz2, Raidz3};
    for (page, text, kind, members) in [
        ("raidz1", page!("raidz1"), Raidz1, 5),
        ("raidz2", page!("raidz2"), Raidz2, 6),
        ("raidz3", page!("raidz3"), Raidz3, 7),
    ] {
        let whole = VolumeParameters::new(kind);
        let lost = VolumeParameters { lost_member: Some(1), ..whole.clone() };
        let mut tables: Vec<String> =
            [(0, 4), (0, 128)].map(|write| table(&whole, members, write)).into();
        tables.extend((kind == Raidz1).then(|| table(&lost, members, (0, 4))));
        check(page, text, &tables);
    }
}

#[test]
fn raid6() {
    let six = parameters(Raid6, UNIT);
    let old = VolumeParameters { raid6_rmw: Some(false), ..six.clone() };
    let lost = VolumeParameters { lost_member: Some(1), ..six.clone() };
    check(
        "raid6",
        page!("raid6"),
        &[
            table(&six, 6, (0, 128)),
            table(&six, 6, (0, 512)),
            table(&six, 10, (0, 128)),
            table(&old, 10, (0, 128)),
            table(&lost, 6, (0, 128)),
        ],
    );
}

//! Refusals of a volume, word by word.

use iolab_model::Ns;

use super::super::testing::parameters;
use super::super::{VolumeKind, VolumeParameters, build};
use crate::api::layer::Layer;
use crate::device::fixed::Fixed;

fn refusal(parameters: &VolumeParameters, members: usize) -> String {
    let member = |_| Box::new(Fixed::new(Ns(1), 1, false)) as Box<dyn Layer>;
    match build((0..members).map(member).collect(), parameters) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn too_few_members() {
    let text = refusal(&parameters(VolumeKind::Raid0, 8), 1);
    assert_eq!(
        text,
        "volume raid0: 1 members, at least 2 are needed; add members or choose another layout"
    );
    assert!(refusal(&parameters(VolumeKind::Raid1, 8), 1).contains("at least 2"));
    assert!(refusal(&parameters(VolumeKind::Raid10, 8), 2).contains("at least 4"));
    assert!(refusal(&parameters(VolumeKind::Raid5, 8), 2).contains("2 members, at least 3"));
    assert!(refusal(&parameters(VolumeKind::Raid6, 8), 3).contains("3 members, at least 4"));
    assert!(refusal(&parameters(VolumeKind::Single, 8), 0).contains("at least 1"));
    assert!(refusal(&parameters(VolumeKind::Raid10, 8), 5).contains("do not form pairs"));
}

#[test]
fn a_unit_of_half_a_sector() {
    for unit_bytes in [0, 1000] {
        let wrong = VolumeParameters {
            unit_bytes: Some(unit_bytes),
            ..VolumeParameters::new(VolumeKind::Raid0)
        };
        let text = refusal(&wrong, 2);
        assert!(text.contains(&format!("{unit_bytes} is not a multiple of a sector")), "{text}");
    }
}

#[test]
fn an_option_of_another_layout() {
    let wrong =
        VolumeParameters { nvram_bytes: Some(1 << 20), ..VolumeParameters::new(VolumeKind::Raid0) };
    assert_eq!(
        refusal(&wrong, 2),
        "volume raid0: nvram_bytes means nothing for this layout; leave it out"
    );
    let wrong =
        VolumeParameters { lost_member: Some(0), ..VolumeParameters::new(VolumeKind::Raid0) };
    assert!(refusal(&wrong, 2).contains("lost_member means nothing"));
    let wrong =
        VolumeParameters { lost_member: Some(2), ..VolumeParameters::new(VolumeKind::Raid1) };
    assert!(refusal(&wrong, 2).contains("lost_member = 2, but there are 2 members"));
}

#[test]
fn a_member_smaller_than_a_unit() {
    assert!(refusal(&parameters(VolumeKind::Raid0, 1 << 30), 2) == "accepted");
    let log = super::super::testing::Log::default();
    let member =
        |index| Box::new(super::super::testing::Recorder::new(index, 100, &log)) as Box<dyn Layer>;
    let error = build((0..2).map(member).collect(), &parameters(VolumeKind::Raid0, 128));
    let text = error.err().expect("refused").to_string();
    assert!(text.contains("the smallest member is less than 128 sectors"), "{text}");
}

#[test]
fn parity_options_that_contradict() {
    let five = || parameters(VolumeKind::Raid5, 8);
    let columns = VolumeParameters { granularity_bytes: Some(1536), ..five() };
    let text = refusal(&columns, 3);
    assert!(text.contains("granularity_bytes = 1536 does not divide the unit of 8"), "{text}");
    let nothing_lost = VolumeParameters { rebuild: Some(true), ..five() };
    assert!(refusal(&nothing_lost, 3).contains("no member is lost"));
    let speeds =
        VolumeParameters { rebuild_min_kib_s: Some(10), rebuild_max_kib_s: Some(9), ..five() };
    assert!(refusal(&speeds, 3).contains("rebuild_min_kib_s = 10 KiB/s: must be 1 to 9 KiB/s"));
    let full = VolumeParameters { nvram_high_percent: Some(101), ..five() };
    assert!(refusal(&full, 3).contains("must be 0 to 100 percent"));
    let old = VolumeParameters { raid6_rmw: Some(false), ..five() };
    assert!(refusal(&old, 3).contains("raid6_rmw means nothing"));
}

#[test]
fn a_write_that_cannot_be_counted() {
    use iolab_model::Bytes;
    let count = |from, length| {
        super::super::plan_write(&parameters(VolumeKind::Raid5, 8), 5, Bytes(from), Bytes(length))
    };
    assert_eq!(count(0, 4096).unwrap().reads, [1, 0, 0, 0, 1]);
    assert!(count(1, 4096).unwrap_err().to_string().contains("not some whole sectors"));
    assert!(count(1 << 60, 4096).unwrap_err().to_string().contains("beyond the end"));
}

#[test]
fn a_misspelt_option_and_layout_in_a_file() {
    let error = toml::from_str::<VolumeParameters>("layout = \"raid0\"\nunit = 4096").unwrap_err();
    assert!(error.to_string().contains("unknown field `unit`"), "{error}");
    let error = toml::from_str::<VolumeParameters>("layout = \"raid7\"").unwrap_err();
    assert!(error.to_string().contains("raid10"), "{error}");
    let read: VolumeParameters = toml::from_str("layout = \"raid0\"\nunit_bytes = 4096").unwrap();
    assert_eq!(read, parameters(VolumeKind::Raid0, 8));
}

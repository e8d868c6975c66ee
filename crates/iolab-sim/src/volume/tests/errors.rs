//! What a volume refuses, word by word.

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
fn a_misspelt_option_and_layout_in_a_file() {
    let error = toml::from_str::<VolumeParameters>("layout = \"raid0\"\nunit = 4096").unwrap_err();
    assert!(error.to_string().contains("unknown field `unit`"), "{error}");
    let error = toml::from_str::<VolumeParameters>("layout = \"raid7\"").unwrap_err();
    assert!(error.to_string().contains("raid10"), "{error}");
    let read: VolumeParameters = toml::from_str("layout = \"raid0\"\nunit_bytes = 4096").unwrap();
    assert_eq!(read, parameters(VolumeKind::Raid0, 8));
}

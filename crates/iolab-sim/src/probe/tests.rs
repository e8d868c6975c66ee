//! Probes of devices whose parameters are known.

use iolab_model::Seed;

use super::findings::Bench;
use super::*;
use crate::stack::Stack;

#[test]
fn a_fixed_device_is_found_out() {
    let found = probe(&Stack::of_profile("fixed-100us").unwrap(), Seed(1)).unwrap();
    for sweep in &found.sizes {
        assert!((sweep.fixed_us - 100.0).abs() < 1e-6 && sweep.rate_mb_s.is_none(), "{sweep:?}");
    }
    // 32 commands of 100 us at once: 320,000 per second.
    assert!((found.depth.knee - 32.0).abs() < 0.5, "{:?}", found.depth);
    assert!(found.seek.is_none());
}

#[test]
fn a_volume_is_probed_as_a_whole() {
    let text = r#"
        name = "stripe"
        [queue]
        scheduler = "cfq"
        [volume]
        members = 2
        parameters = { layout = "raid0", unit_bytes = 65536 }
        member.device = { profile = "fixed-100us", refuse_above = 3 }
        member.queue = { scheduler = "none" }
    "#;
    let found = probe(&Stack::parse("x.toml", text).unwrap(), Seed(1)).unwrap();
    assert_eq!(found.profile, "stripe");
    // Twice 32 commands of 100 us at once.
    assert!((found.depth.knee / 64.0 - 1.0).abs() < 0.1, "{:?}", found.depth);
    assert!(found.seek.is_none());
}

/// CAL-5: what was put in comes out.
fn recover(name: &str) {
    let bench = Bench::new(Stack::of_profile(name).unwrap(), Seed(1));
    let mechanism = bench.mechanism().unwrap().expect("it is a disk");
    let found = seek::sweep(&bench, &mechanism.geometry).unwrap();
    let turn = mechanism.geometry.period().0 as f64;
    assert!((found.rpm * turn / 60e9 - 1.0).abs() < 1e-3, "{name}: {} rpm", found.rpm);
    let mean_ms = mechanism.curve.mean().0 as f64 / 1e6;
    assert!((found.mean_ms / mean_ms - 1.0).abs() < 0.03, "{name}: {} {mean_ms}", found.mean_ms);
    for distance in 1..mechanism.geometry.cylinders() {
        let exact = mechanism.curve.time(distance) as f64 / 1e6;
        let error = (found.at(distance) - exact).abs();
        assert!(error < 0.3, "{name}: {distance} cylinders: {} {exact}", found.at(distance));
    }
}

#[test]
fn cal_5_the_curve_of_a_disk_is_recovered() {
    recover("hp97560-1991");
    recover("sata7200-4tb");
    recover("maxtor300gb-2004");
}

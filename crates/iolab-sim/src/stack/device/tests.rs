use iolab_model::Seed;

use super::*;
use crate::stack::{QueueOverrides, Stack};

const OWN: &str = r#"
    name = "mine"
    [device]
    model = "fixed"
    name = "ram-disk"
    title = "A RAM disk behind a slow bus"
    [device.parameters]
    latency = { value = 20, unit = "us", tag = "meas", source = "fio on our machine" }
    depth = { value = 4, unit = "commands" }
    capacity = { value = 65536, unit = "sectors" }
    is_rotational = false
"#;

fn build(text: &str) -> Result<(Stack, Profile), String> {
    let stack = Stack::parse("x.toml", text).map_err(|e| e.to_string())?;
    stack.build(&QueueOverrides::default(), Seed(1)).map_err(|e| e.to_string())?;
    let profile = stack.profiles().map_err(|e| e.to_string())?.remove(0);
    Ok((stack, profile))
}

#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    let error = build(text).expect_err("is accepted");
    for part in parts {
        assert!(error.contains(part), "no `{part}` in: {error}");
    }
}

#[test]
fn a_device_of_its_own_is_built_from_its_numbers_alone() {
    let (stack, profile) = build(OWN).unwrap();
    assert_eq!((profile.name.as_str(), profile.kind.as_str()), ("ram-disk", "fixed"));
    let simulation = stack.build(&QueueOverrides::default(), Seed(1)).unwrap();
    assert_eq!(simulation.info().capacity.0, 65_536);
    let counts = profile.provenance();
    assert_eq!((counts["meas"], counts["user"]), (1, 3));
    let again: Stack = serde_json::from_str(&serde_json::to_string(&stack).unwrap()).unwrap();
    assert_eq!(again, stack);
}

#[test]
fn what_is_missing_or_misspelt_is_named_with_the_nearest() {
    refused(&OWN.replace("latency", "latensy"), &["latency", "is missing", "latensy", "\"us\""]);
    refused(&OWN.replace("capacity = {", "bandwidth = {"), &["capacity", "iolab sim profiles fix"]);
    refused(&OWN.replace("    depth", "    deeps = 3\n    depth"), &["deeps", "known: "]);
    refused(&OWN.replace("\"fixed\"", "\"fixt\""), &["device model", "did you mean `fixed`"]);
    refused(&OWN.replace("source", "sauce"), &["sauce", "did you mean `source`", "line 8"]);
}

#[test]
fn numbers_have_units_and_tags_have_sources() {
    let plain = OWN.replace("{ value = 4, unit = \"commands\" }", "4");
    refused(&plain, &["depth", "has no unit", "unit = \"commands\""]);
    refused(&OWN.replace(", source = \"fio on our machine\"", ""), &["latency", "no source"]);
    refused(&OWN.replace("tag = \"meas\", ", ""), &["latency", "a source, but no tag"]);
    refused(&OWN.replace("value = 20", "value = [1, \"x\"]"), &["line 8"]);
}

#[test]
fn a_device_like_another_may_have_other_zones_and_another_kind_of_seek_curve() {
    let text = r#"
        name = "mine"
        [device]
        like = "hp97560-1991"
        title = "Half an HP 97560 with a measured arm"
        without = ["seek_short", "seek_long", "seek_boundary"]
        [device.parameters]
        cylinders = 981
        zones = [[981, 72, 8, 18]]
        seek_table = { value = [[1, 3.6], [400, 11], [980, 16]], unit = "cylinders, ms" }
    "#;
    let (stack, profile) = build(text).unwrap();
    assert_eq!(profile.name, "like-hp97560-1991");
    let whole = build("name = \"x\"\ndevice.profile = \"hp97560-1991\"").unwrap().0;
    let capacity =
        |stack: &Stack| stack.build(&QueueOverrides::default(), Seed(1)).unwrap().info().capacity.0;
    assert!(capacity(&stack) < capacity(&whole) * 51 / 100);
    refused(&text.replace("seek_long", "seek_lung"), &["without", "did you mean `seek_long`"]);
    refused(&text.replace("like =", "profile ="), &["like = ..."]);
    refused(&text.replace("like =", "model = \"disk\"\n like ="), &["exactly one of"]);
}

#[test]
fn a_mistake_in_the_text_is_placed_by_line_column_and_section_on_one_line() {
    let message = |text: &str| Stack::parse("x.toml", text).unwrap_err().to_string();
    let misspelt = "name = \"x\"\n[queue]\nscheduler = \"cfq\"\nhertz = 100\n";
    let error = message(misspelt);
    assert!(error.starts_with("x.toml, line 4, column 1, in [queue]: unknown field"), "{error}");
    assert!(error.contains("`hertz`") && !error.contains('\n'), "{error}");
    let error = message("name = \"x\"\n[queue]\nhz = \"fast\"\n");
    assert!(error.starts_with("x.toml, line 3, column 6, in [queue]: invalid type"), "{error}");
    let error = message("name = \"x\"\n[device]\nlike = \n");
    assert!(error.starts_with("x.toml, line 3, column "), "{error}");
    let rows = "name = \"x\"\n[device.parameters]\nzones = [\n[1, 2],\n[1, true],\n]\n";
    let error = message(rows);
    assert!(error.contains("in [device.parameters]: a list must hold numbers"), "{error}");
}

#[test]
fn a_busy_device_needs_a_queue_that_it_can_refuse() {
    let text = r#"
        name = "array"
        [volume]
        members = 2
        parameters = { layout = "raid1" }
        member.device = { profile = "fixed-100us", refuse_above = 4 }
    "#;
    refused(text, &["refuse_above", "member.queue"]);
    build(&format!("{text}    member.queue = {{}}")).unwrap();
    let alone = "name = \"x\"\n[device]\nprofile = \"fixed-100us\"\nrefuse_above = ";
    build(&format!("{alone}32")).unwrap();
    refused(&format!("{alone}0"), &["refuse_above = 0 commands: must be 1 to 32"]);
    refused(&format!("{alone}33"), &["refuse_above = 33"]);
}

#[test]
fn tunables_of_the_file_are_those_of_its_scheduler_and_are_checked_at_once() {
    let text = r#"
        name = "x"
        queue = { scheduler = "cfq", tunables = { slice_idle = 0 } }
        device.profile = "fixed-100us"
    "#;
    let stack = build(text).unwrap().0;
    let other = QueueOverrides {
        scheduler: Some(crate::sched::SchedulerKind::Noop),
        ..QueueOverrides::default()
    };
    stack.build(&other, Seed(1)).expect("noop has no slice_idle and does not need it");
    refused(&text.replace("slice_idle = 0", "quantum = 0"), &["quantum", "must be"]);
    refused(&text.replace("slice_idle = 0", "slice_idel = 0"), &["did you mean `slice_idle`"]);
    refused(&text.replace("slice_idle = 0", "slice_idle = -1"), &["line 3", "-1"]);
}

#[test]
fn a_device_and_a_volume_at_once_are_refused_with_what_to_do() {
    let text = r#"
        name = "both"
        device.profile = "fixed-100us"
        [volume]
        members = 2
        parameters = { layout = "raid1" }
        member.device.profile = "fixed-100us"
    "#;
    refused(text, &["both a device and a volume", "remove one", "member.device"]);
}

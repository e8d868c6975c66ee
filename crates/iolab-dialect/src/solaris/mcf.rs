//! Rows of the mcf file of QFS, and the devices of the stack that they make.

use super::line::{LineFault, LineWord};
use super::tunable::{Numbers, number};
use super::typed::{Fs, LineNote, McfRow, Setting, Typed};

/// Allocation units of a device of type `md`, in KiB (sammkfs(1M)).
const DUAL_KIB: [u64; 3] = [16, 32, 64];

/// Devices of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Metadata have a device of their own (`ma`).
    pub has_meta: bool,
    /// Its data begin in small units (`md`).
    pub is_dual: bool,
    /// Rows say so.
    pub is_said: bool,
}

/// Types of disks in mcf (mcf(4)).
fn is_disk(kind: &str) -> bool {
    let group = kind.strip_prefix('g').and_then(|number| number.parse::<u8>().ok());
    matches!(kind, "ma" | "ms" | "mm" | "mr" | "md") || group.is_some_and(|number| number < 128)
}

/// A row of mcf: name, ordinal, type, family, state; tells whether it was one.
pub fn mcf(typed: &mut Typed, line: usize, words: &[LineWord]) -> Result<bool, LineFault> {
    let [name, ordinal, kind, family, ..] = words else { return Ok(false) };
    let Some(number) = number(&ordinal.text, Numbers::Decimal) else { return Ok(false) };
    if name.text.contains('=') {
        return Ok(false);
    }
    if !(1..=65_534).contains(&number) {
        let what = format!("equipment ordinal {number}: the manual has 1 to 65534 (mcf(4))");
        return Err(typed.line(line).fault(&ordinal.at, what, "write another number"));
    }
    if !is_disk(&kind.text) {
        let what = format!("`{}` is no type of a disk (mcf(4))", kind.text);
        let remedy = "known: ma, ms, mm, mr, md, g0 to g127";
        return Err(typed.line(line).fault(&kind.at, what, remedy));
    }
    let is_family = matches!(kind.text.as_str(), "ma" | "ms");
    let about = format!("mcf {}", kind.text);
    let effect = match kind.text.as_str() {
        "ma" => "a file system with metadata on devices of their own",
        "ms" => "a file system with metadata among the data",
        "mm" => "a device of metadata alone",
        "md" => "a device of data in units of 4 KiB and of the large DAU",
        "mr" => "a device of data in units of the DAU alone",
        _ => "a group of devices that are striped: simulated as one device of type mr",
    };
    let is_further = typed.mcf.iter().any(|row| {
        let is_alike = (row.kind == "mm") == (kind.text == "mm");
        !is_family && row.family == family.text && !row.is_family() && is_alike
    });
    let further = "; none: the simulator has one device of data and one of metadata";
    typed.notes.push(LineNote {
        line,
        about,
        value: String::new(),
        effect: format!("{effect}{}", if is_further { further } else { "" }),
        is_caution: is_further || kind.text.starts_with('g'),
    });
    let device = if is_family { &family.text } else { &name.text };
    typed.mcf.push(McfRow {
        line,
        at: kind.at.clone(),
        name: device.clone(),
        kind: kind.text.clone(),
        family: family.text.clone(),
    });
    // The volume below the file system is that of its data.
    let used = match kind.text.as_str() {
        "ma" | "ms" => Some(family),
        "mm" => None,
        _ => Some(name),
    };
    if let Some(used) = used {
        typed.uses(line, Fs::Qfs, "mcf", (name.at.clone(), std::slice::from_ref(used)));
    }
    Ok(true)
}

/// Every `ma` needs a device of metadata and one of data; all devices of an `ms` are `md`; those
/// have three sizes of an allocation unit.
pub fn check_mcf(typed: &Typed) -> Result<(), LineFault> {
    for row in &typed.mcf {
        match row.kind.as_str() {
            "ma" => check_apart(typed, row)?,
            "ms" => check_together(typed, row)?,
            _ => {}
        }
    }
    let is_dual = family(typed).is_said && family(typed).is_dual;
    match typed.last(Some(Fs::Qfs), "-a").filter(|_| is_dual) {
        Some(set) if !DUAL_KIB.contains(&set.value) => Err(not_dual(typed, set)),
        _ => Ok(()),
    }
}

fn check_apart(typed: &Typed, row: &McfRow) -> Result<(), LineFault> {
    let has = |wanted: fn(&str) -> bool| {
        typed.mcf.iter().any(|other| other.family == row.family && wanted(&other.kind))
    };
    let line = typed.line(row.line);
    if !has(|kind| kind == "mm") {
        let what = format!(
            "family {} has no row of metadata: `ma` needs one mm device at least (mcf(4))",
            row.family
        );
        return Err(line.fault(&row.at, what, "add DEVICE ORDINAL mm FAMILY on, or write ms"));
    }
    if !has(|kind| !matches!(kind, "ma" | "ms" | "mm")) {
        let what = format!("family {} has no row of data (mcf(4))", row.family);
        return Err(line.fault(&row.at, what, "add DEVICE ORDINAL mr FAMILY on"));
    }
    Ok(())
}

fn check_together(typed: &Typed, row: &McfRow) -> Result<(), LineFault> {
    let mut others = typed.mcf.iter().filter(|other| other.family == row.family);
    match others.find(|other| !matches!(other.kind.as_str(), "ms" | "md")) {
        None => Ok(()),
        Some(other) => {
            let what = format!(
                "`{}` in family {}, which is ms: metadata lie among the data there, and all \
                 devices are md (sammkfs(1M))",
                other.kind, row.family
            );
            let remedy = "write md, or ma for the family and a row of type mm";
            Err(typed.line(other.line).fault(&other.at, what, remedy))
        }
    }
}

fn not_dual(typed: &Typed, set: &Setting) -> LineFault {
    let what = format!(
        "-a {} with devices of type md, which have 16, 32 or 64 KiB (sammkfs(1M))",
        set.value
    );
    typed.fault(set, what, "write one of these, or a row of type mr in a family of type ma".into())
}

/// Devices of the file system: those of the family that its lines name, or of the last one.
/// Without rows metadata lie apart and the data are of type `mr`. [assume]
pub fn family(typed: &Typed) -> Family {
    let families = || typed.mcf.iter().rev().filter(|row| row.is_family());
    let is_named = |row: &&McfRow| {
        let of_qfs = typed.used.iter().filter(|used| used.fs == Fs::Qfs && used.command != "mcf");
        of_qfs.flat_map(|used| &used.names).any(|name| *name == row.family)
    };
    let Some(row) = families().find(is_named).or_else(|| families().next()) else {
        return Family { has_meta: true, is_dual: false, is_said: false };
    };
    let has_meta = row.kind == "ma";
    let is_md = |other: &McfRow| other.family == row.family && other.kind == "md";
    Family { has_meta, is_dual: !has_meta || typed.mcf.iter().any(is_md), is_said: true }
}

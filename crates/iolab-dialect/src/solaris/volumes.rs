//! Volumes: `metainit` and `metattach` of `DiskSuite`, `vxassist` of `VxVM`.
//!
//! Left out: soft partitions, hot spares, disk sets, concatenations of stripes, plexes made by
//! hand.

use super::commands::Given;
use super::line::{Line, LineFault, LineWord};
use super::tunable::{Numbers, SECTOR, amount, number, size};
use super::typed::{Manager, Typed, Volume, VolumeShape};

/// Interlace of metainit without `-i` (metainit(1M)).
const INTERLACE: u64 = 16 << 10;
/// Range of an interlace (metainit(1M)).
const INTERLACE_RANGE: (u64, u64) = (8 << 10, 100 << 20);
/// Stripe unit of a striped volume without `stripeunit` (vxassist(1M)).
const STRIPE_UNIT: u64 = 64 << 10;
/// The same of RAID 5.
const RAID5_UNIT: u64 = 16 << 10;
/// Disks of a volume at most.
const DISKS_MAX: u64 = 255;

/// `metainit`.
pub fn metainit(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    let line = typed.line(given.line).clone();
    let mut words: Vec<LineWord> = given.words.to_vec();
    while words.first().is_some_and(|word| matches!(word.text.as_str(), "-f" | "-n")) {
        words.remove(0);
    }
    let Some((name, rest)) = words.split_first().filter(|(name, _)| !name.text.starts_with('-'))
    else {
        let remedy = "write metainit dN 1 DISKS DISK... -i 128k, or dN -r DISK..., or dN -m dM";
        return Err(line.fault(&given.command.at, "it names no metadevice", remedy));
    };
    let (unit, rest) = interlace(&line, rest)?;
    let first = rest.first().map_or("", |word| word.text.as_str());
    let shape = match first {
        "-r" => {
            let columns = count(rest[1..].len());
            if columns < 3 {
                let what = format!("RAID 5 of {columns} disks: metainit(1M) has 3 at least");
                return Err(line.fault(&rest[0].at, what, "name the others behind -r"));
            }
            VolumeShape::Raid5 { columns, unit: unit.unwrap_or(INTERLACE) }
        }
        "-m" => {
            let of: Vec<String> = submirrors(&rest[1..]);
            if of.is_empty() {
                let what = "a mirror of nothing";
                return Err(line.fault(&rest[0].at, what, "name its first submirror behind -m"));
            }
            VolumeShape::Mirror { of }
        }
        "-t" => match rest.get(1) {
            Some(data) => {
                if let Some(log) = rest.get(2) {
                    typed.note(
                        given.line,
                        format!("log on {}", log.base()),
                        "a log on a device of its own is not simulated for metadevices",
                    );
                }
                VolumeShape::Trans { data: data.base().to_owned() }
            }
            None => {
                return Err(line.fault(&rest[0].at, "no device of data", "write -t DATA [LOG]"));
            }
        },
        _ => stripes(&line, &rest, given, unit)?,
    };
    let name = name.base().to_owned();
    typed.volumes.push(Volume { line: given.line, name, manager: Manager::Md, shape });
    Ok(())
}

/// Names behind -m; a number at the end is the pass.
fn submirrors(words: &[LineWord]) -> Vec<String> {
    let is_name = |word: &&LineWord| number(&word.text, Numbers::Decimal).is_none();
    words.iter().filter(is_name).map(|word| word.base().to_owned()).collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The interlace, and the words without it; of several the last.
fn interlace(line: &Line, words: &[LineWord]) -> Result<(Option<u64>, Vec<LineWord>), LineFault> {
    let (mut unit, mut rest) = (None, Vec::new());
    let mut left = words.iter();
    while let Some(word) = left.next() {
        match word.text.as_str() {
            "-i" => {
                let Some(value) = left.next() else {
                    return Err(line.fault(&word.at, "-i needs an interlace", "as in -i 128k"));
                };
                unit = Some(unit_of(line, value)?);
            }
            "-h" | "-o" => {
                left.next();
            }
            "-k" | "-g" => {}
            _ => rest.push(word.clone()),
        }
    }
    Ok((unit, rest))
}

fn unit_of(line: &Line, word: &LineWord) -> Result<u64, LineFault> {
    let has_letter = word.text.ends_with(|c: char| c.is_ascii_alphabetic());
    let bytes = size(&word.text, 1).filter(|_| has_letter);
    let (least, most) = INTERLACE_RANGE;
    bytes.filter(|bytes| (least..=most).contains(bytes) && bytes.is_multiple_of(SECTOR)).ok_or_else(
        || {
            let what = format!(
                "an interlace of {}: metainit(1M) has {} to {}, with k, m or b (512 bytes)",
                word.text,
                amount(least),
                amount(most),
            );
            line.fault(&word.at, what, "write it with its unit, as in -i 128k")
        },
    )
}

/// `NUMBER WIDTH DISK...`: stripes one after the other.
fn stripes(
    line: &Line,
    rest: &[LineWord],
    given: &Given<'_>,
    unit: Option<u64>,
) -> Result<VolumeShape, LineFault> {
    const USAGE: &str = "write metainit dN STRIPES DISKS DISK... [-i 128k]";
    let whole = |index: usize| {
        let word = rest.get(index)?;
        number(&word.text, Numbers::Decimal)
            .filter(|&number| (1..=DISKS_MAX).contains(&number))
            .map(|number| (number as usize, word))
    };
    let Some((stripes, _)) = whole(0) else {
        let at = rest.first().map_or(&given.command.at, |word| &word.at);
        return Err(line.fault(at, "no number of stripes (1 to 255)", USAGE));
    };
    let (mut at, mut disks, mut columns) = (1, 0, 1);
    for _ in 0..stripes {
        let Some((width, word)) = whole(at) else {
            let place = rest.get(at).map_or(&given.command.at, |word| &word.at);
            return Err(line.fault(place, "no number of disks (1 to 255)", USAGE));
        };
        let named = rest.len().saturating_sub(at + 1);
        if named < width {
            let what = format!("a stripe of {width} disks, and {named} are named");
            return Err(line.fault(&word.at, what, USAGE));
        }
        (at, disks, columns) = (at + 1 + width, disks + width, width);
    }
    if let Some(more) = rest.get(at) {
        let what = format!("'{}' belongs to no stripe: {disks} disks are announced", more.text);
        return Err(line.fault(&more.at, what, USAGE));
    }
    if stripes > 1 && columns > 1 {
        let what = "stripes one after the other are not simulated";
        return Err(line.fault(&rest[0].at, what, "write one stripe: 1 DISKS DISK..."));
    }
    Ok(match columns {
        1 => VolumeShape::Plain { disks: count(disks) },
        _ => VolumeShape::Stripe { columns: count(columns), unit: unit.unwrap_or(INTERLACE) },
    })
}

/// `metattach MIRROR SUBMIRROR`.
pub fn metattach(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    let line = typed.line(given.line).clone();
    let [mirror, other] = given.words else {
        return Err(line.fault(&given.command.at, "two names belong here", "metattach dN dM"));
    };
    let found = typed.volumes.iter_mut().rev().find(|volume| volume.name == mirror.base());
    if let Some(VolumeShape::Mirror { of }) = found.map(|volume| &mut volume.shape) {
        of.push(other.base().to_owned());
        let copies = of.len();
        typed.note(given.line, mirror.base(), format!("a mirror of {copies} submirrors"));
        Ok(())
    } else {
        let what = format!("no line above makes a mirror {}", mirror.base());
        Err(line.fault(&mirror.at, what, "write metainit dN -m dM before it"))
    }
}

/// Words of vxassist.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a word of its own")]
struct Asked {
    is_striped: bool,
    is_raid5: bool,
    is_mirrored: bool,
    is_above_mirrors: bool,
    columns: Option<u32>,
    copies: Option<u32>,
    unit: Option<u64>,
}

/// `vxassist make`.
pub fn vxassist(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    const USAGE: &str = "write vxassist make VOLUME SIZE layout=LAYOUT ncol=N stripeunit=64k";
    let line = typed.line(given.line).clone();
    let (mut names, mut asked) = (Vec::new(), Asked::default());
    let mut words = given.words.iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "-g" | "-U" | "-d" | "-o" => {
                words.next();
            }
            text if text.starts_with('-') => {}
            text if text.contains('=') => key(typed, given, word, &mut asked)?,
            _ => names.push(word),
        }
    }
    let name = match names[..] {
        [make, name, ..] if make.text == "make" => name,
        [other, ..] if other.text != "make" => {
            typed.note(given.line, format!("vxassist {}", other.text), "makes no volume");
            return Ok(());
        }
        _ => return Err(line.fault(&given.command.at, "it makes nothing", USAGE)),
    };
    let shape = shape_of(&line, given, &asked, USAGE)?;
    let name = name.base().to_owned();
    typed.volumes.push(Volume { line: given.line, name, manager: Manager::Vx, shape });
    Ok(())
}

fn shape_of(
    line: &Line,
    given: &Given<'_>,
    asked: &Asked,
    usage: &str,
) -> Result<VolumeShape, LineFault> {
    let copies = asked.copies.unwrap_or(2);
    let columns = || {
        asked.columns.ok_or_else(|| {
            let what = "no number of columns: vxassist takes as many disks as it finds";
            line.fault(&given.command.at, what, usage)
        })
    };
    if asked.is_raid5 {
        let columns = columns()?;
        if columns < 3 {
            let what = format!("RAID 5 of {columns} columns: vxassist(1M) has 3 at least");
            return Err(line.fault(&given.command.at, what, "parity is one of the columns"));
        }
        return Ok(VolumeShape::Raid5 { columns, unit: asked.unit.unwrap_or(RAID5_UNIT) });
    }
    let unit = asked.unit.unwrap_or(STRIPE_UNIT);
    Ok(match (asked.is_striped, asked.is_mirrored) {
        (true, true) if asked.is_above_mirrors => {
            VolumeShape::StripedMirrors { columns: columns()?, unit, copies }
        }
        (true, true) => {
            let inside = Box::new(VolumeShape::Stripe { columns: columns()?, unit });
            VolumeShape::Copies { copies, inside }
        }
        (true, false) => VolumeShape::Stripe { columns: columns()?, unit },
        (false, true) => {
            VolumeShape::Copies { copies, inside: Box::new(VolumeShape::Plain { disks: 1 }) }
        }
        (false, false) => VolumeShape::Plain { disks: 1 },
    })
}

fn key(
    typed: &mut Typed,
    given: &Given<'_>,
    word: &LineWord,
    asked: &mut Asked,
) -> Result<(), LineFault> {
    let line = typed.line(given.line).clone();
    let (name, value) = word.key_value();
    let value = value.unwrap_or_else(|| name.clone());
    let few = |least: u64| {
        let found = number(&value.text, Numbers::Decimal).filter(|n| (least..=64).contains(n));
        found.map(|n| n as u32).ok_or_else(|| {
            let what = format!("{} = {}: {least} to 64 (vxassist(1M))", name.text, value.text);
            line.fault(&value.at, what, "write a number of columns or copies")
        })
    };
    match name.text.as_str() {
        "layout" => {
            for part in value.parts() {
                layout(&line, &part, asked)?;
            }
        }
        "ncol" | "ncolumn" | "nstripe" | "ncols" => asked.columns = Some(few(2)?),
        "nmirror" => {
            asked.copies = Some(few(1)?);
            asked.is_mirrored = asked.copies > Some(1);
        }
        "stripeunit" | "stwid" | "stripe_stwid" | "raid5_stwid" => {
            let bytes = size(&value.text, SECTOR);
            let bytes = bytes.filter(|bytes| (SECTOR..=1 << 30).contains(bytes));
            asked.unit = Some(bytes.ok_or_else(|| {
                let what = format!("a stripe unit of {}", value.text);
                line.fault(&value.at, what, "write it with its unit, as in stripeunit=128k")
            })?);
            if value.text.bytes().all(|byte| byte.is_ascii_digit()) {
                typed.notes.push(super::typed::LineNote {
                    line: given.line,
                    about: name.text.clone(),
                    value: amount(asked.unit.unwrap_or_default()),
                    effect: "without a letter VxVM counts units of 512 bytes".into(),
                    is_caution: true,
                });
            }
        }
        _ => typed.note(given.line, word.text.clone(), "changes no geometry"),
    }
    Ok(())
}

fn layout(line: &Line, part: &LineWord, asked: &mut Asked) -> Result<(), LineFault> {
    match part.text.as_str() {
        "stripe" | "striped" => asked.is_striped = true,
        "mirror" | "mirrored" => asked.is_mirrored = true,
        "mirror-stripe" => (asked.is_striped, asked.is_mirrored) = (true, true),
        "stripe-mirror" => {
            (asked.is_striped, asked.is_mirrored, asked.is_above_mirrors) = (true, true, true);
        }
        "raid5" => asked.is_raid5 = true,
        "concat" | "nostripe" | "nomirror" | "span" | "log" | "nolog" | "raid5log"
        | "noraid5log" => {}
        other => {
            let what = format!("`{other}` is no layout of vxassist(1M)");
            let known = "known: stripe, raid5, mirror, mirror-stripe, stripe-mirror, concat";
            return Err(line.fault(&part.at, what, known));
        }
    }
    Ok(())
}

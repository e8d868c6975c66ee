//! `zpool create`: pools and the disks of their vdevs.

use super::commands::{Given, OF_ZFS};
use super::geometry::shown;
use super::line::{Line, LineFault, LineWord};
use super::typed::{Fs, LineNote, Manager, Typed, Volume, VolumeShape};

/// Kinds of vdevs, and the disks that each needs at least (zpool(1M)).
const KINDS: &[(&str, usize)] = &[
    ("mirror", 2),
    ("raidz", 2),
    ("raidz1", 2),
    ("raidz2", 3),
    ("raidz3", 4),
    ("log", 1),
    ("cache", 1),
    ("spare", 1),
];

/// Kind of a vdev, and its disks.
type Vdev<'a> = (&'a str, usize);

/// Bytes that a pool writes to one of its vdevs before it goes on to the next one: 512 KiB
/// (`metaslab_aliquot`).
pub const ALIQUOT: u64 = 512 << 10;

/// Sectors of 512 bytes, as a pool of Solaris 10 has on disks of its time. [doc]
const ASHIFT: u32 = 9;

/// Size of a sector as a power of two.
fn shift_of(line: &Line, word: &LineWord) -> Result<u32, LineFault> {
    let value = word.text.trim_start_matches("ashift=");
    value.parse().ok().filter(|shift| (9..=16).contains(shift)).ok_or_else(|| {
        let what = format!("ashift={value}: the manual has 9 to 16 (zpoolprops(7))");
        line.fault(&word.at, what, "write ashift=9 for sectors of 512 bytes, 12 for 4096")
    })
}

/// Refuses names that no pool has, kinds that are written wrongly, and a disk that is named twice.
fn check_words(line: &Line, pool: &LineWord, rest: &[LineWord]) -> Result<(), LineFault> {
    let known = || KINDS.iter().map(|(kind, _)| *kind);
    if known().any(|kind| kind == pool.text) {
        let what = format!("a pool cannot be called {}: the name is missing", pool.text);
        return Err(line.fault(&pool.at, what, "write zpool create POOL in front of it"));
    }
    for (index, word) in rest.iter().enumerate() {
        if known().any(|kind| kind == word.text) {
            continue;
        }
        let plain = word.text.trim_end_matches(|letter: char| letter.is_ascii_digit());
        if ["special", "dedup"].contains(&word.text.as_str()) || plain.starts_with("draid") {
            let what = format!("vdevs of the kind {} are not simulated", word.text);
            return Err(line.fault(&word.at, what, "leave them out, with their disks"));
        }
        let is_near =
            |kind: &str| kind.trim_end_matches(|letter: char| letter.is_ascii_digit()) == plain;
        let is_kind = known().any(is_near);
        let has_number =
            word.text.contains(|letter: char| letter.is_ascii_digit() || letter == '/');
        let near = iolab_model::nearest::nearest(&word.text, known());
        if is_kind || (near.is_some() && (!has_number || plain.len() > 3)) {
            let hint = iolab_model::nearest::did_you_mean(&word.text, known());
            let what = format!("{} is no kind of a vdev, and no disk{hint}", word.text);
            return Err(line.fault(&word.at, what, "disks are called as in c1t0d0"));
        }
        if rest[..index].iter().any(|other| other.base() == word.base()) {
            let what = format!("the disk {} is named twice", word.text);
            return Err(line.fault(&word.at, what, "name each disk once"));
        }
    }
    Ok(())
}

/// Vdevs with data.
fn groups<'a>(vdevs: &[Vdev<'a>]) -> Vec<Vdev<'a>> {
    let is_data = |kind: &str| kind == "mirror" || kind.starts_with("raidz");
    vdevs.iter().copied().filter(|vdev| is_data(vdev.0)).collect()
}

/// Groups of a pool that are not alike, in words.
fn unlike(plain: usize, vdevs: &[Vdev<'_>]) -> Option<String> {
    let data = groups(vdevs);
    let first = data.first()?;
    if plain > 0 {
        return Some(format!("a pool of plain disks and a {}", first.0));
    }
    let other = data.iter().find(|other| *other != first)?;
    Some(format!("a pool of a {} of {} and a {} of {}", first.0, first.1, other.0, other.1))
}

/// Arrangement of the data: disks that are named plainly, and vdevs by their kind; absent: none.
fn shape_of(plain: usize, vdevs: &[Vdev<'_>], ashift: u32) -> Option<VolumeShape> {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let data = groups(vdevs);
    if let Some((kind, disks)) = data.iter().find(|(kind, _)| kind.starts_with("raidz")) {
        let parities = match *kind {
            "raidz3" => 3,
            "raidz2" => 2,
            _ => 1,
        };
        let groups = count(data.len());
        let sector = 1 << ashift;
        return Some(VolumeShape::Raidz { groups, disks: count(*disks), parities, sector });
    }
    match (plain, data.first()) {
        (0, None) => None,
        (1, None) => Some(VolumeShape::Plain { disks: 1 }),
        (_, None) => Some(VolumeShape::Stripe { columns: count(plain), unit: ALIQUOT }),
        (_, Some((_, copies))) if plain == 0 && data.len() == 1 => Some(VolumeShape::Copies {
            copies: count(*copies),
            inside: Box::new(VolumeShape::Plain { disks: 1 }),
        }),
        (_, Some((_, copies))) => Some(VolumeShape::StripedMirrors {
            columns: count(data.len()),
            unit: ALIQUOT,
            copies: count(*copies),
        }),
    }
}

/// Tells of vdevs that hold no data.
fn note_beside(typed: &mut Typed, (line, what): (usize, &str), vdevs: &[Vdev<'_>]) {
    for (kind, disks) in vdevs {
        let (effect, is_caution) = match *kind {
            "log" => ("log_device: the intent log has a disk of its own", false),
            "cache" => ("none: the model has no second cache", true),
            "spare" => ("none: nothing fails", false),
            _ => continue,
        };
        typed.notes.push(LineNote {
            line,
            about: format!("zpool {what} {kind}"),
            value: if *disks == 1 { "1 disk".into() } else { format!("{disks} disks") },
            effect: effect.into(),
            is_caution,
        });
    }
}

/// Options of a line, and its other words.
#[derive(Default)]
struct Options<'a> {
    words: Vec<LineWord>,
    /// Words behind `-O`.
    properties: Vec<&'a LineWord>,
    ashift: Option<u32>,
}

fn options<'a>(
    typed: &mut Typed,
    given: &Given<'a>,
    line: &Line,
) -> Result<Options<'a>, LineFault> {
    let mut found = Options::default();
    let mut left = given.words.iter();
    while let Some(word) = left.next() {
        match (word.text.as_str(), word.text.starts_with('-')) {
            ("-O", _) => found.properties.extend(left.next()),
            ("-o", _) => match left.next() {
                Some(value) if value.text.starts_with("ashift=") => {
                    found.ashift = Some(shift_of(line, value)?);
                }
                Some(value) => {
                    let what = format!("zpool -o {}", value.text);
                    typed.note(given.line, what, "none: a stack has no such property of a pool");
                }
                None => {}
            },
            ("-m" | "-R", _) => {
                left.next();
            }
            (_, true) => {}
            _ => found.words.push(word.clone()),
        }
    }
    Ok(found)
}

/// Vdevs by their words, and plain disks in front of them; refuses those with too few disks.
fn vdevs_of<'a>(line: &Line, rest: &'a [LineWord]) -> Result<(usize, Vec<Vdev<'a>>), LineFault> {
    let mut vdevs: Vec<(&LineWord, usize)> = Vec::new();
    let mut plain = 0;
    // Behind `log` and its like a mirror is one of logs.
    let mut is_of_data = true;
    for word in rest {
        let is_group = word.text == "mirror" || word.text.starts_with("raidz");
        if is_group && !is_of_data {
            continue;
        }
        if KINDS.iter().any(|(kind, _)| *kind == word.text) {
            is_of_data = is_group;
            vdevs.push((word, 0));
        } else if let Some((_, disks)) = vdevs.last_mut() {
            *disks += 1;
        } else {
            plain += 1;
        }
    }
    for (kind, disks) in &vdevs {
        let least = KINDS.iter().find(|(name, _)| *name == kind.text).map_or(0, |row| row.1);
        if *disks < least {
            let many = if *disks == 1 { "1 disk" } else { &format!("{disks} disks") };
            let what =
                format!("{} of {many}: the manual has {least} at least (zpool(1M))", kind.text);
            let remedy = "name more disks, or leave the word out for plain ones";
            return Err(line.fault(&kind.at, what, remedy));
        }
    }
    Ok((plain, vdevs.iter().map(|(kind, disks)| (&*kind.text, *disks)).collect()))
}

/// `zpool`.
pub fn zpool(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    const USAGE: &str = "write zpool create POOL [mirror | raidz | raidz2] DISK... [log DISK]";
    let line = typed.line(given.line).clone();
    let Options { words, properties, ashift } = options(typed, given, &line)?;
    let (what, pool, rest) = match &words[..] {
        [what, pool, rest @ ..] if matches!(what.text.as_str(), "create" | "add") => {
            (what, pool, rest)
        }
        [what, ..] if !matches!(what.text.as_str(), "create" | "add") => {
            typed.note(given.line, format!("zpool {}", what.text), "makes no pool");
            return Ok(());
        }
        _ => return Err(line.fault(&given.command.at, "it names no pool", USAGE)),
    };
    if rest.is_empty() {
        return Err(line.fault(&pool.at, format!("pool {} has no disk", pool.text), USAGE));
    }
    check_words(&line, pool, rest)?;
    for property in properties {
        OF_ZFS.keys(typed, given.line, property)?;
    }
    let (plain, vdevs) = vdevs_of(&line, rest)?;
    note_beside(typed, (given.line, &what.text), &vdevs);
    if vdevs.iter().any(|(kind, _)| *kind == "log") {
        typed.pool_logs.push(given.line);
    }
    if let Some(unlike) = unlike(plain, &vdevs) {
        let remedy = "make all groups of a pool alike: of one kind, with as many disks";
        return Err(line.fault(&given.command.at, unlike, remedy));
    }
    if let Some(shape) = shape_of(plain, &vdevs, ashift.unwrap_or(ASHIFT)) {
        let is_added = what.text == "add" && typed.volumes.iter().any(|it| it.name == pool.text);
        if is_added {
            typed.notes.push(LineNote {
                line: given.line,
                about: "zpool add".into(),
                value: shown(&shape),
                effect: "none: the stack has the disks that the pool was made with".into(),
                is_caution: true,
            });
        } else {
            let name = pool.text.clone();
            typed.volumes.push(Volume { line: given.line, name, manager: Manager::Pool, shape });
        }
    }
    typed.uses(
        given.line,
        Fs::Zfs,
        "zpool",
        (given.command.at.clone(), std::slice::from_ref(pool)),
    );
    Ok(())
}

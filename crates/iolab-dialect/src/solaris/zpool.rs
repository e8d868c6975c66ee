//! `zpool create`: pools and the disks of their vdevs.

use super::commands::Given;
use super::line::{LineFault, LineWord};
use super::typed::{Fs, LineNote, Typed};

/// Kinds of vdevs, and the disks that each needs at least (zpool(1M)).
const KINDS: &[(&str, usize)] = &[
    ("mirror", 2),
    ("raidz", 2),
    ("raidz1", 2),
    ("raidz2", 3),
    ("raidz3", 4),
    ("log", 0),
    ("cache", 1),
    ("spare", 1),
];

/// `zpool`.
pub fn zpool(typed: &mut Typed, given: &Given<'_>) -> Result<(), LineFault> {
    const USAGE: &str = "write zpool create POOL [mirror | raidz | raidz2] DISK... [log DISK]";
    let line = typed.line(given.line).clone();
    let mut words = Vec::new();
    let mut left = given.words.iter();
    while let Some(word) = left.next() {
        match word.text.as_str() {
            "-o" | "-O" | "-m" | "-R" => {
                left.next();
            }
            text if text.starts_with('-') => {}
            _ => words.push(word.clone()),
        }
    }
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
    let mut vdevs: Vec<(&LineWord, usize)> = Vec::new();
    let mut plain = 0;
    for word in rest {
        if KINDS.iter().any(|(kind, _)| *kind == word.text) {
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
    let plain = (plain > 0).then(|| format!("{plain} plain"));
    let of = vdevs.iter().map(|(kind, disks)| format!("{} of {disks}", kind.text));
    typed.notes.push(LineNote {
        line: given.line,
        about: format!("zpool {}", what.text),
        value: plain.into_iter().chain(of).collect::<Vec<_>>().join(", "),
        effect: format!("pool {}", pool.text),
        is_caution: false,
    });
    typed.uses(
        given.line,
        Fs::Zfs,
        "zpool",
        (given.command.at.clone(), std::slice::from_ref(pool)),
    );
    Ok(())
}

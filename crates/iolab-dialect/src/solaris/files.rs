//! Lines of files and of adb: /etc/system, what adb is asked and answers.

use super::line::{LineFault, LineWord};
use super::tables::ETC_SYSTEM;
use super::tunable::{Meaning, Numbers, Tunable, value_of};
use super::typed::{Fs, LineNote, Setting, Typed};

/// Other words with which lines of /etc/system begin (system(4)).
const SYSTEM_WORDS: &[&str] =
    &["exclude:", "include:", "forceload:", "moddir:", "rootdev:", "rootfs:"];

/// A variable by its name, with or without its module.
fn variable(typed: &Typed, line: usize, word: &LineWord) -> Result<&'static Tunable, LineFault> {
    let (module, name) = match word.text.split_once(':') {
        Some((module, name)) => (Some(module), name),
        None => (None, word.text.as_str()),
    };
    let Some(row) = ETC_SYSTEM.iter().find(|row| row.plain() == name) else {
        let hint = iolab_model::nearest::did_you_mean(name, ETC_SYSTEM.iter().map(Tunable::plain));
        let known: Vec<&str> = ETC_SYSTEM.iter().map(|row| row.name).collect();
        let what = format!("`{name}` is no variable that is known here{hint}");
        return Err(typed.line(line).fault(&word.at, what, format!("known: {}", known.join(", "))));
    };
    let own = row.name.split_once(':').map(|(module, _)| module);
    if module.is_some() && module != own {
        let what = format!("`{name}` does not belong to module {}", module.unwrap_or_default());
        return Err(typed.line(line).fault(&word.at, what, format!("write set {}=...", row.name)));
    }
    Ok(row)
}

/// Notes a variable of the kernel.
fn set_variable(
    typed: &mut Typed,
    line: usize,
    (row, name, value): (&'static Tunable, &LineWord, &LineWord),
    form: Numbers,
) -> Result<u64, LineFault> {
    let number = value_of(row, typed.line(line), value, form)?;
    let is_own = row.meaning == Meaning::Own;
    let fs = match row.name.split_once(':').map(|(module, _)| module) {
        Some("ufs") => Some(Fs::Ufs),
        Some("zfs") if is_own => Some(Fs::Zfs),
        _ => None,
    };
    typed.settings.push(Setting {
        line,
        at: name.at.start..value.at.end,
        command: "",
        tunable: row,
        value: number,
        typed: value.text.clone(),
        fs,
        remark: String::new(),
        is_caution: false,
    });
    Ok(number)
}

/// A line of /etc/system; tells whether it was one.
pub fn system(typed: &mut Typed, line: usize, words: &[LineWord]) -> Result<bool, LineFault> {
    const USAGE: &str = "write set VARIABLE=NUMBER, as in set maxphys=1048576";
    let Some((first, rest)) = words.split_first() else { return Ok(false) };
    if let Some(word) = SYSTEM_WORDS.iter().find(|word| first.text.starts_with(**word)) {
        typed.note(line, *word, "modules and roots are no part of a stack");
        return Ok(true);
    }
    if first.text != "set" || rest.is_empty() {
        return Ok(false);
    }
    let (from, to) = (rest[0].at.start, rest[rest.len() - 1].at.end);
    // Blanks around the sign are allowed.
    let all: String = typed.line(line).text.chars().skip(from).take(to - from).collect();
    let Some((name, value)) = all.split_once('=') else {
        let what = "no `=` behind the variable";
        return Err(typed.line(line).fault(&(from..to), what, USAGE));
    };
    let word = |text: &str, from: usize| {
        let blanks = text.chars().take_while(|c| c.is_whitespace()).count();
        let text = text.trim();
        let at = from + blanks..from + blanks + text.chars().count();
        LineWord { text: text.to_owned(), at }
    };
    let behind = from + name.chars().count() + 1;
    let (name, value) = (word(name, from), word(value, behind));
    if name.text.is_empty() || value.text.is_empty() {
        return Err(typed.line(line).fault(&(from..to), "half of it is missing", USAGE));
    }
    let row = variable(typed, line, &name)?;
    set_variable(typed, line, (row, &name, &value), Numbers::System)?;
    Ok(true)
}

/// A line to adb or of adb; tells whether it was one. `asked` is the variable that adb was asked
/// for last, and the form in which it answers.
pub fn adb(
    typed: &mut Typed,
    line: usize,
    words: &[LineWord],
    asked: &mut Option<(String, Numbers)>,
) -> Result<bool, LineFault> {
    match words {
        [quit] if matches!(quit.text.as_str(), "$q" | "$Q" | "^D") => {
            typed.note(line, "adb", "ends");
            Ok(true)
        }
        [name, value] if name.text == "physmem" => {
            let row = variable(typed, line, name)?;
            set_variable(typed, line, (row, name, value), Numbers::Adb)?;
            Ok(true)
        }
        [name] if name.text.ends_with(':') && is_variable(name.text.trim_end_matches(':')) => {
            Ok(true) // The answer stands on the next line, with its name again.
        }
        [name, rest @ ..] if name.text.ends_with(':') => {
            answer(typed, line, (name, rest), asked.as_ref())
        }
        [first, rest @ ..] => {
            let Some((name, verb)) = first.text.split_once('/') else { return Ok(false) };
            if name.is_empty() || !is_verb(verb) {
                return Ok(false);
            }
            let end = first.at.start + name.chars().count();
            let word = LineWord { text: name.to_owned(), at: first.at.start..end };
            request(typed, line, (&word, verb, rest), asked).map(|()| true)
        }
        [] => Ok(false),
    }
}

fn is_variable(name: &str) -> bool {
    ETC_SYSTEM.iter().any(|row| row.plain() == name)
}

fn is_verb(verb: &str) -> bool {
    matches!(verb, "W" | "w" | "Z" | "D" | "d" | "E" | "e" | "X" | "x" | "J")
}

fn request(
    typed: &mut Typed,
    line: usize,
    (name, verb, rest): (&LineWord, &str, &[LineWord]),
    asked: &mut Option<(String, Numbers)>,
) -> Result<(), LineFault> {
    let row = variable(typed, line, name)?;
    match verb {
        "W" | "w" | "Z" => {
            let [value] = rest else {
                let what = format!("{}/{verb} needs one value", name.text);
                let remedy = "write 0t for decimal: ufs_HW/W 0t16777216";
                return Err(typed.line(line).fault(&name.at, what, remedy));
            };
            let old = typed.last_of_name(row.plain()).map(|set| set.value);
            let new = set_variable(typed, line, (row, name, value), Numbers::Adb)?;
            if let (Some(old), Some(set)) = (old, typed.settings.last_mut()) {
                set.remark = format!("adb answers {}: {old:#x} = {new:#x}", row.plain());
            }
            let is_bare = !value.text.starts_with('0') || value.text.len() == 1;
            if let Some(set) = typed.settings.last_mut().filter(|_| is_bare && new > 9) {
                set.is_caution = true;
                set.remark = "adb takes a bare number as hexadecimal; 0t is decimal".into();
            }
        }
        "D" | "d" | "E" | "e" => {
            *asked = Some((row.plain().to_owned(), Numbers::Decimal));
            typed.note(line, row.plain(), "adb is asked for it");
        }
        _ => {
            *asked = Some((row.plain().to_owned(), Numbers::Adb));
            typed.note(line, row.plain(), "adb is asked for it");
        }
    }
    Ok(())
}

/// `ufs_HW: 6291456`, or `ufs_HW: 0x600000 = 0x1000000` after a change.
fn answer(
    typed: &mut Typed,
    line: usize,
    (name, rest): (&LineWord, &[LineWord]),
    asked: Option<&(String, Numbers)>,
) -> Result<bool, LineFault> {
    let plain = name.text.trim_end_matches(':');
    if !is_variable(plain) {
        return Ok(false);
    }
    let end = name.at.start + plain.chars().count();
    let name = LineWord { text: plain.to_owned(), at: name.at.start..end };
    let row = variable(typed, line, &name)?;
    match rest {
        [old, sign, new] if sign.text == "=" => {
            let typed_before = typed.last_of_name(plain).map(|set| set.value);
            let value = value_of(row, typed.line(line), new, Numbers::Adb)?;
            value_of(row, typed.line(line), old, Numbers::Adb)?;
            let is_other = typed_before.is_some_and(|before| before != value);
            typed.notes.push(LineNote {
                line,
                about: plain.to_owned(),
                value: format!("{} = {}", old.text, new.text),
                effect: match typed_before {
                    None => "the answer to a line that is not here".into(),
                    Some(before) if before == value => "the answer of adb".into(),
                    Some(before) => format!("the answer says {value}, the line before it {before}"),
                },
                is_caution: is_other,
            });
            if typed_before.is_none() {
                set_variable(typed, line, (row, &name, new), Numbers::Adb)?;
            }
            Ok(true)
        }
        [value] => {
            let form = match asked {
                Some((asked, form)) if asked == plain => *form,
                _ if value.text.starts_with("0x") => Numbers::Adb,
                _ => Numbers::Decimal,
            };
            set_variable(typed, line, (row, &name, value), form)?;
            if let Some(set) = typed.settings.last_mut() {
                set.remark = "as adb found it".into();
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

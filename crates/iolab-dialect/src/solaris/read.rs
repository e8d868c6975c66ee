//! From files to lines to what they say: each line finds its reader.

use super::commands::{self, Given};
use super::files::{adb, system};
use super::line::{LineFault, LineWord, lines};
use super::lower::{ImportOptions, ImportedConfig, lower};
use super::mcf::mcf;
use super::tunable::{Numbers, number};
use super::typed::{LineNote, Typed};

/// Signs of a shell that waits for a command.
const PROMPTS: [char; 4] = ['#', '%', '$', '>'];
/// Beginning of what tunefs answers to -a.
const TUNEFS_ANSWER: &str = "maximum contiguous block count changes from ";

/// Reads files (name and text) and says what they mean.
///
/// # Errors
///
/// A line cannot be read, is of another release, or cannot be meant so; it is the first such line.
pub fn import(
    files: &[(String, String)],
    options: &ImportOptions,
) -> Result<ImportedConfig, LineFault> {
    lower(&read(files)?, options)
}

/// Reads files (name and text).
///
/// # Errors
///
/// A line cannot be read, or a value lies outside the manual's range.
pub fn read(files: &[(String, String)]) -> Result<Typed, LineFault> {
    let mut typed = Typed::default();
    let mut asked = None;
    for (name, text) in files {
        for line in lines(name, text) {
            typed.lines.push(line);
            let index = typed.lines.len() - 1;
            read_line(&mut typed, index, &mut asked)?;
        }
    }
    Ok(typed)
}

fn read_line(
    typed: &mut Typed,
    index: usize,
    asked: &mut Option<(String, Numbers)>,
) -> Result<(), LineFault> {
    let mut words = typed.line(index).words(0);
    let Some(first) = words.first() else { return Ok(()) };
    if first.text.starts_with('*') {
        return Ok(()); // A comment of /etc/system.
    }
    if first.text.starts_with(PROMPTS) {
        let is_bare = first.text.len() == 1;
        if is_bare && words.get(1).is_some_and(is_beginning) {
            words.remove(0);
        } else if first.text.starts_with('#') {
            return Ok(());
        }
    }
    if words[0].text == "echo" {
        return echo(typed, index, &words, asked);
    }
    let (first, rest) = (&words[0], &words[1..]);
    if commands::is_command(first) {
        let given = Given { line: index, command: first, words: before_shell(rest) };
        return commands::read(typed, &given);
    }
    if answer_of_tunefs(typed, index)
        || system(typed, index, &words)?
        || adb(typed, index, &words, asked)?
        || mcf(typed, index, &words)?
        || commands::vfstab(typed, index, &words)?
        || commands::tunefstab(typed, index, &words)?
    {
        return Ok(());
    }
    refuse(typed, index, first)
}

/// Words up to a sign of the shell: `&`, `|`, `;`, `>`.
fn before_shell(words: &[LineWord]) -> &[LineWord] {
    let is_sign = |word: &LineWord| word.text.starts_with(['&', '|', ';', '>']);
    let end = words.iter().position(is_sign).unwrap_or(words.len());
    &words[..end]
}

fn is_beginning(word: &LineWord) -> bool {
    commands::is_command(word) || matches!(word.text.as_str(), "echo" | "set")
}

fn refuse(typed: &Typed, index: usize, first: &LineWord) -> Result<(), LineFault> {
    let hint = iolab_model::nearest::did_you_mean(first.base(), commands::names());
    let what = format!("this line is not understood{hint}");
    let remedy = "commands, /etc/system, adb, mcf, vfstab and tunefstab are; put # before it";
    Err(typed.line(index).fault(&first.at, what, remedy))
}

/// `echo "ufs_HW/W 0t16777216" | adb -kw`.
fn echo(
    typed: &mut Typed,
    index: usize,
    words: &[LineWord],
    asked: &mut Option<(String, Numbers)>,
) -> Result<(), LineFault> {
    let inside = words.get(1).cloned();
    if let Some(inside) = inside {
        // Behind the quote.
        let quote = inside.at.len().saturating_sub(inside.text.chars().count()) / 2;
        let mut from = inside.at.start + quote;
        let mut parts = Vec::new();
        for text in inside.text.split(' ') {
            let at = from..from + text.chars().count();
            from = at.end + 1;
            if !text.is_empty() {
                parts.push(LineWord { text: text.to_owned(), at });
            }
        }
        if adb(typed, index, &parts, asked)? {
            return Ok(());
        }
    }
    typed.note(index, "echo", "prints, and sets nothing");
    Ok(())
}

/// Notes an answer of tunefs to -a; tells whether the line was one.
fn answer_of_tunefs(typed: &mut Typed, index: usize) -> bool {
    let text = typed.line(index).text.trim().to_owned();
    let Some(rest) = text.strip_prefix(TUNEFS_ANSWER) else { return false };
    let numbers = rest.split_once(" to ").and_then(|(from, to)| {
        let to = to.trim_end_matches('.');
        Some((number(from, Numbers::Decimal)?, number(to, Numbers::Decimal)?))
    });
    let Some((from, to)) = numbers else { return false };
    let is_tunefs = |set: &&super::typed::Setting| set.command == "tunefs";
    let before = typed.settings.iter().rev().filter(is_tunefs);
    let before = before.map(|set| (set.value, set.tunable.name)).find(|(_, name)| *name == "-a");
    let (effect, is_caution) = match before {
        Some((value, _)) if value == to => ("the answer of tunefs".to_owned(), false),
        Some((value, _)) => (
            format!(
                "the line before it says -a {value}, which is what counts here: with that nothing \
                 becomes {to}; -a {to} was probably typed"
            ),
            true,
        ),
        None => ("the answer to a line that is not here".to_owned(), true),
    };
    typed.notes.push(LineNote {
        line: index,
        about: "tunefs answers".into(),
        value: format!("{from} to {to} blocks"),
        effect,
        is_caution,
    });
    true
}

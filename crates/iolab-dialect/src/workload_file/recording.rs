//! Recorded streams of a workload file: each is read once, whole, line by line, and summed up.
//!
//! So every line that is no operation is told before anything is touched. Left out: what the
//! streams are checked for ([`Workload::check`]).

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;

use iolab_workload::Workload;
use iolab_workload::program::{Recorded, RecordedContent, RecordedIdentity};
use toml::de::{DeTable, DeValue};

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 18;

/// Path of a part of the description, and what is wrong there.
type Wrong = (String, String);

/// A workload file's text in which the names of recorded streams are whole: so it can be stored and
/// read again elsewhere. A text that is no TOML stays as it is.
pub fn anchored(text: &str, folder: &Path) -> String {
    let Ok(table) = DeTable::parse(text) else { return text.to_owned() };
    let mut names = Vec::new();
    collect(table.get_ref(), &mut names);
    // From the end, so that places in front stay.
    names.sort_by_key(|(place, _)| core::cmp::Reverse(place.start));
    let mut text = text.to_owned();
    for (place, name) in names {
        let whole = std::path::absolute(folder.join(&name)).ok();
        let whole = whole.and_then(|whole| whole.to_str().map(str::to_owned));
        if let Some(whole) = whole.filter(|whole| *whole != name) {
            // A JSON text is a TOML text, too.
            text.replace_range(place, &serde_json::Value::from(whole).to_string());
        }
    }
    text
}

/// Places and values of the names of recorded streams.
fn collect(table: &DeTable<'_>, names: &mut Vec<(Range<usize>, String)>) {
    for (key, value) in table {
        match value.get_ref() {
            DeValue::Table(inner) if key.get_ref() == "recorded" => {
                let file = inner.iter().find(|(key, _)| key.get_ref() == "file");
                if let Some((_, value)) = file
                    && let DeValue::String(name) = value.get_ref()
                {
                    names.push((value.span(), name.to_string()));
                }
            }
            DeValue::Table(inner) => collect(inner, names),
            DeValue::Array(all) => {
                for one in all {
                    if let DeValue::Table(inner) = one.get_ref() {
                        collect(inner, names);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Adds to the recorded programs of a workload what their streams hold; names that are not whole
/// are those of files in `folder`.
pub fn take(workload: &mut Workload, folder: &Path) -> Result<(), Wrong> {
    for (index, phase) in workload.phases.iter_mut().enumerate() {
        for (number, tenant) in phase.tenants.iter_mut().enumerate() {
            let Some(program) = &mut tenant.program else { continue };
            let Some(recorded) = &mut program.recorded else { continue };
            let path = format!("phases[{index}].tenants[{number}].program.recorded.file");
            let found = content(recorded, folder).map_err(|why| {
                let what = format!("{}: {why}", recorded.file.display());
                (path, what)
            })?;
            recorded.content = Some(found);
            program.complete_recorded();
        }
    }
    Ok(())
}

fn content(recorded: &mut Recorded, folder: &Path) -> Result<RecordedContent, String> {
    let whole = std::path::absolute(folder.join(&recorded.file)).map_err(|error| told(&error))?;
    recorded.file = whole;
    RecordedContent::of(open(&recorded.file)?, recorded)
}

/// Size and digest of the file of a recorded stream.
///
/// # Errors
///
/// The file cannot be read, or is no ordinary one.
pub fn identity(path: &Path) -> Result<RecordedIdentity, String> {
    RecordedIdentity::of(open(path)?).map_err(|error| told(&error))
}

/// Opens an ordinary file; a pipe would be waited for, and is empty when the trial reads it.
pub fn open(path: &Path) -> Result<BufReader<File>, String> {
    let found = std::fs::metadata(path).map_err(|error| told(&error))?;
    if !found.is_file() {
        return Err("it is no ordinary file".to_owned());
    }
    let file = File::open(path).map_err(|error| told(&error))?;
    Ok(BufReader::with_capacity(BUFFER_BYTES, file))
}

/// Message of the system, without its number.
fn told(error: &std::io::Error) -> String {
    let text = error.to_string();
    format!("it cannot be read: {}", text.split(" (os error").next().unwrap_or_default())
}

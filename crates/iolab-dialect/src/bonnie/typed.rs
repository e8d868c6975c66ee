//! Typed options, checked value by value; what it means together is the business of `lower`.

use iolab_workload::waits::WaitFor;

use crate::diagnostic::Problem;
use crate::option::Given;

/// Bytes per transfer unless -s says otherwise.
pub const CHUNK: u64 = 8192;
/// Calls of one byte each that bonnie++ times together, per character.
pub const STEP: u64 = 8192;
/// Tickets of the seek phase.
pub const SEEKS: u64 = 8192;
/// Number of processes that seek.
pub const SEEKERS: u64 = 5;
const CHUNKS: std::ops::RangeInclusive<u64> = 256..=1 << 20;
const SIZE_MIB_MAX: u64 = 1 << 30;
/// Files that could be counted; how many there is memory for is checked later.
const FILES_MAX: u64 = 1 << 50;

/// -s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Of the file; 0: no phase on it.
    pub mib: u64,
    /// Bytes of a transfer.
    pub chunk: u64,
    /// Tickets.
    pub seeks: u64,
    /// Threads.
    pub seekers: u64,
}

/// -n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// In units of 1024 files; 0: no phase on many files.
    pub thousands: u64,
    /// Largest size; -1 hard links, -2 symbolic ones.
    pub size_max: i64,
    /// Smallest size.
    pub size_min: u64,
    /// Directories.
    pub directories: u64,
    /// Bytes of a transfer.
    pub chunk: u64,
}

/// The command line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Typed {
    /// --compat.
    pub is_compat: bool,
    /// -d.
    pub directory: String,
    /// -s, if given.
    pub size: Option<Size>,
    /// -n.
    pub files: Files,
    /// -f in MiB.
    pub per_char_mib: u64,
    /// -r in MiB, if given.
    pub ram_mib: Option<u64>,
    /// -c.
    pub concurrency: u64,
    /// -m, if given.
    pub name: Option<String>,
    /// -u and -g.
    pub user: (String, String),
    /// -x, if given.
    pub runs: Option<u32>,
    /// -q.
    pub is_quiet: bool,
    /// -b.
    pub is_flushed: bool,
    /// -D.
    pub is_direct: bool,
    /// -z, if given.
    pub seed: Option<u32>,
    /// -Z, if given after -z.
    pub random_file: Option<String>,
    /// -p, if given.
    pub semaphores: Option<i32>,
    /// -y, if given.
    pub waits: Option<WaitFor>,
}

impl Typed {
    /// Nothing typed yet.
    pub fn new(is_compat: bool) -> Self {
        let files = Files { thousands: 16, size_max: 0, size_min: 0, directories: 1, chunk: CHUNK };
        Self {
            is_compat,
            directory: ".".into(),
            size: None,
            files,
            per_char_mib: 3,
            ram_mib: None,
            concurrency: 1,
            name: None,
            user: (String::new(), String::new()),
            runs: None,
            is_quiet: false,
            is_flushed: false,
            is_direct: false,
            seed: None,
            random_file: None,
            semaphores: None,
            waits: None,
        }
    }
}

/// Meaning of letters after a number.
type Letters = &'static [(char, u64)];
const SIZES: Letters = &[('m', 1), ('g', 1 << 10), ('t', 1 << 20)];
const COUNTS: Letters = &[('k', 1 << 10)];
const BYTES: Letters = &[('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30)];
const THOUSANDS: Letters = &[('m', 1 << 10)];

/// A number with a letter. The original ignores a letter that it does not know.
fn number(part: &str, letters: Letters, is_compat: bool) -> Result<u64, Problem> {
    let wrong = |what: &str| {
        let known: Vec<String> = letters.iter().map(|(letter, _)| letter.to_string()).collect();
        Problem::new(
            format!("'{part}' {what}"),
            format!("write a whole number, perhaps with {}", known.join(" or ")),
        )
    };
    let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
    let (digits, rest) = part.split_at(digits);
    let value: u64 = digits.parse().map_err(|_| wrong("is no number that can be used here"))?;
    let mut rest = rest.chars();
    let scale = match (rest.next(), rest.next()) {
        (None, _) => 1,
        (Some(letter), None) => {
            let known = letters.iter().find(|(known, _)| *known == letter.to_ascii_lowercase());
            match known {
                Some((_, scale)) => *scale,
                None if is_compat => 1,
                None => return Err(wrong("has an unknown unit")),
            }
        }
        _ if is_compat => 1,
        _ => return Err(wrong("has an unknown unit")),
    };
    value.checked_mul(scale).ok_or_else(|| wrong("is too large"))
}

fn parts<'a>(given: &'a Given<'_>, most: usize) -> Result<Vec<&'a str>, Problem> {
    let parts: Vec<&str> = given.value.split(':').collect();
    if parts.len() > most {
        return Err(Problem::new(
            format!("{} takes at most {most} numbers, not {}", given.name, parts.len()),
            "leave out what is too much",
        ));
    }
    Ok(parts)
}

fn chunk(value: u64) -> Result<u64, Problem> {
    if CHUNKS.contains(&value) && value.is_power_of_two() {
        return Ok(value);
    }
    Err(Problem::new(
        format!("a chunk of {value} bytes"),
        "use a power of two from 256 to 1048576, for instance 8k",
    ))
}

/// Reads -s.
pub fn size(typed: &mut Typed, given: &Given<'_>) -> Result<(), Problem> {
    let parts = parts(given, 4)?;
    let of = |place: usize, letters: Letters, default: u64| match parts.get(place) {
        None | Some(&"") => Ok(default),
        Some(part) => number(part, letters, typed.is_compat),
    };
    let size = Size {
        mib: of(0, SIZES, 0)?,
        chunk: chunk(of(1, COUNTS, CHUNK)?)?,
        seeks: of(2, COUNTS, SEEKS)?,
        seekers: of(3, &[], SEEKERS)?,
    };
    if size.mib > SIZE_MIB_MAX {
        return Err(Problem::new(format!("a file of {} MiB", size.mib), "use at most 1024t"));
    }
    if size.seekers == 0 || size.seekers > 1024 || size.seeks > 1 << 30 {
        return Err(Problem::new(
            format!("{} seeks by {} seekers", size.seeks, size.seekers),
            "use up to 1048576k seeks and 1 to 1024 seekers",
        ));
    }
    typed.size = Some(size);
    Ok(())
}

/// Reads -n.
pub fn files(typed: &mut Typed, given: &Given<'_>) -> Result<(), Problem> {
    let parts = parts(given, 5)?;
    let of = |place: usize, letters: Letters, default: u64| match parts.get(place) {
        None | Some(&"") => Ok(default),
        Some(part) => number(part, letters, typed.is_compat),
    };
    let size_max = match parts.get(1) {
        Some(&"-1") => -1,
        Some(&"-2") => -2,
        _ => of(1, BYTES, 0)?.cast_signed(),
    };
    let files = Files {
        thousands: of(0, THOUSANDS, 0)?,
        size_max,
        size_min: of(2, BYTES, 0)?,
        directories: of(3, COUNTS, 1)?.max(1),
        chunk: chunk(of(4, COUNTS, CHUNK)?)?,
    };
    if files.thousands > FILES_MAX >> 10 {
        let problem = format!("{} times 1024 files", files.thousands);
        return Err(Problem::new(problem, "use fewer"));
    }
    if files.size_max >= 0 && files.size_max.cast_unsigned() < files.size_min {
        return Err(Problem::new(
            format!("files of at most {size_max} and at least {} bytes", files.size_min),
            "write -n NUMBER:LARGEST:SMALLEST",
        ));
    }
    if files.directories > 99_999 || files.directories > (files.thousands * 1024).max(1) {
        return Err(Problem::new(
            format!("{} directories for {} files", files.directories, files.thousands * 1024),
            "use at most 99999, and a file for each",
        ));
    }
    typed.files = files;
    Ok(())
}

/// Reads -m, and what else stands in the line of results.
pub fn field(given: &Given<'_>) -> Result<String, Problem> {
    if given.value.contains([',', '\n', '\r']) {
        let problem = format!("the name '{}' would break the CSV line", given.value);
        return Err(Problem::new(problem, "use a name without commas and line ends"));
    }
    Ok(given.value.to_owned())
}

/// Reads -u and -g: user and group, of which the group may be said once.
pub fn user(typed: &mut Typed, (user, group): (&str, &str)) -> Result<(), Problem> {
    if !user.is_empty() {
        user.clone_into(&mut typed.user.0);
    }
    if !group.is_empty() && !typed.user.1.is_empty() {
        let problem = format!("two groups, {} and {group}", typed.user.1);
        return Err(Problem::new(problem, "write -u USER:GROUP, or -u USER -g GROUP"));
    }
    if !group.is_empty() {
        group.clone_into(&mut typed.user.1);
    }
    Ok(())
}

/// Reads -p.
pub fn semaphores(typed: &mut Typed, given: &Given<'_>) -> Result<(), Problem> {
    let copies: i32 = given.number("a number of copies")?;
    if copies != -1 && !(1..=32_767).contains(&copies) {
        let what = format!("-p takes 1 to 32767 copies, or -1, not {copies}");
        return Err(Problem::new(what, "write -p 2 before two copies, -p -1 after them"));
    }
    typed.semaphores = Some(copies);
    Ok(())
}

/// Reads -y, which looks at the first letter only, as there.
pub fn waits(typed: &mut Typed, given: &Given<'_>) -> Result<(), Problem> {
    typed.waits = Some(match given.value.chars().next() {
        Some('s') => WaitFor::Semaphores,
        Some('p') => WaitFor::FrontEnd,
        _ => {
            let what = format!("-y takes s or p, not '{}'", given.value);
            return Err(Problem::new(what, "write -y s for semaphores, -y p for prompts"));
        }
    });
    Ok(())
}

/// A whole number within bounds.
pub fn bounded(given: &Given<'_>, least: u64, most: u64) -> Result<u64, Problem> {
    let value: u64 = given.number("a whole number")?;
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let what = format!("{} takes {least} to {most}, not {value}", given.name);
    Err(Problem::new(what, format!("write for instance {} {least}", given.name)))
}

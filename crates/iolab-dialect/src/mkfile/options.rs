//! The options of mkfile, one row each, and its size.

use crate::diagnostic::Problem;
use crate::option::{Given, Grammar, OptionRow, Standing};

use Standing::{Differs, Done};

const WHAT: &str = "What is made";
const MORE: &str = "More than the original";
/// Larger ones fit into no file system.
const BYTES_MAX: u64 = 1 << 60;

type Row = OptionRow<Typed>;

/// Typed options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Typed {
    /// -n.
    pub is_sparse: bool,
    /// -v.
    pub is_verbose: bool,
    /// --random.
    pub is_random: bool,
    /// --sync.
    pub is_synced: bool,
    /// Size, if given.
    pub bytes: Option<u64>,
    /// Names.
    pub files: Vec<String>,
}

/// The command line.
pub const GRAMMAR: Grammar<Typed> =
    Grammar { program: "mkfile", rows: OPTIONS, word: Some(operand) };

/// All options.
pub const OPTIONS: &[Row] = &[
    Row::flag(
        "-n",
        WHAT,
        "only the length is set: a sparse file without blocks but the last",
        Done,
        |typed, _| {
            typed.is_sparse = true;
            Ok(())
        },
    ),
    Row::flag("-v", WHAT, "print name and size of each file", Done, |typed, _| {
        typed.is_verbose = true;
        Ok(())
    }),
    Row::flag(
        "--random",
        MORE,
        "incompressible data instead of zeros",
        Differs("not in the original"),
        |typed, _| {
            typed.is_random = true;
            Ok(())
        },
    ),
    Row::flag(
        "--sync",
        MORE,
        "flush each file before it is closed, inside the time",
        Differs("not in the original"),
        |typed, _| {
            typed.is_synced = true;
            Ok(())
        },
    ),
];

/// The first word is the size, the others are files.
fn operand(typed: &mut Typed, given: &Given<'_>) -> Result<(), Problem> {
    if typed.bytes.is_none() {
        typed.bytes = Some(bytes(given.value)?);
    } else {
        typed.files.push(given.value.to_owned());
    }
    Ok(())
}

/// A size: bytes, or with k, b (512 bytes), m, g.
fn bytes(text: &str) -> Result<u64, Problem> {
    let wrong = |what: &str| {
        Problem::new(
            format!("unknown size {text}: {what}"),
            "write bytes, or a number with k, b (512 bytes), m or g, as in mkfile 64m FILE",
        )
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "b" | "B" => 512,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return Err(wrong("this is no unit")),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let value: Option<u64> = digits.parse().ok().filter(|_| is_number);
    let value = value.ok_or_else(|| wrong("this is no whole number"))?;
    let bytes = value.checked_mul(scale).filter(|bytes| *bytes <= BYTES_MAX);
    bytes.ok_or_else(|| wrong("no file can be so large"))
}

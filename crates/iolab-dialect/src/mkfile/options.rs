//! The options of mkfile, one row each, and its size.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Problem;
use crate::option::{Given, Grammar, OptionRow, Standing};

use Standing::{Differs, Done};

const WHAT: &str = "What is made";
const MORE: &str = "More than the original";
/// Interval of an iostat that looks on; a day is plenty.
const INTERVAL_MIN_S: f64 = 0.01;
const INTERVAL_MAX_S: f64 = 86_400.0;
/// Larger ones fit into no file system.
const BYTES_MAX: u64 = 1 << 60;

type Row = OptionRow<Typed>;

/// Reports of an iostat that looks on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MkfileIostat")]
#[allow(clippy::struct_excessive_bools, reason = "each is a letter of its own")]
pub struct Iostat {
    /// Virtual time between two reports.
    pub interval_ns: u64,
    /// Number of reports; absent: until the end.
    pub reports: Option<u32>,
    /// -n: names in the last column.
    pub has_names_last: bool,
    /// -c: columns of the processors.
    pub has_processors: bool,
    /// -z: devices that did nothing are left out.
    pub hides_idle: bool,
    /// -linux: layout of sysstat.
    pub is_linux: bool,
}

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
    /// --iostat.
    pub iostat: Option<Iostat>,
    /// --time.
    pub is_clocked: bool,
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
    Row::value(
        ("--iostat", "[-xnc] SECONDS"),
        MORE,
        "print what iostat of Solaris says each so many seconds of virtual time; also -linux 5",
        Differs("iostat in another window; with --on sim: alone"),
        |typed, given| {
            typed.iostat = Some(iostat(given.value)?);
            Ok(())
        },
    ),
    Row::flag(
        "--time",
        MORE,
        "print real, user and sys, as time(1) does",
        Differs("time mkfile ..."),
        |typed, _| {
            typed.is_clocked = true;
            Ok(())
        },
    ),
];

/// The words of an iostat that looks on: letters of layouts, seconds, number of reports.
fn iostat(text: &str) -> Result<Iostat, Problem> {
    const HOW: &str = "write seconds, or as typed for iostat: --iostat 5, --iostat '-xc 5', \
                       --iostat '-xn 5 3', --iostat '-linux 5'";
    let mut asked = Iostat::default();
    let mut numbers = Vec::new();
    for word in text.split_whitespace() {
        match word.strip_prefix('-') {
            Some("linux") => asked.is_linux = true,
            Some(letters) if !letters.is_empty() => {
                for letter in letters.chars() {
                    match letter {
                        'x' => {}
                        'n' => asked.has_names_last = true,
                        'c' => asked.has_processors = true,
                        'z' => asked.hides_idle = true,
                        _ => {
                            let problem = format!("--iostat knows no -{letter}");
                            return Err(Problem::new(problem, HOW));
                        }
                    }
                }
            }
            _ => numbers.push(word),
        }
    }
    let wrong = |what: String| Problem::new(what, HOW);
    let (seconds, count) = match numbers[..] {
        [seconds] => (seconds, None),
        [seconds, count] => (seconds, Some(count)),
        _ => return Err(wrong(format!("'{text}' is not what an iostat is asked"))),
    };
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: Option<f64> = seconds.parse().ok().filter(|_| plain(seconds));
    let number = number.filter(|number| (INTERVAL_MIN_S..=INTERVAL_MAX_S).contains(number));
    let refuse = || wrong(format!("'{seconds}' is no interval: {INTERVAL_MIN_S} to 86400 s"));
    asked.interval_ns = (number.ok_or_else(refuse)? * 1e9).round() as u64;
    if let Some(count) = count {
        let reports = count.parse().ok().filter(|&reports: &u32| reports > 0);
        asked.reports = Some(reports.ok_or_else(|| wrong(format!("'{count}' is no number")))?);
    }
    if asked.is_linux && (asked.has_names_last || asked.has_processors) {
        return Err(wrong("-n and -c belong to the layouts of Solaris".into()));
    }
    Ok(asked)
}

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

//! Values of `IOzone`'s options: sizes, counts, names, and what they must not be.

use iolab_model::op::Advice;

use super::typed::{Burst, Typed};
use crate::diagnostic::Problem;
use crate::option::Given;

/// Largest record: the original's buffer, 16 MB.
pub(super) const RECORD_KB_MAX: u64 = 16 << 10;
/// Children of throughput mode at most.
const CHILDREN_MAX: u32 = 1024;
/// Highest test number.
const TEST_MAX: u32 = 12;
/// Largest number that is no size: the original's `int`.
const NUMBER_MAX: u64 = i32::MAX as u64;
/// Sizes end below this many kB, 8 EiB: bytes of a file are an `off_t`.
const SIZE_KB_END: u64 = 1 << 43;
/// Tests that the original's Linux builds have.
const TESTS_OF_BUILD: u32 = 11;

impl Typed {
    #[allow(clippy::unnecessary_wraps, reason = "the end of an update")]
    pub(super) fn say(&mut self, line: &str) -> Result<(), Problem> {
        self.banner.push(line.to_owned());
        Ok(())
    }

    #[allow(clippy::unnecessary_wraps, reason = "the end of an update")]
    pub(super) fn note(&mut self, text: &str) -> Result<(), Problem> {
        self.notes.push(text.to_owned());
        Ok(())
    }
}

pub(super) fn exclusive(what: &str, remedy: &str) -> Problem {
    Problem::new(what, remedy)
}

/// The number that a C program finds at the beginning of a text; 0 if there is none.
pub(super) fn leading_number(text: &str) -> i64 {
    let text = text.trim_start();
    let end = text
        .char_indices()
        .find(|&(at, c)| !(c.is_ascii_digit() || at == 0 && "+-".contains(c)))
        .map_or(text.len(), |(at, _)| at);
    text[..end].parse().unwrap_or(0)
}

/// A number from `least` to [`NUMBER_MAX`].
pub(super) fn at_least(given: &Given<'_>, least: u64, what: &str) -> Result<u64, Problem> {
    within(given.name, given.number(what)?, least)
}

fn within(name: &str, number: u64, least: u64) -> Result<u64, Problem> {
    if number < least {
        let what = format!("{name} {number} is too small");
        return Err(Problem::new(what, format!("write {least} or more")));
    }
    if number > NUMBER_MAX {
        let what = format!("{name} {number} is too large");
        return Err(Problem::new(what, format!("write {NUMBER_MAX} or less")));
    }
    Ok(number)
}

pub(super) fn select_test(t: &mut Typed, g: &Given<'_>) -> Result<(), Problem> {
    if t.is_compat {
        let number = leading_number(g.value).max(0) as u32;
        match number {
            TESTS_OF_BUILD => {}
            n if n > TESTS_OF_BUILD => {
                t.say("Selected test not available on the version.")?;
                t.tests.push(0);
            }
            n => t.tests.push(n),
        }
        return Ok(());
    }
    let number: u32 = g.value.parse().map_err(|_| {
        Problem::new(
            format!("-i takes the number of a test, not '{}'", g.value),
            "write 0 (write) to 12 (preadv); the original would run test 0",
        )
    })?;
    if number > TEST_MAX {
        let what = format!("there is no test {number}");
        let remedy = "write 0 (write) to 12 (preadv); the original would run test 0";
        return Err(Problem::new(what, remedy));
    }
    t.tests.push(number);
    Ok(())
}

/// A size in kB; the original takes any prefix that is a number, and `default` for nothing.
pub(super) fn size_kb(t: &Typed, g: &Given<'_>, default: u64) -> Result<u64, Problem> {
    let text = g.value;
    let factor = match text.chars().last() {
        Some('m' | 'M') => 1 << 10,
        Some('g' | 'G') => 1 << 20,
        _ => 1,
    };
    if t.is_compat {
        let number = leading_number(text);
        return Ok(if number > 0 {
            (number as u64).saturating_mul(factor).min(SIZE_KB_END - 1)
        } else {
            default
        });
    }
    let digits = text.strip_suffix(['k', 'K', 'm', 'M', 'g', 'G']).unwrap_or(text);
    let number = digits.parse::<u64>().ok().filter(|_| !digits.starts_with('+'));
    let kb = number.and_then(|number| number.checked_mul(factor)).filter(|kb| *kb < SIZE_KB_END);
    kb.filter(|kb| *kb > 0).ok_or_else(|| {
        Problem::new(
            format!("{} takes a size, not '{text}'", g.name),
            format!(
                "write a whole number of kB, or with k, m or g: {} {}",
                g.name,
                meant_size(text).unwrap_or_else(|| "64m".to_owned())
            ),
        )
    })
}

/// A fraction, spelt as the size that it means: `0.5m` is `512k`.
pub(super) fn meant_size(text: &str) -> Option<String> {
    let (digits, factor) = match text.char_indices().last()? {
        (at, 'm' | 'M') => (&text[..at], 1024.0),
        (at, 'g' | 'G') => (&text[..at], 1024.0 * 1024.0),
        (at, 'k' | 'K') => (&text[..at], 1.0),
        (at, 't' | 'T') => {
            let number: u64 = text[..at].parse().ok()?;
            return Some(format!("{}g", number.checked_mul(1024)?));
        }
        _ => return None,
    };
    let kb = digits.parse::<f64>().ok()? * factor;
    (kb >= 1.0 && kb.fract() == 0.0 && kb < 1e12).then(|| format!("{}k", kb as u64))
}

pub(super) fn record_kb(kb: u64, g: &Given<'_>) -> Result<u64, Problem> {
    if kb > RECORD_KB_MAX {
        let what = format!("a record of {kb} kB is larger than {RECORD_KB_MAX} kB");
        return Err(Problem::new(what, format!("write {} 16m or less", g.name)));
    }
    Ok(kb)
}

/// Sizes of a table are given in ascending order: the original finds the next one that is larger.
pub(super) fn ascending(known: &[u64], kb: u64, g: &Given<'_>) -> Result<(), Problem> {
    match known.last() {
        Some(&last) if kb <= last => Err(Problem::new(
            format!("{} {} is not larger than the {last} kB before it", g.name, g.value),
            format!("repeat {} in ascending order, each size once", g.name),
        )),
        _ => Ok(()),
    }
}

pub(super) fn children(t: &mut Typed, g: &Given<'_>) -> Result<u32, Problem> {
    if t.children.file.is_some() {
        let what = format!("{} starts several children, -f names one file", g.name);
        return Err(exclusive(&what, "use -F with one name per child, or leave out -f"));
    }
    let number = if t.is_compat {
        let number = leading_number(g.value);
        if number <= 0 { 8 } else { number.min(i64::from(u32::MAX)) as u32 }
    } else {
        g.number::<u32>("a number of children").map_err(|problem| {
            if g.name == "-l" && g.value.starts_with(|c: char| c.is_ascii_digit()) {
                return Problem::new(
                    format!("-l {}: -l is a number of children", g.value),
                    format!("for direct I/O write -I; for a record size write -r {}", g.value),
                );
            }
            problem
        })?
    };
    if number == 0 {
        let what = format!("{} 0 starts no child", g.name);
        return Err(Problem::new(what, "write 1 or more"));
    }
    if number > CHILDREN_MAX {
        let what = format!("{} {number} is more than {CHILDREN_MAX} children", g.name);
        return Err(Problem::new(what, format!("write {CHILDREN_MAX} or less")));
    }
    Ok(number)
}

pub(super) fn take_files(t: &mut Typed, g: &Given<'_>) -> Result<(), Problem> {
    if g.words.is_empty() {
        let what = "-F stands before -t, so nobody knows how many names follow";
        return Err(Problem::new(what, "write -t N first, then -F with N names"));
    }
    if t.children.file.is_some() {
        return Err(exclusive("-f and -F name files twice", "leave one of them out"));
    }
    let dashed = g.words.iter().find(|word| word.starts_with('-'));
    if let (Some(word), false) = (dashed, t.is_compat) {
        let what = format!("-F would take the option {word} as a file name");
        let remedy = format!("give {} names directly after -F", g.words.len());
        return Err(Problem::new(what, remedy));
    }
    let mut names: Vec<&String> = g.words.iter().collect();
    names.sort();
    if let Some(pair) = names.windows(2).find_map(|pair| (pair[0] == pair[1]).then_some(pair[0])) {
        let what = format!("-F names {pair} twice");
        return Err(Problem::new(what, "each child needs a file of its own"));
    }
    t.children.files = g.words.to_vec();
    Ok(())
}

pub(super) fn asynchronous(t: &mut Typed, g: &Given<'_>) -> Result<(), Problem> {
    if let Some((other, _)) = t.how.depth.filter(|(other, _)| *other != g.name) {
        let what = format!("{} and {other} ask for asynchronous I/O twice", g.name);
        return Err(Problem::new(what, "use one of them"));
    }
    let depth = at_least(g, 1, "a number of operations")?;
    if depth > 4096 {
        let what = format!("{} {depth} is more than 4096 operations at once", g.name);
        return Err(Problem::new(what, "write 4096 or less"));
    }
    t.how.depth = Some((g.name, depth as u32));
    t.say(&if g.name == "-H" {
        format!("POSIX async I/O (with bcopy). Depth {depth}")
    } else {
        format!("POSIX Async I/O (no bcopy). Depth {depth} ")
    })
}

/// The advice of -+A, by the original's number.
pub(super) fn advice(t: &mut Typed, g: &Given<'_>) -> Result<(), Problem> {
    let number: usize = g.number("the number of an advice")?;
    let Some(advice) = Advice::ALL.get(number) else {
        let names: Vec<String> =
            Advice::ALL.iter().enumerate().map(|(n, advice)| format!("{n} {advice}")).collect();
        let what = format!("there is no advice {number}");
        return Err(Problem::new(what, format!("write one of {}", names.join(", "))));
    };
    t.how.advice = Some(*advice);
    t.say(&format!("Madvise enabled: {number}"))
}

/// The bursts of -+b: a size, and the milliseconds between two.
pub(super) fn burst(t: &mut Typed, g: &Given<'_>) -> Result<(), Problem> {
    const EXAMPLE: &str = "write a size and milliseconds, for instance -+b 32k,100";
    let Some((size, ms)) = g.value.split_once(',') else {
        return Err(Problem::new(format!("-+b takes two numbers, not '{}'", g.value), EXAMPLE));
    };
    let kb = size_kb(t, &Given { value: size, ..g.clone() }, 0)?;
    let ms: u64 = ms.parse().map_err(|_| {
        Problem::new(format!("-+b takes milliseconds after the comma, not '{ms}'"), EXAMPLE)
    })?;
    if kb == 0 {
        return Err(Problem::new("-+b: a burst of nothing", EXAMPLE));
    }
    t.how.burst = Some(Burst { kb, ms: within("-+b", ms, 0)? });
    Ok(())
}

/// A share, 0 to 100.
pub(super) fn percent(g: &Given<'_>) -> Result<u8, Problem> {
    let percent: u32 = g.number("a percentage")?;
    if percent > 100 {
        let what = format!("{} {percent} is more than everything", g.name);
        return Err(Problem::new(what, "write 0 to 100"));
    }
    Ok(percent as u8)
}

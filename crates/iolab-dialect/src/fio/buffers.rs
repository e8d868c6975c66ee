//! Data that a job writes: patterns, zeros, shares that can be compressed or de-duplicated.
//!
//! Facts about `buffer_pattern`: fio 3.33, found by looking at what it had written. Left out:
//! patterns from files, and those of more than 32 bytes.

use iolab_model::target::{Blend, BytePattern, Content};
use iolab_model::{Bytes, Seed};

use super::geometry::Wrong;
use super::job::Job;
use crate::diagnostic::Problem;

/// Root of data that are equal.
const SEED: u64 = 0x00f1_0f10;
/// Storage looks for equals page by page.
const PAGE: u64 = 4096;

const FORMS: &str = "write 0xHEX, a number, \"TEXT\", or several of them without blanks";

/// Bytes of a pattern as fio takes them: `0xdeadbeef`, `255`, `"text"`, one behind the other.
pub fn pattern(text: &str) -> Result<BytePattern, Problem> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = part(rest, &mut bytes)?;
        if bytes.len() > BytePattern::BYTES_MAX {
            let what =
                format!("a pattern of more than {} bytes is not done", BytePattern::BYTES_MAX);
            return Err(Problem::new(what, "write a shorter one, which is repeated"));
        }
    }
    BytePattern::of(&bytes).ok_or_else(|| Problem::new("the pattern is empty", FORMS))
}

/// Takes the first part of a pattern; answers with what stands behind it.
fn part<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, Problem> {
    let wrong = || Problem::new(format!("'{text}' is no pattern"), FORMS);
    if let Some(inside) = text.strip_prefix('"') {
        let (quoted, rest) = inside.split_once('"').ok_or_else(wrong)?;
        bytes.extend_from_slice(quoted.as_bytes());
        return Ok(rest);
    }
    if text.starts_with('\'') {
        return Err(Problem::new("a pattern from a file is not done", FORMS));
    }
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = hex.find(|digit: char| !digit.is_ascii_hexdigit()).unwrap_or(hex.len());
        let digits = &hex[..end];
        if digits.is_empty() {
            return Err(wrong());
        }
        // An odd number of digits has a zero before it.
        let even = if digits.len() % 2 == 0 { digits.to_owned() } else { format!("0{digits}") };
        let pairs = (0..even.len()).step_by(2).map(|at| u8::from_str_radix(&even[at..at + 2], 16));
        bytes.extend(pairs.collect::<Result<Vec<u8>, _>>().map_err(|_| wrong())?);
        return Ok(&hex[end..]);
    }
    let sign = usize::from(text.starts_with('-'));
    let digits = text[sign..].find(|digit: char| !digit.is_ascii_digit());
    let end = digits.map_or(text.len(), |at| at + sign);
    let number: i32 = text[..end].parse().map_err(|_| wrong())?;
    let little = number.to_le_bytes();
    // As many bytes as the number has; a negative one has all four.
    let used = little.iter().rposition(|byte| *byte != 0).map_or(1, |at| at + 1);
    bytes.extend_from_slice(&little[..used]);
    Ok(&text[end..])
}

/// The pattern that a job writes and compares.
pub fn verified_pattern(job: &Job) -> Option<BytePattern> {
    job.verify_pattern.filter(|_| job.verify == Some("pattern"))
}

/// Data that a job writes.
pub fn content(job: &Job) -> Content {
    let (zeros, equal) = (job.compress_percent, job.dedupe_percent);
    if let Some(pattern) = verified_pattern(job).or(job.pattern) {
        return Content::Pattern(pattern);
    }
    if job.has_zeros || zeros == 100 {
        return Content::Zero;
    }
    if zeros == 0 && equal == 0 {
        return Content::Incompressible;
    }
    let (everywhere, within) = if job.is_dedupe_global { (equal, 0) } else { (0, equal) };
    Content::Blend(Blend {
        granule_bytes: Bytes(PAGE * pages_of_share(equal)),
        across_percent: 0,
        everywhere_percent: everywhere as u8,
        within_percent: within as u8,
        zero_percent: 0,
        chunk_bytes: Bytes(if zeros > 0 { job.compress_chunk } else { 0 }),
        chunk_zero_percent: zeros as u8,
        seed: Seed(SEED),
        skew: 0,
    })
}

/// The least number of pages of which so many percent are whole pages.
fn pages_of_share(percent: u64) -> u64 {
    (1..=100).find(|pages| (pages * percent).is_multiple_of(100)).unwrap_or(100)
}

/// Tell whether data of a kind are asked for, which carry no stamps of a verification.
pub fn is_of_a_kind(job: &Job) -> bool {
    content(job) != Content::Incompressible
}

/// Refuses kinds of data that exclude each other.
pub fn check(job: &Job) -> Result<(), Wrong> {
    let both = |name: &'static str, other: &str| {
        let what = format!("{name} beside {other} is not done");
        Err((name, Problem::new(what, "write one of them")))
    };
    if job.pattern.is_some() && job.has_zeros {
        return both("buffer_pattern", "zero_buffers");
    }
    if job.pattern.is_some() && job.compress_percent > 0 {
        return both("buffer_pattern", "buffer_compress_percentage");
    }
    if job.pattern.is_some() && job.dedupe_percent > 0 {
        return both("buffer_pattern", "dedupe_percentage");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_the_bytes_that_fio_wrote() {
        let seen: [(&str, &[u8]); 11] = [
            ("0xdeadbeef", &[0xde, 0xad, 0xbe, 0xef]),
            ("0x0102030", &[0, 0x10, 0x20, 0x30]),
            ("0x61", b"a"),
            ("255", &[255]),
            ("1023", &[0xff, 3]),
            ("70000", &[0x70, 0x11, 1]),
            ("-12", &[0xf4, 0xff, 0xff, 0xff]),
            ("\"abcd\"-12", &[b'a', b'b', b'c', b'd', 0xf4, 0xff, 0xff, 0xff]),
            ("\"ab\"0x0102", &[b'a', b'b', 1, 2]),
            ("0x00ff\"z\"", &[0, 255, b'z']),
            ("0", &[0]),
        ];
        for (text, bytes) in seen {
            assert_eq!(Some(pattern(text).unwrap()), BytePattern::of(bytes), "{text}");
        }
        for text in ["abc", "0xzz", "\"a", "", "''", "99999999999", "0x", "ü"] {
            assert!(pattern(text).is_err(), "{text}");
        }
        assert!(pattern(&format!("0x{}", "ab".repeat(33))).is_err());
        let mut buffer = [0; 5];
        pattern("\"xy\"").unwrap().fill(&mut buffer);
        assert_eq!(&buffer, b"xyxyx");
    }
}

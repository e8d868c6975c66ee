//! Arguments of a call: found in a text whose strings may hold any other character.

/// Index behind the string that begins at `at` with a quote; the length if it does not end.
fn after_string(text: &[u8], at: usize) -> usize {
    let mut index = at + 1;
    while index < text.len() {
        match text[index] {
            b'\\' => index += 2,
            b'"' => return index + 1,
            _ => index += 1,
        }
    }
    text.len()
}

/// Bytes of a path with four characters for each of `PATH_MAX` (include/uapi/linux/limits.h).
const PATH_BYTES_MAX: usize = 4 * 4096;

/// Index behind the path that begins at `at` with `<`, as `-y` prints it behind a descriptor.
///
/// strace writes a `>` of the path as `\76`; the only other one is that of `->` between addresses.
fn after_path(text: &[u8], at: usize) -> usize {
    let has_arrow = [&b"TCP"[..], b"UDP", b"UNIX", b"SCTP", b"RAW", b"NETLINK", b"socket"]
        .iter()
        .any(|kind| text[at + 1..].starts_with(kind));
    let mut index = at + 1;
    while index < text.len().min(at + PATH_BYTES_MAX) {
        if text[index] == b'>' && !(has_arrow && text[index - 1] == b'-') {
            return index + 1;
        }
        index += 1;
    }
    at + 1
}

/// True if a `<` at `at` follows a descriptor: a digit, `AT_FDCWD`, or the number of one.
fn follows_descriptor(text: &[u8], at: usize) -> bool {
    at > 0 && (text[at - 1].is_ascii_digit() || text[..at].ends_with(b"AT_FDCWD"))
}

/// Separates the arguments of a call.
///
/// `text` begins behind the opening parenthesis; the answer is the index of the closing one, and
/// `arguments` are ranges. None if the call does not end.
pub fn split(text: &[u8], arguments: &mut Vec<(usize, usize)>) -> Option<usize> {
    arguments.clear();
    let (mut depth, mut begin, mut index) = (0_u32, 0, 0);
    while index < text.len() {
        match text[index] {
            b'"' => {
                index = after_string(text, index);
                continue;
            }
            b'<' if follows_descriptor(text, index) => {
                index = after_path(text, index);
                continue;
            }
            b'/' if text[index..].starts_with(b"/*") => {
                index = find(&text[index..], b"*/").map_or(text.len(), |end| index + end + 2);
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                if begin < index || !arguments.is_empty() {
                    arguments.push((begin, index));
                }
                return Some(index);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                arguments.push((begin, index));
                begin = index + 1;
            }
            _ => {}
        }
        index += 1;
    }
    None
}

/// Index of the first occurrence.
pub fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// A number at the beginning of a text, decimal or hexadecimal with `0x`; what follows it does not
/// matter.
pub fn number(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii();
    let (is_negative, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let hexadecimal = digits.strip_prefix(b"0x").or_else(|| digits.strip_prefix(b"0X"));
    let (digits, radix) = hexadecimal.map_or((digits, 10), |rest| (rest, 16));
    let length = digits.iter().take_while(|digit| (**digit as char).is_digit(radix)).count();
    let digits = std::str::from_utf8(&digits[..length]).ok()?;
    // An address above 2^63 is none of the numbers that are wanted here.
    let value = i64::try_from(u64::from_str_radix(digits, radix).ok()?).ok()?;
    Some(if is_negative { -value } else { value })
}

/// The path that `-y` prints behind a descriptor, without what says that it is deleted.
pub fn path(text: &[u8]) -> Option<Vec<u8>> {
    let at = text.iter().position(|byte| *byte == b'<')?;
    let end = after_path(text, at);
    let path = text.get(at + 1..end.checked_sub(1)?)?;
    unescaped(path.strip_suffix(b" (deleted)").unwrap_or(path))
}

/// The content of a string argument; cut where strace cut it.
pub fn string(text: &[u8]) -> Option<Vec<u8>> {
    unescaped(text.trim_ascii().strip_prefix(b"\"")?)
}

/// A text up to its quote, with its escapes resolved; None if one of them is none.
pub fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut index = 0;
    while index < text.len() && text[index] != b'"' {
        let byte = text[index];
        index += 1;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let escaped = *text.get(index)?;
        let (length, radix) = match escaped {
            b'x' => (3, 16),
            b'0'..=b'7' => {
                let is_octal = |byte: &&u8| (b'0'..=b'7').contains(*byte);
                (text[index..].iter().take(3).take_while(is_octal).count(), 8)
            }
            _ => (1, 0),
        };
        out.push(if radix == 0 {
            plain(escaped)
        } else {
            let digits = text.get(index + usize::from(radix == 16)..index + length)?;
            // Three octal digits may be more than a byte: the upper bit is not one of them.
            u16::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?.to_le_bytes()[0]
        });
        index += length;
    }
    Some(out)
}

const fn plain(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'v' => 0x0b,
        b'f' => 0x0c,
        other => other,
    }
}

/// Value of `name=` in a structure; the first one behind `from`, and where it ends.
pub fn field(text: &[u8], name: &[u8], from: usize) -> Option<(i64, usize)> {
    let at = from + find(text.get(from..)?, name)? + name.len();
    Some((number(&text[at..])?, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> Option<Vec<&str>> {
        let mut ranges = Vec::new();
        split(text.as_bytes(), &mut ranges)?;
        Some(ranges.iter().map(|(begin, end)| text[*begin..*end].trim()).collect())
    }

    #[test]
    fn arguments_are_found_whatever_strings_and_paths_hold() {
        assert_eq!(
            arguments(r#"3, "a) = 1, \"", 8) = 8"#),
            Some(vec!["3", r#""a) = 1, \"""#, "8"])
        );
        assert_eq!(
            arguments(r#"AT_FDCWD</a, (b>, "x", O_RDONLY) = 3"#),
            Some(vec!["AT_FDCWD</a, (b>", r#""x""#, "O_RDONLY"])
        );
        assert_eq!(
            arguments("5<TCP:[1.2.3.4:5->6.7.8.9:80]>, [{iov_base=\"\", iov_len=1}], 1) = 1"),
            Some(vec!["5<TCP:[1.2.3.4:5->6.7.8.9:80]>", "[{iov_base=\"\", iov_len=1}]", "1"])
        );
        assert_eq!(arguments("0x7f /* 35 vars, ) */) = 0"), Some(vec!["0x7f /* 35 vars, ) */"]));
        assert_eq!(arguments(") = 4711"), Some(vec![]));
        assert_eq!(arguments("3, \"never ends"), None);
    }

    #[test]
    fn numbers_and_names_are_read_as_both_programs_write_them() {
        assert_eq!(number(b" 0x0D780000"), Some(225_968_128));
        assert_eq!(number(b"-100, "), Some(-100));
        assert_eq!(number(b"4096</tmp/x>"), Some(4096));
        assert_eq!(number(b"NULL"), None);
        assert_eq!(path(b"3</tmp/a\\76b (deleted)>"), Some(b"/tmp/a>b".to_vec()));
        assert_eq!(path(b"3</etc/passwd->"), Some(b"/etc/passwd-".to_vec()));
        assert_eq!(path(b"3"), None);
        assert_eq!(string(br#""a\n\101\\""#), Some(b"a\nA\\".to_vec()));
        assert_eq!(string(br#""\xffab"..."#), Some(b"\xffab".to_vec()));
    }
}

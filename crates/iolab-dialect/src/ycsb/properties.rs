//! Property files as Java reads them, with the place of each value.
//!
//! Comments begin with `#` or `!`; a key ends at `=`, `:` or a blank; a backslash at the end of a
//! line goes on in the next one; `\uXXXX` and the usual escapes are read. Later ones win.

use std::ops::Range;

/// A property at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its value, blanks at its end included.
    pub value: String,
    /// Place where it was written.
    pub origin: Origin,
}

/// Place of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A word of the command line, and the part of it.
    Word(usize, Range<usize>),
    /// A line of a file: its name, the number of the line from 1 on, and its text.
    File(String, usize, String),
}

/// Properties of a file.
pub fn read(file: &str, text: &str) -> Vec<Property> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, first)) = lines.next() {
        let start = first.trim_start_matches(is_blank);
        if start.is_empty() || start.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = start.to_owned();
        while goes_on(&whole) {
            whole.pop();
            let Some((_, next)) = lines.next() else { break };
            whole.push_str(next.trim_start_matches(is_blank));
        }
        let (name, value) = divided(&whole);
        let origin = Origin::File(file.to_owned(), number + 1, first.to_owned());
        found.push(Property { name: unescaped(name), value: unescaped(value), origin });
    }
    found
}

const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

/// Tell whether a line ends with an odd number of backslashes.
fn goes_on(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Key and value of a whole line.
fn divided(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let mut end = line.len();
    for (at, c) in line.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = true;
        } else if c == '=' || c == ':' || is_blank(c) {
            end = at;
            break;
        }
    }
    let rest = line[end..].trim_start_matches(is_blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (&line[..end], rest.trim_start_matches(is_blank))
}

/// Text without its escapes; a broken `\u` stays as it is.
fn unescaped(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            found.push(c);
            continue;
        }
        match rest.next() {
            Some('t') => found.push('\t'),
            Some('n') => found.push('\n'),
            Some('r') => found.push('\r'),
            Some('f') => found.push('\u{c}'),
            Some('u') => {
                let digits: String = rest.clone().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                match code.and_then(char::from_u32) {
                    Some(c) => {
                        found.push(c);
                        rest.nth(3);
                    }
                    None => found.push_str("\\u"),
                }
            }
            Some(other) => found.push(other),
            None => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        read("f", text).into_iter().map(|one| (one.name, one.value)).collect()
    }

    #[test]
    fn files_are_read_as_java_reads_them() {
        let text = "# comment\n! comment\n\n a = b \nc:d\ne f\ng\\ h=i\\\n   j\nk=\\u0041\\t\nl\n\
                    m = = n\no=\\\\\n";
        let expected = [
            ("a", "b "),
            ("c", "d"),
            ("e", "f"),
            ("g h", "ij"),
            ("k", "A\t"),
            ("l", ""),
            ("m", "= n"),
            ("o", "\\"),
        ];
        let expected: Vec<_> = expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        assert_eq!(pairs(text), expected);
        let found = read("f", text);
        assert_eq!(found[0].origin, Origin::File("f".into(), 4, " a = b ".into()));
        assert_eq!(found[3].origin, Origin::File("f".into(), 7, "g\\ h=i\\".into()));
    }

    proptest::proptest! {
        /// Any text is read, and what is read was there.
        #[test]
        fn any_text_is_read(text in "[ -~\\\\\n\t=:#!]{0,200}") {
            for property in read("f", &text) {
                let Origin::File(_, number, line) = property.origin else { unreachable!() };
                proptest::prop_assert_eq!(text.lines().nth(number - 1), Some(&line[..]));
            }
        }

        /// A pair that is written plainly is read back.
        #[test]
        fn plain_pairs_are_read_back(name in "[a-z.]{1,12}", value in "[a-z0-9./]{0,12}") {
            proptest::prop_assert_eq!(pairs(&format!("{name}={value}\n")), [(name, value)]);
        }
    }
}

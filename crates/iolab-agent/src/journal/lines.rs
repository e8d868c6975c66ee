//! The text of a journal: each line carries a sum, so that a flipped bit is not taken for a change.
//!
//! What is whole is found even where line ends are damaged. A torn last line is a crash while it
//! was written and no damage. Lines without a sum count only if no line has one, as in journals of
//! other versions; beside sealed lines they are damaged ones. Left out: what a line means.

use iolab_drive::verify::hash::xxh64;

const SEAL: &str = ",\"sum\":\"";
const SUM_DIGITS: usize = 16;
const END: &str = "\"}";
const BEGIN: &str = "{\"line\":\"";

/// A line with its sum and its end.
pub fn sealed(json: &str) -> String {
    let body = json.strip_suffix('}').expect("a journal line is an object");
    format!("{body}{SEAL}{:016x}{END}\n", xxh64(json.as_bytes()))
}

/// The line without its sum; none if that is wrong.
fn unsealed(line: &str) -> Option<String> {
    let Some(start) = line.rfind(SEAL) else { return Some(line.to_owned()) };
    let json = format!("{}}}", &line[..start]);
    let sum = line[start + SEAL.len()..].strip_suffix(END)?;
    (sum == format!("{:016x}", xxh64(json.as_bytes()))).then_some(json)
}

/// Content of a text.
#[derive(Debug, Default)]
pub struct Found {
    /// Lines that are whole, with their numbers.
    pub whole: Vec<(usize, String)>,
    /// Numbers of the lines that are not.
    pub damaged: Vec<usize>,
    /// Bytes of a last line that was being written.
    pub torn_bytes: usize,
    /// The last line is whole but for its end.
    pub lacks_end: bool,
}

/// Takes a text apart; `is_fine` says of a line without its sum whether it can be read.
pub fn take_apart(text: &str, is_fine: impl Fn(&str) -> bool) -> Found {
    let mut found = Found::default();
    let is_sealed = text.contains(SEAL);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let number = index + 1;
        let (line, is_last) = match line.strip_suffix('\n') {
            Some(line) => (line, false),
            None => (line, true),
        };
        let lacks_sum = (is_last || is_sealed) && !line.contains(SEAL);
        let whole = if lacks_sum { None } else { unsealed(line) };
        if let Some(json) = whole.filter(|json| is_fine(json)) {
            found.whole.push((number, json));
            found.lacks_end = is_last;
            continue;
        }
        let pieces = pieces(line);
        // A flipped line end is all that is wrong with lines that became one.
        let covered: usize = pieces.iter().map(|(length, _)| length + 1).sum();
        found.whole.extend(pieces.iter().map(|(_, json)| (number, json.clone())));
        let is_torn = is_last && pieces.is_empty() && !(line.contains(SEAL) && line.ends_with(END));
        if is_torn {
            found.torn_bytes = line.len();
        } else if covered < line.len() {
            found.damaged.push(number);
        }
        found.lacks_end = is_last && !is_torn;
    }
    found
}

/// Whole sealed lines inside a damaged one: length and text of each.
fn pieces(line: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(BEGIN) {
        let from = &rest[start..];
        let ends =
            from.match_indices(SEAL).map(|(place, _)| place + SEAL.len() + SUM_DIGITS + END.len());
        let whole = ends
            .filter_map(|end| from.get(..end))
            .find_map(|piece| Some((piece.len(), unsealed(piece)?)));
        let step = whole.as_ref().map_or(BEGIN.len(), |(length, _)| *length);
        found.extend(whole);
        rest = &from[step..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(found: &Found) -> Vec<usize> {
        found.whole.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn a_flipped_bit_is_noticed_and_a_flipped_line_end_harmless() {
        let lines = [sealed("{\"line\":\"a\",\"old\":\"100\"}"), sealed("{\"line\":\"b\"}")];
        let text = lines.concat();
        let found = take_apart(&text, |_| true);
        assert_eq!((numbers(&found), found.damaged.len(), found.torn_bytes), (vec![1, 2], 0, 0));
        let found = take_apart(&text.replace("100", "900"), |_| true);
        assert_eq!((numbers(&found), &*found.damaged), (vec![2], &[1][..]));
        let found = take_apart(&text.replacen('\n', "x", 1), |_| true);
        assert_eq!((numbers(&found), found.damaged.len()), (vec![1, 1], 0));
        let found = take_apart(text.trim_end(), |_| true);
        assert_eq!((numbers(&found), found.lacks_end, found.torn_bytes), (vec![1, 2], true, 0));
        let found = take_apart(&text[..text.len() - 9], |_| true);
        assert_eq!((numbers(&found), found.damaged.len()), (vec![1], 0));
        assert!(found.torn_bytes > 0, "{found:?}");
        // A seal that was hit as well does not make a line one of an older journal.
        let found = take_apart(&text.replacen("sum", "sun", 1), |_| true);
        assert_eq!((numbers(&found), &*found.damaged), (vec![2], &[1][..]));
        let found = take_apart("{\"line\":\"a\"}\n{\"line\":\"b\"}\n", |_| true);
        assert_eq!((numbers(&found), found.damaged.len()), (vec![1, 2], 0));
    }
}

//! Characters of other people's texts that a terminal obeys.

/// True of a character that a terminal obeys: control characters, and those that change the
/// direction of what follows (Unicode Standard Annex 9) or end a line. They are those that
/// `iolab.visible` shows as numbers.
pub fn is_obeyed(sign: char) -> bool {
    sign.is_control()
        || matches!(
            sign,
            '\u{61c}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

/// A text without such characters: `?` stands for each.
pub fn harmless(text: &str) -> String {
    text.chars().map(|sign| if is_obeyed(sign) { '?' } else { sign }).collect()
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn what_a_terminal_obeys_is_replaced_and_letters_are_not() {
        let text = "a\u{1b}[2Jb\u{202e}c\u{2066}d\u{9b}e\n";
        assert_eq!(harmless(text), "a?[2Jb?c?d?e?");
        assert_eq!(harmless("größe 日本 µs"), "größe 日本 µs");
    }
}

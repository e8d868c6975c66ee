//! Text in two columns for a terminal of 80 characters.

/// Characters of a line.
const LINE: usize = 80;

/// A name and what it means, the second column wrapped, and beginning on a line of its own where
/// the name is too long; with a line feed at the end.
pub fn two_columns(name: &str, width: usize, meaning: &str) -> String {
    let mut text = name.trim_end().to_owned();
    let mut used = text.chars().count();
    if used + 1 > width {
        text.push('\n');
        used = 0;
    }
    for word in meaning.split_whitespace() {
        let length = word.chars().count();
        let is_first = used <= width;
        if !is_first && used + 1 + length > LINE {
            text.push('\n');
            used = 0;
        }
        let blanks = if used < width { width - used } else { 1 };
        text.push_str(&" ".repeat(blanks));
        text.push_str(word);
        used += blanks + length;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped_below_the_second_column() {
        let text = two_columns("  -a FILE", 12, &"word ".repeat(30));
        assert!(text.lines().all(|line| line.len() <= LINE), "{text}");
        assert!(text.starts_with("  -a FILE   word word"), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with(&" ".repeat(12))), "{text}");
        assert_eq!(text.split_whitespace().filter(|word| *word == "word").count(), 30);
    }

    #[test]
    fn helps_of_all_dialects_fit() {
        for dialect in crate::DIALECTS {
            let help = dialect.help();
            let long: Vec<&str> = help.lines().filter(|line| line.chars().count() > LINE).collect();
            assert!(long.is_empty(), "{}: {long:#?}", dialect.name());
        }
    }

    #[test]
    fn a_long_name_has_a_line_of_its_own() {
        assert_eq!(two_columns("--a-long-name", 6, "x"), "--a-long-name\n      x\n");
        assert_eq!(two_columns("-a", 6, "x"), "-a    x\n");
        assert_eq!(two_columns("-a", 6, ""), "-a\n");
    }
}

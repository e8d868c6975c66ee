//! The nearest valid name, for messages about unknown ones.

/// Characters of a name from which its beginning is enough to know it.
const BEGINNING_LEAST: usize = 3;

/// The name that was probably meant, if one is near: one letter away, the shortest that begins with
/// `name`, or the nearest. Of a name of one character none.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.chars().count() < 2 {
        return None;
    }
    let known: Vec<&str> = known.into_iter().collect();
    let distance = |candidate: &&str| edit_distance(name, candidate);
    let best = known.iter().copied().min_by_key(distance)?;
    if edit_distance(name, best) > 1 && name.chars().count() >= BEGINNING_LEAST {
        let begun = known.iter().copied().filter(|candidate| candidate.starts_with(name));
        if let Some(longer) = begun.min_by_key(|candidate| candidate.len()) {
            return Some(longer);
        }
    }
    (edit_distance(name, best) <= name.chars().count().div_ceil(3)).then_some(best)
}

/// ` (did you mean x?)` or nothing.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |best| format!(" (did you mean `{best}`?)"))
}

/// Adds the nearest name to serde's complaint about an unknown field or variant.
///
/// ```
/// use iolab_model::nearest::with_nearest;
/// assert_eq!(
///     with_nearest("unknown field `deepth`, expected `depth` or `rotational`"),
///     "unknown field `deepth`, expected `depth` or `rotational` (did you mean `depth`?)"
/// );
/// ```
pub fn with_nearest(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let is_about_names = message.contains("unknown field") || message.contains("unknown variant");
    match quoted.split_first() {
        Some((name, known)) if is_about_names => {
            let known = known.iter().copied().filter(|other| other != name);
            format!("{message}{}", did_you_mean(name, known))
        }
        _ => message.to_owned(),
    }
}

/// Levenshtein distance in characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_found_and_a_far_one_is_not() {
        let known = ["deadline", "mq-deadline", "cfq"];
        assert_eq!(nearest("dedline", known), Some("deadline"));
        assert_eq!(nearest("elevator", known), None);
        assert_eq!(nearest("x", []), None);
        assert_eq!(nearest("sata7200", ["sata-2009", "sata7200-4tb"]), Some("sata7200-4tb"));
    }
}

//! Pieces of lines: numbers, words, brackets.

/// The rest of a line that is being understood from left to right.
#[derive(Clone, Copy)]
pub struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// Skips blanks.
    #[inline]
    pub fn blanks(&mut self) {
        while let Some((b' ' | b'\t', rest)) = self.0.split_first() {
            self.0 = rest;
        }
    }

    /// Takes a byte if it comes next.
    #[inline]
    pub fn byte(&mut self, wanted: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        (*first == wanted).then(|| self.0 = rest)
    }

    /// Takes a byte if it comes next behind blanks.
    #[inline]
    pub fn token(&mut self, wanted: u8) -> Option<()> {
        let mut ahead = *self;
        ahead.blanks();
        ahead.byte(wanted)?;
        *self = ahead;
        Some(())
    }

    /// A decimal number; `None` if there is none, or it has more than 64 bits.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        let length = self.0.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(length);
        let value = number(digits)?;
        self.0 = rest;
        Some(value)
    }

    /// A decimal number behind blanks.
    #[inline]
    pub fn next_number(&mut self) -> Option<u64> {
        let mut ahead = *self;
        ahead.blanks();
        let value = ahead.number()?;
        *self = ahead;
        Some(value)
    }

    /// `SECONDS.FRACTION` as nanoseconds.
    #[inline]
    pub fn seconds(&mut self) -> Option<u64> {
        let seconds = self.next_number()?;
        self.byte(b'.')?;
        let before = self.0.len();
        let fraction = self.number()?;
        let digits = before - self.0.len();
        let scale = 10_u64.checked_pow(9_u32.checked_sub(u32::try_from(digits).ok()?)?)?;
        seconds.checked_mul(1_000_000_000)?.checked_add(fraction.checked_mul(scale)?)
    }

    /// A word up to the next blank.
    #[inline]
    pub fn word(&mut self) -> Option<&'a [u8]> {
        self.blanks();
        let end = self.0.iter().position(|byte| matches!(byte, b' ' | b'\t'));
        let (word, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    /// `MAJOR,MINOR`.
    #[inline]
    pub fn device(&mut self) -> Option<crate::event::Device> {
        let major = self.next_number()?;
        self.byte(b',')?;
        let minor = self.number()?;
        let fits = major < 1 << 12 && minor < 1 << 20;
        fits.then(|| crate::event::Device::new(major as u32, minor as u32))
    }

    /// Text between the first `[` and the last `]`, and the text behind.
    pub fn brackets(&mut self) -> Option<&'a [u8]> {
        let begin = self.0.iter().position(|byte| *byte == b'[')?;
        let end = self.0.iter().rposition(|byte| *byte == b']')?;
        let inner = self.0.get(begin + 1..end)?;
        self.0 = &self.0[end + 1..];
        Some(inner)
    }

    /// Text between `(` and the next `)`, behind blanks.
    pub fn parentheses(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        ahead.token(b'(')?;
        let end = ahead.0.iter().position(|byte| *byte == b')')?;
        let inner = &ahead.0[..end];
        self.0 = &ahead.0[end + 1..];
        Some(inner)
    }
}

/// A decimal number that is the whole text.
#[inline]
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// Bytes of a number of sectors; `None` if they are more than an event can have.
pub fn bytes_of(sectors: u64) -> Option<u32> {
    u32::try_from(sectors.checked_mul(512)?).ok()
}

/// A decimal number with a fraction, scaled: `1.5` with a scale of 1 000 000 is 1 500 000.
pub fn scaled(text: &[u8], scale: f64) -> Option<u64> {
    let value: f64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    let scaled = (value * scale).round();
    (0.0..9.0e18).contains(&scaled).then_some(scaled as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_they_end() {
        let mut cursor = Cursor(b"  12,7 5.25 [a ] b] tail");
        assert_eq!(cursor.device().unwrap().to_string(), "12,7");
        assert_eq!(cursor.seconds(), Some(5_250_000_000));
        assert_eq!(cursor.brackets(), Some(&b"a ] b"[..]));
        assert_eq!(cursor.word(), Some(&b"tail"[..]));
        assert_eq!(cursor.word(), None);
        assert_eq!(number(b"99999999999999999999"), None);
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(Cursor(b"99999999999999999.5").seconds(), None);
        assert_eq!(scaled(b"0.0000015", 1e9), Some(1500));
        assert_eq!(scaled(b"nan", 1e9), None);
        assert_eq!(bytes_of(1 << 40), None);
    }
}

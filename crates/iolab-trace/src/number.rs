//! Decimal numbers into bytes: the inner loop of every text writer.

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Most digits of 64 bits.
const DIGITS_MAX: usize = 20;

/// Writes digits so that they end at the end of the buffer; returns where they begin.
#[inline]
fn digits(mut value: u64, buffer: &mut [u8; DIGITS_MAX]) -> usize {
    let mut at = DIGITS_MAX;
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        buffer[at] = b'0' + value as u8;
    }
    at
}

/// Appends a number.
#[inline]
pub fn push(text: &mut Vec<u8>, value: u64) {
    let mut buffer = [0; DIGITS_MAX];
    let at = digits(value, &mut buffer);
    text.extend_from_slice(&buffer[at..]);
}

/// Appends a number that may be negative.
pub fn push_signed(text: &mut Vec<u8>, value: i64) {
    if value < 0 {
        text.push(b'-');
    }
    push(text, value.unsigned_abs());
}

/// Writes a number into the right end of a place; its digits have to fit.
#[inline]
pub fn set_right(place: &mut [u8], mut value: u64) {
    let mut at = place.len();
    while value >= 100 && at >= 2 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        place[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    while (value > 0 || at == place.len()) && at > 0 {
        at -= 1;
        place[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Appends a number right-justified in `width` columns.
#[inline]
pub fn push_right(text: &mut Vec<u8>, value: u64, width: usize) {
    let mut buffer = [b' '; DIGITS_MAX];
    let at = digits(value, &mut buffer);
    let first = DIGITS_MAX.saturating_sub(width).min(at);
    if width > DIGITS_MAX {
        text.resize(text.len() + width - DIGITS_MAX, b' ');
    }
    text.extend_from_slice(&buffer[first..]);
}

/// Appends a number left-justified in `width` columns.
#[inline]
pub fn push_left(text: &mut Vec<u8>, value: u64, width: usize) {
    let begin = text.len();
    push(text, value);
    let end = text.len().max(begin + width);
    text.resize(end, b' ');
}

/// Appends a number with leading zeros to `width` digits.
#[inline]
pub fn push_zeros(text: &mut Vec<u8>, value: u64, width: usize) {
    let mut buffer = [b'0'; DIGITS_MAX];
    let at = digits(value, &mut buffer);
    if width > DIGITS_MAX {
        text.resize(text.len() + width - DIGITS_MAX, b'0');
    }
    text.extend_from_slice(&buffer[DIGITS_MAX.saturating_sub(width).min(at)..]);
}

/// Appends text right- or left-justified in `width` columns.
pub fn push_text(text: &mut Vec<u8>, what: &[u8], width: usize, is_left: bool) {
    let blanks = width.saturating_sub(what.len());
    if !is_left {
        text.resize(text.len() + blanks, b' ');
    }
    text.extend_from_slice(what);
    if is_left {
        text.resize(text.len() + blanks, b' ');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_those_of_the_standard_library(value: u64, width in 0_usize..30) {
            let mut text = Vec::new();
            push_right(&mut text, value, width);
            push_left(&mut text, value, width);
            push_zeros(&mut text, value, width);
            push_signed(&mut text, value as i64);
            let expected = format!("{value:>width$}{value:<width$}{value:0width$}{}", value as i64);
            let mut place = [b' '; 20];
            set_right(&mut place, value);
            prop_assert_eq!(std::str::from_utf8(&place).unwrap(), format!("{value:20}"));
            prop_assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }
}

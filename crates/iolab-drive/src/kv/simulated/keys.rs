//! Numbers for keys, in the order of the keys as texts.

use iolab_lsm::Key;
use iolab_workload::kv::KvWork;

/// Digits of the largest hash: it is below 2^63.
const HASH_DIGITS: u32 = 19;
/// Digits that fit into a key, four bits each.
const DIGITS: u32 = 16;
/// Bytes of the word before the digits of every key (`user`).
pub const WORD_BYTES: usize = 4;

/// The number of a key, which is a word and decimal digits.
///
/// Texts are compared digit by digit from the left, so `user10` comes before `user9`. Keys of one
/// length are compared as numbers. Hashes are filled up with zeros on the right; two of different
/// length that then are equal would count as one, which happens to one in some 10^18. Others have
/// at most 16 digits and keep their lengths.
pub fn key_of(key: &[u8], work: &KvWork) -> Key {
    let digits = key.get(WORD_BYTES..).unwrap_or_default();
    let value = |from: u64, digit: &u8| from.wrapping_mul(10) + u64::from(digit.wrapping_sub(b'0'));
    let number = digits.iter().fold(0, value);
    let count = digits.len() as u32;
    if work.zero_padding >= HASH_DIGITS || (!work.is_hashed && work.zero_padding > DIGITS) {
        return number;
    }
    if work.is_hashed {
        return number.wrapping_mul(10_u64.pow(HASH_DIGITS.saturating_sub(count)));
    }
    let coded = digits.iter().take(DIGITS as usize);
    let coded = coded.fold(0, |sum, digit| sum << 4 | u64::from(digit.wrapping_sub(b'0') + 1));
    coded << (4 * DIGITS.saturating_sub(count).min(DIGITS - 1))
}

#[cfg(test)]
mod tests {
    use iolab_workload::kv::codec::write_key;
    use proptest::prelude::*;

    use super::*;
    use crate::kv::simulated::run::tests::work;

    proptest! {
        #[test]
        fn numbers_are_in_the_order_of_the_texts(
            numbers in prop::collection::vec(0_u64..1 << 40, 2..40),
            is_hashed: bool,
            zero_padding in prop::sample::select(vec![1_u32, 6, 12, 18, 24]),
        ) {
            let work = KvWork { is_hashed, zero_padding, ..work() };
            let mut keys: Vec<(Vec<u8>, Key)> = Vec::new();
            for number in numbers {
                let mut text = Vec::new();
                write_key(&mut text, number, (is_hashed, zero_padding as usize));
                let key = key_of(&text, &work);
                keys.push((text, key));
            }
            keys.sort();
            prop_assert!(keys.is_sorted_by_key(|(_, key)| *key), "{keys:?}");
            for pair in keys.windows(2) {
                prop_assert_eq!(pair[0].0 == pair[1].0, pair[0].1 == pair[1].1);
            }
        }
    }
}

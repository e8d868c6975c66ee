//! A 64-bit checksum that any program can compute again: XXH64 with seed 0.
//!
//! Source: the xxHash fast digest algorithm, version 0.2.0 (Collet, 2023), from which the primes
//! and the order of the steps are taken; the test below has its published values. Left out: seeds
//! and streaming input.

const PRIME_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME_3: u64 = 0x1656_67b1_9e37_79f9;
const PRIME_4: u64 = 0x85eb_ca77_c2b2_ae63;
const PRIME_5: u64 = 0x27d4_eb2f_1656_67c5;
/// Bytes that the four accumulators take at once.
const STRIPE: usize = 32;

#[inline]
fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes were cut"))
}

#[inline]
fn round(accumulator: u64, input: u64) -> u64 {
    accumulator.wrapping_add(input.wrapping_mul(PRIME_2)).rotate_left(31).wrapping_mul(PRIME_1)
}

#[inline]
fn merge(hash: u64, accumulator: u64) -> u64 {
    (hash ^ round(0, accumulator)).wrapping_mul(PRIME_1).wrapping_add(PRIME_4)
}

/// XXH64 of `bytes`.
pub fn xxh64(bytes: &[u8]) -> u64 {
    let stripes = bytes.chunks_exact(STRIPE);
    let rest = stripes.remainder();
    let mut hash = if bytes.len() < STRIPE {
        PRIME_5
    } else {
        let mut lanes = [PRIME_1.wrapping_add(PRIME_2), PRIME_2, 0, 0_u64.wrapping_sub(PRIME_1)];
        for stripe in stripes {
            for (lane, input) in lanes.iter_mut().zip(stripe.chunks_exact(8)) {
                *lane = round(*lane, word(input));
            }
        }
        let turns = [1, 7, 12, 18];
        let sum = lanes.iter().zip(turns).map(|(lane, turn)| lane.rotate_left(turn));
        let sum = sum.fold(0_u64, u64::wrapping_add);
        lanes.into_iter().fold(sum, merge)
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    finish(hash, rest)
}

/// The last bytes, which fill no stripe, and the final mixing.
fn finish(mut hash: u64, rest: &[u8]) -> u64 {
    let words = rest.chunks_exact(8);
    let mut tail = words.remainder();
    for input in words {
        hash = (hash ^ round(0, word(input))).rotate_left(27);
        hash = hash.wrapping_mul(PRIME_1).wrapping_add(PRIME_4);
    }
    if let Some((input, left)) = tail.split_at_checked(4) {
        let input = u32::from_le_bytes(input.try_into().expect("4 bytes were cut"));
        hash = (hash ^ u64::from(input).wrapping_mul(PRIME_1)).rotate_left(23);
        hash = hash.wrapping_mul(PRIME_2).wrapping_add(PRIME_3);
        tail = left;
    }
    for &byte in tail {
        hash = (hash ^ u64::from(byte).wrapping_mul(PRIME_5)).rotate_left(11);
        hash = hash.wrapping_mul(PRIME_1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(PRIME_2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(PRIME_3);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::xxh64;

    #[test]
    fn values_published_for_seed_zero() {
        assert_eq!(xxh64(b""), 0xef46_db37_51d8_e999);
        assert_eq!(xxh64(b"a"), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(xxh64(b"abc"), 0x44bc_2cf5_ad77_0999);
        assert_eq!(xxh64(b"Nobody inspects the spammish repetition"), 0xfbce_a83c_8a37_8bf1);
    }

    #[test]
    fn every_byte_counts() {
        let mut bytes = [7_u8; 100];
        let before = xxh64(&bytes);
        for index in 0..bytes.len() {
            bytes[index] ^= 1;
            assert_ne!(xxh64(&bytes), before, "byte {index}");
            bytes[index] ^= 1;
        }
    }
}

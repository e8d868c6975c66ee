//! Histogram logs that `HdrHistogram` reads: version 1.3 of the log, version 2 of the histograms.
//!
//! A histogram is a head, then its counts as zigzag LEB128 numbers, runs of zeros as negative ones;
//! it is packed with zlib (here in stored blocks, which every zlib unpacks) and written in base64.
//! Source: the format's description in `HdrHistogram`'s repository.

use std::fmt::Write as _;

use iolab_workload::kv::hdr::Hdr;

/// Cookies of a histogram and of a packed one, with words of 8 bytes.
const COOKIE: u32 = 0x1c84_9313;
const PACKED_COOKIE: u32 = 0x1c84_9314;
/// Significant digits of all histograms.
const DIGITS: u32 = 3;
/// Bytes of a stored block of deflate at most (RFC 1951, 3.2.4).
const STORED_MAX: usize = 65_535;
/// Unit of the largest value in a line (`HistogramLogWriter`: 1,000,000).
const MAX_UNIT: f64 = 1e6;
/// Modulus of Adler-32 (RFC 1950, 9).
const ADLER: u32 = 65_521;

/// A log with one histogram of a whole run.
pub fn log(name: &str, hdr: &Hdr, began_unix_ms: u64, length_s: f64) -> String {
    let began = began_unix_ms as f64 / 1000.0;
    let mut text = format!(
        "#[Logging for: {name}]\n#[Histogram log format version 1.3]\n#[StartTime: {began:.3} \
         (seconds since epoch)]\n#[BaseTime: {began:.3} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
         \"Interval_Compressed_Histogram\"\n"
    );
    let packed = base64(&packed(hdr));
    let _ = writeln!(text, "0.000,{length_s:.3},{:.3},{packed}", hdr.max() as f64 / MAX_UNIT);
    text
}

fn packed(hdr: &Hdr) -> Vec<u8> {
    let data = zlib(&encoded(hdr));
    let mut packed = PACKED_COOKIE.to_be_bytes().to_vec();
    packed.extend((data.len() as u32).to_be_bytes());
    packed.extend(data);
    packed
}

fn encoded(hdr: &Hdr) -> Vec<u8> {
    let mut counts = Vec::new();
    let mut next = 0;
    for (index, count) in hdr.parts() {
        let zeros = (index - next) as i64;
        match zeros {
            0 => {}
            1 => write_number(&mut counts, 0),
            _ => write_number(&mut counts, -zeros),
        }
        write_number(&mut counts, count as i64);
        next = index + 1;
    }
    let mut bytes = COOKIE.to_be_bytes().to_vec();
    bytes.extend((counts.len() as u32).to_be_bytes());
    bytes.extend(0_u32.to_be_bytes()); // Normalizing offset.
    bytes.extend(DIGITS.to_be_bytes());
    bytes.extend(1_u64.to_be_bytes()); // Lowest value that is told from 0.
    bytes.extend(hdr.max().max(2).to_be_bytes());
    bytes.extend(1.0_f64.to_be_bytes()); // Ratio of conversion.
    bytes.extend(counts);
    bytes
}

/// Zigzag, then seven bits a byte; the ninth byte has eight.
fn write_number(bytes: &mut Vec<u8>, number: i64) {
    let mut left = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if left < 0x80 {
            bytes.push(left as u8);
            return;
        }
        bytes.push((left as u8 & 0x7f) | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
}

/// A zlib stream of stored blocks (RFC 1950, RFC 1951).
fn zlib(data: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let count = data.len().div_ceil(STORED_MAX).max(1);
    for (number, block) in data.chunks(STORED_MAX).enumerate() {
        let length = block.len() as u16;
        stream.push(u8::from(number + 1 == count));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    let (a, b) = data.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % ADLER;
        (a, (b + a) % ADLER)
    });
    stream.extend(((b << 16) | a).to_be_bytes());
    stream
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte));
        let word = word << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place > three.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_encoded() {
        assert_eq!(base64(b"iolab"), "aW9sYWI=");
        assert_eq!(base64(b"io"), "aW8=");
        let written = |number| {
            let mut bytes = Vec::new();
            write_number(&mut bytes, number);
            bytes
        };
        assert_eq!((written(0), written(1), written(-1)), (vec![0], vec![2], vec![1]));
        assert_eq!(written(64), [0x80, 0x01]);
        // zlib.compress(b"a", 0) of Python.
        assert_eq!(zlib(b"a"), [0x78, 1, 1, 1, 0, 254, 255, 97, 0, 98, 0, 98]);
    }

    #[test]
    fn a_log_has_its_head_and_one_line() {
        let mut hdr = Hdr::default();
        for value in [3, 3, 900] {
            hdr.record(value);
        }
        let text = log("READ", &hdr, 1_500, 2.5);
        assert_eq!(text.lines().count(), 6);
        let last = text.lines().last().unwrap();
        // The beginning of every packed histogram of version 2.
        assert!(last.starts_with("0.000,2.500,0.001,HISTFAAA"), "{last}");
        // Three zeros, two, a run of zeros, one.
        assert_eq!(encoded(&hdr)[40..], [5, 4, 0xff, 0x0d, 2]);
    }
}

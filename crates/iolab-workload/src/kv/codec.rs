//! A record as bytes: for each field the length of its name, its name, the length of its value, its
//! value; lengths have four bytes, the highest first (the `RocksDB` binding of YCSB).

use iolab_model::seed::Stream;

use super::draw::FieldChoice;
use super::generate;

const LENGTH_BYTES: usize = 4;

/// Names of the fields of a table.
#[derive(Clone, Debug)]
pub struct Fields {
    /// Length and name, as they stand in a record.
    heads: Vec<Vec<u8>>,
}

impl Fields {
    /// `prefix0`, `prefix1`, ...
    pub fn new(prefix: &str, count: u32) -> Self {
        let head = |index| {
            let name = format!("{prefix}{index}");
            [&(name.len() as u32).to_be_bytes(), name.as_bytes()].concat()
        };
        Self { heads: (0..count).map(head).collect() }
    }

    /// Number of fields.
    pub fn count(&self) -> u32 {
        self.heads.len() as u32
    }

    /// Name of a field.
    pub fn name(&self, index: u32) -> &[u8] {
        &self.heads[index as usize][LENGTH_BYTES..]
    }

    /// Bytes of a field with a value of a length.
    pub fn bytes(&self, index: u32, value: u64) -> u64 {
        self.heads[index as usize].len() as u64 + LENGTH_BYTES as u64 + value
    }

    /// Appends a field with the value that `fill` appends.
    #[inline]
    pub fn append(&self, record: &mut Vec<u8>, index: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        record.extend_from_slice(&self.heads[index as usize]);
        let at = record.len();
        record.extend_from_slice(&[0; LENGTH_BYTES]);
        fill(record);
        let length = (record.len() - at - LENGTH_BYTES) as u32;
        record[at..at + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    }

    /// Value of a field in a record; `None`: it has none, or the record is not one.
    pub fn find<'a>(&self, record: &'a [u8], index: u32) -> Option<&'a [u8]> {
        let name = self.name(index);
        parts(record).find(|part| part.name == name).map(|part| &record[part.from..part.to])
    }

    /// Tell whether a record has the fields that are asked for; looks at all that it has.
    #[inline]
    pub fn holds(&self, record: &[u8], which: FieldChoice) -> bool {
        match which {
            FieldChoice::All => parts(record).count() >= self.heads.len(),
            FieldChoice::One(index) => self.find(record, index).is_some(),
        }
    }

    /// Puts `changed`, a record of some fields, over those of `record`; the others stay.
    pub fn merge(record: &mut Vec<u8>, changed: &[u8], scratch: &mut Vec<u8>) {
        for new in parts(changed) {
            let value = &changed[new.from..new.to];
            let old = parts(record).find(|part| part.name == new.name);
            match old.map(|part| (part.from, part.to)) {
                Some((from, to)) if to - from == value.len() => {
                    record[from..to].copy_from_slice(value);
                }
                Some((from, to)) => {
                    scratch.clear();
                    scratch.extend_from_slice(&record[..from - LENGTH_BYTES]);
                    scratch.extend_from_slice(&(value.len() as u32).to_be_bytes());
                    scratch.extend_from_slice(value);
                    scratch.extend_from_slice(&record[to..]);
                    core::mem::swap(record, scratch);
                }
                None => record.extend_from_slice(&changed[new.begin..new.to]),
            }
        }
    }
}

/// Place of a field in a record.
struct Part<'a> {
    begin: usize,
    name: &'a [u8],
    from: usize,
    to: usize,
}

/// Fields of a record, until it ends or makes no sense.
fn parts(record: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut at = 0;
    core::iter::from_fn(move || {
        let begin = at;
        let name_to = text_end(record, begin)?;
        let to = text_end(record, name_to)?;
        at = to;
        let name = &record[begin + LENGTH_BYTES..name_to];
        Some(Part { begin, name, from: name_to + LENGTH_BYTES, to })
    })
}

/// End of a text that has its length before it.
fn text_end(record: &[u8], at: usize) -> Option<usize> {
    let length = record.get(at..at + LENGTH_BYTES)?;
    let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
    let end = at.checked_add(LENGTH_BYTES)?.checked_add(length)?;
    (end <= record.len()).then_some(end)
}

/// Appends `length` printable bytes of the densities of the reference: of six bytes after each
/// other five, six, about six, five, six and about six bits are random.
#[inline]
pub fn append_random(buffer: &mut Vec<u8>, length: usize, random: &mut Stream) {
    // 31, 63 and 95 in turn: three words hold them eight times.
    const MASKS: [u64; 3] = [0x3f1f_5f3f_1f5f_3f1f, 0x1f5f_3f1f_5f3f_1f5f, 0x5f3f_1f5f_3f1f_5f3f];
    const BLANKS: u64 = 0x2020_2020_2020_2020;
    let end = buffer.len() + length;
    buffer.reserve(length + 3 * 8);
    while buffer.len() < end {
        for mask in MASKS {
            let word = (random.next_u64() & mask).wrapping_add(BLANKS);
            buffer.extend_from_slice(&word.to_le_bytes());
        }
    }
    buffer.truncate(end);
}

/// Appends the value that a field must have where integrity is checked: key and field, then hashes
/// of all before, cut to length.
pub fn append_expected(buffer: &mut Vec<u8>, key: &[u8], field: &[u8], length: usize) {
    let from = buffer.len();
    buffer.extend_from_slice(key);
    buffer.push(b':');
    buffer.extend_from_slice(field);
    let mut hash = text_hash(0, &buffer[from..]);
    while buffer.len() - from < length {
        let begin = buffer.len();
        // The reference hashes the text with the colon behind it.
        buffer.push(b':');
        hash = text_hash(hash, b":");
        let mut digits = [0; 12];
        let text = decimal(i64::from(hash), &mut digits);
        let added = begin + 1;
        buffer.extend_from_slice(text);
        hash = text_hash(hash, &buffer[added..]);
    }
    buffer.truncate(from + length);
}

/// Java's hash of a text, from that of what stands before it.
fn text_hash(before: i32, text: &[u8]) -> i32 {
    text.iter().fold(before, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte)))
}

/// A number in digits, without an allocation.
fn decimal(number: i64, digits: &mut [u8]) -> &[u8] {
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    &digits[at..]
}

/// Writes a key: `user`, zeros up to so many digits, the number or its hash.
#[inline]
pub fn write_key(key: &mut Vec<u8>, number: u64, (is_hashed, zeros): (bool, usize)) {
    let number = if is_hashed { generate::hash(number) } else { number };
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    key.clear();
    key.extend_from_slice(b"user");
    for _ in digits.len() - at..zeros {
        key.push(b'0');
    }
    key.extend_from_slice(&digits[at..]);
}

/// Tell whether a record has all `wanted` fields with the values that they must have.
pub fn is_intact(
    fields: &Fields,
    key: &[u8],
    record: &[u8],
    wanted: FieldChoice,
    length: usize,
) -> bool {
    let mut expected = Vec::new();
    let indices = match wanted {
        FieldChoice::All => 0..fields.count(),
        FieldChoice::One(index) => index..index + 1,
    };
    indices.into_iter().all(|index| {
        expected.clear();
        append_expected(&mut expected, key, fields.name(index), length);
        fields.find(record, index) == Some(&expected[..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::Seed;

    #[test]
    fn keys_are_those_of_the_reference() {
        let key = |number, form| {
            let mut key = Vec::new();
            write_key(&mut key, number, form);
            String::from_utf8(key).unwrap()
        };
        assert_eq!(key(0, (true, 1)), "user6284781860667377211");
        assert_eq!(key(0, (true, 24)), "user000006284781860667377211");
        assert_eq!(key(1, (false, 10)), "user0000000001");
        assert_eq!(key(12, (false, 1)), "user12");
    }

    /// The golden values of a recorded load.
    #[test]
    fn values_of_checked_fields() {
        let value = |key: &str, field: &str| {
            let mut value = Vec::new();
            append_expected(&mut value, key.as_bytes(), field.as_bytes(), 60);
            String::from_utf8(value).unwrap()
        };
        assert_eq!(
            value("user6284781860667377211", "field1"),
            "user6284781860667377211:field1:-56807846:-2133018101:9330628"
        );
        assert_eq!(
            value("user1820151046732198393", "field2"),
            "user1820151046732198393:field2:-1113244474:-55626638:-178277"
        );
    }

    #[test]
    fn a_record_of_ten_fields_has_1140_bytes() {
        let fields = Fields::new("field", 10);
        let mut random = Seed(1).stream("fields", 0);
        let mut record = Vec::new();
        for index in 0..10 {
            fields.append(&mut record, index, |to| append_random(to, 100, &mut random));
        }
        assert_eq!(record.len(), 1140);
        let mut changed = Vec::new();
        fields.append(&mut changed, 3, |to| to.extend_from_slice(b"short"));
        let (mut merged, mut scratch) = (record.clone(), Vec::new());
        Fields::merge(&mut merged, &changed, &mut scratch);
        assert_eq!(fields.find(&merged, 3), Some(&b"short"[..]));
        assert_eq!(fields.find(&merged, 9), fields.find(&record, 9));
        assert_eq!(merged.len(), 1140 - 95);
        assert_eq!(fields.find(&record[..20], 3), None, "a cut record has no such field");
    }

    #[test]
    fn random_bytes_are_printable_and_dense() {
        let mut bytes = Vec::new();
        append_random(&mut bytes, 60_000, &mut Seed(1).stream("bytes", 0));
        assert!(bytes.iter().all(|byte| (b' '..0x80).contains(byte)));
        let kinds = |at: usize| {
            let mut seen: Vec<u8> = bytes[at..].iter().copied().step_by(3).collect();
            seen.sort_unstable();
            seen.dedup();
            seen.len()
        };
        assert_eq!((kinds(0), kinds(1), kinds(2)), (32, 64, 64));
    }
}

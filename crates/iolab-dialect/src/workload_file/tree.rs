//! From TOML to the tree of values that the description is read from.

use iolab_model::Bytes;
use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

use super::place::Places;

/// Short names of keys of sizes and durations.
const SHORT: [(&str, &str); 9] = [
    ("size", "size_bytes"),
    ("unit", "unit_bytes"),
    ("within", "within_bytes"),
    ("file_size", "file_bytes"),
    ("value_size", "value_bytes"),
    ("duration", "duration_ns"),
    ("pause", "pause_ns"),
    ("time", "time_ns"),
    ("interval", "interval_ns"),
];

/// Units of durations, in nanoseconds.
const UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Unit of a text under a key.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    None,
    Bytes,
    Time,
}

/// Offset of a problem, and what it is.
type Problem = (usize, String);

/// The values of a text, and where they stand.
pub fn read(text: &str) -> Result<(Map<String, Value>, Places), Problem> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        (at, error.message().to_owned())
    })?;
    let mut places = Places::new(text);
    let root = table_of(table.get_ref(), "", Unit::None, &mut places)?;
    Ok((root, places))
}

fn table_of(
    table: &DeTable<'_>,
    path: &str,
    unit: Unit,
    places: &mut Places,
) -> Result<Map<String, Value>, Problem> {
    let mut map = Map::new();
    for (key, value) in table {
        let written = key.get_ref().as_ref();
        let short = SHORT.iter().find(|(short, _)| *short == written);
        let name = short.map_or(written, |(_, long)| long);
        let here = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        places.note(&here, key.span().start);
        let inner = match name {
            _ if name.ends_with("_bytes") => Unit::Bytes,
            _ if name.ends_with("_ns") => Unit::Time,
            _ => unit,
        };
        let inner = if name == "by" { Unit::None } else { inner };
        let value = value_of(value.get_ref(), (&here, value.span().start), inner, places)?;
        if map.insert(name.to_owned(), value).is_some() {
            return Err((key.span().start, format!("`{written}` is there twice, as `{name}`")));
        }
    }
    Ok(map)
}

fn value_of(
    value: &DeValue<'_>,
    (path, at): (&str, usize),
    unit: Unit,
    places: &mut Places,
) -> Result<Value, Problem> {
    Ok(match value {
        DeValue::String(text) => text_of(text, unit).map_err(|problem| (at, problem))?,
        DeValue::Integer(number) => {
            let radix = number.radix();
            let parsed = i64::from_str_radix(number.as_str(), radix).ok().map(Number::from);
            let large = || u64::from_str_radix(number.as_str(), radix).ok().map(Number::from);
            let wrong = || (at, format!("{} is too large", number.as_str()));
            Value::Number(parsed.or_else(large).ok_or_else(wrong)?)
        }
        DeValue::Float(number) => {
            let parsed = number.as_str().parse::<f64>().ok().and_then(Number::from_f64);
            let wrong = || (at, format!("{} is no finite number", number.as_str()));
            Value::Number(parsed.ok_or_else(wrong)?)
        }
        DeValue::Boolean(is) => Value::Bool(*is),
        DeValue::Datetime(_) => return Err((at, "a date means nothing here".into())),
        DeValue::Array(values) => {
            let mut all = Vec::new();
            for (index, value) in values.iter().enumerate() {
                let here = format!("{path}[{index}]");
                places.note(&here, value.span().start);
                let place = (here.as_str(), value.span().start);
                all.push(value_of(value.get_ref(), place, unit, places)?);
            }
            Value::Array(all)
        }
        DeValue::Table(table) => Value::Object(table_of(table, path, unit, places)?),
    })
}

/// A text as it is, or the size or duration that it stands for.
fn text_of(text: &str, unit: Unit) -> Result<Value, String> {
    match unit {
        Unit::None => Ok(Value::from(text)),
        Unit::Bytes => {
            let (sign, size) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
            let size: Bytes =
                size.parse().map_err(|error: iolab_model::Error| error.to_string())?;
            Ok(if sign > 0 { Value::from(size.0) } else { Value::from(-(size.0 as i64)) })
        }
        Unit::Time => duration(text).map(Value::from),
    }
}

/// A number with a unit of time, in nanoseconds.
fn duration(text: &str) -> Result<u64, String> {
    let end = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len();
    let (number, unit) = (text[..end].trim(), &text[end..]);
    let wrong = || {
        format!(
            "`{text}` is not a duration: write a number with ns, us, ms, s, min or h, as in 10s"
        )
    };
    let (_, length) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let number: f64 = number.parse().map_err(|_| wrong())?;
    if !(number.is_finite() && number >= 0.0) {
        return Err(wrong());
    }
    Ok((number * *length as f64).round() as u64)
}

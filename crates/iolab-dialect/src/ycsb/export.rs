//! Reports as YCSB exports them: lines of text, JSON objects one after the other, or an array.

use std::fmt::Write as _;

/// A value of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Whole(i64),
    /// A number with a point, as Java prints it.
    Double(f64),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Self::Whole(value) => value.to_string(),
            Self::Double(value) => double(*value),
        }
    }
}

/// A line of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Series, or what the line is about.
    pub metric: String,
    /// Name of the value.
    pub measurement: String,
    /// The value.
    pub value: Value,
}

impl Line {
    /// A line with a whole number.
    pub fn whole(metric: &str, measurement: impl Into<String>, value: u64) -> Self {
        let value = Value::Whole(i64::try_from(value).unwrap_or(i64::MAX));
        Self { metric: metric.to_owned(), measurement: measurement.into(), value }
    }

    /// A line with a number.
    pub fn double(metric: &str, measurement: impl Into<String>, value: f64) -> Self {
        let value = Value::Double(value);
        Self { metric: metric.to_owned(), measurement: measurement.into(), value }
    }
}

/// A report in the form that an exporter of YCSB gives it.
pub fn text(exporter: &str, lines: &[Line]) -> String {
    match exporter {
        "json" => objects(lines, " ") + "\n",
        "json_array" => format!("[ {} ]\n", objects(lines, ", ")),
        _ => lines.iter().fold(String::new(), |mut text, line| {
            let _ =
                writeln!(text, "[{}], {}, {}", line.metric, line.measurement, line.value.text());
            text
        }),
    }
}

fn objects(lines: &[Line], between: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let object = |line: &Line| {
        format!(
            "{{\n  \"metric\" : {},\n  \"measurement\" : {},\n  \"value\" : {}\n}}",
            quoted(&line.metric),
            quoted(&line.measurement),
            match line.value.text() {
                text if text == "NaN" => "\"NaN\"".to_owned(),
                text => text,
            }
        )
    };
    lines.iter().map(object).collect::<Vec<_>>().join(between)
}

/// A number as Java's `Double.toString` writes it: the shortest digits that say it, with an
/// exponent below 1e-3 and from 1e7 on.
pub fn double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    let size = value.abs();
    if value == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = if digits.contains('.') { digits.to_owned() } else { format!("{digits}.0") };
    format!("{digits}E{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_java_writes_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (33_783.783_783_783_78, "33783.78378378378"),
            (1.0, "1.0"),
            (1e-4, "1.0E-4"),
            (0.001, "0.001"),
            (1e7, "1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (9_999_999.0, "9999999.0"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(double(value), text);
        }
    }

    #[test]
    fn forms_of_a_report() {
        let lines = [Line::whole("READ", "Operations", 3), Line::double("READ", "Average", 1.5)];
        assert_eq!(text("text", &lines), "[READ], Operations, 3\n[READ], Average, 1.5\n");
        let objects = text("json", &lines);
        assert!(
            objects.starts_with("{\n  \"metric\" : \"READ\",\n") && objects.contains("\n} {\n")
        );
        let array: serde_json::Value = serde_json::from_str(&text("json_array", &lines)).unwrap();
        assert_eq!(array[1]["value"], 1.5);
    }
}

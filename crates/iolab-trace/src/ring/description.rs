//! Descriptions that the kernel gives of its records: `events/SYSTEM/EVENT/format`.
//!
//! Offsets and numbers differ between kernels and boots, so nothing is assumed of them. Source:
//! Linux `Documentation/trace/events.rst`, `kernel/trace/trace_events.c`.

use std::collections::BTreeMap;

use crate::error::{Error, Place};

/// Form of the value in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldForm {
    /// A whole number.
    Number,
    /// A whole number with a sign.
    Signed,
    /// Characters, as many as there are bytes, filled up with zeros.
    Text,
    /// An address of the kernel or of a process.
    Pointer,
    /// Anything else: arrays, and what lies behind the fields.
    Other,
}

/// Place of a field in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset from the beginning of the record.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// Form of its value.
    pub form: FieldForm,
}

impl Field {
    /// A whole number without a sign.
    pub const fn number(offset: usize, size: usize) -> Self {
        Self { offset, size, form: FieldForm::Number }
    }
}

/// One event as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Number by which its records are known; another one after each boot.
    pub id: u16,
    /// Fields by name.
    pub fields: BTreeMap<String, Field>,
}

impl Description {
    /// Reads the text of a `format` file; `name` is the file's, for messages.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the line that is not understood.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let wrong = |line: usize, what: &str| Error::Damaged {
            name: name.to_owned(),
            place: Place::Line(line as u64 + 1),
            what: what.to_owned(),
        };
        let (mut event, mut id) = (None, None);
        for (number, line) in text.lines().enumerate() {
            if let Some(rest) = line.strip_prefix("name:") {
                event = Some(rest.trim().to_owned());
            } else if let Some(rest) = line.strip_prefix("ID:") {
                let parsed = rest.trim().parse::<u16>();
                id = Some(parsed.map_err(|_| wrong(number, "the number of the event"))?);
            } else if line.starts_with("print fmt:") {
                break;
            }
        }
        let fields = fields_of(name, text)?;
        match (event, id) {
            (Some(name), Some(id)) => Ok(Self { name, id, fields }),
            _ => Err(wrong(0, "it has no name or no number")),
        }
    }
}

/// Fields of a description, in any file that has `field:` lines.
///
/// # Errors
/// [`Error::Damaged`] with the line that is not understood.
pub(super) fn fields_of(name: &str, text: &str) -> Result<BTreeMap<String, Field>, Error> {
    let mut fields = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let Some(rest) = line.trim_start().strip_prefix("field:") else { continue };
        let (field, place) = field_of(rest).ok_or_else(|| Error::Damaged {
            name: name.to_owned(),
            place: Place::Line(number as u64 + 1),
            what: "a field without name, offset or size".to_owned(),
        })?;
        fields.insert(field, place);
    }
    Ok(fields)
}

/// Name and place of a field: declaration, offset, size and sign, each with a semicolon behind it.
fn field_of(text: &str) -> Option<(String, Field)> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size, mut is_signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.trim().parse().ok(),
            Some(("size", value)) => size = value.trim().parse().ok(),
            Some(("signed", value)) => is_signed = value.trim() == "1",
            _ => {}
        }
    }
    let word = declaration.split_whitespace().last()?;
    let name = word.split('[').next().filter(|name| !name.is_empty())?;
    let (offset, size): (usize, usize) = (offset?, size?);
    let form = match () {
        () if declaration.contains('*') => FieldForm::Pointer,
        () if declaration.starts_with("__") && declaration.contains("_loc ") => FieldForm::Other,
        () if word.contains('[') && declaration.contains("char ") => FieldForm::Text,
        () if word.contains('[') || !matches!(size, 1 | 2 | 4 | 8) => FieldForm::Other,
        () if is_signed => FieldForm::Signed,
        () => FieldForm::Number,
    };
    Some((name.to_owned(), Field { offset, size, form }))
}

/// Refuses a kernel whose records have heads of another form (`events/header_event`).
///
/// # Errors
/// [`Error::Damaged`] with what is not as expected.
pub fn check_event_header(text: &str) -> Result<(), Error> {
    // What `Page` is made for; unchanged from Linux 2.6.30 to 6.18.
    let expected = [
        ("type_len", "5 bits"),
        ("time_delta", "27 bits"),
        ("padding", "type == 29"),
        ("time_extend", "type == 30"),
        ("data max type_len", "== 28"),
    ];
    for (name, value) in expected {
        let mut lines = text.lines().map(str::trim).filter_map(|line| line.strip_prefix(name));
        let is_there = lines.any(|rest| {
            rest.trim_start_matches([' ', '\t', ':']).split_whitespace().eq(value.split(' '))
        });
        if !is_there {
            return Err(Error::Damaged {
                name: "events/header_event".to_owned(),
                place: Place::Line(1),
                what: format!("{name} is not {value}: this kernel's records are not known"),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:44;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"field:%d\", REC->x\n";

    #[test]
    fn a_description_has_name_number_and_places() {
        let found = Description::parse("format", TEXT).unwrap();
        assert_eq!((found.name.as_str(), found.id), ("block_rq_issue", 2104));
        assert_eq!(found.fields["rwbs"], Field { offset: 34, size: 10, form: FieldForm::Text });
        assert_eq!(found.fields["cmd"], Field { offset: 44, size: 4, form: FieldForm::Other });
        assert_eq!(found.fields["common_type"], Field::number(0, 2));
        assert_eq!(found.fields.len(), 3);
    }

    #[test]
    fn what_is_not_understood_is_told_with_its_line() {
        for (from, to, line) in [
            ("offset:34;", "", "line 6"),
            ("ID: 2104", "ID: many", "line 2"),
            ("ID: 2104", "", "line 1"),
        ] {
            let error = Description::parse("format", &TEXT.replace(from, to)).unwrap_err();
            assert!(error.to_string().starts_with(&format!("format, {line}:")), "{error}");
        }
        let header = "\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\
            \tpadding     : type == 29\n\ttime_extend : type == 30\n\tdata max type_len  == 28\n";
        check_event_header(header).unwrap();
        assert!(check_event_header(&header.replace("27", "26")).is_err());
        assert!(check_event_header("").is_err());
    }
}

//! Trace points of other layers: any record of the kernel as a name and fields.
//!
//! The kernel's description says which fields there are. Addresses are left out, and so is what
//! lies behind the fields: newer kernels copy the data of system calls there. So are numbers of
//! page frames, which nobody but root may know. Of the address of an offset is told whether there
//! is one.

use super::decode::{number, text};
use super::description::{Description, Field, FieldForm};
use crate::event::{Action, Categories, Device, Event};
use crate::number::{push, push_signed};

/// Fields that hold the number of a device, in the order in which they are looked for.
pub const DEVICE_FIELDS: [&str; 3] = ["dev", "s_dev", "sb_dev"];
/// Fields of write-back that hold it as text, `MAJOR:MINOR`.
pub const DEVICE_NAME_FIELDS: [&str; 2] = ["name", "bdi"];
/// Fields that hold the address of an offset; without one a call moves the position of a file.
const OFFSETS: [&str; 3] = ["off_in", "off_out", "offset"];
/// Word for such an address.
pub const GIVEN: &[u8] = b"given";
/// Word for none.
const NOT_GIVEN: &[u8] = b"NULL";
/// Fields that are nobody's business.
const SECRET: [&str; 1] = ["pfn"];

/// Places of the fields in the records of a trace point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointPlan {
    /// `SYSTEM:NAME`.
    name: String,
    pid: Option<Field>,
    device: Option<Field>,
    /// `MAJOR:MINOR` as text, if no number tells the device.
    device_name: Option<Field>,
    /// Blank, name and `=`; the field.
    fields: Vec<(String, Field)>,
}

impl PointPlan {
    /// Learns the form of a trace point.
    pub fn of(system: &str, description: &Description) -> Self {
        let find = |name: &'static str| Some((name, *description.fields.get(name)?));
        let device = DEVICE_FIELDS.into_iter().find_map(find);
        let named = DEVICE_NAME_FIELDS
            .into_iter()
            .find_map(find)
            .filter(|(_, field)| field.form == FieldForm::Text);
        let is_told = |name: &str, form: FieldForm| {
            let is_offset = form == FieldForm::Pointer && OFFSETS.contains(&name);
            (is_offset || matches!(form, FieldForm::Number | FieldForm::Signed | FieldForm::Text))
                && !name.starts_with("common_")
                && !name.starts_with("__")
                && !SECRET.contains(&name)
                && device.is_none_or(|(device, _)| device != name)
        };
        let told = description.fields.iter().filter(|(name, field)| is_told(name, field.form));
        let mut fields: Vec<(String, Field)> =
            told.map(|(name, field)| (format!(" {name}="), *field)).collect();
        fields.sort_by_key(|(_, field)| field.offset);
        Self {
            name: format!("{system}:{}", description.name),
            pid: description.fields.get("common_pid").copied(),
            device: device.map(|(_, field)| field),
            device_name: named.map(|(_, field)| field).filter(|_| device.is_none()),
            fields,
        }
    }

    /// Fills an event whose time and CPU are set.
    pub fn read(&self, content: &[u8], event: &mut Event) {
        event.action = Action::Point;
        event.categories = Categories::of_action(Action::Point);
        event.pid = self.pid.map_or(0, |field| number(content, field) as u32);
        if let Some(field) = self.device {
            event.device = Device(number(content, field) as u32);
        } else if let Some(field) = self.device_name {
            event.device = device_of(text(content, field)).unwrap_or_default();
        }
        let payload = &mut event.payload;
        payload.extend_from_slice(self.name.as_bytes());
        for (name, field) in &self.fields {
            payload.extend_from_slice(name.as_bytes());
            match field.form {
                FieldForm::Text => push_word(text(content, *field), payload),
                FieldForm::Signed => push_signed(payload, signed(content, *field)),
                FieldForm::Pointer => payload.extend_from_slice(match number(content, *field) {
                    0 => NOT_GIVEN,
                    _ => GIVEN,
                }),
                _ => push(payload, number(content, *field)),
            }
        }
    }
}

/// A number with a sign of 1, 2, 4 or 8 bytes.
fn signed(content: &[u8], field: Field) -> i64 {
    let value = number(content, field);
    match field.size {
        1 => i64::from(value as u8 as i8),
        2 => i64::from(value as u16 as i16),
        4 => i64::from(value as u32 as i32),
        _ => value as i64,
    }
}

/// The device of a text such as `7:0`.
fn device_of(text: &[u8]) -> Option<Device> {
    let (major, minor) = std::str::from_utf8(text).ok()?.split_once(':')?;
    Some(Device::new(major.parse().ok()?, minor.parse().ok()?))
}

/// A text as one word: what would end it, or is no character, becomes `?`.
fn push_word(raw: &[u8], payload: &mut Vec<u8>) {
    payload.extend(raw.iter().map(|byte| match byte {
        b'!'..=b'~' if *byte != b'=' => *byte,
        _ => b'?',
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREAD: &str = "name: sys_enter_pread64\nID: 838\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned int fd;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:char * buf;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:size_t count;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:loff_t pos;\toffset:40;\tsize:8;\tsigned:1;\n\
        \tfield:__data_loc char[] __buf_val;\toffset:48;\tsize:4;\tsigned:0;\n";
    const DIRTY: &str = "name: writeback_dirty_folio\nID: 1009\nformat:\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char name[8];\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long pfn;\toffset:16;\tsize:8;\tsigned:0;\n";
    const CACHE: &str = "name: mm_filemap_add\nID: 600\nformat:\n\
        \tfield:dev_t s_dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned char order;\toffset:12;\tsize:1;\tsigned:0;\n";

    fn read(system: &str, description: &str, content: &[u8]) -> Event {
        let description = Description::parse("format", description).unwrap();
        let mut event = Event::default();
        PointPlan::of(system, &description).read(content, &mut event);
        event
    }

    fn record(words: &[(usize, u64)]) -> Vec<u8> {
        let mut content = vec![0; 64];
        for (offset, value) in words {
            content[*offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
        }
        content
    }

    #[test]
    fn a_call_has_its_numbers_and_neither_addresses_nor_data() {
        let pid = 77_u64 << 32;
        let minus_one = u64::MAX;
        let content = record(&[(0, pid), (16, 3), (24, 0x7fff_1234), (32, 4096), (40, minus_one)]);
        let event = read("syscalls", PREAD, &content);
        assert_eq!((event.action, event.pid), (Action::Point, 77));
        let told: (&[u8], &[u8]) = (b"syscalls:sys_enter_pread64", b"fd=3 count=4096 pos=-1");
        assert_eq!(event.point(), told);
    }

    #[test]
    fn of_the_address_of_an_offset_is_told_whether_there_is_one() {
        let form = PREAD.replace("char * buf", "loff_t * off_in").replace("pread64", "splice");
        let told = |address: u64| {
            let content = record(&[(16, 3), (24, address), (32, 4096), (40, 0)]);
            String::from_utf8(read("syscalls", &form, &content).payload).unwrap()
        };
        assert_eq!(told(0), "syscalls:sys_enter_splice fd=3 off_in=NULL count=4096 pos=0");
        assert_eq!(
            told(0x7fff_1234),
            "syscalls:sys_enter_splice fd=3 off_in=given count=4096 pos=0"
        );
    }

    #[test]
    fn devices_are_found_by_number_and_by_name() {
        let mut content = record(&[(16, 0x1234)]);
        content[8..12].copy_from_slice(b"7:12");
        let event = read("writeback", DIRTY, &content);
        assert_eq!(event.device, Device::new(7, 12));
        assert_eq!(event.payload, b"writeback:writeback_dirty_folio name=7:12");
        let content = record(&[(8, u64::from(Device::new(8, 1).0) | 5 << 32)]);
        let event = read("filemap", CACHE, &content);
        assert_eq!(event.device, Device::new(8, 1));
        assert_eq!(event.payload, b"filemap:mm_filemap_add order=5");
    }

    #[test]
    fn a_short_record_and_a_strange_name_do_no_harm() {
        assert_eq!(
            read("syscalls", PREAD, b"").payload,
            b"syscalls:sys_enter_pread64 fd=0 count=0 pos=0"
        );
        let mut content = record(&[]);
        content[8..15].copy_from_slice(b"a =\x1b\xff\nb");
        assert_eq!(
            read("writeback", DIRTY, &content).payload.split_last().map(|(_, rest)| rest),
            Some(&b"writeback:writeback_dirty_folio name=a?????"[..])
        );
    }
}

//! Identity that a person can compare with the sticker on a drive: serial, model, size.
//!
//! Sources: Linux Documentation/ABI (block, nvme, scsi `vpd_pg80`), udev's database for what sysfs
//! lacks. A loop device has no serial: the name and inode of its image stand for it.

use std::path::Path;

use crate::machine::Machine;

/// Identity of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Serial, or what stands for it; one word.
    pub serial: String,
    /// Source of the serial.
    pub source: &'static str,
    /// Model; words with single blanks.
    pub model: String,
    /// Size.
    pub size_bytes: u64,
}

impl Identity {
    /// A device that a test invents.
    #[cfg(test)]
    pub fn for_tests(serial: &str, size_bytes: u64) -> Self {
        let (serial, model) = (serial.to_owned(), "990PRO".to_owned());
        Self { serial, source: SERIAL, model, size_bytes }
    }
}

const SERIAL: &str = "serial";
/// Bytes of the header of the unit serial number page (SPC-4 7.8.15).
const PAGE_HEADER: usize = 4;

/// Identity of the device `name`; `image_inode` is that of a loop device's image, if known.
pub fn identity(machine: &Machine, name: &str, image_inode: Option<u64>) -> Identity {
    let folder = Path::new("/sys/block").join(name);
    let peek = |file: &str| machine.peek(folder.join(file)).map(|text| words(&text, " "));
    let given = |file: &str| peek(file).filter(|text| !text.is_empty());
    let sectors: u64 = peek("size").and_then(|text| text.parse().ok()).unwrap_or(0);
    let database = udev(machine, &peek("dev").unwrap_or_default());
    let property = |key: &str| {
        let found = database.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        found.map(|text| words(text, " ")).filter(|text| !text.is_empty())
    };
    let (serial, source) = if let Some(image) = given("loop/backing_file") {
        let source = match image_inode {
            Some(_) => "file name and inode of the image",
            None => "file name of the image; root sees its inode, too",
        };
        (image_identity(&image, image_inode), source)
    } else {
        let page = machine.peek(folder.join("device/vpd_pg80"));
        let page = page.map(|page| words(&page.chars().skip(PAGE_HEADER).collect::<String>(), " "));
        let serial = given("device/serial")
            .or_else(|| given("serial"))
            .or(page.filter(|text| !text.is_empty()))
            .or_else(|| property("E:ID_SERIAL_SHORT"));
        let world_wide = || given("wwid").or_else(|| given("device/wwid"));
        let named = serial.map(|text| (text, SERIAL));
        named.or_else(|| Some((world_wide()?, "world-wide name"))).unwrap_or_else(|| {
            let sequence = peek("diskseq").unwrap_or_default();
            (format!("{name}-{sequence}"), "kernel name and disk sequence")
        })
    };
    let model = given("device/model")
        .or_else(|| given("device/name"))
        .or_else(|| property("E:ID_MODEL"))
        .unwrap_or_else(|| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
    Identity { serial: words(&serial, "_"), source, model, size_bytes: sectors * 512 }
}

fn image_identity(image: &str, inode: Option<u64>) -> String {
    let path = image.strip_suffix(" (deleted)").unwrap_or(image);
    let name =
        Path::new(path).file_name().map_or_else(|| path.into(), |name| name.to_string_lossy());
    inode.map_or_else(|| name.to_string(), |inode| format!("{name}-{inode}"))
}

/// systemd src/libsystemd/sd-device: properties of a device, one `E:KEY=value` a line.
fn udev(machine: &Machine, number: &str) -> String {
    machine.peek(format!("/run/udev/data/b{number}")).unwrap_or_default()
}

/// Printable words, joined; nobody can type the rest.
fn words(text: &str, joint: &str) -> String {
    let printable: String =
        text.chars().map(|c| if c.is_ascii_graphic() { c } else { ' ' }).collect();
    printable.split_whitespace().collect::<Vec<_>>().join(joint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fake_machine;
    use std::fs;

    #[test]
    fn the_serial_is_taken_from_where_the_driver_puts_it() {
        let (root, machine) = fake_machine();
        let folder = root.path().join("sys/block/sda");
        fs::write(folder.join("size"), "2097152\n").unwrap();
        assert_eq!(identity(&machine, "sda", None).serial, "sda-2");
        fs::create_dir_all(root.path().join("run/udev/data")).unwrap();
        let properties = "S:disk/by-id/x\nE:ID_MODEL=Some_Disk\nE:ID_SERIAL_SHORT=U 1\n";
        fs::write(root.path().join("run/udev/data/b8:0"), properties).unwrap();
        let from_udev = identity(&machine, "sda", None);
        assert_eq!((from_udev.serial.as_str(), from_udev.model.as_str()), ("U_1", "Some_Disk"));
        fs::create_dir(folder.join("device")).unwrap();
        fs::write(folder.join("device/vpd_pg80"), b"\x00\x80\x00\x08  WD-77 \n").unwrap();
        fs::write(folder.join("device/model"), "WDC  WD40EFRX-68W \n").unwrap();
        let disk = identity(&machine, "sda", None);
        assert_eq!((disk.serial.as_str(), disk.model.as_str()), ("WD-77", "WDC WD40EFRX-68W"));
        assert_eq!((disk.size_bytes, disk.source), (1 << 30, "serial"));
        fs::write(folder.join("device/serial"), "S5GXNF0R").unwrap();
        assert_eq!(identity(&machine, "sda", None).serial, "S5GXNF0R");
    }

    #[test]
    fn an_image_stands_for_a_loop_device() {
        let (root, machine) = fake_machine();
        let folder = root.path().join("sys/block/loop8/loop");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("backing_file"), "/srv/my disk.img (deleted)").unwrap();
        let device = identity(&machine, "loop8", Some(77));
        assert_eq!((device.serial.as_str(), device.model.as_str()), ("my_disk.img-77", "loop"));
        assert!(device.source.contains("image"));
    }
}

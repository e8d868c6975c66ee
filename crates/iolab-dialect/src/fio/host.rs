//! Questions of a job file to the machine while it is read: texts, variables, what is there.

use std::io::{BufRead, Seek as _, SeekFrom};
use std::os::unix::fs::FileTypeExt as _;
use std::sync::LazyLock;

/// The machine, or what stands for it in tests.
pub trait Host {
    /// Text of a file; a reason where it cannot be read.
    fn text(&self, path: &str) -> Result<String, String>;
    /// A file that is read bit by bit; where it cannot be read, a sentence that says so.
    fn open(&self, path: &str) -> Result<Box<dyn BufRead>, String>;
    /// An environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// File that stands at a path.
    fn at(&self, path: &str) -> There;
    /// The working directory.
    fn directory(&self) -> String;
    /// Bytes of a page.
    fn page_bytes(&self) -> u64;
    /// Memory in MiB.
    fn memory_mib(&self) -> u64;
    /// CPUs.
    fn cpus(&self) -> u64;
    /// A number that is another one in every run.
    fn chance(&self) -> u64;
}

/// Kind of file that stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum There {
    /// Nothing.
    Nothing,
    /// A file of so many bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A block device of so many bytes.
    Device(u64),
    /// Another device, a pipe, a socket.
    Special,
}

/// Bytes of a job file at most.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

/// This machine.
pub struct Here;

/// Entry of the auxiliary vector with the bytes of a page (`linux/auxvec.h`).
const AT_PAGESZ: u64 = 6;

// None of it changes while a process runs, and every job file asks for all of it.
static PAGE_BYTES: LazyLock<u64> = LazyLock::new(|| {
    let vector = std::fs::read("/proc/self/auxv").unwrap_or_default();
    page_bytes_in(&vector).unwrap_or(4096)
});
static MEMORY_MIB: LazyLock<u64> = LazyLock::new(|| {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    number_after(&text, "MemTotal").unwrap_or(0) >> 10
});
static CPUS: LazyLock<u64> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, |count| count.get() as u64));

/// Bytes of a page by an auxiliary vector: pairs of words, of eight bytes each.
fn page_bytes_in(vector: &[u8]) -> Option<u64> {
    let (words, _) = vector.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let found = pairs.iter().find(|pair| u64::from_ne_bytes(pair[0]) == AT_PAGESZ)?;
    Some(u64::from_ne_bytes(found[1])).filter(|bytes| bytes.is_power_of_two())
}

fn number_after(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse().ok()
}

impl Host for Here {
    fn text(&self, path: &str) -> Result<String, String> {
        use std::io::Read as _;
        let path = if path == "-" { "/dev/stdin" } else { path };
        let file = std::fs::File::open(path).map_err(|error| reason(&error))?;
        let mut bytes = Vec::new();
        let mut limited = file.take(TEXT_BYTES_MAX + 1);
        limited.read_to_end(&mut bytes).map_err(|error| reason(&error))?;
        if bytes.len() as u64 > TEXT_BYTES_MAX {
            return Err(format!("it is larger than {} MiB", TEXT_BYTES_MAX >> 20));
        }
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
    }

    fn open(&self, path: &str) -> Result<Box<dyn BufRead>, String> {
        Ok(Box::new(crate::workload_file::open(std::path::Path::new(path))?))
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn at(&self, path: &str) -> There {
        match std::fs::metadata(path) {
            Ok(found) if found.is_file() => There::File(found.len()),
            Ok(found) if found.is_dir() => There::Directory,
            Ok(found) if found.file_type().is_block_device() => {
                device_bytes(path).map_or(There::Special, There::Device)
            }
            Ok(_) => There::Special,
            Err(_) => There::Nothing,
        }
    }

    fn directory(&self) -> String {
        let path = std::env::current_dir().unwrap_or_default();
        path.to_string_lossy().into_owned()
    }

    fn page_bytes(&self) -> u64 {
        *PAGE_BYTES
    }

    fn memory_mib(&self) -> u64 {
        *MEMORY_MIB
    }

    fn cpus(&self) -> u64 {
        *CPUS
    }

    fn chance(&self) -> u64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |elapsed| elapsed.as_nanos() as u64) ^ u64::from(std::process::id())
    }
}

/// Bytes of a block device (`size` of sysfs, sectors of 512 bytes; Linux
/// Documentation/ABI/stable/sysfs-block).
fn device_bytes(path: &str) -> Option<u64> {
    let whole = std::fs::canonicalize(path).ok()?;
    let name = whole.file_name()?.to_str()?;
    let Ok(text) = std::fs::read_to_string(format!("/sys/class/block/{name}/size")) else {
        // A node with a name of somebody's own.
        return std::fs::File::open(path).ok()?.seek(SeekFrom::End(0)).ok();
    };
    text.trim().parse::<u64>().ok()?.checked_mul(512)
}

/// Words of the system about an error, without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Here, Host as _, page_bytes_in};

    #[test]
    fn the_size_of_a_page_is_the_kernels() {
        let vector: Vec<u8> =
            [33_u64, 1, 6, 16_384, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(page_bytes_in(&vector), Some(16_384));
        assert_eq!(page_bytes_in(&vector[..16]), None);
        assert_eq!(page_bytes_in(b"short"), None);
        assert!(Here.page_bytes().is_power_of_two());
        let own = std::fs::read("/proc/self/auxv").unwrap();
        assert_eq!(page_bytes_in(&own), Some(Here.page_bytes()), "a vector of words of 8 bytes");
    }
}

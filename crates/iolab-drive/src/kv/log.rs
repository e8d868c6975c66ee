//! Lines about single operations, in a file of each client: latencies, or what would be done.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use iolab_model::error::Errno;
use iolab_model::{Error, Ns};
use iolab_workload::kv::codec::Fields;
use iolab_workload::kv::{FieldChoice, KvEnd};

/// Bytes that are gathered before they are written.
const BUFFER_BYTES: usize = 1 << 16;

/// The log of one client.
pub struct KvLog {
    file: BufWriter<File>,
    /// From the clock of the ops to Unix time.
    unix_ns: i128,
    failure: Option<std::io::Error>,
}

impl KvLog {
    /// A new file in `folder`; `now` and `unix_ns` are the same instant on both clocks.
    pub fn create(
        folder: &Path,
        (phase, client): (&str, u32),
        (now, unix_ns): (Ns, u64),
    ) -> Result<Self, Error> {
        let path = folder.join(format!("{phase}.{client}"));
        let mut how = OpenOptions::new();
        let file = how.write(true).create_new(true).mode(0o644).open(&path).map_err(|error| {
            let errno = Errno(error.raw_os_error().unwrap_or(Errno::EIO.0));
            Error::System { call: "creating", subject: path.display().to_string(), errno }
        })?;
        let unix_ns = i128::from(unix_ns) - i128::from(now.0);
        Ok(Self { file: BufWriter::with_capacity(BUFFER_BYTES, file), unix_ns, failure: None })
    }

    fn write(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) {
        if self.failure.is_none() {
            self.failure = write(&mut self.file).err();
        }
    }

    /// A line of a latency: series, end in ms of Unix time, microseconds.
    pub fn latency(&mut self, series: &str, end: &KvEnd) {
        let ms = (i128::from(end.ended.0) + self.unix_ns) / 1_000_000;
        let us = end.ended.since(end.began).0 / 1000;
        self.write(|file| writeln!(file, "{series},{ms},{us}"));
    }

    /// A line of what would be read.
    pub fn read(&mut self, what: (&str, &str, &[u8]), count: Option<u32>, which: &str) {
        let (word, table, key) = what;
        let key = String::from_utf8_lossy(key);
        self.write(|file| match count {
            Some(count) => writeln!(file, "{word} {table} {key} {count} [ {which}]"),
            None => writeln!(file, "{word} {table} {key} [ {which}]"),
        });
    }

    /// A line of what would be written: a record of some fields.
    pub fn written(&mut self, what: (&str, &str, &[u8]), fields: &Fields, record: &[u8]) {
        let (word, table, key) = what;
        self.write(|file| {
            write!(file, "{word} {table} {} [ ", String::from_utf8_lossy(key))?;
            for index in 0..fields.count() {
                if let Some(value) = fields.find(record, index) {
                    file.write_all(fields.name(index))?;
                    file.write_all(b"=")?;
                    file.write_all(value)?;
                    file.write_all(b" ")?;
                }
            }
            file.write_all(b"]\n")
        });
    }

    /// Writes what is left.
    pub fn close(mut self) -> Result<(), String> {
        let ended = match self.failure.take() {
            Some(error) => Err(error),
            None => self.file.flush(),
        };
        ended.map_err(|error| format!("the log of operations cannot be written: {error}"))
    }
}

/// Fields as the printing store names them.
pub fn fields_text(fields: &Fields, which: FieldChoice) -> String {
    match which {
        FieldChoice::All => "<all fields>".into(),
        FieldChoice::One(index) => format!("{} ", String::from_utf8_lossy(fields.name(index))),
    }
}

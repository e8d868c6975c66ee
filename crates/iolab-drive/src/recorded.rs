//! The file of a recorded stream, read ahead by a thread of its own.
//!
//! A worker never waits for the disk that the recording lies on, unless it is faster than the
//! reader; memory is bounded by a few chunks, however long the recording is. Left out: recordings
//! that are compressed.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use iolab_workload::program::{OpenRecorded, Recorded, RecordedOp, RecordedReader, RecordedStream};

/// Operations that are handed over at once.
const CHUNK: usize = 1024;
/// Chunks that may wait for the worker.
const WAITING_MAX: usize = 4;
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 18;

type Read = Result<RecordedOp, String>;

/// Opens an ordinary file.
///
/// # Errors
///
/// The system's reason, or that it is no ordinary file.
fn open_file(path: &Path) -> Result<File, String> {
    let told = |error: &std::io::Error| {
        let text = error.to_string();
        text.split(" (os error").next().unwrap_or_default().to_owned()
    };
    // A pipe would be waited for.
    let found = std::fs::metadata(path).map_err(|error| told(&error))?;
    if !found.is_file() {
        return Err("it is no ordinary file".to_owned());
    }
    File::open(path).map_err(|error| told(&error))
}

/// Opens the stream of a program anew for each pass.
pub fn opener(recorded: &Recorded) -> OpenRecorded {
    let recorded = recorded.clone();
    Box::new(move || read_ahead(&recorded))
}

/// Opens a recorded stream and begins to read it.
fn read_ahead(recorded: &Recorded) -> Result<RecordedStream, String> {
    let file = open_file(&recorded.file)?;
    let buffered = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut reader = RecordedReader::new(buffered, recorded);
    if let Some(content) = &recorded.content {
        reader = reader.expecting(content);
    }
    let (sender, receiver) = sync_channel::<Vec<Read>>(WAITING_MAX);
    std::thread::spawn(move || {
        loop {
            let chunk: Vec<Read> = reader.by_ref().take(CHUNK).collect();
            // A worker that has ended takes no more.
            if chunk.is_empty() || sender.send(chunk).is_err() {
                return;
            }
        }
    });
    let mut chunks = Chunks { receiver, at_hand: Vec::new().into_iter() };
    // The first chunk is there before the first operation is timed.
    chunks.receive();
    Ok(Box::new(chunks))
}

/// Operations, chunk by chunk.
struct Chunks {
    receiver: Receiver<Vec<Read>>,
    at_hand: std::vec::IntoIter<Read>,
}

impl Chunks {
    fn receive(&mut self) {
        self.at_hand = self.receiver.recv().unwrap_or_default().into_iter();
    }
}

impl Iterator for Chunks {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        if self.at_hand.as_slice().is_empty() {
            self.receive();
        }
        self.at_hand.next()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::PathBuf;

    use iolab_workload::program::{RECORDED_TITLE, RecordedContent, RecordedFormat};

    use super::*;

    fn recorded(file: PathBuf) -> Recorded {
        Recorded::plain(file, RecordedFormat::Iolab, "data")
    }

    #[test]
    fn a_long_recording_comes_in_order_and_one_that_is_left_early_is_let_go() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let lines = (0..20_000).map(|number| format!("{number} read 0 {} 512\n", number * 512));
        let text = format!("{RECORDED_TITLE}\n{}", lines.collect::<String>());
        file.write_all(text.as_bytes()).unwrap();
        let mut known = recorded(file.path().to_owned());
        known.content = Some(RecordedContent::of(text.as_bytes(), &known).unwrap());
        assert_eq!(known.content.as_ref().unwrap().ops, 20_000);
        let mut open = opener(&known);
        for _ in 0..2 {
            let found: Vec<u64> = open().unwrap().map(|op| op.unwrap().number).collect();
            assert!(found.iter().copied().eq(1..=20_000));
        }
        drop(open().unwrap().take(3).collect::<Vec<_>>());
        file.write_all(b"20000 fsync 0\n").unwrap();
        let changed = open().unwrap().find_map(Result::err).unwrap();
        assert!(changed.starts_with("line 20002: the file ends here"), "{changed}");
    }

    #[test]
    fn what_is_no_ordinary_file_is_not_read() {
        let place = tempfile::tempdir().unwrap();
        for (path, part) in [
            (place.path(), "no ordinary file"),
            (Path::new("/dev/null"), "no ordinary file"),
            (Path::new("/nowhere/at/all"), "No such file"),
        ] {
            let why = opener(&recorded(path.to_owned()))().err().unwrap();
            assert!(why.contains(part), "{}: {why}", path.display());
        }
    }
}

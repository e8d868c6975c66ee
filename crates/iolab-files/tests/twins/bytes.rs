//! A file system with small memory, beside files that are vectors of bytes.

use iolab_files::api::file_system::FileSystem;
use iolab_model::Bytes;
use iolab_model::error::Errno;
use iolab_model::op::{Access, Advice, Deallocation, Handle, Op, OpenHow, Position, Transfer};

use super::chance::Chance;
use super::mounted::Mounted;

const FILES: u64 = 3;
/// Longest file.
const LONGEST: u64 = 3 << 20;
/// Ways of each file: through the cache, past it, as a stream.
const WAYS: [Access; 3] = [Access::Plain, Access::Direct, Access::Stdio];

/// A file system and what its files must hold.
pub struct Twin {
    pub mounted: Mounted,
    chance: Chance,
    files: Vec<Vec<u8>>,
    /// Names of files that were removed and made again.
    made: u64,
    names: Vec<String>,
    has_direct: bool,
}

impl Twin {
    pub fn new(file_system: Box<dyn FileSystem>, seed: u64) -> Self {
        let mounted = Mounted::new(file_system, 2 << 20);
        let mut twin = Self {
            mounted,
            chance: Chance(seed),
            files: vec![Vec::new(); FILES as usize],
            made: 0,
            names: vec![String::new(); FILES as usize],
            has_direct: true,
        };
        for file in 0..FILES {
            twin.make(file);
        }
        twin
    }

    fn how(access: Access) -> OpenHow {
        OpenHow { access, is_readable: true, is_writable: true, ..OpenHow::default() }
    }

    fn handle(file: u64, way: usize) -> Handle {
        Handle((file * WAYS.len() as u64) as u32 + way as u32)
    }

    fn make(&mut self, file: u64) {
        self.made += 1;
        self.names[file as usize] = format!("file{}", self.made);
        self.files[file as usize].clear();
        let name = self.names[file as usize].clone();
        self.mounted.open(&name, Self::handle(file, 0).0, Self::how(WAYS[0]), true);
        for (way, &access) in WAYS.iter().enumerate().skip(1) {
            let handle = Self::handle(file, way);
            let op = Op::Open { path: iolab_model::op::PathId(0), handle, how: Self::how(access) };
            match self.mounted.ask(op, Some(&name), &mut []) {
                Ok(_) => {}
                Err(Errno::EINVAL) if access == Access::Direct => self.has_direct = false,
                Err(errno) => panic!("opening: errno {}", errno.0),
            }
        }
    }

    /// Does something by chance; the first difference in words.
    pub fn step(&mut self) -> Result<(), String> {
        let file = self.chance.below(FILES);
        match self.chance.below(40) {
            0..14 => self.write(file),
            14..28 => self.read(file),
            28..30 => self.sync(file),
            30 => self.truncate(file),
            31 | 32 => self.punch(file),
            33 => self.remove(file),
            34 => {
                self.mounted
                    .ask(Op::SyncAll, None, &mut [])
                    .map_err(|e| format!("sync: {}", e.0))?;
                self.mounted.settle();
                self.mounted.machine.drop_caches();
                Ok(())
            }
            35 => {
                let op = Op::Advise { handle: Self::handle(file, 0), advice: Advice::DontNeed };
                self.mounted
                    .ask(op, None, &mut [])
                    .map(drop)
                    .map_err(|e| format!("advice: {}", e.0))
            }
            36 | 37 => self.allocate(file),
            _ => self.mapped(file),
        }
    }

    /// A range of a file and a way to it; past the cache in whole sectors.
    fn range(&mut self, file: u64) -> (usize, u64, u64) {
        let way = self.chance.below(8);
        let way = if way < 5 {
            0
        } else if way < 7 && self.has_direct {
            1
        } else {
            2
        };
        let size = self.files[file as usize].len() as u64;
        let longest = [900, 4096, 20_000, 300_000][self.chance.below(4) as usize];
        let (mut at, mut length) =
            (self.chance.below(size + 50_000), 1 + self.chance.below(longest));
        let unit = if way == 1 { [512, 4096][self.chance.below(2) as usize] } else { 1 };
        (at, length) = (at / unit * unit, length.next_multiple_of(unit));
        (way, at.min(LONGEST - length), length)
    }

    fn content(&mut self, length: u64) -> Vec<u8> {
        (0..length).map(|_| self.chance.below(255) as u8 + 1).collect()
    }

    fn transfer(&mut self, file: u64, way: usize, (at, length): (u64, u64)) -> Transfer {
        // A range behind a multiple of the unit is moved by several calls now and then.
        let call_bytes = if way == 0 && self.chance.below(8) == 0 { 1000 } else { 0 };
        let plain =
            Transfer::plain(Self::handle(file, way), Position::At(Bytes(at)), Bytes(length));
        Transfer { call_bytes, ..plain }
    }

    fn write(&mut self, file: u64) -> Result<(), String> {
        let (way, at, length) = self.range(file);
        let mut content = self.content(length);
        let op = Op::Write(self.transfer(file, way, (at, length)));
        let moved = self.mounted.ask(op, None, &mut content);
        if moved != Ok(length) {
            return Err(format!("{op:?} gave {moved:?}"));
        }
        self.put(file, at, &content);
        self.flush_stream(file, way)
    }

    /// Empties a stream: nobody else sees what it holds back.
    fn flush_stream(&mut self, file: u64, way: usize) -> Result<(), String> {
        if way != 2 {
            return Ok(());
        }
        let op = Op::StreamFlush { handle: Self::handle(file, way) };
        self.mounted.ask(op, None, &mut []).map(drop).map_err(|e| format!("flush: {}", e.0))
    }

    fn put(&mut self, file: u64, at: u64, content: &[u8]) {
        let (bytes, end) = (&mut self.files[file as usize], at as usize + content.len());
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[at as usize..end].copy_from_slice(content);
    }

    fn read(&mut self, file: u64) -> Result<(), String> {
        let (way, at, length) = self.range(file);
        if way == 2 {
            // The C library may answer from what it has read before.
            let (name, handle) = (self.names[file as usize].clone(), Self::handle(file, way));
            self.mounted
                .ask(Op::Close { handle }, None, &mut [])
                .map_err(|e| format!("{}", e.0))?;
            self.mounted.open(&name, handle.0, Self::how(WAYS[way]), false);
        }
        let op = Op::Read(self.transfer(file, way, (at, length)));
        self.compare(file, op, (at, length))
    }

    /// All files, from the device.
    pub fn read_all(&mut self) -> Result<(), String> {
        self.mounted.ask(Op::SyncAll, None, &mut []).map_err(|e| format!("sync: {}", e.0))?;
        self.mounted.settle();
        self.mounted.machine.drop_caches();
        for file in 0..FILES {
            let length = self.files[file as usize].len() as u64;
            let op = Op::read(Self::handle(file, 0), Bytes(0), Bytes(length));
            self.compare(file, op, (0, length))?;
        }
        Ok(())
    }

    /// Makes everything durable, writes to each file once more, flushes some of them, cuts power;
    /// what was flushed is there, and of the rest nothing but what was written.
    pub fn lose_power(&mut self) -> Result<(), String> {
        self.mounted.ask(Op::SyncAll, None, &mut []).map_err(|e| format!("sync: {}", e.0))?;
        let before = self.files.clone();
        let mut is_flushed = [false; FILES as usize];
        for file in 0..FILES {
            self.write(file)?;
            if self.chance.below(2) == 0 {
                self.sync(file)?;
                is_flushed[file as usize] = true;
            }
        }
        let mut is_cut = false;
        for _ in 0..1000 {
            self.mounted.settle();
            is_cut = is_cut || self.mounted.machine.cut_power();
            if is_cut {
                break;
            }
            self.mounted.happens();
        }
        if !is_cut {
            return Err("something is always on its way".into());
        }
        for file in 0..FILES {
            let index = file as usize;
            let name = self.names[index].clone();
            let stat = Op::Stat { path: iolab_model::op::PathId(0) };
            let told = |e: Errno| format!("after the power cut: {}", e.0);
            let length = self.mounted.ask(stat, Some(&name), &mut []).map_err(told)?;
            let mut found = vec![0; length as usize];
            let read = Op::read(Self::handle(file, 0), Bytes(0), Bytes(length));
            self.mounted.ask(read, None, &mut found).map_err(told)?;
            if is_flushed[index] && found != self.files[index] {
                return Err(format!("{name}: what was flushed is lost in a power cut"));
            }
            let old = before[index].iter().zip(&self.files[index]).zip(&found);
            if let Some(at) = old.clone().position(|((old, new), now)| now != old && now != new) {
                return Err(format!("{name}: byte {at} is neither old nor new after a power cut"));
            }
            if found.len() < before[index].len() {
                return Err(format!("{name} is shorter after a power cut"));
            }
            self.files[index] = found;
            self.cut_end(file)?;
        }
        Ok(())
    }

    /// Shortens a file by a byte: behind its end its last block may hold what was written past the
    /// cache and did not become part of it, and ext4 clears that at a truncate alone.
    fn cut_end(&mut self, file: u64) -> Result<(), String> {
        let Some(length) = (self.files[file as usize].len() as u64).checked_sub(1) else {
            return Ok(());
        };
        self.truncate_to(file, length)
    }

    fn compare(&mut self, file: u64, op: Op, (at, length): (u64, u64)) -> Result<(), String> {
        let mut found = vec![0xee; length as usize];
        let moved =
            self.mounted.ask(op, None, &mut found).map_err(|e| format!("{op:?}: {}", e.0))?;
        let bytes = &self.files[file as usize];
        let (from, end) = ((at as usize).min(bytes.len()), (at + length) as usize);
        let expected = &bytes[from..end.min(bytes.len())];
        if moved != expected.len() as u64 {
            return Err(format!("{op:?}: {moved} bytes of {}", expected.len()));
        }
        let wrong = expected.iter().zip(&found).position(|(expected, found)| expected != found);
        match wrong {
            Some(wrong) => Err(format!(
                "{op:?}: byte {} of {} is {}, not {}",
                from + wrong,
                bytes.len(),
                found[wrong],
                expected[wrong]
            )),
            None => Ok(()),
        }
    }

    fn sync(&mut self, file: u64) -> Result<(), String> {
        let op = Op::Fsync { handle: Self::handle(file, 0) };
        self.mounted.ask(op, None, &mut []).map(drop).map_err(|e| format!("fsync: {}", e.0))
    }

    fn truncate(&mut self, file: u64) -> Result<(), String> {
        let size = self.files[file as usize].len() as u64;
        let length = self.chance.below(size + 20_000).min(LONGEST);
        self.truncate_to(file, length)
    }

    fn truncate_to(&mut self, file: u64, length: u64) -> Result<(), String> {
        let op = Op::Truncate { handle: Self::handle(file, 0), length: Bytes(length) };
        self.mounted.ask(op, None, &mut []).map_err(|e| format!("{op:?}: {}", e.0))?;
        self.files[file as usize].resize(length as usize, 0);
        Ok(())
    }

    fn punch(&mut self, file: u64) -> Result<(), String> {
        let (_, at, length) = self.range(file);
        let how = [Deallocation::Punch, Deallocation::Zero][self.chance.below(2) as usize];
        let handle = Self::handle(file, 0);
        let op = Op::Deallocate { handle, at: Bytes(at), length: Bytes(length), how };
        match self.mounted.ask(op, None, &mut []) {
            Ok(_) => {
                let bytes = &mut self.files[file as usize];
                let end = ((at + length) as usize).min(bytes.len());
                if let Some(range) = bytes.get_mut(at as usize..end) {
                    range.fill(0);
                }
                Ok(())
            }
            Err(Errno::EOPNOTSUPP) => Ok(()),
            Err(errno) => Err(format!("{op:?}: {}", errno.0)),
        }
    }

    fn allocate(&mut self, file: u64) -> Result<(), String> {
        let (_, at, length) = self.range(file);
        let (handle, keeps_length) = (Self::handle(file, 0), self.chance.below(2) == 0);
        let op = Op::Allocate { handle, at: Bytes(at), length: Bytes(length), keeps_length };
        match self.mounted.ask(op, None, &mut []) {
            Ok(_) if !keeps_length => self.put(file, at + length, &[]),
            Ok(_) | Err(Errno::EOPNOTSUPP) => {}
            Err(errno) => return Err(format!("{op:?}: {}", errno.0)),
        }
        Ok(())
    }

    /// Stores into a mapped file, and a look at it.
    fn mapped(&mut self, file: u64) -> Result<(), String> {
        let size = self.files[file as usize].len() as u64;
        if size == 0 {
            return Ok(());
        }
        let handle = Self::handle(file, 0);
        let at = self.chance.below(size);
        let length = (1 + self.chance.below(30_000)).min(size - at);
        let mut content = self.content(length);
        let (place, long) = (Bytes(at), Bytes(length));
        let told = |e: Errno| format!("mapped: {}", e.0);
        self.mounted.ask(Op::Map { handle, length: Bytes(size) }, None, &mut []).map_err(told)?;
        let touch = |is_write| Op::Touch { handle, at: place, length: long, is_write };
        self.mounted.ask(touch(true), None, &mut content).map_err(told)?;
        self.put(file, at, &content);
        let result = self.compare(file, touch(false), (at, length));
        self.mounted.ask(Op::Unmap { handle }, None, &mut []).map_err(told)?;
        result
    }

    fn remove(&mut self, file: u64) -> Result<(), String> {
        for (way, &access) in WAYS.iter().enumerate() {
            if access == Access::Direct && !self.has_direct {
                continue;
            }
            let op = Op::Close { handle: Self::handle(file, way) };
            self.mounted.ask(op, None, &mut []).map_err(|e| format!("{op:?}: {}", e.0))?;
        }
        let name = self.names[file as usize].clone();
        let op = Op::Unlink { path: iolab_model::op::PathId(0) };
        self.mounted.ask(op, Some(&name), &mut []).map_err(|e| format!("{op:?}: {}", e.0))?;
        self.make(file);
        Ok(())
    }
}

/// Writes records of a file in random order, each once, with a memory smaller than it; reads all of
/// them and says what is wrong first.
pub fn larger_than_memory(file_system: Box<dyn FileSystem>, record: u64) -> Result<(), String> {
    const FILE: u64 = 4 << 20;
    let mut mounted = Mounted::new(file_system, 5 << 19);
    let (handle, mut chance) = (Handle(0), Chance(record));
    mounted.open("a", 0, Twin::how(Access::Plain), true);
    let records = FILE / record;
    let mut order: Vec<u64> = (0..records).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, chance.below(last as u64 + 1) as usize);
    }
    let told = |errno: Errno| format!("errno {}", errno.0);
    for at in order {
        let mut content = vec![(at % 251) as u8 + 1; record as usize];
        let write = Op::write(handle, Bytes(at * record), Bytes(record));
        mounted.ask(write, None, &mut content).map_err(told)?;
    }
    for at in 0..records {
        let mut content = vec![0; record as usize];
        let read = Op::read(handle, Bytes(at * record), Bytes(record));
        mounted.ask(read, None, &mut content).map_err(told)?;
        if let Some(wrong) = content.iter().position(|byte| *byte != (at % 251) as u8 + 1) {
            return Err(format!("record {at} of {records}, byte {wrong} is {}", content[wrong]));
        }
    }
    Ok(())
}

/// Writes a mapped file that is larger than memory three times, record by record, and reads it;
/// says what is wrong first.
pub fn mapped_and_larger_than_memory(
    file_system: Box<dyn FileSystem>,
    record: u64,
) -> Result<(), String> {
    const FILE: u64 = 4 << 20;
    let mut mounted = Mounted::new(file_system, 5 << 19);
    let handle = Handle(0);
    mounted.open("a", 0, Twin::how(Access::Mapped), true);
    let told = |errno: Errno| format!("errno {}", errno.0);
    mounted.ask(Op::Truncate { handle, length: Bytes(FILE) }, None, &mut []).map_err(told)?;
    mounted.ask(Op::Map { handle, length: Bytes(FILE) }, None, &mut []).map_err(told)?;
    let touch = |at, is_write| Op::Touch { handle, at: Bytes(at), length: Bytes(record), is_write };
    for pass in 1..4 {
        for at in (0..FILE).step_by(record as usize) {
            let mut content = vec![pass * 64 + (at / record % 61) as u8; record as usize];
            mounted.ask(touch(at, true), None, &mut content).map_err(told)?;
        }
    }
    for at in (0..FILE).step_by(record as usize) {
        let mut content = vec![0; record as usize];
        mounted.ask(touch(at, false), None, &mut content).map_err(told)?;
        let expected = 3 * 64 + (at / record % 61) as u8;
        if let Some(wrong) = content.iter().position(|byte| *byte != expected) {
            return Err(format!(
                "byte {} is {}, not {expected}",
                at + wrong as u64,
                content[wrong]
            ));
        }
    }
    Ok(())
}

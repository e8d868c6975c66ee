//! Calls followed from the first to the last: what each did to which file, and where.

use std::collections::{BTreeMap, HashMap};

use iolab_trace::Error;
use iolab_trace::error::Caveat;
use iolab_trace::ring::GIVEN;

use crate::access::{AccessStream, Allocations, File, FileAccess, FileId, Happening, StableWait};
use crate::calls::{CallEffect, OpenFlags, Transfer, effect_of};
use crate::descriptors::{Descriptors, STANDARD};
use crate::points::{Held, PointDeed, PointReader};
use crate::text::line::{CallOutcome, CallText};
use crate::text::reader::{CallDeed, Moment, Reader};
use crate::text::scan;

/// `CLONE_FILES` of include/uapi/linux/sched.h.
const CLONE_FILES: i64 = 0x400;

/// Bytes of one access, at most: `MAX_RW_COUNT` of include/linux/fs.h for pages of 4 KiB.
pub const ACCESS_MAX: u64 = 0x7fff_f000;
/// Requests of one call, at most: more than any limit of a system (`fs.aio-max-nr` is 65536 unless
/// it is raised).
const REQUESTS_MAX: u64 = 1 << 20;

/// Mappings that are known, so that memory is bounded.
const MAPPED_MAX: usize = 1 << 16;

/// Tell whether a call is made again after an error: nothing has failed (errno(3); strace(1) names
/// what the kernel itself makes again).
fn is_tried_again(error: &[u8]) -> bool {
    [&b"EAGAIN"[..], b"EWOULDBLOCK", b"EINTR"].contains(&error) || error.starts_with(b"ERESTART")
}

/// State of all processes of a trace.
#[derive(Debug, Default)]
pub struct TracedProcesses {
    descriptors: Descriptors,
    happenings: Vec<Happening>,
    /// Requests under way in each of the kernel's queues, by task and address.
    in_queue: HashMap<(u32, Vec<u8>), u64>,
    /// Length and file of what was mapped, by its address: the last one of each.
    mapped: BTreeMap<u64, (u64, FileId)>,
    /// Number of calls that were understood or of no interest.
    pub calls: u64,
    /// True if requests went through `io_uring`, which no trace of calls shows.
    pub has_ring: bool,
    /// Requests of `io_submit` that the trace leaves out.
    pub hidden: u64,
    /// Copies between descriptors whose offsets the trace leaves out.
    pub unplaced: u64,
    /// Reads and writes of standard input, output and error, of which nothing says that they are
    /// files.
    pub of_standard: u64,
    /// Reads and writes that moved more than they were asked for.
    pub impossible: u64,
    /// Reads and writes that failed, by the name of the error.
    pub failed: BTreeMap<String, u64>,
}

impl TracedProcesses {
    /// Number of tasks whose parents were guessed.
    pub const fn guessed(&self) -> u64 {
        self.descriptors.guessed
    }

    /// Number of tasks whose descriptors are not known.
    pub const fn unfollowed(&self) -> u64 {
        self.descriptors.unfollowed
    }

    /// Files that were met.
    pub fn files(&self) -> &[File] {
        self.descriptors.files()
    }

    /// Goes to the end of a trace; `take` is given what happens to files.
    pub fn follow(
        &mut self,
        reader: &mut Reader,
        mut take: impl FnMut(&Happening) -> Result<(), Error>,
    ) -> Result<Vec<Caveat>, Error> {
        while let Some(moment) = reader.advance()? {
            self.step(&moment, reader.call());
            self.hand_over(&mut take)?;
        }
        Ok(reader.caveats())
    }

    /// The same with a recording of trace points.
    pub fn follow_points(
        &mut self,
        reader: &mut PointReader<'_>,
        mut take: impl FnMut(&Happening) -> Result<(), Error>,
    ) -> Result<Vec<Caveat>, Error> {
        let mut call = CallText::default();
        while let Some(deed) = reader.advance()? {
            match deed {
                PointDeed::Call { task, begin_ns } => {
                    let begin_ns = Some(begin_ns);
                    if call.parse(reader.body()).is_some() {
                        self.step(&Moment { task, begin_ns, deed: CallDeed::Call }, &call);
                    }
                }
                PointDeed::Made { task, child, shares } => {
                    self.descriptors.end_fork(task, Some(child), shares);
                }
                PointDeed::Held(held) => self.hold(held),
                PointDeed::Ended(task) => self.descriptors.end_task(task),
            }
            self.hand_over(&mut take)?;
        }
        Ok(reader.caveats())
    }

    /// A descriptor that a process has from before the trace.
    fn hold(&mut self, held: Held) {
        let Held { task, descriptor, path, flags, position, size } = held;
        let flags = OpenFlags { is_truncated: false, ..OpenFlags::of_number(flags) };
        let id = self.descriptors.open(task, descriptor, Some(path), flags);
        self.descriptors.description_mut(id).position = Some(position);
        if let Some(file) = self.descriptors.description(id).file {
            let file = self.descriptors.file_mut(file);
            file.is_opened_before = true;
            file.size = size.or(file.size);
        }
    }

    fn hand_over(
        &mut self,
        take: &mut impl FnMut(&Happening) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let closed = self
            .descriptors
            .take_closed()
            .map(|(file, description)| Happening::Closed(AccessStream { file, description }));
        self.happenings.extend(closed);
        self.happenings.drain(..).try_for_each(|happening| take(&happening))
    }

    fn step(&mut self, moment: &Moment, call: &CallText) {
        if moment.deed == CallDeed::Ended {
            self.descriptors.end_task(moment.task);
            return;
        }
        let Some(effect) = effect_of(call.name()) else {
            self.calls += u64::from(moment.deed == CallDeed::Call);
            return;
        };
        if moment.deed == CallDeed::Begun {
            if effect == CallEffect::Fork {
                self.descriptors.begin_fork(moment.task, shares_files(call));
            }
            return;
        }
        self.calls += 1;
        if let Some(lasted) = call.duration_ns().filter(|_| effect.is_aside()) {
            self.happenings.push(Happening::Busy(moment.task, lasted));
        }
        match call.outcome() {
            Some(CallOutcome::Done(result)) => self.done(moment, call, effect, result as u64),
            _ if effect == CallEffect::Fork => {
                self.descriptors.end_fork(moment.task, None, shares_files(call));
            }
            _ if matches!(effect, CallEffect::Transfer(_)) => {
                let error = call.error().filter(|error| !is_tried_again(error));
                if let Some(error) = error.map(String::from_utf8_lossy) {
                    *self.failed.entry(error.into_owned()).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    fn done(&mut self, moment: &Moment, call: &CallText, effect: CallEffect, result: u64) {
        let task = moment.task;
        match effect {
            CallEffect::Open(path, flags) => {
                self.open(task, call, (path, flags), result);
            }
            CallEffect::Remove(path) => self.remove(call, path),
            CallEffect::Link(name, other) => self.link(call, name, other),
            CallEffect::MakeOther => self.make_other(task, call, result),
            CallEffect::Ring => {
                self.has_ring = true;
                self.descriptors.open_other(task, result);
            }
            CallEffect::Close => {
                if let Some(descriptor) = descriptor(call, 0) {
                    self.descriptors.close(task, descriptor, descriptor);
                }
            }
            CallEffect::CloseRange => {
                let last = scan::number(call.argument(1)).map_or(u64::MAX, |last| last as u64);
                if let Some(first) = descriptor(call, 0) {
                    self.descriptors.close(task, first, last.max(first));
                }
            }
            CallEffect::Duplicate => self.duplicate(task, call, result),
            CallEffect::Control => self.control(task, call, result),
            CallEffect::Fork => {
                // truss prints the call in the child, too, with the parent's number.
                let is_child = scan::find(&call.body, b"returning as child").is_some();
                let child = u32::try_from(result).ok().filter(|child| *child > 0 && !is_child);
                self.descriptors.end_fork(task, child, shares_files(call));
            }
            CallEffect::Execute => self.descriptors.execute(task),
            CallEffect::Transfer(transfer) => self.transfer(moment, call, transfer, result),
            CallEffect::Copy(from, from_at, to, to_at) => {
                self.copy_part(moment, call, (from, from_at, false), result);
                self.copy_part(moment, call, (to, to_at, true), result);
            }
            CallEffect::Seek => self.seek(task, call, result),
            CallEffect::Truncate => {
                let file = self.file_at(task, call, 0);
                self.truncate(file, call);
            }
            CallEffect::TruncatePath => {
                let file = scan::string(call.argument(0));
                let file = file.and_then(|name| self.descriptors.known(&name));
                self.truncate(file, call);
            }
            CallEffect::Allocate => self.allocate(task, call),
            CallEffect::Sync(wait) => {
                if let Some(file) = self.file_at(task, call, 0) {
                    self.happenings.push(Happening::Synced(file, wait));
                }
            }
            CallEffect::SyncAll => self.happenings.push(Happening::AllSynced),
            CallEffect::SyncMapped(flags) => self.sync_mapped(call, flags),
            CallEffect::Map => self.map(task, call, result),
            CallEffect::Submit => self.submit(moment, call, result),
            CallEffect::Reap => {
                let queue = (task, call.argument(0).to_vec());
                if let Some(under_way) = self.in_queue.get_mut(&queue) {
                    *under_way = under_way.saturating_sub(result);
                }
            }
            CallEffect::SolarisQueue => self.solaris_queue(moment, call, result),
        }
    }

    fn open(
        &mut self,
        task: u32,
        call: &CallText,
        (path, flags): (usize, Option<usize>),
        result: u64,
    ) {
        let typed = scan::string(call.argument(path));
        let name = call.outcome_path().or_else(|| typed.clone());
        let emptied = OpenFlags { is_truncated: true, ..OpenFlags::default() };
        let flags = flags.map_or(emptied, |index| OpenFlags::parse(call.argument(index)));
        let id = match name {
            Some(name) => self.descriptors.open(task, result, Some(name), flags),
            None => self.descriptors.open_unnamed(task, result, flags),
        };
        if let Some(file) = self.descriptors.description(id).file {
            self.descriptors.remember(typed, file);
            self.happenings.extend(flags.is_truncated.then_some(Happening::Emptied(file)));
        }
    }

    fn remove(&mut self, call: &CallText, path: usize) {
        let name = scan::string(call.argument(path));
        if let Some(file) = name.and_then(|name| self.descriptors.known(&name)) {
            let known = self.descriptors.file_mut(file);
            if known.other_names > 0 {
                known.other_names -= 1;
                return;
            }
            known.size = Some(0);
            self.happenings.push(Happening::Emptied(file));
        }
    }

    fn link(&mut self, call: &CallText, name: usize, other: usize) {
        let name = scan::string(call.argument(name));
        if let Some(file) = name.and_then(|name| self.descriptors.known(&name)) {
            self.descriptors.file_mut(file).other_names += 1;
            self.descriptors.remember(scan::string(call.argument(other)), file);
        }
    }

    fn map(&mut self, task: u32, call: &CallText, address: u64) {
        let Some(file) = self.file_at(task, call, 4) else { return };
        let bytes = scan::number(call.argument(1)).map_or(0, |bytes| bytes as u64);
        if self.mapped.len() < MAPPED_MAX {
            self.mapped.insert(address, (bytes, file));
        }
        let file = self.descriptors.file_mut(file);
        // The loader maps the libraries of every program, and the C library its tables: nobody
        // asks for them.
        let is_library = [&b".so"[..], b"/locale/", b"/gconv/"]
            .iter()
            .any(|part| scan::find(&file.name, part).is_some());
        file.is_mapped |= !is_library;
        file.mapped_bytes = file.mapped_bytes.max(bytes);
        file.is_code |= is_code(call.argument(2));
    }

    /// A wait of a part of memory; without `MS_SYNC` (4, include/uapi/asm-generic/mman-common.h)
    /// it is none.
    fn sync_mapped(&mut self, call: &CallText, flags: usize) {
        let flags = call.argument(flags);
        let is_wait = scan::find(flags, b"MS_SYNC").is_some()
            || scan::number(flags).is_some_and(|number| number & 4 != 0);
        let Some(at) = scan::number(call.argument(0)).filter(|_| is_wait) else { return };
        let at = at as u64;
        let below = self.mapped.range(..=at).next_back();
        if let Some((begin, (bytes, file))) = below
            && at - begin < *bytes
        {
            self.happenings.push(Happening::Synced(*file, StableWait::Fsync));
        }
    }

    fn make_other(&mut self, task: u32, call: &CallText, result: u64) {
        // `pipe([4, 5])` and `socketpair(..., [4, 5])` give two in a list, the others one.
        let arguments = call.arguments();
        let list = arguments.iter().rposition(|byte| *byte == b'[').map(|at| &arguments[at + 1..]);
        match list {
            Some(list) if call.name().starts_with(b"pipe") || call.name() == b"socketpair" => {
                for one in list.split(|byte| *byte == b',') {
                    if let Some(descriptor) = scan::number(one) {
                        self.descriptors.open_other(task, descriptor as u64);
                    }
                }
            }
            _ => self.descriptors.open_other(task, result),
        }
    }

    fn duplicate(&mut self, task: u32, call: &CallText, result: u64) {
        if let Some(from) = descriptor(call, 0) {
            let is_closed = OpenFlags::parse(call.argument(2)).is_closed_on_exec;
            self.known_at(task, call, 0);
            self.descriptors.duplicate(task, from, result, is_closed);
        }
    }

    fn control(&mut self, task: u32, call: &CallText, result: u64) {
        let command = call.argument(1);
        // Numbers of include/uapi/asm-generic/fcntl.h and include/uapi/linux/fcntl.h.
        let number = scan::number(command);
        let is_closed = scan::find(command, b"CLOEXEC").is_some() || number == Some(1030);
        if scan::find(command, b"F_DUP").is_some() || matches!(number, Some(0 | 1030)) {
            if let Some(from) = descriptor(call, 0) {
                self.known_at(task, call, 0);
                self.descriptors.duplicate(task, from, result, is_closed);
            }
            return;
        }
        let is_setting = command == b"F_SETFL" || number == Some(4);
        if let Some(id) = self.known_at(task, call, 0).filter(|_| is_setting) {
            let flags = OpenFlags::parse(call.argument(2));
            let description = self.descriptors.description_mut(id);
            description.flags.is_append = flags.is_append;
            description.flags.is_direct = flags.is_direct;
        }
    }

    /// Description of the descriptor in an argument, if it is one of a file.
    fn known_at(&mut self, task: u32, call: &CallText, index: usize) -> Option<usize> {
        let number = descriptor(call, index)?;
        let is_placed = matches!(
            effect_of(call.name()),
            Some(CallEffect::Seek | CallEffect::Transfer(Transfer { offset: Some(_), .. }))
        );
        self.descriptors.at(task, number, scan::path(call.argument(index)), is_placed)
    }

    fn file_at(&mut self, task: u32, call: &CallText, index: usize) -> Option<FileId> {
        let id = self.known_at(task, call, index)?;
        self.descriptors.description(id).file
    }

    fn transfer(&mut self, moment: &Moment, call: &CallText, how: Transfer, result: u64) {
        let Some(id) = self.known_at(moment.task, call, 0) else {
            let is_standard = descriptor(call, 0).is_some_and(|number| number <= STANDARD);
            let is_said = scan::path(call.argument(0)).is_some();
            let is_known = || self.descriptors.is_known(moment.task, descriptor(call, 0));
            self.of_standard += u64::from(is_standard && !is_said && !is_known());
            return;
        };
        let requested = if how.is_vector {
            vector_bytes(call.argument(1))
        } else {
            scan::number(call.argument(2)).map(|size| size as u64)
        };
        if !how.is_vector && requested.is_some_and(|requested| result > requested) {
            self.impossible += 1;
            return;
        }
        let flags = WriteFlags::of(call);
        // An offset of -1 of the calls with flags means the position; it is negative as a number.
        let at = how.offset.and_then(|index| scan::number(call.argument(index)));
        let at = at.and_then(|at| u64::try_from(at).ok());
        let one = One {
            id,
            is_write: how.is_write,
            at,
            bytes: result,
            requested: requested.unwrap_or(result),
            is_appended: flags.is_appended,
        };
        let file = self.access(moment, call, &one);
        if let Some(file) = file.filter(|_| how.is_vector) {
            self.descriptors.file_mut(file).vectored += 1;
        }
        if let Some((file, wait)) = file.zip(flags.waits).filter(|_| how.is_write) {
            self.happenings.push(Happening::Synced(file, wait));
        }
    }

    /// One side of a copy between descriptors.
    fn copy_part(
        &mut self,
        moment: &Moment,
        call: &CallText,
        (index, at, is_write): (usize, Option<usize>, bool),
        result: u64,
    ) {
        let Some(id) = self.known_at(moment.task, call, index) else { return };
        // An offset that is not told: most copies go through both files.
        self.unplaced += u64::from(at.is_some_and(|index| call.argument(index) == GIVEN));
        // `[0] => [65536]`: the offset before and behind it.
        let given = at.map(|index| call.argument(index)).and_then(|text| text.strip_prefix(b"["));
        let at = given.and_then(scan::number).map(|at| at as u64);
        let one = One { id, is_write, at, bytes: result, requested: result, is_appended: false };
        self.access(moment, call, &one);
    }

    /// Adds a transfer; the position moves if the call gave none.
    fn access(&mut self, moment: &Moment, call: &CallText, one: &One) -> Option<FileId> {
        if one.bytes > ACCESS_MAX {
            self.impossible += 1;
            return None;
        }
        let description = self.descriptors.description(one.id);
        let file = description.file?;
        let size = self.descriptors.files()[file].size;
        let is_at_end = one.is_write && (description.flags.is_append || one.is_appended);
        let offset = if is_at_end { size } else { one.at.or(description.position) };
        let end = offset.map(|offset| offset.saturating_add(one.bytes));
        if one.at.is_none() {
            let description = self.descriptors.description_mut(one.id);
            description.position = end;
            description.is_sought = false;
        }
        if one.is_write {
            let known = &mut self.descriptors.file_mut(file).size;
            *known = known.zip(end).map(|(size, end)| size.max(end)).or(*known);
        }
        let begin_ns = moment.begin_ns;
        let lasted = call.duration_ns();
        self.happenings.push(Happening::Access(FileAccess {
            stream: AccessStream { file, description: one.id },
            task: moment.task,
            is_write: one.is_write,
            offset,
            bytes: one.bytes,
            requested: one.requested,
            begin_ns,
            end_ns: begin_ns.zip(lasted).map(|(begin, lasted)| begin.saturating_add(lasted)),
            is_sought: description.is_sought && one.at.is_none(),
            is_direct: description.flags.is_direct,
            aside_ns: 0,
            is_placed: one.at.is_some() && !is_at_end,
        }));
        if let Some(wait) = description.flags.waits.filter(|_| one.is_write) {
            self.happenings.push(Happening::Synced(file, wait));
        }
        Some(file)
    }

    fn seek(&mut self, task: u32, call: &CallText, result: u64) {
        let Some(id) = self.known_at(task, call, 0) else { return };
        // `_llseek(3, 0, [4096], SEEK_SET) = 0` gives the position in a list.
        let listed = call.argument(2).strip_prefix(b"[").and_then(scan::number);
        let position = listed.map_or(result, |at| at as u64);
        let description = self.descriptors.description_mut(id);
        let is_moved = description.position != Some(position);
        let is_vain = description.is_sought && is_moved;
        description.position = Some(position);
        description.is_sought = true;
        if let Some(file) = description.file.filter(|_| is_vain) {
            self.happenings.push(Happening::SoughtInVain(file));
        }
    }

    fn truncate(&mut self, file: Option<FileId>, call: &CallText) {
        let size = scan::number(call.argument(1)).and_then(|size| u64::try_from(size).ok());
        if let Some(file) = file {
            self.descriptors.file_mut(file).size = size;
            if size == Some(0) {
                self.happenings.push(Happening::Emptied(file));
            }
        }
    }

    /// `fallocate(3, FALLOC_FL_KEEP_SIZE, 0, 1048576)`.
    fn allocate(&mut self, task: u32, call: &CallText) {
        let Some(file) = self.file_at(task, call, 0) else { return };
        let mode = call.argument(1);
        let bits = scan::number(mode).unwrap_or(0);
        let has = |name: &&[u8]| scan::find(mode, name).is_some();
        let [offset, length] = [2, 3].map(|index| {
            scan::number(call.argument(index)).and_then(|number| u64::try_from(number).ok())
        });
        let end = offset.zip(length).map(|(offset, length)| offset.saturating_add(length));
        let known = self.descriptors.file_mut(file);
        if bits & Allocations::CLEARING != 0 || Allocations::CLEARING_NAMES.iter().any(has) {
            known.allocations.clearing += 1;
        } else if bits & Allocations::KEEPING != 0 || has(&Allocations::KEEPING_NAME) {
            known.allocations.keeping += 1;
        } else {
            known.allocations.extending += 1;
            known.size = known.size.map(|size| size.max(end.unwrap_or(0)));
        }
    }

    /// `[{aio_data=0, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3, ...}, ...]`.
    fn submit(&mut self, moment: &Moment, call: &CallText, result: u64) {
        const OPCODE: &[u8] = b"aio_lio_opcode=";
        if result > REQUESTS_MAX {
            self.impossible += 1;
            return;
        }
        let list = call.argument(2).to_vec();
        let mut files = Vec::new();
        let (mut shown, mut from) = (0, 0);
        while let Some(at) = scan::find(&list[from..], OPCODE) {
            let begin = from + at + OPCODE.len();
            let length = scan::find(&list[begin..], OPCODE).unwrap_or(list.len() - begin);
            shown += 1;
            if shown <= result {
                files.extend(self.submit_one(moment, call, &list[begin..begin + length]));
            }
            from = begin;
        }
        self.hidden += result.saturating_sub(shown);
        let queue = (moment.task, call.argument(0).to_vec());
        let under_way = self.in_queue.entry(queue).or_default();
        *under_way += result;
        let depth = *under_way;
        self.happenings.extend(files.into_iter().map(|file| Happening::Depth(file, depth)));
    }

    /// One request from its operation on; the file that it moves bytes of.
    fn submit_one(&mut self, moment: &Moment, call: &CallText, one: &[u8]) -> Option<FileId> {
        let (descriptor, at) = scan::field(one, b"aio_fildes=", 0)?;
        let path = scan::path(one[at..].split(|byte| *byte == b',').next().unwrap_or(&[]));
        let id = self.descriptors.at(moment.task, descriptor as u64, path, true)?;
        // Numbers of include/uapi/linux/aio_abi.h; with `-X raw` only they are printed.
        let is = |number: &[i64], name: &[u8]| {
            scan::number(one).is_some_and(|own| number.contains(&own)) || one.starts_with(name)
        };
        if is(&[2, 3], b"IOCB_CMD_FSYNC") || one.starts_with(b"IOCB_CMD_FDSYNC") {
            let file = self.descriptors.description(id).file?;
            let is_of_data = is(&[3], b"IOCB_CMD_FDSYNC");
            let wait = if is_of_data { StableWait::Fdatasync } else { StableWait::Fsync };
            self.happenings.push(Happening::Synced(file, wait));
            return None;
        }
        let is_write = if is(&[0, 7], b"IOCB_CMD_PREAD") {
            false
        } else if is(&[1, 8], b"IOCB_CMD_PWRITE") {
            true
        } else {
            return None;
        };
        let size = scan::field(one, b"aio_nbytes=", 0).map(|found| found.0 as u64);
        let size = size.or_else(|| vector_bytes(one)).unwrap_or(0);
        let at = scan::field(one, b"aio_offset=", 0).map(|found| found.0 as u64);
        let request = One { id, is_write, at, bytes: size, requested: size, is_appended: false };
        self.access(moment, call, &request)
    }

    /// `kaio(AIOREAD, 3, 0xFEB9A000, 8192, 0x00012000, ...)`.
    fn solaris_queue(&mut self, moment: &Moment, call: &CallText, result: u64) {
        let operation = call.argument(0);
        let is_write = scan::find(operation, b"AIOWRITE").is_some();
        if result != 0 || !(is_write || scan::find(operation, b"AIOREAD").is_some()) {
            return;
        }
        let Some(descriptor) = descriptor(call, 1) else { return };
        let Some(id) = self.descriptors.at(moment.task, descriptor, None, true) else { return };
        let size = scan::number(call.argument(3)).map_or(0, |size| size as u64);
        let at = scan::number(call.argument(4)).map(|at| at as u64);
        let one = One { id, is_write, at, bytes: size, requested: size, is_appended: false };
        self.access(moment, call, &one);
    }
}

/// Flags of one write, of `pwritev2`.
struct WriteFlags {
    is_appended: bool,
    waits: Option<StableWait>,
}

impl WriteFlags {
    /// Flags by name, or as the number that `-X raw` prints: `RWF_DSYNC`, `RWF_SYNC` and
    /// `RWF_APPEND` of include/uapi/linux/fs.h.
    fn of(call: &CallText) -> Self {
        let text: &[u8] = if call.name() == b"pwritev2" { call.argument(4) } else { b"" };
        let number = scan::number(text).unwrap_or(0);
        let has = |name: &[u8], bits: i64| scan::find(text, name).is_some() || number & bits != 0;
        let waits = match () {
            () if has(b"RWF_SYNC", 0x4) => Some(StableWait::Write),
            () if has(b"RWF_DSYNC", 0x2) => Some(StableWait::DataWrite),
            () => None,
        };
        Self { is_appended: has(b"RWF_APPEND", 0x10), waits }
    }
}

/// A transfer before it has a place.
struct One {
    id: usize,
    is_write: bool,
    at: Option<u64>,
    bytes: u64,
    requested: u64,
    is_appended: bool,
}

fn descriptor(call: &CallText, index: usize) -> Option<u64> {
    scan::number(call.argument(index)).and_then(|number| u64::try_from(number).ok())
}

/// `PROT_EXEC` of include/uapi/asm-generic/mman-common.h.
fn is_code(protection: &[u8]) -> bool {
    scan::find(protection, b"EXEC").is_some()
        || scan::number(protection).is_some_and(|bits| bits & 4 != 0)
}

fn shares_files(call: &CallText) -> bool {
    let arguments = call.arguments();
    scan::find(arguments, b"CLONE_FILES").is_some()
        || scan::field(arguments, b"flags=", 0).is_some_and(|(flags, _)| flags & CLONE_FILES != 0)
}

/// Sum of the sizes of a list of buffers; None if it is printed as an address.
fn vector_bytes(list: &[u8]) -> Option<u64> {
    let (mut sum, mut from) = (None, 0);
    while let Some((size, at)) = scan::field(list, b"iov_len=", from) {
        sum = Some(sum.unwrap_or(0) + size as u64);
        from = at;
    }
    sum
}

//! An open database with one column family in use.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use iolab_model::Error;
use iolab_model::kv::{KvDurability, KvError, KvFact, KvOptions, KvStore};

use super::facts::{PROPERTIES, of_statistics};
use super::library::{Library, Opaque, library};
use super::options;
use crate::directory::is_loading;

/// Memory for write buffers that YCSB's binding gives a level-style column family (`RocksDB`,
/// `optimizeLevelStyleCompaction`: 512 MiB).
const MEMTABLE_BUDGET: u64 = 512 << 20;
/// The column family that every database has.
const DEFAULT: &CStr = c"default";

/// A database.
pub struct RocksDb {
    library: &'static Library,
    db: *mut Opaque,
    /// Column families; the last one is in use.
    families: Vec<*mut Opaque>,
    options: Options,
    reading: *mut Opaque,
    writing: *mut Opaque,
    has_statistics: bool,
    is_new: bool,
}

// SAFETY: the library says of its handles that any number of threads may use them at once without
// synchronisation (wiki, "Basic Operations", concurrency); they are given back by one owner.
unsafe impl Send for RocksDb {}
// SAFETY: as above.
unsafe impl Sync for RocksDb {}

/// Options of a database, given back with it.
struct Options {
    library: &'static Library,
    raw: *mut Opaque,
}

impl Options {
    fn new(library: &'static Library) -> Self {
        // SAFETY: makes an object that is ours.
        let raw = unsafe { (library.options_create)() };
        Self { library, raw }
    }

    /// Those of YCSB's binding or of the library, with a workload's over them.
    fn of(library: &'static Library, wanted: &KvOptions) -> Result<Self, Error> {
        let base = Self::new(library);
        if !options::begins_plain(&wanted.options) {
            let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            let threads = i32::try_from(2 * cpus).unwrap_or(i32::MAX);
            // SAFETY: the object is ours; both set numbers in it.
            unsafe {
                (library.options_increase_parallelism)(base.raw, threads);
                (library.options_optimize_level_style_compaction)(base.raw, MEMTABLE_BUDGET);
            }
        }
        if wanted.has_statistics {
            // SAFETY: the object is ours.
            unsafe { (library.options_enable_statistics)(base.raw) };
        }
        let text = options::text(&wanted.options);
        let made = if text.is_empty() { base } else { Self::parsed(&base, &text)? };
        // SAFETY: the object is ours.
        unsafe { (library.options_set_create_if_missing)(made.raw, 1) };
        Ok(made)
    }

    fn parsed(base: &Self, text: &str) -> Result<Self, Error> {
        let made = Self::new(base.library);
        let c_text = CString::new(text).map_err(|_| refused("options with a zero byte"))?;
        let (library, from, into) = (base.library, base.raw, made.raw);
        let read = library.call(|error| {
            // SAFETY: all three objects live during the call; the text ends with a zero byte.
            unsafe { (library.get_options_from_string)(from, c_text.as_ptr(), into, error) }
        });
        read.map_err(|words| refused(&format!("the options {text}: {words}")))?;
        Ok(made)
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: ours, and given back once.
        unsafe { (self.library.options_destroy)(self.raw) };
    }
}

fn refused(what: &str) -> Error {
    Error::BadWorkload {
        problem: format!("RocksDB refuses {what}"),
        remedy: "names and values are those of its options.h".into(),
    }
}

impl RocksDb {
    /// Opens the database in a directory that exists, or makes one there.
    ///
    /// # Errors
    ///
    /// There is no library, an option is refused, or the library cannot open it.
    pub fn open(directory: &Path, wanted: &KvOptions) -> Result<Self, Error> {
        let library = library()?;
        let options = Options::of(library, wanted)?;
        let path = CString::new(directory.as_os_str().as_bytes()).expect("paths have no zeros");
        let has_files = directory.join("CURRENT").exists();
        // Part of the records is not what a run expects: they are loaded again.
        let is_new = !has_files || is_loading(directory);
        let mut names = if has_files {
            Self::names(library, &options, &path)?
        } else {
            vec![DEFAULT.to_owned()]
        };
        let table = CString::new(wanted.table.as_str()).map_err(|_| refused("the table's name"))?;
        let place = names.iter().position(|name| *name == table);
        if let Some(place) = place {
            // The family in use is the last one.
            let last = names.len() - 1;
            names.swap(place, last);
        }
        let (db, mut families) = Self::open_families(library, &options, &path, &names)?;
        if place.is_none() {
            let made = library.call(|error| {
                // SAFETY: the database is open, and the others live during the call.
                unsafe { (library.create_column_family)(db, options.raw, table.as_ptr(), error) }
            });
            families.push(made.map_err(|words| refused(&format!("a column family: {words}")))?);
        }
        // SAFETY: makes two objects that are ours.
        let (reading, writing) =
            unsafe { ((library.readoptions_create)(), (library.writeoptions_create)()) };
        match wanted.durability {
            // SAFETY: sets a number in an object of ours.
            KvDurability::None => unsafe { (library.writeoptions_disable_WAL)(writing, 1) },
            KvDurability::Wal => {}
            // SAFETY: as above.
            KvDurability::Sync => unsafe { (library.writeoptions_set_sync)(writing, 1) },
        }
        let has_statistics = wanted.has_statistics;
        Ok(Self { library, db, families, options, reading, writing, has_statistics, is_new })
    }

    /// Names of the column families of a database that is there.
    fn names(library: &Library, options: &Options, path: &CStr) -> Result<Vec<CString>, Error> {
        let mut count = 0;
        let listed = library.call(|error| {
            // SAFETY: the objects live during the call, and `count` is written by it.
            unsafe {
                (library.list_column_families)(options.raw, path.as_ptr(), &raw mut count, error)
            }
        });
        let list = listed.map_err(|words| refused(&format!("the database: {words}")))?;
        // SAFETY: the list has `count` texts, each ending with a zero byte.
        let name = |index| unsafe { CStr::from_ptr(*list.add(index)) }.to_owned();
        let names = (0..count).map(name).collect();
        // SAFETY: it is ours, and not used again.
        unsafe { (library.list_column_families_destroy)(list, count) };
        Ok(names)
    }

    fn open_families(
        library: &Library,
        options: &Options,
        path: &CStr,
        names: &[CString],
    ) -> Result<(*mut Opaque, Vec<*mut Opaque>), Error> {
        let texts: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let each = vec![options.raw.cast_const(); names.len()];
        let mut families = vec![std::ptr::null_mut(); names.len()];
        let opened = library.call(|error| {
            // SAFETY: three lists of the same length, all alive during the call.
            unsafe {
                (library.open_column_families)(
                    options.raw,
                    path.as_ptr(),
                    names.len() as i32,
                    texts.as_ptr(),
                    each.as_ptr(),
                    families.as_mut_ptr(),
                    error,
                )
            }
        });
        let db = opened.map_err(|words| refused(&format!("to open the database: {words}")))?;
        Ok((db, families))
    }

    fn family(&self) -> *mut Opaque {
        *self.families.last().expect("one is in use")
    }

    fn property(&self, name: &str) -> Option<f64> {
        let name = CString::new(name).ok()?;
        // SAFETY: the database is open; the answer is ours, or nothing.
        let text =
            unsafe { (self.library.property_value_cf)(self.db, self.family(), name.as_ptr()) };
        self.library.text(text).parse().ok()
    }
}

/// Bytes of a slice of the library's.
///
/// # Safety
///
/// `data` must be readable for `length` bytes as long as the answer lives; or the length is 0.
unsafe fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if length == 0 || data.is_null() {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

impl KvStore for RocksDb {
    fn name(&self) -> &'static str {
        "rocksdb"
    }

    fn version(&self) -> Option<String> {
        Some(self.library.found.version.clone())
    }

    fn is_new(&self) -> bool {
        self.is_new
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, KvError> {
        value.clear();
        let (library, family) = (self.library, self.family());
        let slice = library.call(|error| {
            // SAFETY: the database is open, and the key lives during the call.
            unsafe {
                let key = (key.as_ptr().cast(), key.len());
                (library.get_pinned_cf)(self.db, self.reading, family, key.0, key.1, error)
            }
        });
        let slice = slice.map_err(KvError)?;
        if slice.is_null() {
            return Ok(false);
        }
        let mut length = 0;
        // SAFETY: the slice is ours until it is given back below.
        unsafe {
            let data = (library.pinnableslice_value)(slice, &raw mut length);
            value.extend_from_slice(bytes(data, length));
            (library.pinnableslice_destroy)(slice);
        }
        Ok(true)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), KvError> {
        let (library, family) = (self.library, self.family());
        let done = library.call(|error| {
            let (key, value) =
                ((key.as_ptr().cast(), key.len()), (value.as_ptr().cast(), value.len()));
            // SAFETY: the database is open, and key and value live during the call.
            unsafe {
                (library.put_cf)(
                    self.db,
                    self.writing,
                    family,
                    key.0,
                    key.1,
                    value.0,
                    value.1,
                    error,
                );
            }
        });
        done.map_err(KvError)
    }

    fn delete(&self, key: &[u8]) -> Result<(), KvError> {
        let (library, family) = (self.library, self.family());
        let done = library.call(|error| {
            // SAFETY: the database is open, and the key lives during the call.
            unsafe {
                let key = (key.as_ptr().cast(), key.len());
                (library.delete_cf)(self.db, self.writing, family, key.0, key.1, error);
            }
        });
        done.map_err(KvError)
    }

    fn scan(
        &self,
        from: &[u8],
        count: u32,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u32, KvError> {
        let library = self.library;
        let mut seen = 0;
        // SAFETY: the iterator is ours until it is given back; key and value are only looked at
        // before it moves on.
        let ended = unsafe {
            let iterator = (library.create_iterator_cf)(self.db, self.reading, self.family());
            (library.iter_seek)(iterator, from.as_ptr().cast(), from.len());
            while seen < count && (library.iter_valid)(iterator) != 0 {
                let (mut key_bytes, mut value_bytes) = (0, 0);
                let key = (library.iter_key)(iterator, &raw mut key_bytes);
                let value = (library.iter_value)(iterator, &raw mut value_bytes);
                each(bytes(key, key_bytes), bytes(value, value_bytes));
                seen += 1;
                (library.iter_next)(iterator);
            }
            let ended = library.call(|error| (library.iter_get_error)(iterator, error));
            (library.iter_destroy)(iterator);
            ended
        };
        ended.map_err(KvError)?;
        Ok(seen)
    }

    fn facts(&self) -> Vec<KvFact> {
        let mut facts = Vec::new();
        if self.has_statistics {
            // SAFETY: the options live as long as the database; the text is ours.
            let text = unsafe { (self.library.options_statistics_get_string)(self.options.raw) };
            facts = of_statistics(&self.library.text(text));
        }
        let told = PROPERTIES.iter().filter_map(|(theirs, ours)| {
            self.property(theirs).map(|value| KvFact { name: (*ours).to_owned(), value })
        });
        facts.extend(told);
        facts
    }

    fn close(self) -> Result<(), KvError> {
        drop(self);
        Ok(())
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        // SAFETY: each is ours and given back once, the database after its families.
        unsafe {
            for family in &self.families {
                (self.library.column_family_handle_destroy)(*family);
            }
            (self.library.close)(self.db);
            (self.library.readoptions_destroy)(self.reading);
            (self.library.writeoptions_destroy)(self.writing);
        }
    }
}

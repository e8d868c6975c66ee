//! The library: where it is, and the functions of it that are used.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use iolab_model::Error;

/// Directories of libraries that belong to root; a search path of the environment counts nothing.
const DIRECTORIES: [&str; 6] = [
    #[cfg(target_arch = "x86_64")]
    "/usr/lib/x86_64-linux-gnu",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu",
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    "/lib64",
    "/lib",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib64",
    "/usr/local/lib",
];
/// Beginning of the file's name.
const STEM: &str = "librocksdb.so";
/// Bits of a mode that let others than its owner write.
const OTHERS_WRITE: u32 = 0o022;
/// The first version whose option strings were tried.
const MAJOR_MIN: u32 = 6;

/// A library that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledLibrary {
    /// Its file, links resolved.
    pub path: PathBuf,
    /// Its version, as its file's name tells it.
    pub version: String,
}

/// The newest library in the directories of the system.
///
/// # Errors
///
/// There is none, or it is too old, or somebody else than root may change it.
pub fn find() -> Result<InstalledLibrary, Error> {
    let mut found: Vec<InstalledLibrary> =
        DIRECTORIES.iter().flat_map(|place| in_place(place)).collect();
    found.sort_by_key(|one| numbers(&one.version));
    let Some(newest) = found.pop() else {
        return Err(unusable("is not installed", "install librocksdb: "));
    };
    if numbers(&newest.version).first().is_some_and(|major| *major < MAJOR_MIN) {
        let why = format!("{} is too old (6 or later is needed)", newest.version);
        return Err(unusable(&why, "install a newer one: "));
    }
    let status = newest.path.metadata();
    if !status.is_ok_and(|status| status.uid() == 0 && status.mode() & OTHERS_WRITE == 0) {
        let why = format!("{} can be changed by others than root", newest.path.display());
        return Err(unusable(&why, "install the system's package: "));
    }
    Ok(newest)
}

/// An error about the library that names the package.
fn unusable(why: &str, remedy: &str) -> Error {
    Error::BadWorkload {
        problem: format!("the library of RocksDB {why}"),
        remedy: format!(
            "{remedy}apt install librocksdb7.8 (Debian 12), librocksdb9.10 (Debian 13), \
             librocksdb8.9 (Ubuntu 24.04), dnf install rocksdb, apk add rocksdb; or use the \
             binding memory"
        ),
    }
}

fn in_place(place: &str) -> Vec<InstalledLibrary> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let libraries = names.filter(|name| name == STEM || name.starts_with("librocksdb.so."));
    let whole = libraries.filter_map(|name| {
        let path = Path::new(place).join(name).canonicalize().ok()?;
        let version = path.file_name()?.to_str()?.strip_prefix(STEM)?;
        let version = version.trim_start_matches('.').to_owned();
        Some(InstalledLibrary { path, version })
    });
    whole.collect()
}

/// Parts of a version, to be compared.
fn numbers(version: &str) -> Vec<u32> {
    version.split('.').filter_map(|part| part.parse().ok()).collect()
}

/// Something that only the library knows the inside of.
#[repr(C)]
pub struct Opaque {
    _private: [u8; 0],
}

/// Place into which the library writes an error.
pub type ErrorPlace = *mut *mut c_char;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)+) => {
        /// Functions of the library, as its header declares them.
        #[allow(non_snake_case, reason = "the names are the library's")]
        pub struct Library {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
            /// Its file and version.
            pub found: InstalledLibrary,
        }

        impl Library {
            fn load(found: InstalledLibrary) -> Result<Self, Error> {
                let handle = open(&found)?;
                Ok(Self {
                    $($name: {
                        let address =
                            symbol(handle, concat!("rocksdb_", stringify!($name)), &found)?;
                        // SAFETY: the address is that of the function of this name, whose type has
                        // been the same in the library's C interface since version 6.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $result)?,
                            >(address)
                        }
                    },)+
                    found,
                })
            }
        }
    };
}

functions! {
    options_create: fn() -> *mut Opaque;
    options_destroy: fn(*mut Opaque);
    options_set_create_if_missing: fn(*mut Opaque, c_uchar);
    options_increase_parallelism: fn(*mut Opaque, c_int);
    options_optimize_level_style_compaction: fn(*mut Opaque, u64);
    options_enable_statistics: fn(*mut Opaque);
    options_statistics_get_string: fn(*mut Opaque) -> *mut c_char;
    get_options_from_string: fn(*const Opaque, *const c_char, *mut Opaque, ErrorPlace);
    list_column_families: fn(*const Opaque, *const c_char, *mut usize, ErrorPlace)
        -> *mut *mut c_char;
    list_column_families_destroy: fn(*mut *mut c_char, usize);
    open_column_families: fn(*const Opaque, *const c_char, c_int, *const *const c_char,
        *const *const Opaque, *mut *mut Opaque, ErrorPlace) -> *mut Opaque;
    create_column_family: fn(*mut Opaque, *const Opaque, *const c_char, ErrorPlace) -> *mut Opaque;
    column_family_handle_destroy: fn(*mut Opaque);
    close: fn(*mut Opaque);
    free: fn(*mut c_void);
    writeoptions_create: fn() -> *mut Opaque;
    writeoptions_destroy: fn(*mut Opaque);
    writeoptions_set_sync: fn(*mut Opaque, c_uchar);
    writeoptions_disable_WAL: fn(*mut Opaque, c_int);
    readoptions_create: fn() -> *mut Opaque;
    readoptions_destroy: fn(*mut Opaque);
    put_cf: fn(*mut Opaque, *const Opaque, *mut Opaque, *const c_char, usize, *const c_char, usize,
        ErrorPlace);
    delete_cf: fn(*mut Opaque, *const Opaque, *mut Opaque, *const c_char, usize, ErrorPlace);
    get_pinned_cf: fn(*mut Opaque, *const Opaque, *mut Opaque, *const c_char, usize, ErrorPlace)
        -> *mut Opaque;
    pinnableslice_value: fn(*const Opaque, *mut usize) -> *const c_char;
    pinnableslice_destroy: fn(*mut Opaque);
    create_iterator_cf: fn(*mut Opaque, *const Opaque, *mut Opaque) -> *mut Opaque;
    iter_destroy: fn(*mut Opaque);
    iter_seek: fn(*mut Opaque, *const c_char, usize);
    iter_valid: fn(*const Opaque) -> c_uchar;
    iter_next: fn(*mut Opaque);
    iter_key: fn(*const Opaque, *mut usize) -> *const c_char;
    iter_value: fn(*const Opaque, *mut usize) -> *const c_char;
    iter_get_error: fn(*const Opaque, ErrorPlace);
    property_value_cf: fn(*mut Opaque, *mut Opaque, *const c_char) -> *mut c_char;
}

/// The library, loaded once for the life of the process: what it runs in the background cannot be
/// taken away.
pub fn library() -> Result<&'static Library, Error> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    let loaded = LIBRARY.get_or_init(|| {
        let found = find().map_err(|error| error.to_string())?;
        Library::load(found).map_err(|error| error.to_string())
    });
    match loaded {
        Ok(library) => Ok(library),
        // InstalledLibrary anew, so that the error has its parts.
        Err(text) => match find() {
            Err(error) => Err(error),
            Ok(_) => Err(unusable(&format!("cannot be used: {text}"), "")),
        },
    }
}

fn open(found: &InstalledLibrary) -> Result<*mut c_void, Error> {
    use std::os::unix::ffi::OsStrExt as _;
    let name = CString::new(found.path.as_os_str().as_bytes()).expect("paths have no zero bytes");
    // SAFETY: a library of the system's own, by its whole path; its constructors touch nothing of
    // ours.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(unusable(&format!("cannot be loaded: {}", last_error()), "install it again: "));
    }
    Ok(handle)
}

fn symbol(handle: *mut c_void, name: &str, found: &InstalledLibrary) -> Result<*mut c_void, Error> {
    let text = CString::new(name).expect("names have no zero bytes");
    // SAFETY: the handle is that of a library which is never closed.
    let address = unsafe { libc::dlsym(handle, text.as_ptr()) };
    if address.is_null() {
        let why = format!("{} lacks the function {name}", found.version);
        return Err(unusable(&why, "install a newer one: "));
    }
    Ok(address)
}

fn last_error() -> String {
    // SAFETY: the answer is a text of the loader, or nothing.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown reason".into();
    }
    // SAFETY: it ends with a zero byte, and nobody calls the loader meanwhile.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

impl Library {
    /// A text that the library made, and its memory given back.
    pub fn text(&self, text: *mut c_char) -> String {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the library's texts end with a zero byte and are the caller's.
        let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: it was made by the library, and is not used again.
        unsafe { (self.free)(text.cast()) };
        copy
    }

    /// Calls with a place for an error; the error in the library's words.
    pub fn call<T>(&self, call: impl FnOnce(ErrorPlace) -> T) -> Result<T, String> {
        let mut error: *mut c_char = std::ptr::null_mut();
        let answer = call(&raw mut error);
        if error.is_null() { Ok(answer) } else { Err(self.text(error)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(numbers("10.2.1") > numbers("9.10.0"));
        assert!(numbers("7.8.3") > numbers("7.8"));
        assert!(in_place("/nowhere").is_empty());
    }
}

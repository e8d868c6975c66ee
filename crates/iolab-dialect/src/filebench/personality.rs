//! Personalities: scripts with the parameters of those that Filebench ships, written anew.

/// A personality.
pub struct Personality {
    /// Its name.
    pub name: &'static str,
    /// Effect, in one line.
    pub doc: &'static str,
    /// Its script.
    pub text: &'static str,
}

macro_rules! personalities {
    ($($name:literal, $doc:literal;)+) => {
        /// All personalities, by name.
        pub const PERSONALITIES: &[Personality] = &[$(Personality {
            name: $name,
            doc: $doc,
            text: include_str!(concat!("personalities/", $name, ".f")),
        },)+];
    };
}

personalities! {
    "compflow",
        "composite operations with parameters: three kinds of users, each with files of its own";
    "copyfiles", "files are copied, one after the other, until all are";
    "createfiles", "files are made and written until all are there";
    "deletefiles", "files are removed until none is left";
    "filemicro_create", "a file grows by 1024 appends of 1 MiB";
    "filemicro_createfiles", "files are made beside others until there were 15000 operations";
    "filemicro_createrand", "a file grows by random appends, with fsync after ten, to 1 GiB";
    "filemicro_delete", "files are removed until 1000 are gone";
    "filemicro_rread", "random reads of a file until 128 MiB were read";
    "filemicro_rwrite", "random writes to a file until 128 MiB were written";
    "filemicro_rwritedsync", "random writes to a file, each durable, 65536 of them";
    "filemicro_rwritefsync", "16384 random writes to a file, then fsync";
    "filemicro_seqread", "a file is read in order, once";
    "filemicro_seqwrite", "a file is written in order: 1024 appends, then fsync";
    "filemicro_writefsync", "1024 appends, then fsync, until there were 128 of these";
    "fileserver", "file server: files are written, extended, read, removed and looked at";
    "fivestreamread", "five threads read a file each";
    "fivestreamreaddirect", "five threads read a file each, past the page cache";
    "fivestreamwrite", "five threads write a file each";
    "fivestreamwritedirect", "five threads write a file each, past the page cache";
    "listdirs", "directories of a deep tree are listed";
    "makedirs", "directories are made until all are there";
    "mongo", "document store: a file is extended, another one read, a third one removed";
    "networkfs",
        "network file server: programs are started, files are rewritten and extended, at a rate";
    "oltp", "database: shadow processes read, and post to a log writer and data writers";
    "openfiles", "files are opened and closed";
    "randomread", "random reads of one file";
    "randomrw", "random reads of one file beside random writes to it";
    "randomwrite", "random writes to one file";
    "ratelimcopyfiles", "files are copied at a rate";
    "removedirs", "directories are removed until none is left";
    "singlestreamread", "one thread reads a file from the front to its end, again and again";
    "singlestreamreaddirect", "one thread reads a file again and again, past the page cache";
    "singlestreamwrite", "one thread writes a file that grows";
    "singlestreamwritedirect", "one thread writes a file that grows, past the page cache";
    "statfile", "attributes of files are read";
    "tpcso", "database of many files, as TPC-C lays them out: writes and reads of each in turn";
    "varmail", "mail server, one file per message: deliveries and re-reads end with fsync";
    "videoserver",
        "video server: readers stream active videos at a rate, a writer replaces passive ones";
    "webproxy", "web proxy: a cached object is replaced, five are read";
    "webserver", "web server: ten documents are read, then a line goes to the log";
}

/// The personality of this name.
pub fn find(name: &str) -> Option<&'static Personality> {
    PERSONALITIES.iter().find(|row| row.name == name)
}

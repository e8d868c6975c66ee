//! Words of the language: attributes, flow operations, distributions, statements, one row each.
//! The reference page and the hints of messages come from these rows.
//!
//! Facts are those of Filebench 1.5-alpha3; forms of 1.4.9 are accepted where published scripts
//! use them.

use crate::option::Standing::{self, Differs, Done, Ignored, Refused};

/// Things that have attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// `define file`, `define fileset`.
    Files,
    /// `define process`.
    Process,
    /// `thread`.
    Thread,
    /// `flowop`.
    Flowop,
    /// `randvar`.
    Random,
    /// `cvar`.
    Custom,
    /// `eventgen`.
    Events,
}

macro_rules! attributes {
    ($($Name:ident [$($text:literal),+] $of:expr, $default:literal,
       $doc:literal, $standing:expr;)+) => {
        /// An attribute.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Attribute { $(#[doc = $doc] $Name,)+ }

        /// All attributes.
        pub const ATTRIBUTES: &[AttributeRow] = &[$(AttributeRow {
            attribute: Attribute::$Name,
            names: &[$($text),+],
            of: $of,
            default: $default,
            doc: $doc,
            standing: $standing,
        },)+];
    };
}

/// Row of an attribute.
pub struct AttributeRow {
    /// The attribute.
    pub attribute: Attribute,
    /// Its names, the usual one first.
    pub names: &'static [&'static str],
    /// Things that have it.
    pub of: &'static [Of],
    /// Value where it is not given; empty: none.
    pub default: &'static str,
    /// Meaning, in one line.
    pub doc: &'static str,
    /// Degree to which it is done.
    pub standing: Standing,
}

const NOT_SHARED: Standing = Ignored("buffers are the worker's own");
const MADE_ANEW: Standing =
    Ignored("files are made for each run in a directory of iolab's own, and removed after it");

use Of::{Custom, Events, Files, Flowop, Process, Random, Thread};

attributes! {
    Name ["name"] &[Files, Process, Thread, Flowop, Random], "", "its name", Done;
    Path ["path"] &[Files], "", "directory in which it lies",
        Differs("a directory of iolab's own is made there, and removed after the run");
    Size ["size", "filesize"] &[Files], "1k", "bytes of each file; random: of each file anew", Done;
    SizeGamma ["filesizegamma"] &[Files], "0",
        "1.4.9: shape of the sizes in thousandths, `size` is their mean", Done;
    Entries ["entries"] &[Files], "0; a file: 1", "number of files", Done;
    DirWidth ["dirwidth"] &[Files], "", "entries of a directory, on average; may be random", Done;
    DirGamma ["dirgamma"] &[Files], "1500; a file: 0",
        "shape of widths and depths, in thousandths; 0: no chance", Done;
    DirDepth ["dirdepthrv"] &[Files], "", "random variable for the depth of each directory", Done;
    LeafDirs ["leafdirs"] &[Files], "0", "leaf directories for makedir, removedir, listdir", Done;
    Prealloc ["prealloc"] &[Files], "0", "percent of the files that exist; alone: all",
        Differs("exactly so many, evenly dealt");
    Paralloc ["paralloc"] &[Files], "false", "files are made by several threads",
        Differs("as many threads as CPUs");
    Reuse ["reuse"] &[Files], "false", "existing files are used again", MADE_ANEW;
    TrustTree ["trusttree"] &[Files], "false", "existing files are not even looked at", MADE_ANEW;
    ReadOnly ["readonly"] &[Files], "false", "files are opened for reading only", Done;
    WriteOnly ["writeonly"] &[Files], "false", "files are opened for writing only", Done;
    Cached ["cached"] &[Files], "", "1.4.9",
        Ignored("the page cache is a factor of a study: cache = cold, warm or as it is");
    Instances ["instances"] &[Process, Thread], "1", "number of them", Done;
    Nice ["nice"] &[Process], "0", "scheduling priority", Ignored("CPU time is not measured by it");
    MemSize ["memsize"] &[Thread], "0", "memory that transfers lie in",
        Differs("a limit of the transfers' size; the buffer is the worker's own");
    UseIsm ["useism"] &[Thread], "false", "shared memory", NOT_SHARED;
    IoPrio ["ioprio"] &[Thread], "8", "I/O priority: 0 (first) to 7 of best effort; 8: none", Done;
    FileName ["filename", "filesetname"] &[Flowop], "", "file or fileset that it works on", Done;
    Fd ["fd"] &[Flowop], "0", "descriptor slot of the thread, 0 to 127", Done;
    SrcFd ["srcfd"] &[Flowop], "0", "slot whose file gives the length (writewholefile)", Done;
    OpenNext ["opennext"] &[Flowop], "false",
        "slots 127 to 0 in turn, each with the next file", Done;
    IoSize ["iosize"] &[Flowop], "0", "bytes of an operation; may be random", Done;
    WorkingSet ["workingset"] &[Flowop], "0: the file", "bytes in which random places lie", Done;
    AtRandom ["random"] &[Flowop], "false", "places are multiples of iosize by chance", Done;
    DirectIo ["directio"] &[Flowop], "false", "`O_DIRECT`, of the flowop that opens the file", Done;
    DSync ["dsync"] &[Flowop], "false", "`O_SYNC`, of the flowop that opens the file", Done;
    NoReadahead ["noreadahead"] &[Flowop], "false", "`POSIX_FADV_RANDOM` when it opens", Done;
    Iters ["iters"] &[Flowop], "1", "number of times in a row; may be random", Done;
    Indexed ["indexed"] &[Flowop], "",
        "random variable: number of the file, modulo the entries", Done;
    Target ["target"] &[Flowop], "", "name of the flowop that it is about", Done;
    Amount ["value"] &[Flowop], "1", "number, seconds or text, see the flowop", Done;
    Blocking ["blocking"] &[Flowop], "false",
        "sempost waits above the highwater of its target", Done;
    HighWater ["highwater"] &[Flowop], "1", "posts above which a blocking sempost waits", Done;
    Kind ["type"] &[Random, Custom], "gamma", "distribution", Done;
    Mean ["mean"] &[Random], "", "mean", Done;
    Gamma ["gamma"] &[Random], "1500", "shape of a gamma, in thousandths", Done;
    Min ["min"] &[Random, Custom], "0", "origin of a randvar; smallest value of a cvar", Done;
    Max ["max"] &[Random, Custom], "", "largest value", Done;
    Round ["round"] &[Random, Custom], "0", "values are multiples of it", Done;
    Seed ["seed"] &[Random], "0", "seed", Ignored("random numbers follow from the workload's seed");
    Source ["randsrc"] &[Random], "rand48", "rand48 or urandom",
        Ignored("random numbers follow from the workload's seed");
    Table ["randtable"] &[Random], "", "rows {percent, from, below} of a tabular one", Done;
    Parameters ["parameters"] &[Custom], "", "name:value;name:value", Done;
    Rate ["rate"] &[Events], "0", "events per second; 0: limits are not active", Done;
}

/// The attribute of this name of a thing.
pub fn attribute(of: Of, name: &str) -> Option<&'static AttributeRow> {
    ATTRIBUTES.iter().find(|row| row.of.contains(&of) && row.names.contains(&name))
}

/// Group that a flow operation is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedAs {
    /// An operation on files.
    Operation,
    /// A read.
    Read,
    /// A write.
    Write,
    /// Control: not in the summary.
    Control,
}

macro_rules! flowops {
    ($($Name:ident $text:literal $counts:ident, $doc:literal, $standing:expr;)+) => {
        /// A flow operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FlowopKind { $(#[doc = $doc] $Name,)+ }

        /// All flow operations.
        pub const FLOWOPS: &[FlowopRow] = &[$(FlowopRow {
            kind: FlowopKind::$Name,
            name: $text,
            counts: CountedAs::$counts,
            doc: $doc,
            standing: $standing,
        },)+];
    };
}

/// Row of a flow operation.
#[derive(Debug)]
pub struct FlowopRow {
    /// The operation.
    pub kind: FlowopKind,
    /// Its name.
    pub name: &'static str,
    /// Group that it is counted in.
    pub counts: CountedAs,
    /// Effect, in one line.
    pub doc: &'static str,
    /// Degree to which it is done.
    pub standing: Standing,
}

const BROADCAST: Standing = Differs("all instances of the target share what is posted to each");

flowops! {
    OpenFile "openfile" Operation, "opens the next file that exists into a closed slot", Done;
    CreateFile "createfile" Operation,
        "makes the next file that does not exist, and opens it", Done;
    CloseFile "closefile" Operation, "closes a slot", Done;
    DeleteFile "deletefile" Operation, "removes the file that a slot has or had, or the next one",
        Differs("also a file that another thread has open");
    StatFile "statfile" Operation,
        "reads the attributes of a slot's file, or of the next one", Done;
    Read "read" Read, "reads iosize bytes", Differs("an empty read at the end is no operation");
    Write "write" Write, "writes iosize bytes", Done;
    ReadWholeFile "readwholefile" Read,
        "reads a file from the front to its end, in pieces of iosize",
        Differs("a short piece is the end: no further, empty read");
    WriteWholeFile "writewholefile" Write,
        "writes as many bytes as the file of srcfd was given, in pieces of iosize",
        Differs("the last piece is as long as what is left");
    AppendFile "appendfile" Write, "writes iosize bytes to the end", Done;
    AppendFileRand "appendfilerand" Write,
        "writes 0 to iosize - 1 bytes to the end, by chance", Done;
    Fsync "fsync" Operation, "fsync(2) of a slot", Done;
    FsyncSet "fsyncset" Operation, "fsync(2) of every open slot of a fileset", Done;
    MakeDir "makedir" Operation, "makes the next leaf directory", Done;
    RemoveDir "removedir" Operation, "removes the next leaf directory", Done;
    ListDir "listdir" Operation, "lists the next directory", Done;
    AioWrite "aiowrite" Write, "begins to write iosize bytes at a random place",
        Differs("through io_uring: the original starts a thread for each");
    AioWait "aiowait" Operation, "waits until half of what is under way has ended", Done;
    Delay "delay" Control, "sleeps `value` seconds", Done;
    Hog "hog" Control, "keeps a CPU busy for `value` stores to memory",
        Differs("for as long as they took on a CPU of 4 GHz: a quarter of a nanosecond each");
    Block "block" Control, "waits for a wakeup", Done;
    Wakeup "wakeup" Control, "lets all go on that wait in `target`; lost if none does", Done;
    SemBlock "semblock" Control, "waits for `value` posts", BROADCAST;
    SemPost "sempost" Control, "posts `value` to `target`", BROADCAST;
    EventLimit "eventlimit" Control, "takes one event", Done;
    OpsLimit "opslimit" Control, "takes an event for each operation", Done;
    IopsLimit "iopslimit" Control, "takes an event for each read and write", Done;
    BwLimit "bwlimit" Control, "takes an event for each MiB", Done;
    FinishOnCount "finishoncount" Control, "ends after `value` operations", Done;
    FinishOnBytes "finishonbytes" Control, "ends after more than `value` bytes", Done;
    Print "print" Control, "prints a text", Ignored("what is measured prints nothing");
    TestRandVar "testrandvar" Control, "checks a distribution",
        Ignored("what is measured prints nothing");
}

/// The flow operation of this name.
pub fn flowop(name: &str) -> Option<&'static FlowopRow> {
    FLOWOPS.iter().find(|row| row.name == name)
}

/// Row of a distribution of a random variable, or of a custom one.
pub struct DistributionRow {
    /// Its name.
    pub name: &'static str,
    /// Parameters of a custom one, with their defaults; of a random variable: its attributes.
    pub parameters: &'static [(&'static str, f64)],
    /// Meaning, in one line.
    pub doc: &'static str,
}

/// Distributions of `randvar`.
pub const DISTRIBUTIONS: &[DistributionRow] = &[
    DistributionRow {
        name: "gamma",
        parameters: &[],
        doc: "min + gamma of shape gamma/1000, with `mean` as the mean",
    },
    DistributionRow { name: "uniform", parameters: &[], doc: "even from min to 2 mean - min" },
    DistributionRow {
        name: "tabular",
        parameters: &[],
        doc: "a row of randtable by its percentage, even within it; scaled to `mean` if given",
    },
];

/// Types of `cvar`.
pub const CUSTOM: &[DistributionRow] = &[
    DistributionRow {
        name: "cvar-gamma",
        parameters: &[("mean", 4096.0), ("gamma", 1.5)],
        doc: "gamma of this mean and shape",
    },
    DistributionRow {
        name: "cvar-normal",
        parameters: &[("mean", 0.0), ("sigma", 1.0)],
        doc: "normal; below 0 counts as 0",
    },
    DistributionRow {
        name: "cvar-uniform",
        parameters: &[("lower", 0.0), ("upper", 1.0)],
        doc: "even between both",
    },
    DistributionRow {
        name: "cvar-triangular",
        parameters: &[("lower", 0.0), ("upper", 1.0), ("mode", 0.5)],
        doc: "triangular",
    },
    DistributionRow { name: "cvar-exponential", parameters: &[("mean", 1.0)], doc: "exponential" },
    DistributionRow {
        name: "cvar-erlang",
        parameters: &[("shape", 1.0), ("rate", 1.0)],
        doc: "Erlang: gamma of a whole shape",
    },
    DistributionRow {
        name: "cvar-weibull",
        parameters: &[("shape", 1.0), ("scale", 1.0)],
        doc: "Weibull",
    },
    DistributionRow {
        name: "cvar-lognormal",
        parameters: &[("shape", 1.0), ("scale", 1.0)],
        doc: "lognormal: `scale` is the mean of the logarithm, `shape` its deviation",
    },
];

/// Row of a statement.
pub struct StatementRow {
    /// Its first words.
    pub name: &'static str,
    /// Form of the rest.
    pub form: &'static str,
    /// Effect, in one line.
    pub doc: &'static str,
    /// Degree to which it is done.
    pub standing: Standing,
}

const fn row(
    name: &'static str,
    form: &'static str,
    doc: &'static str,
    standing: Standing,
) -> StatementRow {
    StatementRow { name, form, doc, standing }
}

const ONE_MACHINE: Standing = Refused("one machine is measured", "leave it out");
const OLD: Standing = Refused("no script of 1.5 has it", "leave it out");

/// All statements.
pub const STATEMENTS: &[StatementRow] = &[
    row("set", "$v=VALUE", "gives a variable a value; numbers may be added and multiplied", Done),
    row("set", "$v=randvar(...), $v=cvar(...)", "a random variable, drawn at each use", Done),
    row("set mode quit", "timeout, alldone or firstdone", "rule that ends a run", Done),
    row("set mode nousestats", "", "", Ignored("CPU times are stored all the same")),
    row("define file", "ATTRIBUTES", "one file", Done),
    row("define fileset", "ATTRIBUTES", "files in a tree of directories", Done),
    row("define process", "ATTRIBUTES { thread ... }", "processes of threads of flowops", Done),
    row(
        "define flowop",
        "name=N[,$v[=DEFAULT]] { flowop ... }",
        "a composite flowop",
        Differs("its parameters work"),
    ),
    row("define randvar", "name=$v,ATTRIBUTES", "1.4.9: a random variable", Done),
    row(
        "create",
        "files, fileset, filesets or processes",
        "files are made now",
        Ignored("a run makes its files before its clock begins"),
    ),
    row(
        "eventgen",
        "rate=N",
        "source of events for the limits",
        Differs("exact: the original loses up to a fifth"),
    ),
    row("enable lathist", "", "histograms of latencies in the report", Done),
    row("enable multi", "", "several machines", ONE_MACHINE),
    row("domultisync", "", "several machines", ONE_MACHINE),
    row("run", "[SECONDS]", "measures, reports and ends; what follows is not read", Done),
    row(
        "psrun",
        "[[-]PERIOD [SECONDS]]",
        "the same with a report every period",
        Differs("a negative period sets counts and clock back, not the clock alone"),
    ),
    row("echo", "\"TEXT\"", "prints a text before the run", Done),
    row(
        "system",
        "\"COMMAND\"",
        "runs a command before the run",
        Differs("only with --allow-exec, as whoever typed the command line"),
    ),
    row("load", "NAME", "1.4.9: reads a personality", Done),
    row("usage", "\"TEXT\"", "1.4.9: help", Ignored("help of a script for its prompt")),
    row("sleep", "N", "waits", Ignored("files are ready when a run begins")),
    row("version", "", "prints the version", Done),
    row("list", "fileset or flowop", "prints nothing in 1.5", Done),
    row("debug", "N", "messages of its own", Ignored("iolab has none")),
    row("quit", "", "ends", Done),
    row("stats", "...", "1.4.9", OLD),
    row("foreach", "...", "1.4.9", OLD),
    row("shutdown", "...", "1.4.9", OLD),
    row("log", "...", "1.4.9", OLD),
    row("statsdump", "...", "1.4.9", OLD),
    row("vars", "", "1.4.9", OLD),
];

/// Words that are keywords of 1.5 everywhere, also as values.
pub const RESERVED: &[&str] = &[
    "create",
    "debug",
    "define",
    "domultisync",
    "echo",
    "enable",
    "eventgen",
    "file",
    "files",
    "fileset",
    "filesets",
    "flowop",
    "list",
    "mode",
    "multi",
    "process",
    "processes",
    "psrun",
    "quit",
    "run",
    "set",
    "sleep",
    "system",
    "thread",
    "version",
    "in",
    "name",
    "path",
    "size",
    "rate",
    "random",
    "value",
    "target",
    "type",
    "min",
    "max",
    "mean",
    "gamma",
    "round",
    "seed",
    "entries",
    "instances",
    "iosize",
    "iters",
    "fd",
    "reuse",
    "prealloc",
    "paralloc",
    "client",
    "master",
    "uniform",
    "tabular",
    "timeout",
    "alldone",
    "firstdone",
    "indexed",
    "nice",
];

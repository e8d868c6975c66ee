//! Properties of the core workload, of measurements and of the stores: one row each.

use crate::option::Standing;

use Standing::{Differs, Done, Ignored, Refused};

/// Form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A whole number of at least 0.
    Count,
    /// A number.
    Number,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Anything.
    Text,
}

/// A property.
#[derive(Clone, Copy, Debug)]
pub struct PropertyRow {
    /// Its name.
    pub name: &'static str,
    /// Form of its value.
    pub form: Form,
    /// Value where it is not given.
    pub default: &'static str,
    /// Effect, in one line.
    pub doc: &'static str,
    /// Heading of its group.
    pub group: &'static str,
    /// Degree to which it is done.
    pub standing: Standing,
}

impl PropertyRow {
    const fn with(self, standing: Standing) -> Self {
        Self { standing, ..self }
    }

    const fn of(self, group: &'static str) -> Self {
        Self { group, ..self }
    }
}

const fn row(
    name: &'static str,
    form: Form,
    default: &'static str,
    doc: &'static str,
) -> PropertyRow {
    PropertyRow { name, form, default, doc, group: "Records and operations", standing: Done }
}

const ORDERS: &[&str] = &["uniform", "zipfian", "latest", "hotspot", "exponential", "sequential"];
const LENGTHS: &[&str] = &["constant", "uniform", "zipfian", "histogram"];
const KINDS: &[&str] = &[
    "hdrhistogram",
    "histogram",
    "timeseries",
    "raw",
    "hdrhistogram+histogram",
    "hdrhistogram+raw",
];
const CLIENTS: &str = "Clients";
const MEASURED: &str = "Measurements";
const STORES: &str = "Stores";
const OURS: Standing = Differs("not in the original");

/// Beginnings of names that stand for options of `RocksDB`.
pub const OPTION_PREFIX: &str = "rocksdb.option.";
/// The same for options of its tables.
pub const TABLE_PREFIX: &str = "rocksdb.table.";

/// All properties.
pub const PROPERTIES: &[PropertyRow] = &[
    row("workload", Form::Text, "", "class of the workload; the core one is needed"),
    row("recordcount", Form::Count, "0", "records in the table before a run"),
    row("operationcount", Form::Count, "0", "operations of a run; 0: until maxexecutiontime"),
    row("insertstart", Form::Count, "0", "first key number of these clients"),
    row("insertcount", Form::Count, "", "keys of these clients (default: the rest of recordcount)"),
    row("table", Form::Text, "usertable", "name of the table: a column family"),
    row("fieldcount", Form::Count, "10", "fields of a record"),
    row("fieldnameprefix", Form::Text, "field", "name of a field before its number"),
    row("fieldlength", Form::Count, "100", "bytes of a field, at most"),
    row("minfieldlength", Form::Count, "1", "bytes of a field, at least (uniform, zipfian)"),
    row("fieldlengthdistribution", Form::Choice(LENGTHS), "constant", "lengths of fields"),
    row("fieldlengthhistogram", Form::Text, "hist.txt", "file of lengths and their counts"),
    row("readallfields", Form::Flag, "true", "a read is about all fields, or about one"),
    row("readallfieldsbyname", Form::Flag, "false", "all fields are asked for by name")
        .with(Ignored("records are read as a whole")),
    row("writeallfields", Form::Flag, "false", "an update writes all fields, or one"),
    row("dataintegrity", Form::Flag, "false", "values follow from their keys; reads are checked"),
    row("readproportion", Form::Number, "0.95", "weight of reads"),
    row("updateproportion", Form::Number, "0.05", "weight of updates"),
    row("insertproportion", Form::Number, "0", "weight of inserts"),
    row("scanproportion", Form::Number, "0", "weight of scans"),
    row("readmodifywriteproportion", Form::Number, "0", "weight of a read and an update of it"),
    row("requestdistribution", Form::Choice(ORDERS), "uniform", "choice of keys"),
    row("zeropadding", Form::Count, "1", "least number of digits of a key"),
    row("insertorder", Form::Text, "hashed", "hashed; any other word: keys in their order"),
    row("minscanlength", Form::Count, "1", "records of a scan, at least"),
    row("maxscanlength", Form::Count, "1000", "records of a scan, at most"),
    row(
        "scanlengthdistribution",
        Form::Choice(&["uniform", "zipfian"]),
        "uniform",
        "records of a scan",
    ),
    row("hotspotdatafraction", Form::Number, "0.2", "share of the keys that are hot"),
    row("hotspotopnfraction", Form::Number, "0.8", "share of the operations on them"),
    row("exponential.percentile", Form::Number, "95", "percent of the draws ..."),
    row("exponential.frac", Form::Number, "0.8571428571", "... in this share of the records"),
    row("core_workload_insertion_retry_limit", Form::Count, "0", "repetitions of a failed insert")
        .of("Loading"),
    row("core_workload_insertion_retry_interval", Form::Number, "3", "seconds between them")
        .of("Loading"),
    row(
        "core_workload_insertion_keep_going_on_error",
        Form::Flag,
        "false",
        "loading goes on after a failed insert",
    )
    .of("Loading"),
    row("threadcount", Form::Count, "1", "clients (-threads)").of(CLIENTS),
    row("target", Form::Count, "0", "operations per second of all clients (-target)").of(CLIENTS),
    row("maxexecutiontime", Form::Count, "0", "seconds after which nothing is begun").of(CLIENTS),
    row("spin.sleep", Form::Flag, "false", "who waits for its turn keeps the CPU").of(CLIENTS),
    row("dotransactions", Form::Flag, "true", "run, else load (-t, -load)").of(CLIENTS),
    row("db", Form::Text, "", "class of the store's client (-db)").of(CLIENTS),
    row("status", Form::Flag, "false", "lines about the progress (-s)").of(CLIENTS),
    row("status.interval", Form::Number, "10", "seconds between two of them").of(CLIENTS),
    row("label", Form::Text, "", "text before each of them (-l)").of(CLIENTS),
    row("measurementtype", Form::Choice(KINDS), "hdrhistogram", "what is kept").of(MEASURED),
    row(
        "measurement.interval",
        Form::Choice(&["op", "intended", "both"]),
        "op",
        "latency from the begin of the call, or from the planned one",
    )
    .of(MEASURED),
    row("hdrhistogram.percentiles", Form::Text, "50,95,99", "percentiles that are shown")
        .of(MEASURED)
        .with(Differs("the default is that of the head; 0.17.0 has 95,99")),
    row("hdrhistogram.fileoutput", Form::Flag, "false", "histogram logs are written").of(MEASURED),
    row("hdrhistogram.output.path", Form::Text, "", "beginning of their names").of(MEASURED),
    row("measurement.histogram.verbose", Form::Flag, "false", "all counts are shown").of(MEASURED),
    row("histogram.buckets", Form::Count, "1000", "milliseconds with a count each").of(MEASURED),
    row("timeseries.granularity", Form::Count, "1000", "milliseconds of a mean").of(MEASURED),
    row("measurement.raw.output_file", Form::Text, "", "file of single latencies").of(MEASURED),
    row("measurement.raw.no_summary", Form::Flag, "false", "raw: only single latencies")
        .of(MEASURED),
    row("exporter", Form::Text, "", "class of the report's form: text, JSON, JSON array")
        .of(MEASURED),
    row("exportfile", Form::Text, "", "file of the report").of(MEASURED),
    row("reportlatencyforeacherror", Form::Flag, "false", "a series for each result")
        .of(MEASURED)
        .with(Refused("series of failed operations are not divided", "leave it out")),
    row("latencytrackederrors", Form::Text, "", "results with a series of their own")
        .of(MEASURED)
        .with(Refused("series of failed operations are not divided", "leave it out")),
    row("measurement.trackjvm", Form::Flag, "false", "counters of the Java machine")
        .of(MEASURED)
        .with(Refused("there is no Java machine", "leave it out")),
    row("rocksdb.dir", Form::Text, "ycsb-rocksdb", "directory of the database")
        .of(STORES)
        .with(Differs("need not be given")),
    row("db.dir", Form::Text, "", "the same, for all stores").of(STORES).with(OURS),
    row("rocksdb.optionsfile", Form::Text, "", "options file of RocksDB").of(STORES),
    row("rocksdb.statistics", Form::Flag, "true", "count what RocksDB does inside")
        .of(STORES)
        .with(OURS),
    row("durability", Form::Choice(&["none", "wal", "sync"]), "wal", "promise of a write")
        .of(STORES)
        .with(OURS),
    row("basicdb.verbose", Form::Flag, "true", "basic: print each operation").of(STORES),
    row("basicdb.simulatedelay", Form::Count, "0", "basic: ms before each answer").of(STORES),
    row("basicdb.randomizedelay", Form::Flag, "true", "basic: up to so many").of(STORES),
    row("basicdb.count", Form::Flag, "false", "basic: count keys")
        .of(STORES)
        .with(Refused("operations are not counted by key", "leave it out")),
];

/// The property of a name.
pub fn find(name: &str) -> Option<&'static PropertyRow> {
    PROPERTIES.iter().find(|row| row.name == name)
}

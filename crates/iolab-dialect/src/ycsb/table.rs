//! Properties of the core workload, of measurements and of the stores: one row each.

use crate::option::Standing;

use Standing::{Differs, Done, Ignored, Refused};

/// Form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
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
    pub form: ValueForm,
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
    form: ValueForm,
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
    row("workload", ValueForm::Text, "", "class of the workload; the core one is needed"),
    row("recordcount", ValueForm::Count, "0", "records in the table before a run"),
    row("operationcount", ValueForm::Count, "0", "operations of a run; 0: until maxexecutiontime"),
    row("insertstart", ValueForm::Count, "0", "first key number of these clients"),
    row(
        "insertcount",
        ValueForm::Count,
        "",
        "keys of these clients (default: the rest of recordcount)",
    ),
    row("table", ValueForm::Text, "usertable", "name of the table: a column family"),
    row("fieldcount", ValueForm::Count, "10", "fields of a record"),
    row("fieldnameprefix", ValueForm::Text, "field", "name of a field before its number"),
    row("fieldlength", ValueForm::Count, "100", "bytes of a field, at most"),
    row("minfieldlength", ValueForm::Count, "1", "bytes of a field, at least (uniform, zipfian)"),
    row("fieldlengthdistribution", ValueForm::Choice(LENGTHS), "constant", "lengths of fields"),
    row("fieldlengthhistogram", ValueForm::Text, "hist.txt", "file of lengths and their counts"),
    row("readallfields", ValueForm::Flag, "true", "a read is about all fields, or about one"),
    row("readallfieldsbyname", ValueForm::Flag, "false", "all fields are asked for by name")
        .with(Ignored("records are read as a whole")),
    row("writeallfields", ValueForm::Flag, "false", "an update writes all fields, or one"),
    row(
        "dataintegrity",
        ValueForm::Flag,
        "false",
        "values follow from their keys; reads are checked",
    ),
    row("readproportion", ValueForm::Number, "0.95", "weight of reads"),
    row("updateproportion", ValueForm::Number, "0.05", "weight of updates"),
    row("insertproportion", ValueForm::Number, "0", "weight of inserts"),
    row("scanproportion", ValueForm::Number, "0", "weight of scans"),
    row(
        "readmodifywriteproportion",
        ValueForm::Number,
        "0",
        "weight of a read and an update of it",
    ),
    row("requestdistribution", ValueForm::Choice(ORDERS), "uniform", "choice of keys"),
    row("zeropadding", ValueForm::Count, "1", "least number of digits of a key"),
    row("insertorder", ValueForm::Text, "hashed", "hashed; any other word: keys in their order"),
    row("minscanlength", ValueForm::Count, "1", "records of a scan, at least"),
    row("maxscanlength", ValueForm::Count, "1000", "records of a scan, at most"),
    row(
        "scanlengthdistribution",
        ValueForm::Choice(&["uniform", "zipfian"]),
        "uniform",
        "records of a scan",
    ),
    row("hotspotdatafraction", ValueForm::Number, "0.2", "share of the keys that are hot"),
    row("hotspotopnfraction", ValueForm::Number, "0.8", "share of the operations on them"),
    row("exponential.percentile", ValueForm::Number, "95", "percent of the draws ..."),
    row("exponential.frac", ValueForm::Number, "0.8571428571", "... in this share of the records"),
    row(
        "core_workload_insertion_retry_limit",
        ValueForm::Count,
        "0",
        "repetitions of a failed insert",
    )
    .of("Loading"),
    row("core_workload_insertion_retry_interval", ValueForm::Number, "3", "seconds between them")
        .of("Loading"),
    row(
        "core_workload_insertion_keep_going_on_error",
        ValueForm::Flag,
        "false",
        "loading goes on after a failed insert",
    )
    .of("Loading"),
    row("threadcount", ValueForm::Count, "1", "clients (-threads)").of(CLIENTS),
    row("target", ValueForm::Count, "0", "operations per second of all clients (-target)")
        .of(CLIENTS),
    row("maxexecutiontime", ValueForm::Count, "0", "seconds after which nothing is begun")
        .of(CLIENTS),
    row("spin.sleep", ValueForm::Flag, "false", "who waits for its turn keeps the CPU").of(CLIENTS),
    row("dotransactions", ValueForm::Flag, "true", "run, else load (-t, -load)").of(CLIENTS),
    row("db", ValueForm::Text, "", "class of the store's client (-db)").of(CLIENTS),
    row("status", ValueForm::Flag, "false", "lines about the progress (-s)").of(CLIENTS),
    row("status.interval", ValueForm::Number, "10", "seconds between two of them").of(CLIENTS),
    row("label", ValueForm::Text, "", "text before each of them (-l)").of(CLIENTS),
    row("measurementtype", ValueForm::Choice(KINDS), "hdrhistogram", "what is kept").of(MEASURED),
    row(
        "measurement.interval",
        ValueForm::Choice(&["op", "intended", "both"]),
        "op",
        "latency from the begin of the call, or from the planned one",
    )
    .of(MEASURED),
    row("hdrhistogram.percentiles", ValueForm::Text, "50,95,99", "percentiles that are shown")
        .of(MEASURED)
        .with(Differs("the default is that of the head; 0.17.0 has 95,99")),
    row("hdrhistogram.fileoutput", ValueForm::Flag, "false", "histogram logs are written")
        .of(MEASURED),
    row("hdrhistogram.output.path", ValueForm::Text, "", "beginning of their names").of(MEASURED),
    row("measurement.histogram.verbose", ValueForm::Flag, "false", "all counts are shown")
        .of(MEASURED),
    row("histogram.buckets", ValueForm::Count, "1000", "milliseconds with a count each")
        .of(MEASURED),
    row("timeseries.granularity", ValueForm::Count, "1000", "milliseconds of a mean").of(MEASURED),
    row("measurement.raw.output_file", ValueForm::Text, "", "file of single latencies")
        .of(MEASURED),
    row("measurement.raw.no_summary", ValueForm::Flag, "false", "raw: only single latencies")
        .of(MEASURED),
    row("exporter", ValueForm::Text, "", "class of the report's form: text, JSON, JSON array")
        .of(MEASURED),
    row("exportfile", ValueForm::Text, "", "file of the report").of(MEASURED),
    row("reportlatencyforeacherror", ValueForm::Flag, "false", "a series for each result")
        .of(MEASURED)
        .with(Refused("series of failed operations are not divided", "leave it out")),
    row("latencytrackederrors", ValueForm::Text, "", "results with a series of their own")
        .of(MEASURED)
        .with(Refused("series of failed operations are not divided", "leave it out")),
    row("measurement.trackjvm", ValueForm::Flag, "false", "counters of the Java machine")
        .of(MEASURED)
        .with(Refused("there is no Java machine", "leave it out")),
    row("rocksdb.dir", ValueForm::Text, "ycsb-rocksdb", "directory of the database")
        .of(STORES)
        .with(Differs("need not be given")),
    row("db.dir", ValueForm::Text, "", "the same, for all stores").of(STORES).with(OURS),
    row("rocksdb.optionsfile", ValueForm::Text, "", "options file of RocksDB").of(STORES),
    row("rocksdb.statistics", ValueForm::Flag, "true", "count what RocksDB does inside")
        .of(STORES)
        .with(OURS),
    row("durability", ValueForm::Choice(&["none", "wal", "sync"]), "wal", "promise of a write")
        .of(STORES)
        .with(OURS),
    row("basicdb.verbose", ValueForm::Flag, "true", "basic: print each operation").of(STORES),
    row("basicdb.simulatedelay", ValueForm::Count, "0", "basic: ms before each answer").of(STORES),
    row("basicdb.randomizedelay", ValueForm::Flag, "true", "basic: up to so many").of(STORES),
    row("basicdb.count", ValueForm::Flag, "false", "basic: count keys")
        .of(STORES)
        .with(Refused("operations are not counted by key", "leave it out")),
];

/// The property of a name.
pub fn find(name: &str) -> Option<&'static PropertyRow> {
    PROPERTIES.iter().find(|row| row.name == name)
}

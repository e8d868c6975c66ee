//! From properties to clients of a store.

use std::path::Path;

use iolab_model::Bytes;
use iolab_model::kv::{KvDurability, KvOption, KvOptions};
use iolab_model::nearest::did_you_mean;
use iolab_model::target::Content;
use iolab_workload::kv::{KvAction, KvInterval, KvLength, KvMeasured, KvMix, KvOrder, KvWork};
use iolab_workload::spec::{Direction, FsyncPolicy, Opening, Tenant};
use serde::{Deserialize, Serialize};

use super::options::Word;
use super::options_file;
use super::parse::Given;
use super::table::{OPTION_PREFIX, TABLE_PREFIX};
use crate::diagnostic::{Diagnostic, Problem};
use crate::option::Common;
use crate::plan::{Asked, Row};
use crate::workload::{phase, tenant, workload};

/// Everything about one command line.
pub type Plan = crate::plan::Plan<Show, Row>;

/// Form of the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShownByYcsb")]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Show {
    /// Lines before it begins, for people.
    pub banner: Vec<String>,
    /// Kind of what is kept: the name of `measurementtype`.
    pub kind: String,
    /// Percentiles, as typed.
    pub percentiles: Vec<String>,
    /// All counts are shown.
    pub is_verbose: bool,
    /// Milliseconds with a count each.
    pub buckets: u32,
    /// Milliseconds of a mean.
    pub granularity_ms: u64,
    /// Latencies of `op`, `intended` or `both`.
    pub interval: String,
    /// `text`, `json` or `json_array`.
    pub exporter: String,
    /// File of the report; absent: standard output.
    pub output: Option<String>,
    /// Beginning of the names of histogram logs; absent: none are written.
    pub hdr_path: Option<String>,
    /// File of single latencies; absent: standard output.
    pub raw_file: Option<String>,
    /// Single latencies have no summary.
    pub has_no_summary: bool,
    /// The clients log single operations.
    pub is_logged: bool,
    /// The log says what would be done; it is printed.
    pub is_printed: bool,
    /// Lines about the progress belong to the results, too.
    pub has_status_in_results: bool,
    /// Text before each of them.
    pub label: String,
    /// Properties, as the printing store shows them.
    pub properties: Vec<String>,
}

/// The words before the options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// `load`, else `run`; absent: properties say it.
    pub is_load: Option<bool>,
    /// The store; absent: its client's class says it.
    pub store: Option<Word>,
}

/// Stores, and the classes of their clients in YCSB.
const STORES: [(&str, &str); 3] =
    [("rocksdb", "db.rocksdb.RocksDBClient"), ("basic", "BasicDB"), ("memory", "")];
/// Packages of YCSB's classes, of today and before.
const PACKAGES: [&str; 2] = ["site.ycsb.", "com.yahoo.ycsb."];
/// Bytes that a store needs beside its records: logs and files that are not yet compacted.
const STORE_BYTES: u64 = 64 << 20;
/// Bytes on disk for each byte of records, while they are compacted.
const SPACE_FACTOR: u64 = 2;
/// Most clients.
const CLIENTS_MAX: u64 = 4096;

/// A plan that only prints.
pub fn text_plan(common: Common, text: String) -> Plan {
    Plan {
        dialect: "ycsb".into(),
        common,
        only_text: Some(text),
        notes: Vec::new(),
        directory: String::new(),
        files: Vec::new(),
        cache: "as_is".into(),
        asked: Asked::default(),
        show: Show::default(),
        rows: Vec::new(),
    }
}

/// The plan of a command line.
pub fn lower(
    given: &Given<'_>,
    command: &Command,
    common: Common,
    mut notes: Vec<String>,
) -> Result<Plan, Diagnostic> {
    check_class(given)?;
    let store = store(given, command)?;
    let is_load = command.is_load.unwrap_or_else(|| !given.flag("dotransactions"));
    let mut work = work(given, is_load, &common)?;
    work.store.options = store_options(given, store)?;
    let clients = clients(given, &work, &mut notes)?;
    let wrong = |(problem, remedy): (String, &str)| {
        Diagnostic::of_all("ycsb", given.words, Problem::new(problem, remedy))
    };
    if let Some(problem) = work.problem() {
        return Err(wrong(problem));
    }
    if work.target_per_s == 0.0 && work.measured.interval != KvInterval::Operation {
        notes.push(
            "measurement.interval: without -target nothing has a planned begin, so both are the \
             same"
                .into(),
        );
    }
    if given.has("insertorder")
        && !matches!(given.text("insertorder").as_str(), "hashed" | "ordered")
    {
        notes.push(format!(
            "insertorder={}: any word but hashed means ordered",
            given.text("insertorder")
        ));
    }
    let (directory, name) = place(given, store)?;
    let show = show(given, store);
    let row = row(store, &name, work, clients);
    let checked = row.workload.check().map_err(|error| error.to_string());
    checked.map_err(|text| wrong((text, "use another name for the database")))?;
    Ok(Plan {
        dialect: "ycsb".into(),
        common,
        only_text: None,
        notes,
        directory,
        files: if store == "rocksdb" { vec![name] } else { Vec::new() },
        cache: "as_is".into(),
        asked: Asked::default(),
        show,
        rows: vec![row],
    })
}

/// Refuses another workload than the core one.
fn check_class(given: &Given<'_>) -> Result<(), Diagnostic> {
    let class = given.text("workload");
    let plain = PACKAGES.iter().find_map(|package| class.trim().strip_prefix(package));
    if matches!(plain, Some("workloads.CoreWorkload")) || class.trim() == "core" {
        return Ok(());
    }
    let problem = if class.is_empty() {
        Problem::new("Missing property: workload", "add -P FILE, or -p workload=core")
    } else {
        Problem::new(
            format!("the workload {class} is not done here"),
            "use workload=site.ycsb.workloads.CoreWorkload",
        )
    };
    Err(given.wrong("workload", problem))
}

/// Name of the store.
fn store(given: &Given<'_>, command: &Command) -> Result<&'static str, Diagnostic> {
    let names = || STORES.iter().map(|(name, _)| *name);
    let unknown = |name: &str| {
        let hint = did_you_mean(name, names());
        let list = names().collect::<Vec<_>>().join(", ");
        Problem::new(
            format!("there is no store {name} here{hint}"),
            format!("stores are {list}; clients of other databases need YCSB itself"),
        )
    };
    if let Some(word) = &command.store {
        return names().find(|name| *name == word.text).ok_or_else(|| {
            let place = word.place.clone();
            Diagnostic::of_words("ycsb", given.words, place, unknown(&word.text))
        });
    }
    let class = given.text("db");
    if class.is_empty() {
        let problem = Problem::new(
            "neither a command nor a store is named",
            "write ycsb load rocksdb ..., or -load -db CLASS",
        );
        return Err(Diagnostic::of_all("ycsb", given.words, problem));
    }
    let plain = PACKAGES.iter().find_map(|package| class.strip_prefix(package));
    let found = STORES.iter().find(|(name, of)| plain == Some(*of) || class == *name);
    found.map(|(name, _)| *name).ok_or_else(|| given.wrong("db", unknown(&class)))
}

/// Work of the clients, but for the store's own options.
fn work(given: &Given<'_>, is_load: bool, common: &Common) -> Result<KvWork, Diagnostic> {
    let record_count = given.count("recordcount");
    let insert_start = given.count("insertstart");
    let whole = if record_count == 0 { u64::from(i32::MAX as u32) } else { record_count };
    let insert_count = if given.has("insertcount") {
        given.count("insertcount")
    } else {
        whole.saturating_sub(insert_start)
    };
    if whole < insert_start + insert_count || insert_count == 0 {
        let problem = Problem::new(
            format!(
                "Invalid combination of insertstart, insertcount and recordcount: \
                 {insert_start} + {insert_count} of {record_count}"
            ),
            "recordcount must be at least insertstart + insertcount",
        );
        return Err(given.wrong("insertstart", problem));
    }
    let operation_count = match (is_load, given.has("insertcount")) {
        (true, true) => insert_count,
        (true, false) => record_count,
        (false, _) => given.count("operationcount"),
    };
    if is_load && operation_count == 0 {
        let problem = Problem::new("nothing is to be loaded", "set recordcount");
        return Err(given.wrong("recordcount", problem));
    }
    let durability = given.text("durability");
    Ok(KvWork {
        action: if is_load { KvAction::Load } else { KvAction::Run },
        store: KvOptions {
            durability: durability.trim().parse::<KvDurability>().unwrap_or(KvDurability::Wal),
            table: given.text("table"),
            options: Vec::new(),
            has_statistics: given.flag("rocksdb.statistics"),
        },
        record_count,
        operation_count,
        insert_start,
        insert_count,
        field_count: given.count("fieldcount").min(u64::from(u32::MAX)) as u32,
        field_prefix: given.text("fieldnameprefix"),
        field_length: field_length(given)?,
        reads_all_fields: given.flag("readallfields"),
        writes_all_fields: given.flag("writeallfields"),
        is_verified: given.flag("dataintegrity"),
        mix: KvMix {
            read: given.number("readproportion"),
            update: given.number("updateproportion"),
            insert: given.number("insertproportion"),
            scan: given.number("scanproportion"),
            read_modify_write: given.number("readmodifywriteproportion"),
        },
        order: order(given),
        zero_padding: given.count("zeropadding").min(1024) as u32,
        is_hashed: given.text("insertorder") == "hashed",
        scan_length: scan_length(given),
        target_per_s: given.number("target"),
        is_spinning: given.flag("spin.sleep"),
        time_limit_s: given.count("maxexecutiontime"),
        insert_retries: given.count("core_workload_insertion_retry_limit").min(1 << 20) as u32,
        retry_interval_s: given.number("core_workload_insertion_retry_interval").min(86_400.0),
        goes_on_after_errors: given.flag("core_workload_insertion_keep_going_on_error"),
        loads_new_store: !common.is_compat && record_count > 0,
        measured: measured(given),
    })
}

fn order(given: &Given<'_>) -> KvOrder {
    match given.text("requestdistribution").trim() {
        "zipfian" => KvOrder::Zipfian,
        "latest" => KvOrder::Latest,
        "hotspot" => KvOrder::Hotspot {
            data_fraction: given.number("hotspotdatafraction"),
            ops_fraction: given.number("hotspotopnfraction"),
        },
        "exponential" => KvOrder::Exponential {
            percentile: given.number("exponential.percentile"),
            fraction: given.number("exponential.frac"),
        },
        "sequential" => KvOrder::Sequential,
        _ => KvOrder::Uniform,
    }
}

fn scan_length(given: &Given<'_>) -> KvLength {
    let (from, to) = (given.count("minscanlength"), given.count("maxscanlength"));
    match given.text("scanlengthdistribution").trim() {
        "zipfian" => KvLength::Zipfian { from, to },
        _ => KvLength::Uniform { from, to },
    }
}

fn field_length(given: &Given<'_>) -> Result<KvLength, Diagnostic> {
    let (from, to) = (given.count("minfieldlength"), given.count("fieldlength"));
    Ok(match given.text("fieldlengthdistribution").trim() {
        "uniform" => KvLength::Uniform { from, to },
        "zipfian" => KvLength::Zipfian { from, to },
        "histogram" => lengths(given)?,
        _ => KvLength::Constant { length: to },
    })
}

/// Lengths of a file: `BlockSize<TAB>N`, then a part and its count on each line.
fn lengths(given: &Given<'_>) -> Result<KvLength, Diagnostic> {
    let file = given.text("fieldlengthhistogram");
    let wrong = |what: String| {
        let remedy = "write BlockSize, a tab and a number, then `PART COUNT` lines from part 0 on";
        given.wrong("fieldlengthhistogram", Problem::new(what, remedy))
    };
    let text = given.files.read(&file).map_err(|why| wrong(format!("{file}: {why}")))?;
    let pairs = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut part_bytes = None;
    let mut counts: Vec<u64> = Vec::new();
    for (number, pair) in pairs.enumerate().filter(|(_, pair)| !pair.is_empty()) {
        let fault = || wrong(format!("{file}:{}: '{}' is no pair", number + 1, pair.join(" ")));
        let [first, second] = pair[..] else { return Err(fault()) };
        let value: u64 = second.parse().map_err(|_| fault())?;
        if part_bytes.is_none() {
            if first != "BlockSize" || value == 0 {
                return Err(fault());
            }
            part_bytes = Some(value);
            continue;
        }
        let place: usize = first.parse().map_err(|_| fault())?;
        if place >= PARTS_MAX {
            return Err(fault());
        }
        counts.resize(counts.len().max(place + 1), 0);
        counts[place] = value;
    }
    match part_bytes {
        Some(part_bytes) if counts.iter().sum::<u64>() > 0 && counts.len() > 1 => {
            Ok(KvLength::Histogram { part_bytes, counts })
        }
        _ => Err(wrong(format!("{file} has no counts"))),
    }
}

/// Most parts of a file of lengths.
const PARTS_MAX: usize = 1 << 20;

fn measured(given: &Given<'_>) -> KvMeasured {
    let kind = given.text("measurementtype");
    let has_parts = matches!(kind.trim(), "histogram" | "hdrhistogram+histogram");
    let has_status = given.flag("status");
    KvMeasured {
        interval: given
            .text("measurement.interval")
            .trim()
            .parse()
            .unwrap_or(KvInterval::Operation),
        ms_parts: if has_parts { given.count("histogram.buckets").min(1 << 20) as u32 } else { 0 },
        window_ms: if kind.trim() == "timeseries" {
            given.count("timeseries.granularity").max(1)
        } else {
            0
        },
        status_s: if has_status { given.number("status.interval").max(0.01) } else { 0.0 },
        label: given.text("label"),
    }
}

/// Number of clients: no more than there is to do.
fn clients(given: &Given<'_>, work: &KvWork, notes: &mut Vec<String>) -> Result<u32, Diagnostic> {
    let asked = given.count("threadcount");
    if asked == 0 || asked > CLIENTS_MAX {
        let problem = format!("{asked} clients");
        let problem = Problem::new(problem, format!("use -threads 1 to {CLIENTS_MAX}"));
        return Err(given.wrong("threadcount", problem));
    }
    if work.operation_count > 0 && asked > work.operation_count {
        notes.push(
            "Warning: the threadcount is bigger than recordcount, the threadcount will be \
             recordcount!"
                .into(),
        );
        return Ok(work.operation_count as u32);
    }
    Ok(asked as u32)
}

/// Options of the store itself.
fn store_options(given: &Given<'_>, store: &str) -> Result<Vec<KvOption>, Diagnostic> {
    let option = |part: &str, name: &str, value: &str| KvOption {
        part: part.to_owned(),
        name: name.to_owned(),
        value: value.trim().to_owned(),
    };
    if store == "basic" {
        let delay = given.text("basicdb.simulatedelay");
        let random = given.text("basicdb.randomizedelay");
        return Ok(vec![
            option("db", "simulatedelay", &delay),
            option("db", "randomizedelay", &random),
        ]);
    }
    let mut found = Vec::new();
    let file = given.text("rocksdb.optionsfile");
    if store == "rocksdb" && !file.is_empty() {
        let text = given.files.read(&file).map_err(|why| {
            let problem = Problem::new(format!("{file}: {why}"), "name an options file");
            given.wrong("rocksdb.optionsfile", problem)
        })?;
        found.push(option("base", "defaults", "plain"));
        found.extend(options_file::read(&file, &text, &given.text("table"))?);
    }
    for (name, property) in &given.values {
        let parts = [(OPTION_PREFIX, "cf"), (TABLE_PREFIX, "table")];
        let of = parts.iter().find_map(|(prefix, part)| Some((name.strip_prefix(prefix)?, *part)));
        let Some((plain, part)) = of else { continue };
        let has_sign = |text: &str| text.contains(['=', ';', '{', '}', '\0']);
        if plain.is_empty() || has_sign(plain) || store != "rocksdb" {
            let what = format!("{name} is no option of {store}");
            return Err(given.wrong(name, Problem::new(what, "use rocksdb.option.NAME=VALUE")));
        }
        found.push(option(part, plain, &property.value));
    }
    Ok(found)
}

/// Directory in which the database lies, and its name.
fn place(given: &Given<'_>, store: &str) -> Result<(String, String), Diagnostic> {
    if store != "rocksdb" {
        return Ok((String::new(), "store".into()));
    }
    let named = ["rocksdb.dir", "db.dir"].into_iter().find(|name| given.has(name));
    let text = given.text(named.unwrap_or("rocksdb.dir"));
    let path = Path::new(text.trim_end_matches('/'));
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(name) = name else {
        let problem = Problem::new(format!("'{text}' names no directory"), "name one of its own");
        return Err(given.wrong(named.unwrap_or("rocksdb.dir"), problem));
    };
    let parent = path.parent().and_then(|parent| parent.to_str()).unwrap_or_default();
    Ok((parent.to_owned(), name.to_owned()))
}

/// The row: its clients, and how much they need.
fn row(store: &str, name: &str, work: KvWork, clients: u32) -> Row {
    let record = work.record_bytes();
    let inserted = (work.operation_count as f64 * work.mix.insert) as u64;
    let records = work.record_count.max(work.insert_start + work.insert_count.min(1 << 40));
    let records = if work.record_count == 0 { work.operation_count } else { records };
    let bytes = (records + inserted).saturating_mul(record);
    let needed = match store {
        "rocksdb" => bytes.saturating_mul(SPACE_FACTOR).saturating_add(STORE_BYTES),
        _ => record,
    };
    let kind = match work.action {
        KvAction::Load => "load",
        KvAction::Run => "run",
    };
    let direction = match (work.reads(), work.writes()) {
        (true, true) => Direction::Mixed { read_share: 0.5 },
        (true, false) => Direction::Read,
        _ => Direction::Write,
    };
    let clients_of = Tenant {
        name: "clients".into(),
        workers: clients,
        file_bytes: Bytes(needed.max(record)),
        io_size_bytes: Bytes(record),
        direction,
        fsync: FsyncPolicy::None,
        opening: Opening::Existing,
        kv: Some(work),
        ..tenant(name)
    };
    let mut workload =
        workload("ycsb", 0, Content::Incompressible, vec![phase(kind, vec![clients_of])]);
    store.clone_into(&mut workload.engine);
    workload.is_calibrated = false;
    Row {
        name: kind.into(),
        file_kb: needed.div_ceil(1024),
        record_kb: 0,
        children: clients,
        workload,
        control_groups: Vec::new(),
    }
}

fn show(given: &Given<'_>, store: &str) -> Show {
    let kind = given.text("measurementtype").trim().to_owned();
    let optional = |name: &str| Some(given.text(name)).filter(|text| !text.trim().is_empty());
    let exporter = given.text("exporter");
    let is_raw = matches!(kind.as_str(), "raw" | "hdrhistogram+raw");
    let is_printed = store == "basic" && given.flag("basicdb.verbose");
    let percentiles = given.text("hdrhistogram.percentiles");
    let percentiles = percentiles.split(',').map(|text| text.trim().to_owned());
    let is_percent = |text: &String| text.parse::<f64>().is_ok_and(|p| (0.0..=100.0).contains(&p));
    let percentiles: Vec<String> = percentiles.collect();
    let is_fit = percentiles.iter().all(is_percent);
    let usual = || ["50", "95", "99"].map(str::to_owned).into();
    Show {
        banner: vec![
            format!("Command line: {}", given.words.join(" ")),
            "YCSB Client 0.17.0 (iolab)".into(),
            String::new(),
            "Loading workload...".into(),
            "Starting test.".into(),
        ],
        percentiles: if is_fit { percentiles } else { usual() },
        is_verbose: given.flag("measurement.histogram.verbose"),
        buckets: given.count("histogram.buckets").min(1 << 20) as u32,
        granularity_ms: given.count("timeseries.granularity").max(1),
        interval: given.text("measurement.interval").trim().to_owned(),
        exporter: match exporter.rsplit('.').next().unwrap_or_default() {
            "JSONMeasurementsExporter" => "json".into(),
            "JSONArrayMeasurementsExporter" => "json_array".into(),
            _ => "text".into(),
        },
        output: optional("exportfile"),
        hdr_path: given
            .flag("hdrhistogram.fileoutput")
            .then(|| given.text("hdrhistogram.output.path")),
        raw_file: optional("measurement.raw.output_file").filter(|_| is_raw),
        has_no_summary: given.flag("measurement.raw.no_summary"),
        is_logged: is_raw || is_printed,
        is_printed,
        has_status_in_results: kind == "timeseries" && given.flag("status"),
        label: given.text("label"),
        properties: if is_printed { dumped(given) } else { Vec::new() },
        kind,
    }
}

/// Properties as the printing store shows them.
fn dumped(given: &Given<'_>) -> Vec<String> {
    let line = |(name, property): (&String, &super::properties::Property)| {
        format!("\"{name}\"=\"{}\"", property.value)
    };
    let head = "***************** properties *****************".to_owned();
    let end = "**********************************************".to_owned();
    core::iter::once(head).chain(given.values.iter().map(line)).chain([end]).collect()
}

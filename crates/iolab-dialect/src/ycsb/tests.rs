//! Command lines, right and wrong, and recorded reports made again.

use std::collections::BTreeMap;

use iolab_workload::kv::hdr::Hdr;
use iolab_workload::kv::{
    KvAction, KvLatency, KvLength, KvOrder, KvRecord, KvReturned, KvSeriesRecord, KvWork,
};

use super::lower::Plan;
use super::parse::{FileTexts, parse};
use super::render::{ClientResult, ClientsResult, PhaseResult, RawSeries, RowResult, report};

/// `FileTexts` in memory.
struct Held(BTreeMap<&'static str, &'static str>);

impl FileTexts for Held {
    fn read(&self, path: &str) -> Result<String, String> {
        let found = self.0.get(path).map(|text| (*text).to_owned());
        found.ok_or_else(|| "No such file or directory".into())
    }
}

const CORE: &str = "site.ycsb.workloads.CoreWorkload";

fn held() -> Held {
    Held(BTreeMap::from([
        ("a", include_str!("../../../../tests/golden/ycsb/core-a.properties")),
        ("d", include_str!("../../../../tests/golden/ycsb/core-d.properties")),
        ("e", include_str!("../../../../tests/golden/ycsb/core-e.properties")),
        ("f", include_str!("../../../../tests/golden/ycsb/core-f.properties")),
        ("near", "workload=core\nrecordcount=10\nreadproporton=1\noperationcount=5\n"),
        ("wrong", "# x\n  requestdistribution = zipfain\n"),
        ("lengths", "BlockSize\t10\n0\t5\n2\t1\n"),
        ("ini", "[DBOptions]\nmax_open_files=7\n[CFOptions \"default\"]\nnum_levels=3\n"),
    ]))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn plan(text: &str) -> Plan {
    parse(&words(text), &held()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn work(text: &str) -> KvWork {
    plan(text).rows[0].workload.phases[0].tenants[0].kv.clone().unwrap()
}

#[test]
fn the_shipped_workloads_are_understood() {
    let a = work("run rocksdb -P a -threads 4");
    assert_eq!((a.mix.read, a.mix.update, a.order), (0.5, 0.5, KvOrder::Zipfian));
    assert_eq!((a.record_count, a.operation_count, a.insert_count), (10_000, 10_000, 10_000));
    assert_eq!(work("run rocksdb -P d").order, KvOrder::Latest);
    let e = work("run rocksdb -P e");
    assert_eq!((e.mix.scan, e.scan_length), (0.95, KvLength::Uniform { from: 1, to: 100 }));
    assert!((work("run rocksdb -P f").mix.read_modify_write - 0.5).abs() < 1e-9);
    let load = work("load rocksdb -P a");
    assert_eq!((load.action, load.operation_count), (KvAction::Load, 10_000));
    let plan = plan("run rocksdb -P a -threads 4 -p rocksdb.dir=/data/db/");
    assert_eq!((plan.directory.as_str(), &plan.files[..]), ("/data", &["db".to_owned()][..]));
    assert_eq!((plan.rows[0].children, plan.rows[0].workload.engine.as_str()), (4, "rocksdb"));
}

#[test]
fn words_count_more_than_files_and_later_ones_more_than_earlier() {
    assert_eq!(work("run rocksdb -p recordcount=7 -P a").record_count, 7);
    assert_eq!(work("run rocksdb -P a -p recordcount=7 -p recordcount=8").record_count, 8);
    let direct = format!("-t -db site.ycsb.db.rocksdb.RocksDBClient -p workload={CORE} -P a");
    assert_eq!(work(&direct).action, KvAction::Run);
    assert_eq!(work(&direct.replace("-t ", "-load ")).action, KvAction::Load);
    let old = "run basic -p workload=com.yahoo.ycsb.workloads.CoreWorkload -p operationcount=5";
    assert_eq!(work(old).insert_count, u64::from(i32::MAX as u32));
    let split = work("load rocksdb -P a -p insertstart=40 -p insertcount=5");
    assert_eq!((split.operation_count, split.insert_start), (5, 40));
    assert_eq!(plan("run rocksdb -P a -p operationcount=3 -threads 9").rows[0].children, 3);
}

#[test]
fn stores_take_their_options() {
    let found =
        work("run rocksdb -P a -p rocksdb.option.num_levels=4 -p rocksdb.table.block_size=8k");
    let options = |work: &KvWork| {
        let text =
            |one: &iolab_model::kv::KvOption| format!("{}.{}={}", one.part, one.name, one.value);
        work.store.options.iter().map(text).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(options(&found), "cf.num_levels=4 table.block_size=8k");
    let found = work("run rocksdb -P a -p rocksdb.optionsfile=ini -p durability=sync");
    assert_eq!(options(&found), "base.defaults=plain db.max_open_files=7 cf.num_levels=3");
    assert_eq!(found.store.durability.name(), "sync");
    let lengths =
        "run rocksdb -P a -p fieldlengthdistribution=histogram -p fieldlengthhistogram=lengths";
    let KvLength::Histogram { part_bytes, counts } = work(lengths).field_length else { panic!() };
    assert_eq!((part_bytes, &counts[..]), (10, &[5, 0, 1][..]));
}

#[test]
fn what_does_nothing_is_said_with_the_nearest_name() {
    let notes = plan("run memory -P near -p mongodb.url=x -cp /x -p insertorder=orderd").notes;
    for text in [
        "near:3: readproporton",
        "did you mean `readproportion`",
        "mongodb.url belongs",
        "-cp is not needed",
        "any word but hashed means ordered",
    ] {
        assert!(notes.join("\n").contains(text), "{text}: {notes:?}");
    }
    let shown = plan("run memory -P near -p operationcount=9 --showcmd").only_text.unwrap();
    let expected = "ycsb run memory -p operationcount=9 -p readproporton=1 -p recordcount=10 \
                    -p workload=core";
    assert_eq!(shown, expected);
    assert!(plan("--help").only_text.unwrap().contains("-threads N"));
}

#[test]
fn malformed_command_lines_are_refused_with_a_remedy() {
    for (text, message) in [
        ("shell rocksdb", "there is no shell"),
        ("lod rocksdb -P a", "there is no command lod (did you mean `load`?)"),
        ("load", "no store is named"),
        ("load mongodb -P a", "there is no store mongodb here"),
        ("run rocksd -P a", "did you mean `rocksdb`"),
        ("run rocksdb -P a extra", "'extra' is neither"),
        ("run rocksdb", "Missing property: workload"),
        ("-P a", "neither a command nor a store is named"),
        ("run rocksdb -P nowhere", "nowhere: No such file"),
        ("run rocksdb -P a -p recordcount", "-p takes NAME=VALUE"),
        ("run rocksdb -P a -thread 4", "there is no option -thread (did you mean `-threads`?)"),
        ("run rocksdb -P a -threads four", "threadcount takes a whole number, not 'four'"),
        ("run rocksdb -P a -threads 0", "0 clients"),
        ("run rocksdb -P a -P wrong", "wrong:2:3: there is no requestdistribution 'zipfain'"),
        ("run rocksdb -P a -p workload=site.ycsb.workloads.RestWorkload", "is not done here"),
        ("run rocksdb -P a -p measurement.trackjvm=true", "there is no Java machine"),
        ("run rocksdb -P a -p insertstart=9999 -p insertcount=5", "Invalid combination"),
        ("run rocksdb -P a -p operationcount=0", "no number of operations"),
        ("run rocksdb -P a -p fieldcount=0", "without fields"),
        ("load rocksdb -P a -p recordcount=0", "nothing is to be loaded"),
        ("run rocksdb -P a -p rocksdb.dir=/", "names no directory"),
        ("run rocksdb -P a -p rocksdb.optionsfile=none", "none: No such file"),
        ("run memory -P a -p rocksdb.option.x=1", "is no option of memory"),
        ("run rocksdb -P a -p readproportion=-1", "readproportion takes a number"),
        ("run rocksdb -P a --on", "--on needs a value"),
    ] {
        let error = parse(&words(text), &held()).expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

/// Lines of a recorded report by series, without those of the whole run.
fn recorded(text: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let mut found: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with('[')) {
        let (metric, rest) = line[1..].split_once("], ").unwrap();
        let (name, value) = rest.rsplit_once(", ").unwrap();
        if !metric.starts_with("TOTAL_GC") && metric != "OVERALL" {
            found.entry(metric.into()).or_default().push((name.into(), value.into()));
        }
    }
    found
}

fn latency(hdr: &Hdr) -> KvLatency {
    let (hdr_parts, hdr_counts) = hdr.parts().map(|(index, n)| (index as u32, n)).unzip();
    KvLatency {
        ops: hdr.count(),
        sum_us: 0,
        sum_squares_us2: 0.0,
        min_us: hdr.min(),
        max_us: hdr.max(),
        hdr_parts,
        hdr_counts,
        ms_counts: Vec::new(),
        window_sums_us: Vec::new(),
        window_ops: Vec::new(),
    }
}

fn returned(lines: &[(String, String)]) -> Vec<KvReturned> {
    let pairs = lines.iter().filter_map(|(name, value)| {
        Some(KvReturned {
            status: name.strip_prefix("Return=")?.to_owned(),
            count: value.parse().ok()?,
        })
    });
    pairs.collect()
}

fn result(series: Vec<KvSeriesRecord>, raw: Vec<RawSeries>) -> RowResult {
    let kv = KvRecord { running_ns: 525_000_000, series, ..KvRecord::default() };
    let workers = vec![ClientResult { ops: 200 }];
    RowResult {
        phases: vec![PhaseResult { tenants: vec![ClientsResult { workers, kv: Some(kv) }] }],
        raw,
    }
}

/// A run with all its counts: from these, every other line of it follows, to the digit.
#[test]
fn a_recorded_histogram_gives_the_recorded_lines() {
    let text = include_str!("../../../../tests/golden/ycsb/run-a-hdrverbose.stdout");
    let recorded = recorded(text);
    let series = recorded.iter().map(|(name, lines)| {
        let mut hdr = Hdr::default();
        for (value, count) in lines {
            if let (Ok(value), Ok(count)) = (value.parse::<u64>(), count.parse::<f64>()) {
                (0..count as u64).for_each(|_| hdr.record(value));
            }
        }
        let (latency, returned) = (latency(&hdr), returned(lines));
        KvSeriesRecord { name: name.clone(), returned, latency, intended: None }
    });
    let plan = plan(
        "run rocksdb -P a -p measurement.histogram.verbose=true -p hdrhistogram.percentiles=95,99",
    );
    let shown = report(&plan, &result(series.collect(), Vec::new()));
    assert_eq!(self::recorded(&shown), recorded);
    assert!(shown.starts_with(
        "[OVERALL], RunTime(ms), 525\n[OVERALL], Throughput(ops/sec), 380.95238095238096\n"
    ));
}

/// Counts by milliseconds: percentiles and the lines of counts.
#[test]
fn a_recorded_bucket_histogram_gives_the_recorded_lines() {
    let text = include_str!("../../../../tests/golden/ycsb/run-a-hist-verbose.stdout");
    let recorded = recorded(text);
    let number = |lines: &[(String, String)], name: &str| {
        lines.iter().find(|line| line.0 == name).map(|line| line.1.parse::<f64>().unwrap())
    };
    let series = recorded.iter().map(|(name, lines)| {
        let of = |name: &str| number(lines, name).unwrap();
        let ops = of("Operations");
        let mean = of("AverageLatency(us)");
        let ms_counts = ["0", "1", "2", "3", "4", ">5"].map(|name| of(name) as u64).to_vec();
        let latency = KvLatency {
            ops: ops as u64,
            sum_us: (mean * ops).round() as u64,
            sum_squares_us2: (of("LatencyVariance(us)") + mean * mean) * ops,
            min_us: of("MinLatency(us)") as u64,
            max_us: of("MaxLatency(us)") as u64,
            ms_counts,
            ..latency(&Hdr::default())
        };
        KvSeriesRecord { name: name.clone(), returned: returned(lines), latency, intended: None }
    });
    let plan = plan(
        "run rocksdb -P a -p measurementtype=histogram -p histogram.buckets=5 \
         -p measurement.histogram.verbose=true",
    );
    let shown = self::recorded(&report(&plan, &result(series.collect(), Vec::new())));
    let plain = |lines: &BTreeMap<String, Vec<(String, String)>>| {
        let mut lines = lines.clone();
        // The sum of squares is known to the variance's digits only.
        for values in lines.values_mut() {
            values.retain(|line| !line.0.contains("Variance"));
        }
        lines
    };
    assert_eq!(plain(&shown), plain(&recorded));
}

/// A series of one operation, with these results.
fn one(name: &str, statuses: &[&str], has_plan: bool) -> KvSeriesRecord {
    let mut hdr = Hdr::default();
    hdr.record(7);
    let latency = KvLatency {
        sum_us: 7,
        ms_counts: vec![1],
        window_sums_us: vec![7, 0, 7],
        window_ops: vec![1, 0, 1],
        ..latency(&hdr)
    };
    let of = |status: &&str| KvReturned { status: (*status).into(), count: 1 };
    let intended = has_plan.then(|| latency.clone());
    let returned = statuses.iter().map(of).collect();
    KvSeriesRecord { name: name.into(), returned, latency, intended }
}

/// Names of the lines of a report by series, and whether a window of time is among them.
fn names(text: &str) -> BTreeMap<String, (Vec<String>, bool)> {
    let is_window = |name: &str| name.parse::<u64>().is_ok();
    let plain = |(name, lines): (String, Vec<(String, String)>)| {
        let (windows, mut names): (Vec<String>, Vec<String>) =
            lines.into_iter().map(|line| line.0).partition(|name| is_window(name));
        names.sort();
        (name, (names, !windows.is_empty()))
    };
    recorded(text).into_iter().map(plain).collect()
}

/// Recorded runs, the words that made them, and whether records were missing.
const RECORDED: [(&str, &str, bool); 6] = [
    (
        include_str!("../../../../tests/golden/ycsb/run-a-both-target.stdout"),
        "-p measurement.interval=both -p hdrhistogram.percentiles=50,90,99,99.9,99.99",
        false,
    ),
    (
        include_str!("../../../../tests/golden/ycsb/run-a-notfound.stdout"),
        "-p hdrhistogram.percentiles=95,99",
        true,
    ),
    (
        include_str!("../../../../tests/golden/ycsb/run-a-timeseries.stdout"),
        "-p measurementtype=timeseries -p timeseries.granularity=500",
        false,
    ),
    (
        include_str!("../../../../tests/golden/ycsb/run-a-hist.stdout"),
        "-p measurementtype=histogram -p histogram.buckets=10",
        false,
    ),
    (
        include_str!("../../../../tests/golden/ycsb/run-a-raw.stdout"),
        "-p measurementtype=raw",
        false,
    ),
    (
        include_str!("../../../../tests/golden/ycsb/run-a-hdrraw.stdout"),
        "-p measurementtype=hdrhistogram+raw -p hdrhistogram.percentiles=95,99",
        false,
    ),
];

/// Names of all lines of the other recorded runs.
#[test]
fn every_form_has_the_recorded_names() {
    for (text, words, has_missing) in RECORDED {
        let both = words.contains("both");
        let statuses = if has_missing { &["OK", "NOT_FOUND"][..] } else { &["OK"][..] };
        let mut series = vec![
            one("READ", statuses, both),
            one("UPDATE", statuses, both),
            one("CLEANUP", &[], both),
        ];
        if has_missing {
            series.extend([one("READ-FAILED", &[], both), one("UPDATE-FAILED", &[], both)]);
        }
        let raw = ["READ", "UPDATE", "CLEANUP"].map(|name| RawSeries {
            name: name.into(),
            lines: format!("{name},1,7\n"),
            percentiles_us: vec![7; 8],
        });
        let raw = if words.contains("raw") { raw.to_vec() } else { Vec::new() };
        let plan = plan(&format!("run rocksdb -P a {words}"));
        assert_eq!(names(&report(&plan, &result(series, raw))), names(text), "{words}");
    }
}

proptest::proptest! {
    /// Any words are a plan or a message, never a panic.
    #[test]
    fn any_words_are_a_plan_or_a_message(
        text in "( ?(load|run|rocksdb|memory|-P [a-f]|-p [a-z]{0,12}=[ -~]{0,6}|-[a-z]{1,8}|\
                 [0-9]{1,20}|--[a-z]{0,8}|[ -~]{0,6})){0,8}"
    ) {
        if let Err(error) = parse(&words(&text), &held()) {
            proptest::prop_assert!(!error.to_string().is_empty());
        }
    }
}

//! Options of results and verification.

use super::done_rows;
use crate::diagnostic::Problem;
use crate::fio::job::Unified;
use crate::fio::row::{Kind, Row};
use crate::option::Standing::{Differs, Done, Ignored};

use Kind::{Choice, Count, Flag, Floats, Size, Text};

const VERIFY: &[&str] = &[
    "0",
    "md5",
    "crc16",
    "crc32",
    "crc32c",
    "crc32c-intel",
    "crc64",
    "crc7",
    "xxhash",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "meta",
    "null",
    "pattern",
];
const UNIFIED: &[&str] = &["0", "none", "1", "mixed", "2", "both"];

fn switch(disabled: &mut [bool; 4], which: &[usize], is_off: bool) {
    for place in which {
        disabled[*place] = is_off;
    }
}

/// Rows.
pub const ROWS: &[Row] = done_rows! { "Results and verification";
    "verify": Choice(VERIFY), "0", T1, "what is written is read back and compared",
        Differs("by iolab's own headers and stamps, whatever checksum is named; the reads \
                 begin when all jobs of the group have written, and each file is opened again, \
                 its clean pages dropped; pattern compares bytes; what a job reads beside \
                 its writes is compared as well") =>
        |job, value| {
            let name = VERIFY[value.word()];
            job.verify = (name != "0").then_some(name);
            Ok(())
        };
    "do_verify": Flag, "1", T1, "what was written is read back", Done => |job, value| {
        job.is_verified_after = value.flag();
        Ok(())
    };
    "verify_pattern": Text, "", T1, "bytes that verify=pattern writes and expects",
        Differs("as buffer_pattern, without %o; beside a checksum blocks are iolab's stamps") =>
        |job, value| {
            job.verify_pattern = Some(crate::fio::buffers::pattern(&value.text())?);
            Ok(())
        };
    "verify_only": Flag, "0", T1, "what an earlier run has written is verified, nothing is written",
        Differs("that run had the same file, seed and sizes, and verify= as well") =>
        |job, value| {
            job.is_only_verified = value.flag();
            Ok(())
        };
    "verify_fatal": Flag, "0", T1, "ends at the first wrong block, also with continue_on_error",
        Done => |job, value| {
            job.rules.ends_at_mismatch = value.flag();
            Ok(())
        };
    "verify_interval": Size, "", T1, "bytes of a block that is verified as one",
        Differs("at least 512; without it the largest power of two up to 4k that divides bs, where \
                 fio has bs") =>
        |job, value| {
            job.verifying.interval = value.number();
            Ok(())
        };
    "verify_offset": Size, "0", T1, "place of the header in a block",
        Differs("at least 48, where fio's is 40") => |job, value| {
            job.verifying.header_at = value.number();
            Ok(())
        };
    "verify_backlog": Count(0, i64::MAX), "0", T1, "verify after so many writes",
        Differs("number_ios and io_size count writes alone") => |job, value| {
            job.verifying.backlog = value.number();
            Ok(())
        };
    "verify_backlog_batch": Count(0, i64::MAX), "0", T1, "blocks verified at once",
        Done => |job, value| {
            job.verifying.batch = value.number();
            Ok(())
        };
    "verify_dump": Flag, "0", T1,
        "wrong blocks are saved, as FILE.OFFSET.received and FILE.OFFSET.expected",
        Differs("the first 8 of each clone, up to 512 KiB together; never over a file of somebody \
                 else") =>
        |job, value| {
            job.verifying.is_dumped = value.flag();
            Ok(())
        };
    "verify_async": Count(0, 4096), "0", T2, "threads that verify",
        Ignored("who reads verifies") => |_, _| Ok(());
    "verify_async_cpus": Text, "", T2, "CPUs of threads that verify",
        Ignored("who reads verifies") => |_, _| Ok(());
    "verifysort": Flag, "1", T2, "order of the reads that verify", Ignored("as written") =>
        |_, _| Ok(());
    "verify_state_save": Flag, "1", T2,
        "a file, local-JOB-INDEX-verify.state, says how far a job has written",
        Differs("only where it is written out; the content is iolab's own") => |job, value| {
            job.verifying.is_state_saved = value.flag();
            Ok(())
        };
    "verify_state_load": Flag, "0", T2, "no more is verified than that file says",
        Differs("a state that iolab has saved, which also gives the seed") => |job, value| {
            job.verifying.is_state_loaded = value.flag();
            Ok(())
        };
    "stats": Flag, "1", T2, "the job is told in the results", Done => |job, value| {
        job.is_untold = !value.flag();
        Ok(())
    };
    "unified_rw_reporting": Choice(UNIFIED), "none", T1,
        "reads and writes told together (mixed), or both ways (both)", Done => |job, value| {
            job.unified = match value.word() {
                0 | 1 => Unified::None,
                2 | 3 => Unified::Mixed,
                _ => Unified::Both,
            };
            Ok(())
        };
    "clat_percentiles": Flag, "1", T1, "percentiles of completion", Done => |job, value| {
        job.percentiles.clat = value.flag();
        Ok(())
    };
    "lat_percentiles": Flag, "0", T1, "percentiles of submission and completion together", Done =>
        |job, value| {
            job.percentiles.lat = value.flag();
            Ok(())
        };
    "slat_percentiles": Flag, "0", T1, "percentiles of submission",
        Differs("engines that wait for each transfer have none, as in fio") => |job, value| {
            job.percentiles.slat = value.flag();
            Ok(())
        };
    "percentile_list": Floats, "", T1, "percentiles that are told, at most 20",
        Done => |job, value| {
            let mut list = value.floats();
            if list.len() > 20 || list.iter().any(|p| !(0.0..=100.0).contains(p)) {
                return Err(Problem::new("more than 20 percentiles, or one that is none",
                    "write at most 20 numbers from 0 to 100"));
            }
            list.sort_by(f64::total_cmp);
            job.percentile_list = list;
            Ok(())
        };
    "gtod_reduce": Flag, "0", T1, "no latencies",
        Differs("they are measured and not told") => |job, value| {
            switch(&mut job.disabled, &[0, 1, 2], value.flag());
            Ok(())
        };
    "disable_lat": Flag, "0", T1, "no total latency", Differs("measured and not told") =>
        |job, value| {
            switch(&mut job.disabled, &[2], value.flag());
            Ok(())
        };
    "disable_clat": Flag, "0", T1, "no latency of completion", Differs("measured and not told") =>
        |job, value| {
            switch(&mut job.disabled, &[1], value.flag());
            Ok(())
        };
    "disable_slat": Flag, "0", T1, "no latency of submission", Done =>
        |job, value| {
            switch(&mut job.disabled, &[0], value.flag());
            Ok(())
        };
    "disable_bw_measurement" | "disable_bw": Flag, "0", T1, "no samples of bandwidth",
        Ignored("fio 3.33 tells them all the same") => |_, _| Ok(());
    "bwavgtime": Count(1, i64::MAX), "500", T1, "ms of a sample of bandwidth",
        Differs("500") => |_, value| sample_ms("bwavgtime", value.number());
    "iopsavgtime": Count(1, i64::MAX), "500", T1, "ms of a sample of IOPS",
        Differs("500") => |_, value| sample_ms("iopsavgtime", value.number());
    "significant_figures": Count(1, 10), "4", T2, "digits of rates in the normal output",
        Ignored("4") => |_, _| Ok(());
};

fn sample_ms(name: &str, ms: u64) -> Result<(), Problem> {
    if ms == 500 {
        return Ok(());
    }
    Err(Problem::new(format!("{name}={ms} is not done"), "leave it out: samples last 500 ms"))
}

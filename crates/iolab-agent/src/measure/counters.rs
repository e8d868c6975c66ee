//! Counters read around the timed region: block devices and CPU time.

use std::time::Duration;

use iolab_drive::record::{CpuRecord, DeviceRecord, RequestCounters};

use super::request::Counter;

/// Sectors in the kernel's statistics are 512 bytes, whatever the device's own unit.
/// Linux Documentation/block/stat.rst
const SECTOR_BYTES: u64 = 512;

/// Times in the kernel's statistics are milliseconds. Linux Documentation/block/stat.rst
const TICK_NS: u64 = 1_000_000;

/// A device's `stat` file; times in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    reads: u64,
    read_merges: u64,
    read_sectors: u64,
    read_ticks_ms: u64,
    writes: u64,
    write_merges: u64,
    write_sectors: u64,
    write_ticks_ms: u64,
    io_ticks_ms: u64,
    in_queue_ms: u64,
}

impl DeviceCounters {
    /// Parses the fields of Linux Documentation/block/stat.rst.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text.split_whitespace().map_while(|f| f.parse().ok()).collect();
        Some(Self {
            reads: *fields.first()?,
            read_merges: *fields.get(1)?,
            read_sectors: *fields.get(2)?,
            read_ticks_ms: *fields.get(3)?,
            writes: *fields.get(4)?,
            write_merges: *fields.get(5)?,
            write_sectors: *fields.get(6)?,
            write_ticks_ms: *fields.get(7)?,
            io_ticks_ms: *fields.get(9)?,
            in_queue_ms: *fields.get(10)?,
        })
    }

    /// Merges and times of requests since `start`.
    fn requests_since(&self, start: &Self) -> RequestCounters {
        let ns = |end: u64, start: u64| end.wrapping_sub(start).wrapping_mul(TICK_NS);
        RequestCounters {
            read_merges: self.read_merges.wrapping_sub(start.read_merges),
            write_merges: self.write_merges.wrapping_sub(start.write_merges),
            read_ticks_ns: ns(self.read_ticks_ms, start.read_ticks_ms),
            write_ticks_ns: ns(self.write_ticks_ms, start.write_ticks_ms),
            in_queue_ns: ns(self.in_queue_ms, start.in_queue_ms),
        }
    }
}

/// Reads all counters; a device that cannot be read is left out.
pub fn read_devices(counters: &[Counter]) -> Vec<(String, DeviceCounters)> {
    let read = |counter: &Counter| {
        let text = std::fs::read_to_string(&counter.stat_path).ok()?;
        Some((counter.name.clone(), DeviceCounters::parse(&text)?))
    };
    counters.iter().filter_map(read).collect()
}

/// Work of the devices between start and end of the timed region, and until everything was flushed.
pub fn device_records(
    started: &[(String, DeviceCounters)],
    ended: &[(String, DeviceCounters)],
    flushed: &[(String, DeviceCounters)],
) -> Vec<DeviceRecord> {
    let find = |list: &[(String, DeviceCounters)], name: &str| {
        list.iter().find(|(n, _)| n == name).map(|(_, counters)| *counters)
    };
    let record = |(name, start): &(String, DeviceCounters)| {
        let (end, flush) = (find(ended, name)?, find(flushed, name)?);
        Some(DeviceRecord {
            name: name.clone(),
            read_bytes: end.read_sectors.wrapping_sub(start.read_sectors) * SECTOR_BYTES,
            write_bytes: end.write_sectors.wrapping_sub(start.write_sectors) * SECTOR_BYTES,
            flushed_write_bytes: flush.write_sectors.wrapping_sub(end.write_sectors) * SECTOR_BYTES,
            reads: end.reads.wrapping_sub(start.reads),
            writes: end.writes.wrapping_sub(start.writes),
            io_ticks_ns: end.io_ticks_ms.wrapping_sub(start.io_ticks_ms).wrapping_mul(TICK_NS),
            requests: Some(end.requests_since(start)),
            series: None,
        })
    };
    started.iter().filter_map(record).collect()
}

/// Bytes read from storage on behalf of this process so far.
///
/// Linux Documentation/filesystems/proc.rst, "/proc/<pid>/io".
pub fn own_read_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?;
    line.trim().parse().ok()
}

/// CPU time of this process so far, or of its ended children.
pub fn cpu(of_children: bool) -> CpuRecord {
    let who = if of_children { libc::RUSAGE_CHILDREN } else { libc::RUSAGE_SELF };
    // SAFETY: rusage is plain data, for which all zeroes is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable; the call cannot fail for these two constants.
    unsafe { libc::getrusage(who, &raw mut usage) };
    let ns = |time: libc::timeval| {
        let whole = Duration::from_secs(time.tv_sec.unsigned_abs());
        (whole + Duration::from_micros(time.tv_usec.unsigned_abs())).as_nanos() as u64
    };
    CpuRecord {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        context_switches: usage.ru_nvcsw.unsigned_abs() + usage.ru_nivcsw.unsigned_abs(),
        major_faults: usage.ru_majflt.unsigned_abs(),
        minor_faults: usage.ru_minflt.unsigned_abs(),
    }
}

/// CPU time between two readings.
pub fn cpu_between(start: CpuRecord, end: CpuRecord) -> CpuRecord {
    CpuRecord {
        user_ns: end.user_ns.saturating_sub(start.user_ns),
        system_ns: end.system_ns.saturating_sub(start.system_ns),
        context_switches: end.context_switches.saturating_sub(start.context_switches),
        major_faults: end.major_faults.saturating_sub(start.major_faults),
        minor_faults: end.minor_faults.saturating_sub(start.minor_faults),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "   10    1   80   5   20   2  160   9   0   12   14   0 0 0 0 0 0";

    #[test]
    fn fields_are_where_the_kernel_documents_them() {
        let counters = DeviceCounters::parse(STAT).unwrap();
        assert_eq!((counters.reads, counters.read_sectors), (10, 80));
        assert_eq!((counters.writes, counters.write_sectors, counters.io_ticks_ms), (20, 160, 12));
        assert_eq!(DeviceCounters::parse("1 2 3"), None);
        let since = counters.requests_since(&DeviceCounters::default());
        assert_eq!((since.read_merges, since.write_merges), (1, 2));
        assert_eq!((since.read_ticks_ns, since.write_ticks_ns), (5_000_000, 9_000_000));
        assert_eq!(since.in_queue_ns, 14_000_000);
    }

    #[test]
    fn flushed_bytes_come_after_the_timed_region() {
        let at = |write_sectors| {
            vec![("loop8".to_owned(), DeviceCounters { write_sectors, ..Default::default() })]
        };
        let records = device_records(&at(0), &at(8), &at(24));
        assert_eq!((records[0].write_bytes, records[0].flushed_write_bytes), (4096, 8192));
    }
}

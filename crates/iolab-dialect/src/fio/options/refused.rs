//! Options that are known and not done: each says why, and what to do instead.

use super::{engine_rows, refused_rows};
use crate::fio::row::{Kind, Row};

use Kind::{Count, Counts, Flag, Size, Text};

/// Rows.
pub const ROWS: &[Row] = refused_rows! { "Not done";
    "opendir": Text, "", T3,
        "files of a directory",
        "a whole tree of files is not taken over", "name files with filename";
    "write_barrier": Count(0, i64::MAX), "0", T3,
        "a barrier every so many writes",
        "today's kernels have no barriers", "write fdatasync=N";
    "atomic": Flag, "0", T3,
        "atomic writes",
        "O_ATOMIC never came into the kernel", "leave it out";
    "hugepage-size": Size, "", T3,
        "size of large pages",
        "buffers are of usual pages", "leave it out";
    "lockmem": Size, "0", T3,
        "memory that is locked",
        "taking memory away from the machine is not done",
        "`iolab compare --memory` limits it";
    "userspace_reap": Flag, "0", T3,
        "completions are taken in user space (libaio)",
        "the kernel takes them", "leave it out";
    "cmdprio_percentage": Counts(100), "0", T3,
        "percent of transfers of high priority",
        "priorities are those of whole jobs", "write prio= in jobs of their own";
    "cmdprio": Text, "", T3,
        "priority of single transfers",
        "priorities are those of whole jobs", "write prio= in jobs of their own";
    "cmdprio_class": Text, "", T3,
        "class of single transfers",
        "priorities are those of whole jobs", "write prioclass=";
    "cmdprio_bssplit": Text, "", T3,
        "priority by size",
        "priorities are those of whole jobs", "write prio=";
    "thp": Flag, "0", T3,
        "large pages of a mapping",
        "it is not done", "leave it out";
    "exit_on_io_done": Flag, "0", T3,
        "cpuio ends with the jobs that do I/O",
        "cpuio ends when its runtime is over", "write runtime=, as long as theirs";
    "hole_punch": Flag, "0", T3,
        "trims make holes",
        "trims of a file make holes already", "leave it out";
    "numa_cpu_nodes": Text, "", T3,
        "nodes of memory",
        "it is not done", "write cpus_allowed=";
    "numa_mem_policy": Text, "", T3,
        "memory of which node",
        "it is not done", "`numactl iolab fio ...`";
    "uid": Text, "", T3,
        "user of the clones",
        "who measures is who types it", "`sudo -u USER iolab fio ...`";
    "gid": Text, "", T3,
        "group of the clones",
        "who measures is who types it", "`sg GROUP -c ...`";
    "gtod_cpu": Count(0, 4096), "", T3,
        "CPU of the clock",
        "the clock is the kernel's", "leave it out";
    "profile": Text, "", T3,
        "a built-in workload",
        "it is not done", "write its options";
    "experimental_verify": Flag, "0", T3,
        "another way to verify",
        "it is not done", "leave it out";
    "trim_percentage": Count(0, 100), "0", T3,
        "percent of blocks that are trimmed",
        "a share of trims is not done", "trim in a job of its own: rw=trim";
    "trim_verify_zero": Flag, "1", T3,
        "trimmed blocks are zeros",
        "a share of trims is not done", "trim in a job of its own: rw=trim";
    "trim_backlog": Count(0, i64::MAX), "0", T3,
        "trim after so many writes",
        "a share of trims is not done", "trim in a job of its own: rw=trim";
    "trim_backlog_batch": Count(0, i64::MAX), "0", T3,
        "blocks trimmed at once",
        "a share of trims is not done", "trim in a job of its own: rw=trim";
    "read_iolog_chunked": Flag, "0", T3,
        "a log is read in parts",
        "a log is read before its replay begins", "leave it out";
    "merge_blktrace_file": Text, "", T3,
        "recordings that are merged",
        "recordings of block devices are not merged", "leave it out";
    "log_compression": Size, "0", T3,
        "compressed logs",
        "logs are plain text from the beginning of the job on", "leave it out";
    "log_store_compressed": Flag, "0", T3,
        "logs stay compressed",
        "logs are plain text from the beginning of the job on", "leave it out";
    "log_alternate_epoch": Flag, "0", T3,
        "another clock of the logs",
        "logs are plain text from the beginning of the job on", "leave it out";
    "log_alternate_epoch_clock_id": Count(0, i64::MAX), "0", T3,
        "another clock of the logs",
        "logs are plain text from the beginning of the job on", "leave it out";
    "hipri_percentage": Count(0, 100), "100", T3,
        "percent of transfers that are polled for (pvsync2)",
        "all transfers are polled for, or none", "write hipri=1 alone";
    "block_error_percentiles": Text, "0", T3,
        "percentiles of erase blocks that failed",
        "it is not done", "leave it out";
    "log_compression_cpus": Text, "0", T3,
        "CPUs that compress logs",
        "it is not done", "leave it out";
    "merge_blktrace_scalars": Text, "0", T3,
        "speeds of merged recordings",
        "it is not done", "leave it out";
    "merge_blktrace_iters": Text, "0", T3,
        "repetitions of merged recordings",
        "it is not done", "leave it out";
    "max_open_zones": Text, "0", T3,
        "open zones of a zoned device",
        "zoned devices are not done", "leave it out";
    "job_max_open_zones": Text, "0", T3,
        "open zones of a job",
        "zoned devices are not done", "leave it out";
    "ignore_zone_limits": Text, "0", T3,
        "more open zones than a device says",
        "zoned devices are not done", "leave it out";
    "read_beyond_wp": Text, "0", T3,
        "reads behind the write pointer of a zone",
        "zoned devices are not done", "leave it out";
    "zonecapacity": Text, "0", T3,
        "usable bytes of a zone",
        "zoned devices are not done", "leave it out";
    "zone_reset_threshold": Text, "0", T3,
        "share of written zones before a reset",
        "zoned devices are not done", "leave it out";
    "zone_reset_frequency": Text, "0", T3,
        "how often zones are reset",
        "zoned devices are not done", "leave it out";
    "log_prio": Text, "0", T3,
        "priorities in the logs",
        "it is not done", "leave it out";
    "disk_util": Flag, "1", T3,
        "what devices did is told",
        "results are always told", "leave it out";
};

/// Options of engines that are not done.
pub const OF_ENGINES: &[Row] = engine_rows! { "Of engines that are not done";
    "dev-dax": "pmem";
    "dfs": "cont";
    "e4defrag": "donorname", "inplace";
    "exec": "program", "arguments", "grace_time", "std_redirect";
    "gfapi": "single-instance", "volume", "brick";
    "http":
        "http_host", "http_verbose", "http_mode", "https", "http_s3_key", "http_s3_keyid",
        "http_s3_region", "https_verify", "http_user", "http_pass", "http_swift_auth_token";
    "io_uring_cmd": "cmd_type", "fdp", "md_per_io_size", "pi_act";
    "libblkio": "libblkio_driver";
    "libcufile": "gpu_dev_ids", "cuda_io";
    "libhdfs": "chunk_size", "namenode", "hdfsdirectory";
    "mtd": "skip_bad";
    "nbd": "uri";
    "net":
        "window_size", "mss", "hostname", "port", "listen", "protocol", "nodelay", "interface",
        "ttl", "pingpong";
    "nfs": "nfs_url";
    "rados": "touch_objects", "conf";
    "rbd": "clustername", "rbdname", "clientname", "pool", "busy_poll";
    "rdma": "verb", "bindname";
    "sg": "stream_id", "sg_write_mode", "readfua", "writefua";
    "spdk": "spdk_json_conf", "spdk_conf", "spdk_mem";
    "xnvme": "xnvme_async";
};

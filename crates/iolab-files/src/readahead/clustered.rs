//! Read-ahead of file systems with clusters: state in the inode, a cluster at a time.
//!
//! Source: `McVoy` and Kleiman, "Extent-like performance from a UNIX file system" (USENIX 1991),
//! and the behaviour of Solaris 8: a reader that goes on where the last one ended gets whole
//! clusters, the next one of which is started when it enters the one before. Anybody else gets one
//! unit.

/// State of an inode, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterState {
    /// Place at which the next access is sequential (`nextr`).
    pub next: u64,
    /// Place from which on nothing was read ahead yet (`nextrio`).
    pub next_ahead: u64,
    /// Place at which the next fault of a mapping is sequential.
    pub next_fault: u64,
}

/// Access to one unit of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterAccess {
    /// First byte of the unit.
    pub at: u64,
    /// Length of the file.
    pub size: u64,
    /// The unit is in memory, or on its way.
    pub is_cached: bool,
}

/// Limits of requests, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterLimits {
    /// Unit of the cache.
    pub unit: u64,
    /// Longest read of a sequential reader.
    pub cluster: u64,
}

/// Reads that an access starts, as place and length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterReads {
    /// Read that the caller waits for.
    pub now: Option<(u64, u64)>,
    /// Read that nobody waits for.
    pub ahead: Option<(u64, u64)>,
    /// The access went on where the last one ended.
    pub is_sequential: bool,
}

impl ClusterState {
    /// An access. `run` answers how many bytes from a place on lie together on the device, at most
    /// so many.
    pub fn access(
        &mut self,
        access: ClusterAccess,
        limits: ClusterLimits,
        run: impl Fn(u64, u64) -> u64,
    ) -> ClusterReads {
        let ClusterAccess { at, size, is_cached } = access;
        let ClusterLimits { unit, cluster } = limits;
        let mut reads = ClusterReads { is_sequential: at == self.next, ..ClusterReads::default() };
        if !is_cached {
            // The beginning of a file is read alone: many files are no longer.
            let is_whole = reads.is_sequential && at > 0;
            let length = if is_whole { run(at, cluster) } else { unit };
            reads.now = Some((at, length));
            self.next_ahead = at + length;
        }
        let from = self.next_ahead;
        if reads.is_sequential && (at..=at + cluster).contains(&from) && from < size {
            let length = if from == unit { unit } else { run(from, cluster) };
            reads.ahead = Some((from, length));
            self.next_ahead = from + length;
        }
        self.next = at + unit;
        reads
    }

    /// Length of the read for a fault on an absent page of a mapping; `most` if faults follow each
    /// other.
    pub fn fault(&mut self, at: u64, is_expected: bool, unit: u64, most: u64) -> u64 {
        let length = if is_expected || at == self.next_fault { most } else { unit };
        self.next_fault = at + length;
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;
    const LIMITS: ClusterLimits = ClusterLimits { unit: 8 * KIB, cluster: 128 * KIB };

    /// A file whose run ends behind the 12th block.
    fn run(at: u64, most: u64) -> u64 {
        let border = if at < 96 * KIB { 96 * KIB } else { u64::MAX };
        most.min(border - at)
    }

    /// Requests of a reader of so many units from a place on, in KiB, with the place that starts
    /// each.
    fn requests(state: &mut ClusterState, from: u64, units: u64) -> Vec<(u64, u64, u64)> {
        let mut seen = Vec::new();
        let mut here: Vec<(u64, u64)> = Vec::new();
        for unit in 0..units {
            let at = (from + unit * 8) * KIB;
            let is_cached =
                here.iter().any(|&(first, length)| (first..first + length).contains(&at));
            let access = ClusterAccess { at, size: 1024 * KIB, is_cached };
            let reads = state.access(access, LIMITS, run);
            for (first, length) in [reads.now, reads.ahead].into_iter().flatten() {
                here.push((first, length));
                seen.push((at / KIB, first / KIB, (first + length) / KIB));
            }
        }
        seen
    }

    #[test]
    fn sol_9_reads_of_a_sequential_reader() {
        let mut state = ClusterState::default();
        let seen = requests(&mut state, 0, 28);
        let expected = [(0, 0, 8), (0, 8, 16), (8, 16, 96), (16, 96, 224), (96, 224, 352)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_reader_that_jumps_gets_single_units() {
        let mut state = ClusterState::default();
        for at in [512, 40, 800, 304] {
            assert_eq!(requests(&mut state, at, 1), [(at, at, at + 8)]);
        }
    }

    #[test]
    fn a_fault_that_follows_another_reads_more() {
        let mut state = ClusterState::default();
        let lengths = [0, 64, 128, 512, 520].map(|at| state.fault(at * KIB, false, 8192, 65536));
        assert_eq!(lengths.map(|length| length / KIB), [64, 64, 64, 8, 64]);
    }
}

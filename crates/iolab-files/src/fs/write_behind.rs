//! Write-behind of Solaris: pages that follow each other wait until they are worth a request.
//!
//! Sources: `McVoy` and Kleiman, "Extent-like performance from a UNIX file system" (USENIX 1991);
//! QFS (release 5, published source of `sam_putpage`) keeps the same two numbers in an inode.

/// Bytes in a row that were copied and not yet sent off: place, length.
pub type Waiting = (u64, u64);

/// Notes bytes that were copied: every page of `page` bytes whose end was written joins the run
/// that waits. One that does not follow, or finds `cluster` bytes there, sends the run off and
/// begins another one.
pub fn gather(
    waiting: &mut Waiting,
    (cluster, page): (u64, u64),
    (start, end): (u64, u64),
    mut send: impl FnMut(Waiting),
) {
    for number in start / page..end / page {
        let at = number * page;
        let (from, length) = *waiting;
        if length > 0 && length < cluster && at == from + length {
            waiting.1 += page;
            continue;
        }
        if length > 0 {
            send((from, length));
        }
        *waiting = (at, page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs that are sent off by writes of so many bytes, and what waits then.
    fn sent(writes: &[(u64, u64)]) -> (Vec<Waiting>, Waiting) {
        let (mut waiting, mut all) = ((0, 0), Vec::new());
        for &write in writes {
            gather(&mut waiting, (32, 8), write, |run| all.push(run));
        }
        (all, waiting)
    }

    #[test]
    fn pages_that_follow_fill_a_cluster_and_a_jump_sends_it_off() {
        assert_eq!(sent(&[(0, 40)]), (vec![(0, 32)], (32, 8)));
        assert_eq!(sent(&[(0, 16), (80, 96)]), (vec![(0, 16)], (80, 16)));
        // A page joins with its last byte.
        assert_eq!(sent(&[(0, 4), (4, 7)]), (Vec::new(), (0, 0)));
        assert_eq!(sent(&[(0, 4), (4, 9)]), (Vec::new(), (0, 8)));
    }
}

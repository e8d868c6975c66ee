//! Writes of parts of blocks: what has to be read before.
//!
//! Source: Linux fs/buffer.c (`__block_write_begin_int`), fs/iomap/buffered-io.c.

/// Blocks of a file that a buffered write covers in part, and that lie inside the file: each must
/// be read first unless the cache holds it. Holes and what lies beyond the end need no read, and
/// the caller leaves out blocks that have no place.
pub fn read_first(
    offset: u64,
    length: u64,
    file_bytes: u64,
    block_bytes: u64,
) -> impl Iterator<Item = u64> {
    let end = offset + length;
    let (first, last) = (offset / block_bytes, end.saturating_sub(1) / block_bytes);
    let is_head = length > 0 && !offset.is_multiple_of(block_bytes);
    // A write up to the end of the file leaves nothing behind it that would have to be kept.
    let is_tail = length > 0 && !end.is_multiple_of(block_bytes) && end < file_bytes;
    let head = is_head.then_some(first);
    let tail = (is_tail && !(is_head && first == last)).then_some(last);
    head.into_iter().chain(tail).filter(move |block| block * block_bytes < file_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(offset: u64, length: u64, file_bytes: u64, block_bytes: u64) -> Vec<u64> {
        read_first(offset, length, file_bytes, block_bytes).collect()
    }

    #[test]
    fn pw_1_a_small_write_reads_its_block() {
        let reads: usize =
            (0..1_000).map(|page| blocks(page * 4096 + 1_024, 512, 64 << 20, 4096).len()).sum();
        assert_eq!(reads, 1_000);
    }

    #[test]
    fn pw_2_a_growing_file_reads_nothing() {
        let mut size = 0;
        for _ in 0..1_000 {
            let reads = blocks(size, 512, size, 4096);
            assert!(reads.iter().all(|block| size % 4096 != 0 && *block == size / 4096));
            // The block was written a moment ago: the cache holds it.
            size += 512;
        }
        assert!(blocks(8_192, 512, 8_192, 4096).is_empty());
    }

    #[test]
    fn pw_3_whole_blocks_read_nothing() {
        assert!(blocks(8_192, 4_096, 64 << 20, 4096).is_empty());
    }

    #[test]
    fn small_blocks_are_read_at_both_ends() {
        assert_eq!(blocks(1_100, 2_000, 64 << 20, 1_024), [1, 3]);
        assert_eq!(blocks(100, 50, 64 << 20, 1_024), [0]);
        assert_eq!(blocks(0, 100, 64 << 20, 4_096), [0]);
    }
}

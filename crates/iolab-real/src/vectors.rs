//! The parts of vectored transfers: one array per queue slot, which grows once and is used again.
//!
//! The kernel may read an array until its op has ended (`io_uring` with a polling thread does), so
//! that slots do not share one.

use iolab_model::error::Errno;
use iolab_model::op::Token;

/// Linux include/uapi/linux/uio.h: `UIO_MAXIOV`.
const PARTS_MAX: u16 = 1024;

/// Arrays of the parts of buffers, by slot.
#[derive(Default)]
pub struct Vectors {
    slots: Vec<Vec<libc::iovec>>,
}

// SAFETY: the pointers in the arrays are only followed by the kernel, for the lane that owns both
// the arrays and the buffers.
unsafe impl Send for Vectors {}

impl Vectors {
    /// Cuts a slot's buffer into equal parts; EINVAL if it does not divide or has too many.
    pub fn split(
        &mut self,
        token: Token,
        memory: &mut [u8],
        count: u16,
    ) -> Result<&[libc::iovec], Errno> {
        let length = memory.len() / usize::from(count.max(1));
        if length * usize::from(count) != memory.len() || length == 0 || count > PARTS_MAX {
            return Err(Errno::EINVAL);
        }
        let slot = token.0 as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, Vec::new);
        }
        let parts = &mut self.slots[slot];
        parts.clear();
        parts.extend(
            memory.chunks_exact_mut(length).map(|part| libc::iovec {
                iov_base: part.as_mut_ptr().cast(),
                iov_len: part.len(),
            }),
        );
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_and_cover_the_buffer() {
        let (mut vectors, mut memory) = (Vectors::default(), vec![0; 4096]);
        let start = memory.as_ptr() as usize;
        let parts = vectors.split(Token(3), &mut memory, 4).unwrap();
        let seen: Vec<_> = parts.iter().map(|p| (p.iov_base as usize - start, p.iov_len)).collect();
        assert_eq!(seen, [(0, 1024), (1024, 1024), (2048, 1024), (3072, 1024)]);
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        let (mut vectors, mut memory) = (Vectors::default(), vec![0; 4096]);
        for count in [3, 1025, 4097] {
            let refused = vectors.split(Token(0), &mut memory, count).err();
            assert_eq!(refused, Some(Errno::EINVAL), "{count}");
        }
        assert_eq!(vectors.split(Token(0), &mut memory[..2], 4).err(), Some(Errno::EINVAL));
    }
}

//! Values in slots that are reused, so that nothing is allocated once a run is warm.

use core::ops::{Index, IndexMut};

/// A table whose indices stay valid until removed; freed slots keep their value for reuse.
#[derive(Clone, Debug)]
pub(super) struct Slots<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Puts a value into a free slot.
    pub(super) fn add(&mut self, value: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.values[index as usize] = value;
            return index;
        }
        self.values.push(value);
        self.values.len() as u32 - 1
    }

    /// A freed slot with the value it had, or a new one.
    pub(super) fn reuse(&mut self, new: impl FnOnce() -> T) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.values.push(new());
            self.values.len() as u32 - 1
        })
    }

    /// Frees a slot.
    pub(super) fn remove(&mut self, index: u32) {
        debug_assert!(!self.free.contains(&index), "slot {index} was freed twice");
        self.free.push(index);
    }
}

impl<T> Index<u32> for Slots<T> {
    type Output = T;
    fn index(&self, index: u32) -> &T {
        &self.values[index as usize]
    }
}

impl<T> IndexMut<u32> for Slots<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.values[index as usize]
    }
}

//! Page replacement and writes of parts of pages.

pub mod partial;
pub mod two_lists;

pub use two_lists::TwoLists;

//! Page replacement and writes of parts of pages.

pub mod adaptive;
pub mod partial;
pub mod two_lists;

pub use adaptive::Adaptive;
pub use two_lists::TwoLists;

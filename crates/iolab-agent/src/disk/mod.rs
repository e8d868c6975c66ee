//! Whole block devices: which one is meant, whether it is anybody's, what lies on it.
//!
//! Rules R1 to R5 of the safety page as functions over a [`crate::machine::Machine`], an image of a
//! device's two ends and a claim, so that each can be tested without a disk.

mod busy;
mod claim;
mod confirm;
mod content;
mod identity;
mod image;
mod inspect;
mod marker;
mod sample;
mod signature;
mod wear;

pub use busy::{BYTES_MIN, Patience};
pub use claim::{Claim, Disk, Erased, Left, settle};
pub use confirm::{check as check_confirmation, phrase, repeated};
pub use content::{EDGE_BYTES, Ends, Verdict, verdict};
pub use identity::Identity;
pub use inspect::{Inspected, inspect, refuse_content, refuse_use, stored};
pub use marker::unix_s;
pub use wear::wear;

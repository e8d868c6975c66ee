//! Files beside plain bytes.

pub mod broken;
pub mod bytes;
#[path = "../crash/chance.rs"]
pub mod chance;
pub mod history;
pub mod lanes;
pub mod mounted;

//! Files beside plain bytes.

pub mod broken;
pub mod bytes;
pub mod mounted;

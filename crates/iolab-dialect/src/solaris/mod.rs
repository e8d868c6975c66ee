//! Lines that an administrator of Solaris typed, as a stack of the simulator.
//!
//! `/etc/system`, adb, newfs, tunefs, mkfs, mount, /etc/vfstab, metainit, vxassist, vxtunefs and
//! its tunefstab, sammkfs, mcf, zpool and zfs. [`read()`] notes what was typed ([`typed`]), with
//! the manuals' units and ranges; [`lower`] says what it means, line by line, and writes the stack
//! file as text, which the simulator reads as any other.
//!
//! Left out: shells (variables, loops), other systems' commands, several file systems at once.

mod commands;
mod emission;
mod files;
mod geometry;
pub mod line;
pub mod lower;
mod mcf;
mod read;
mod stack;
mod tables;
mod tunable;
pub mod typed;
mod volumes;
mod zpool;

#[cfg(test)]
mod tests;

pub use line::LineFault;
pub use lower::{ImportOptions, ImportedConfig};
pub use read::{import, read};

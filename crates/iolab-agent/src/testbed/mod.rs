//! Places where trials run: one file per kind, one row each.

mod api;
mod device;
mod directory;
mod filesystem;
mod image;
mod kernel_log;
mod leaf;
#[path = "loop.rs"]
mod loop_device;
mod options;
mod parameters;
mod places;
mod precondition;

pub use api::{Asked, Opening, PLACE_MARK, Prepared, Testbed, check_kind};
pub use directory::CLASS_OF_USERS;
pub use filesystem::FILE_SYSTEMS;
pub use image::{RESERVE_BYTES, reserve_of_size};
pub use leaf::{leaves_of, leaves_of_device, system_devices};
pub use options::{Entry, entries as option_entries};

api::testbeds! {
    /// A private loop device over an image file of ours (class B).
    Loop = "loop" => loop_device,
    /// A whole block device of the user (class C).
    Device = "device" => device,
    /// A directory of ours on a live file system (class A; as root A+).
    Directory = "directory" => directory,
    /// Several of these at once.
    Places = "places" => places,
}

//! Key-value stores behind one trait ([`KvStore`]): the one place where they are opened.
//!
//! [`rocksdb`] is the real library, opened at run time; [`memory`] needs nothing.
//! A store's directory is ours by a marker in it ([`directory`]). With `iolab-real` and
//! `iolab-agent` this is a crate with `unsafe`: the calls of a C interface.

#![allow(unsafe_code)]

pub mod directory;
pub mod list;
pub mod memory;
pub mod rocksdb;

pub use iolab_model::kv::KvStore;
pub use list::{StoreKind, StoreVisitor, visit};

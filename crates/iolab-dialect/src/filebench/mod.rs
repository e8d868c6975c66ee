//! Filebench: its workload model language (WML), its personalities and its report.
//!
//! A script is read ([`parse`]) into statements, gone through up to its run ([`script`]) and
//! lowered to one phase of programs ([`lower`], [`filesets`], [`steps`]). Facts are those of
//! Filebench 1.5-alpha3 and of runs of it; what differs on purpose is on the reference page of the
//! dialect.
//! Left out: several machines, plug-ins for other file systems, the prompt of 1.4.9.

pub mod command;
pub mod dialect;
mod expansion;
pub mod filesets;
mod json;
pub mod lex;
pub mod lower;
pub mod parse;
pub mod personality;
pub mod plan;
pub mod random;
pub mod render;
pub mod result;
pub mod scope;
pub mod script;
pub mod steps;
pub mod syntax;
#[cfg(test)]
mod tests;
pub mod words;

pub use dialect::Filebench;

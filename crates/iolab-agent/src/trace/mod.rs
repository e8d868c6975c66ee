//! Recording block traces: an instance of tracefs, a child that reads it, and the user's file.

mod capture;
mod capture_loop;
mod descriptors;
mod device;
mod feeds;
mod instance;
mod layers;
mod openings;
mod order;
mod output;
mod paths;
mod processes;
mod record;
mod recorder;
mod sink;
mod tally;
mod trace_file;
mod tracefs;
mod trial;
mod watch;

pub use capture::main;
pub use instance::{is_name_of, remove as remove_instance};
pub use record::{Recording, record};
pub use recorder::Recorder;
pub use trial::{Asked, begin, end};
pub use watch::watch;

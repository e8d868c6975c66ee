//! The kernel's ring buffer of trace events: raw pages of tracefs into events.

mod decode;
mod description;
mod merge;
mod page;

pub use decode::{Decoder, EVENTS, TracePoint};
pub use description::{Description, Field, check_event_header};
pub use merge::Merger;
pub use page::{Layout, Lost, Page, Record};

//! The kernel's ring buffers of trace events: raw pages of tracefs, and rings of perf events.

mod decode;
mod description;
mod merge;
mod names;
mod page;
pub mod perf;
mod point;

pub use decode::{EVENTS, RecordDecoder, TracePoint};
pub use description::{Description, Field, FieldForm, check_event_header};
pub use merge::{CpuEvents, Merger, SLACK_NS};
pub use page::{LostBefore, Page, PageLayout, RingRecord, tells_loss};
pub use point::{DEVICE_FIELDS, DEVICE_NAME_FIELDS, GIVEN, PointPlan};

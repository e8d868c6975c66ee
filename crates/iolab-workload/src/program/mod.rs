//! A workload as a *program*: a tree of steps over sets of files and a store of keys.
//!
//! [`Program`] is the description, as data; [`ProgramWorker`] runs it, passive as every worker;
//! [`Stage`] is what the workers of a phase share (which files exist, which keys are known,
//! semaphores), and [`StageWorker`] makes the files before anybody is measured. A program may also
//! be a stream that was recorded in a file ([`Recorded`]).

mod amount;
mod check;
mod choice;
mod code;
mod control;
mod course;
mod deed;
mod demand;
mod description;
mod draw;
mod events;
mod files;
mod keys;
mod lay_out;
mod nature;
mod node;
mod operation;
mod pick;
mod place;
mod problem;
mod recorded;
mod recorded_blktrace;
mod recorded_check;
mod recorded_identity;
mod recorded_stream;
mod stage;
mod tally;
mod verified;
mod worker;

pub use amount::{Amount, Spread, Weighted};
pub use check::OPEN_MAX;
pub use choice::{FileBy, FileChoice, KeyBy, KeyChoice, WhenNone};
pub use course::{Course, Zones};
pub use deed::{Deed, Group};
pub use demand::{Demand, demand};
pub use description::{Flow, Limits, Pace, Program};
pub use events::{Events, EventsFor, Until};
pub use files::{Branching, FileSet, Fill, KeySpace, Reuse, Tree};
pub use lay_out::{MakerShare, Round, StageWorker};
pub use nature::natures;
pub use node::{DataPath, Every, Local, Node, Positioned};
pub use operation::{OperationCount, OperationPart};
pub use pick::{Pick, Zone};
pub use place::{Cursor, Place};
pub use problem::Problem;
pub use recorded::{RECORDED_DEEDS, Recorded, RecordedContent, RecordedFormat};
pub use recorded_identity::RecordedIdentity;
pub use recorded_stream::{
    RECORDED_FILES_MAX, RECORDED_TITLE, RecordedOp, RecordedReader, RecordedStream,
};
pub use stage::Stage;
pub use verified::verified_unit;
pub use worker::{OpenRecorded, ProgramWorker};

pub(crate) use check::problem;

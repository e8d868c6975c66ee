//! The schema of everything that the extension takes and gives, from which Python's types are made.

use iolab_dialect::solaris::{ImportOptions, ImportedConfig};
use iolab_dialect::{bonnie, filebench, fio, iozone, mkfile, ycsb};
use iolab_drive::needs::Refusal;
use iolab_model::Capabilities;
use iolab_protocol::agent::Record;
use iolab_protocol::extension::ExtensionError;
use iolab_protocol::schema::{generator, named};
use iolab_sim::Profile;
use iolab_sim::probe::Findings;
use iolab_sim::replay::{Prediction, Twin};
use iolab_sim::scenario::Judgement;
use iolab_trace::plot::TracePlot;
use iolab_workload::Workload;
use iolab_workload::operation::Operation;
use iolab_workload::preset::{IozoneRequest, MixedRequest};
use iolab_workload::program::{Demand, RecordedIdentity};
use iolab_workload::spec::FileUse;
use pyo3::prelude::*;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::books::SchedulerBook;
use crate::pattern::{Found, PatternQuestion};
use crate::refusals::Asked;
use crate::simulate::{Description, TrialSpec, WhatIsPossible};
use crate::trace::{
    Answer, Compared, Converted, FormatRow, Measured, OnlyRead, ShowOptions, Shown,
};

/// A command line, understood.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, clippy::large_enum_variant, reason = "only its schema is used")]
enum CommandPlan {
    Iozone(iozone::plan::Plan),
    Bonnie(bonnie::plan::Plan),
    Mkfile(mkfile::lower::Plan),
    Fio(fio::plan::Plan),
    Filebench(filebench::plan::Plan),
    Ycsb(ycsb::lower::Plan),
}

/// JSON schemas by the names of the types.
#[derive(Serialize)]
struct Types {
    types: Map<String, Value>,
}

/// Adds types to a generator.
macro_rules! add {
    ($generator:ident: $($Type:ty,)+) => {{ $( named::<$Type>(&mut $generator); )+ }};
}

fn given(mut generator: SchemaGenerator) -> Map<String, Value> {
    add! { generator:
        CommandPlan, iozone::report::Sheet,
        Workload, Operation, FileUse, Demand, RecordedIdentity, Refusal, Record,
        Description, WhatIsPossible, Profile, SchedulerBook, Judgement, Prediction, Twin, Findings,
        Capabilities, FormatRow,
        Answer<Shown>, Answer<Converted>, Answer<Measured>, Answer<OnlyRead>, Compared,
        Answer<Found>, Answer<TracePlot>,
        ExtensionError, ImportedConfig,
    }
    generator.take_definitions(true)
}

fn taken(mut generator: SchemaGenerator) -> Map<String, Value> {
    add! { generator:
        IozoneRequest, MixedRequest, TrialSpec, Asked, ShowOptions, PatternQuestion, ImportOptions,
        iozone::result::RowResult, iozone::side::Part, bonnie::result::Event,
        mkfile::render::Event, fio::result::RowResult, fio::eta::Progress,
        fio::eta::Line, filebench::result::RowResult,
        ycsb::render::RowResult,
    }
    generator.take_definitions(true)
}

/// Types of what the extension gives and takes, as JSON. A type that it both gives and takes is
/// that which it gives.
#[pyfunction]
pub fn extension_schema() -> String {
    let reads = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let mut types = taken(reads);
    types.append(&mut given(generator()));
    serde_json::to_string(&Types { types }).unwrap_or_default()
}

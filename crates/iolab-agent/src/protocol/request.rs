//! From a line to what is wanted, and from what came of it to the answer.

use iolab_protocol::schema::METHODS;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Answer, Doctor, ErrorBody, Hello, Message, Nothing, RecordSpec, Request, RestoreParams,
    TestbedSpec, TrialSpec, WatchSpec,
};
use crate::error::{Error, Result};

/// A request with its parameters.
#[derive(Debug)]
pub enum Call {
    /// Agree on the protocol and name the run.
    Hello(Hello),
    /// Tell what is possible.
    Doctor(Doctor),
    /// Prepare a testbed.
    OpenTestbed(TestbedSpec),
    /// Run one trial.
    RunTrial(Box<TrialSpec>),
    /// Record block events, outside of any testbed.
    RecordTrace(RecordSpec),
    /// Watch block events, outside of any testbed.
    WatchTrace(WatchSpec),
    /// Take the testbed apart and restore.
    CloseTestbed,
    /// Undo what earlier runs left.
    Restore(RestoreParams),
    /// End the running request early.
    Interrupt,
    /// The trial that waits for it may begin its next phase.
    Proceed,
    /// Restore and exit.
    Shutdown,
}

/// Understands one line.
pub fn parse(line: &str) -> Result<Request> {
    serde_json::from_str(line)
        .map_err(|error| Error::protocol(format!("this line is not a request: {error}")))
}

/// Understands method and parameters.
pub fn call_of(request: Request) -> Result<Call> {
    let (method, params) = (request.method, request.params);
    match method.as_str() {
        "hello" => typed(&method, params).map(Call::Hello),
        "doctor" => typed(&method, params).map(Call::Doctor),
        "open_testbed" => testbed(params).map(Call::OpenTestbed),
        "run_trial" => typed(&method, params).map(|spec| Call::RunTrial(Box::new(spec))),
        "record_trace" => typed(&method, params).map(Call::RecordTrace),
        "watch_trace" => typed(&method, params).map(Call::WatchTrace),
        "close_testbed" => typed(&method, params).map(|Nothing {}| Call::CloseTestbed),
        "restore" => typed(&method, params).map(Call::Restore),
        "interrupt" => typed(&method, params).map(|Nothing {}| Call::Interrupt),
        "proceed" => typed(&method, params).map(|Nothing {}| Call::Proceed),
        "shutdown" => typed(&method, params).map(|Nothing {}| Call::Shutdown),
        _ => Err(Error::unknown("method", &method, METHODS)),
    }
}

/// The message that answers request `id`.
pub fn answer(id: u64, result: Result<Answer>) -> Message {
    match result {
        Ok(result) => Message::Result { id, result },
        Err(error) => {
            let (code, hint) = (error.code(), error.hint());
            Message::Error { id, error: ErrorBody { code, message: error.to_string(), hint } }
        }
    }
}

fn testbed(params: Value) -> Result<TestbedSpec> {
    let Some(kind) = params.get("kind").and_then(Value::as_str).map(str::to_owned) else {
        return Err(Error::protocol("a testbed spec needs its kind"));
    };
    crate::testbed::check_kind(&kind)?;
    typed(&format!("a {kind} testbed"), params)
}

/// Parameters of `what` as their type; the error names the field.
fn typed<T: DeserializeOwned>(what: &str, params: Value) -> Result<T> {
    serde_json::from_value(params)
        .map_err(|error| Error::protocol(format!("parameters of {what}: {error}")))
}

//! Tests of cfq as a whole.

mod driver;
mod make;
mod properties;
mod scenarios;
mod sharing;

pub(super) use make::{cfq, request_at};
use make::{cfq_at, read};

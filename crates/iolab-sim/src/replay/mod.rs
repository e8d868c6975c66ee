//! Recordings of the real block layer, and how well a simulated scheduler predicts them.

mod predict;
mod recording;

pub use predict::{Prediction, predict};
pub use recording::{Recording, Row, Setup};

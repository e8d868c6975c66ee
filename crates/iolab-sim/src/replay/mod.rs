//! Recordings of the real block layer, and how well a simulated scheduler predicts them.

mod history;
mod one_head;
mod predict;
mod recording;
mod simulate;

pub use history::{Figures, ProcessFigures};
pub use one_head::{DeviceModel, Fit, OneHead};
pub use predict::{Prediction, predict};
pub use recording::{Recording, Row, Setup, to_csv};
pub use simulate::{Twin, simulate};

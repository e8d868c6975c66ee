//! Recordings of the real block layer, and how well a simulated scheduler predicts them.

mod arrivals;
mod feed;
mod follow;
mod history;
mod one_head;
mod places;
mod predict;
mod recording;
mod simulate;

pub use history::{Figures, ProcessFigures, direction_of};
pub use one_head::{DeviceModel, Fit, OneHead};
pub use places::{ByPlace, Place};
pub use predict::{Explanation, Method, Miss, Prediction, predict};
pub use recording::{Recording, Row, Setup, to_csv};
pub use simulate::{Twin, simulate};

//! The words that layers and schedulers speak.

pub mod bio;
pub mod layer;
pub mod request;
pub mod scheduler;

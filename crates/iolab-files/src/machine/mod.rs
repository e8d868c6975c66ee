//! The machine of operations over time.

//! anticipatory against its specification.

//! Dirty throttling and write-back.

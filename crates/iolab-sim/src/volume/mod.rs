//! Volumes: several devices that look like one.

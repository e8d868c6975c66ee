//! Read-ahead, one rule per kernel era.

//! Output of mkfile: nothing, or with -v a line for each file.

use serde::Deserialize;

use super::lower::Plan;

/// Event of a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[schemars(rename = "MkfileEvent")]
pub enum Event {
    /// Before the first file.
    Begin {},
    /// A file was made, or was not.
    Row {
        /// Index of the file.
        index: usize,
    },
    /// After the last one.
    End {},
}

/// Standard output of an event.
pub fn render(plan: &Plan, event: &Event) -> String {
    let Event::Row { index } = event else { return String::new() };
    match plan.rows.get(*index) {
        Some(row) if plan.show.is_verbose => format!("{} {} bytes\n", row.name, plan.show.bytes),
        _ => String::new(),
    }
}

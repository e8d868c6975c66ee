//! Output of bonnie++: tables, lines, and what it says of progress.

use serde_json::json;

use super::csv::{HEADER, Line, PHASES};
use super::plan::Plan;
use super::result::{Event, RowResult, line_of};
use super::table::{of_lines, of_run};

/// Message at the end of a phase; the seeks say it once for each seeker.
const SAID: [&str; 12] = [
    "Writing a byte at a time...done",
    "Writing intelligently...done",
    "Rewriting...done",
    "Reading a byte at a time...done",
    "Reading intelligently...done",
    "start 'em...",
    "Create files in sequential order...done.",
    "Stat files in sequential order...done.",
    "Delete files in sequential order...done.",
    "Create files in random order...done.",
    "Stat files in random order...done.",
    "Delete files in random order...done.",
];

/// Standard output of an event (of [`Event::RowAside`] standard error).
pub fn render(plan: &Plan, event: &Event) -> String {
    let show = &plan.show;
    match event {
        Event::Begin {} if show.is_csv_only && show.runs > 1 => HEADER.to_owned() + "\n",
        Event::Row(row) if !row.is_failed => {
            let line = line_of(plan, row);
            let has_table = !show.is_csv_only && !show.is_quiet;
            let table = if has_table { of_run(&line, &show.size) } else { String::new() };
            table + &line.write() + "\n"
        }
        Event::RowAside(row) => aside(plan, row),
        Event::Begin {} | Event::Row(_) | Event::End {} => String::new(),
        Event::Table { text } => convert(text),
    }
}

fn aside(plan: &Plan, row: &RowResult) -> String {
    let show = &plan.show;
    if show.is_quiet {
        let is_shown = !show.is_csv_only && !row.is_failed;
        return if is_shown { of_run(&line_of(plan, row), &show.size) } else { String::new() };
    }
    let mut text = String::new();
    for phase in &row.phases {
        let Some(place) = PHASES.iter().position(|name| *name == phase.name) else { continue };
        text += SAID[place];
        if phase.name == "seeks" {
            text += &"done...".repeat(phase.workers.len());
        }
        text.push('\n');
    }
    text
}

/// `bon_csv2txt` of lines of any format: the table, and what was wrong with which line.
pub fn convert(text: &str) -> String {
    let (mut lines, mut problems) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        match Line::read(line) {
            Ok(found) => lines.extend(found),
            Err(problem) => problems.push(format!("line {number}: {problem}")),
        }
    }
    json!({"text": of_lines(&lines), "problems": problems}).to_string()
}

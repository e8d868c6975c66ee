//! Job files as command lines, as fio's --showcmd prints them.

use std::fmt::Write as _;

use super::job::{Job, Typed};
use super::parse::Typing;

/// One line: options of the global sections and jobs in the order in which they stood.
pub fn showcmd(typing: &Typing) -> String {
    let mut text = "fio ".to_owned();
    let mut shown = 0;
    for job in &typing.jobs {
        add(&mut text, &typing.globals[shown.min(job.globals)..job.globals]);
        shown = shown.max(job.globals);
        add_job(&mut text, job);
    }
    add(&mut text, &typing.globals[shown..]);
    text.push('\n');
    text
}

fn add_job(text: &mut String, job: &Job) {
    let _ = write!(text, "--name={} ", job.section);
    // Of a job of the command line the name is its first option as well.
    let is_told =
        |typed: &Typed| typed.row.name == "name" && typed.text.as_ref() == Some(&job.section);
    add(text, &job.typed[usize::from(job.typed.first().is_some_and(is_told))..]);
}

fn add(text: &mut String, typed: &[Typed]) {
    for Typed { row, text: value, .. } in typed {
        let _ = match value {
            None => write!(text, "--{} ", row.name),
            // fio has them around a description alone, and then always.
            Some(value)
                if row.name == "description" || (value.contains(' ') && row.name != "name") =>
            {
                write!(text, "--{}=\"{value}\" ", row.name)
            }
            Some(value) => write!(text, "--{}={value} ", row.name),
        };
    }
}

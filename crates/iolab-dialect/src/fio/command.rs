//! Options of the program itself: where results go and how they look.

use super::eta::When;
use super::row::Tier;
use super::value;
use crate::diagnostic::Problem;
use crate::option::Standing::{self, Differs, Done, Ignored, Refused};

/// A form of the results.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FioFormat")]
pub enum Format {
    /// Text for people.
    Normal,
    /// A line of fields.
    Terse,
    /// JSON.
    Json,
    /// JSON with histograms.
    JsonPlus,
}

/// Options of the command line beside jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Program {
    /// --output.
    pub output: Option<String>,
    /// --output-format; empty: normal.
    pub formats: Vec<Format>,
    /// --terse-version; 0: 3.
    pub terse_version: u32,
    /// --section.
    pub sections: Vec<String>,
    /// --readonly.
    pub is_readonly: bool,
    /// --showcmd.
    pub is_shown: bool,
    /// --parse-only.
    pub is_only_parsed: bool,
    /// --version.
    pub is_version: bool,
    /// --cmdhelp.
    pub cmdhelp: Option<String>,
    /// --enghelp.
    pub enghelp: Option<String>,
    /// --warnings-fatal.
    pub are_notes_fatal: bool,
    /// --status-interval; 0: none.
    pub status_ns: u64,
    /// --eta.
    pub eta: When,
    /// --eta-newline; 0: none.
    pub eta_newline_ns: u64,
    /// --allow-exec.
    pub may_execute: bool,
    /// --max-jobs; 0: the usual number.
    pub jobs_max: usize,
}

/// Need of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No value.
    Nothing,
    /// One, attached or in the next word.
    Value(&'static str),
    /// One that is attached, or none.
    Attached(&'static str),
}

/// An option of the program.
pub struct CommandRow {
    /// Name without dashes.
    pub name: &'static str,
    /// Form of its value.
    pub takes: Takes,
    /// Tier of the specification.
    pub tier: Tier,
    /// Effect, in one line.
    pub doc: &'static str,
    /// Degree to which it is done.
    pub standing: Standing,
    /// Notes its use.
    pub set: fn(&mut Program, &str) -> Result<(), Problem>,
}

fn formats(program: &mut Program, text: &str) -> Result<(), Problem> {
    let known = [
        ("normal", Format::Normal),
        ("terse", Format::Terse),
        ("json", Format::Json),
        ("json+", Format::JsonPlus),
    ];
    program.formats.clear();
    for part in text.split(',') {
        let found = known.iter().find(|(name, _)| *name == part);
        let Some((_, format)) = found else {
            let hint = iolab_model::nearest::did_you_mean(part, known.iter().map(|row| row.0));
            let what = format!("there is no output format '{part}'{hint}");
            return Err(Problem::new(what, "use normal, terse, json or json+"));
        };
        program.formats.push(*format);
    }
    Ok(())
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Problem> {
    let wrong = |_| Problem::new(format!("'{text}' is not a number"), "write a whole number");
    text.parse().map_err(wrong)
}

/// A time between two lines or results, in ns; a number alone is in seconds.
fn interval(name: &str, text: &str) -> Result<u64, Problem> {
    const LEAST_NS: u64 = 100_000_000;
    const REMEDY: &str = "write for instance 1, 500ms or 2m";
    let read = value::time(text, value::TimeUnit::S, 1024);
    let ns = read.map_err(|fault| Problem::new(format!("--{name}: {}", fault.1.what), REMEDY))?;
    if ns < LEAST_NS {
        return Err(Problem::new(format!("--{name}={text} is shorter than 100ms"), REMEDY));
    }
    Ok(ns)
}

const fn row(
    (name, takes): (&'static str, Takes),
    tier: Tier,
    doc: &'static str,
    standing: Standing,
    set: fn(&mut Program, &str) -> Result<(), Problem>,
) -> CommandRow {
    CommandRow { name, takes, tier, doc, standing, set }
}

const fn no(name: &'static str, doc: &'static str, why: &'static str) -> CommandRow {
    instead(name, doc, why, "leave it out")
}

const fn instead(
    name: &'static str,
    doc: &'static str,
    why: &'static str,
    remedy: &'static str,
) -> CommandRow {
    let standing = Refused(why, remedy);
    row((name, Takes::Attached("...")), Tier::T3, doc, standing, |_, _| Ok(()))
}

use Takes::{Attached, Nothing, Value};
use Tier::{T1, T2};

/// All of them.
pub const ROWS: &[CommandRow] = &[
    row(("output", Value("FILE")), T1, "file of the results", Done, |program, text| {
        if text.is_empty() {
            return Err(Problem::new("--output names no file", "write --output=FILE"));
        }
        program.output = Some(text.to_owned());
        Ok(())
    }),
    row(
        ("output-format", Value("FORMAT[,FORMAT]")),
        T1,
        "normal, terse, json, json+; several follow each other",
        Done,
        formats,
    ),
    row(("minimal", Nothing), T2, "terse results", Done, |program, _| {
        program.formats = vec![Format::Terse];
        Ok(())
    }),
    row(("terse-version", Value("N")), T2, "2, 3, 4 or 5 (3)", Done, |program, text| match number(
        text,
    )? {
        version @ 2..=5 => {
            program.terse_version = version;
            Ok(())
        }
        other => {
            Err(Problem::new(format!("there is no terse version {other}"), "use 2, 3, 4 or 5"))
        }
    }),
    row(
        ("eta", Value("WHEN")),
        T1,
        "always, never, auto: a line of progress",
        Differs("on standard error, once a second; not in simulation, where time is virtual"),
        |program, text| {
            program.eta = match text {
                "always" => When::Always,
                "never" => When::Never,
                "auto" => When::Auto,
                _ => {
                    let what = format!("--eta has no value '{text}'");
                    return Err(Problem::new(what, "use always, never or auto"));
                }
            };
            Ok(())
        },
    ),
    row(
        ("eta-newline", Value("TIME")),
        T1,
        "a line of progress that stays, so often",
        Done,
        |program, text| {
            program.eta_newline_ns = interval("eta-newline", text)?;
            Ok(())
        },
    ),
    row(
        ("section", Value("NAME")),
        T1,
        "only this section (may be repeated)",
        Done,
        |program, text| {
            program.sections.push(text.to_owned());
            Ok(())
        },
    ),
    row(("readonly", Nothing), T1, "refuse jobs that write", Done, |program, _| {
        program.is_readonly = true;
        Ok(())
    }),
    row(("parse-only", Nothing), T1, "read everything, do nothing", Done, |program, _| {
        program.is_only_parsed = true;
        Ok(())
    }),
    row(("showcmd", Nothing), T2, "print job files as a command line", Done, |program, _| {
        program.is_shown = true;
        Ok(())
    }),
    row(("version", Nothing), T1, "the version", Differs("iolab's own"), |program, _| {
        program.is_version = true;
        Ok(())
    }),
    row(
        ("cmdhelp", Attached("OPTION")),
        T2,
        "what a job option does; all: a list",
        Differs("in iolab's words"),
        |program, text| {
            program.cmdhelp = Some(text.to_owned());
            Ok(())
        },
    ),
    row(
        ("enghelp", Attached("ENGINE[,OPTION]")),
        T2,
        "the engines, the options of one, or one of these",
        Differs("in iolab's words"),
        |program, text| {
            program.enghelp = Some(text.to_owned());
            Ok(())
        },
    ),
    row(
        ("allow-exec", Nothing),
        T2,
        "exec_prerun and exec_postrun may run commands",
        Differs("an option of iolab alone: fio runs them unasked"),
        |program, _| {
            program.may_execute = true;
            Ok(())
        },
    ),
    row(("warnings-fatal", Nothing), T2, "a note is an error", Done, |program, _| {
        program.are_notes_fatal = true;
        Ok(())
    }),
    row(("max-jobs", Value("N")), T2, "most jobs and clones (4096)", Done, |program, text| {
        program.jobs_max = number(text)?;
        if program.jobs_max == 0 {
            return Err(Problem::new("--max-jobs=0 allows no job", "write 1 to 4096"));
        }
        Ok(())
    }),
    row(
        ("status-interval", Value("TIME")),
        T2,
        "results so often while it runs",
        Differs(
            "at least 100ms; CPU time of processes is told at the end; not in simulation, where \
             time is virtual",
        ),
        |program, text| {
            program.status_ns = interval("status-interval", text)?;
            Ok(())
        },
    ),
    row(
        ("alloc-size", Value("KB")),
        T2,
        "memory of fio's own for many jobs",
        Ignored("memory is taken as it is needed"),
        |_, text| number::<u64>(text).map(drop),
    ),
    instead(
        "bandwidth-log",
        "log of all jobs' bandwidth",
        "there is no log of all jobs together",
        "write write_bw_log=NAME: a log of each job",
    ),
    no("append-terse", "terse results behind the normal ones", "fio has removed it"),
    no("debug", "traces of fio's own work", "fio's own messages do not exist here"),
    instead(
        "aux-path",
        "directory of files that fio writes",
        "files lie where their names say",
        "name the directory in write_bw_log=DIRECTORY/NAME and the like",
    ),
    instead(
        "inflate-log",
        "print a compressed log",
        "logs are never compressed",
        "read them as they are",
    ),
    instead(
        "idle-prof",
        "idle time of CPUs",
        "it is not measured",
        "see the CPU time of the jobs in the report",
    ),
    no("crctest", "speed of checksums", "nothing of it is used here"),
    no("cpuclock-test", "test of the CPU's clock", "the clock is the kernel's"),
    no("merge-blktrace-only", "merge recordings", "recordings are not merged"),
    no("server", "wait for clients", "there is no network service"),
    instead(
        "client",
        "work on another machine",
        "there is no network service",
        "write `ssh HOST iolab fio ...`, or run a study with `iolab run --hosts`",
    ),
    instead(
        "daemonize",
        "work in the background",
        "a command stays in the foreground",
        "write `nohup iolab fio ... &`, or use systemd-run",
    ),
    no("remote-config", "a job file on another machine", "there is no network service"),
    no("trigger", "a program that runs on a signal", "a command line starts no programs here"),
    no("trigger-file", "a program that runs on a file", "a command line starts no programs here"),
    no("trigger-timeout", "a program that runs late", "a command line starts no programs here"),
    no("trigger-remote", "a program elsewhere", "a command line starts no programs here"),
    no("disk-metrics", "numbers of disks", "the results have them"),
];

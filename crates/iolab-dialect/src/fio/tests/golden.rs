//! The recorded job files: what fio's --showcmd printed of each, and what becomes of the bad ones.

use std::path::PathBuf;

use super::super::dialect::plan;
use super::super::host::{Host, There};
use super::super::parse::read;
use super::super::showcmd::showcmd;
use super::{Paper, words};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/fio")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

/// A machine that has one recorded file and the directories that it names.
fn paper(name: &str) -> Paper {
    Paper::with(&[(name, &text(name))])
}

#[test]
fn showcmd_prints_what_fio_printed() {
    let recorded = text("showcmd.txt");
    let mut count = 0;
    for part in recorded.split("# ").skip(1) {
        let (name, line) = part.split_once('\n').unwrap();
        let typing = read(&words(name), &paper(name));
        // What is refused here has no command line.
        let Ok(typing) = typing.map_err(|error| error.to_string()) else { continue };
        assert_eq!(showcmd(&typing), line, "{name}");
        count += 1;
    }
    assert_eq!(count, 27, "files that are read");
}

/// Words of each job of a command, in order of the alphabet.
fn words_of_jobs(command: &str) -> Vec<Vec<&str>> {
    let job = |text| {
        let mut words: Vec<&str> = str::split_whitespace(text).collect();
        words.sort_unstable();
        words
    };
    command.split(" --name=").map(job).collect()
}

/// Jobs in the manner of those that public repositories have, with what fio printed of each.
#[test]
fn jobs_like_those_of_public_repositories_are_shown_as_fio_shows_them() {
    let recorded = text("found.txt");
    let mut count = 0;
    for part in recorded.split("# ").filter(|part| part.contains("\n=>\n")) {
        let (job, line) = part.split_once("\n=>\n").unwrap();
        let (name, job) = job.split_once('\n').unwrap();
        let paper = Paper::with(&[("found.fio", job)]);
        let typing = read(&words("found.fio"), &paper).map_err(|error| error.to_string());
        let typing = typing.unwrap_or_else(|error| panic!("{name}: {error}"));
        // Ours keeps the order of the file, where fio moves options of engines to the end.
        assert_eq!(words_of_jobs(&showcmd(&typing)), words_of_jobs(line), "{name}");
        count += 1;
    }
    assert_eq!(count, 21, "jobs");
}

#[test]
fn bad_files_are_refused_with_their_place() {
    // Name, part of the message; those of the deviations that the reference lists as well.
    let refused = [
        ("bad-engine", "ioengine nosuch is not supported"),
        ("bad-enum", "rw has no value 'ranread'"),
        ("bad-int", "invalid number '4q'"),
        ("bool-bad", "direct is 0 or 1, not '5'"),
        ("bssplit-over", "the shares add up to 120 %"),
        ("dirmiss", "/nosuchdir is not a directory"),
        ("empty", "No job(s) defined"),
        ("globalonly", "No job(s) defined"),
        ("nocreate", "file creation disallowed by allow_file_create=0"),
        ("noinc", "'nosuch.inc' cannot be included"),
        ("nosize", "you need to specify size="),
        ("option-in-nosection", "outside of [] job section"),
        ("range-neg", "150 is out of range (100 at most)"),
        ("unknown-option", "there is no option 'foobar'"),
        ("waitfor", "waitee job zz unknown"),
        ("zipf-bad", "zipf theta must differ from 1.0"),
    ];
    for (name, part) in refused {
        let name = format!("errors/{name}.fio");
        let told = plan(&words(&name), &paper(&name)).err().map(|error| error.to_string());
        let told = told.unwrap_or_else(|| panic!("{name} is accepted"));
        assert!(told.contains(part), "{name}: {told}");
    }
    let readonly =
        plan(&words("--readonly errors/missingfile.fio"), &paper("errors/missingfile.fio"));
    assert!(readonly.is_err_and(|error| error.to_string().contains("--readonly")));
    for name in ["dupsect", "tb-noruntime", "trailing-comment"] {
        let name = format!("errors/{name}.fio");
        plan(&words(&name), &paper(&name)).map_err(|error| error.to_string()).unwrap();
    }
}

/// The front end refuses it, as it refuses links, for all dialects alike and with one exit code.
#[test]
fn what_is_no_file_is_not_judged_here() {
    let mut paper = Paper::default();
    paper.there.insert("/dev/sdx".into(), There::Special);
    paper.there.insert("/dev".into(), There::Directory);
    let told = plan(&words("--name=x --rw=write --size=4k --filename=/dev/sdx"), &paper);
    assert!(told.is_ok());
    assert_eq!(paper.at("/dev/sdx"), There::Special);
}

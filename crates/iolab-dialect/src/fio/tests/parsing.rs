use super::super::job::{Job, Rw};
use super::super::options;
use super::super::parse::{Typing, read};
use super::super::row::{Kind, Tier, Value};
use super::super::showcmd::showcmd;
use super::super::value::Amount;
use super::{Paper, words};
use crate::option::Standing;

fn file(text: &str) -> Typing {
    read(&words("a.fio"), &Paper::with(&[("a.fio", text)])).map_err(|e| e.to_string()).unwrap()
}

fn refusal(text: &str) -> String {
    let read = read(&words("a.fio"), &Paper::with(&[("a.fio", text)]));
    read.err().expect("it is refused").to_string()
}

fn line(text: &str) -> Typing {
    read(&words(text), &Paper::default()).map_err(|e| e.to_string()).unwrap()
}

fn only(typing: &Typing) -> &Job {
    assert_eq!(typing.jobs.len(), 1);
    &typing.jobs[0]
}

#[test]
fn a_file_is_read_as_the_specification_says() {
    let typing = file(
        "; a comment\n[global]\n  rw = randread # of all\nbs=8k\n\n[one]\nsize=8*$pagesize\n\
         group_reporting\n[global]\nbs=16k\n[GLOBAL]\nreadwrite=write ; another\n[one]\nbs=4k\n",
    );
    let seen: Vec<_> = typing.jobs.iter().map(|j| (&*j.name, j.rw, j.bs[0], j.size)).collect();
    assert_eq!(
        seen,
        [
            ("one", Rw::RandRead, 8192, Some(Amount::Bytes(32768))),
            ("GLOBAL", Rw::Write, 16384, None),
            ("one", Rw::RandRead, 4096, None),
        ]
    );
    assert!(typing.jobs[0].is_group_reported && !typing.jobs[1].is_group_reported);
}

#[test]
fn file_names_add_up_and_the_user_is_told() {
    let typing = file("[global]\nfilename=A\n[j]\nfilename=B\\:1:C\ndirectory=/d\n");
    assert_eq!(only(&typing).filename, ["A", "B:1", "C"]);
    assert!(typing.notes[0].contains("A and B:1 and C"), "{:?}", typing.notes);
}

#[test]
fn variables_includes_and_sections() {
    let mut paper = Paper::with(&[
        ("d/a.fio", "[j]\ninclude b.inc\nsize=${SIZE}k\n[k]\nbs=1k\nsize=4k\n"),
        ("d/b.inc", "bs=2k\ninclude c.inc\n"),
        ("c.inc", "numjobs=3\n"),
    ]);
    paper.variables.insert("SIZE".into(), "64".into());
    let typing = read(&words("--section=j d/a.fio"), &paper).map_err(|e| e.to_string()).unwrap();
    let job = only(&typing);
    assert_eq!((job.bs[0], job.clones, job.size), (2048, 3, Some(Amount::Bytes(65536))));
    let unset = refusal("[j]\nsize=${NOT_SET}\n");
    assert!(unset.contains("NOT_SET is not set") && unset.contains("a.fio:2:6"), "{unset}");
}

/// As `fio --showcmd` of version 3.33 has it.
#[test]
fn a_section_whose_name_begins_with_global_is_none_of_a_job() {
    for typing in [
        file("[globals.db]\nrw=randread\nbs=8k\n[b]\nsize=64k\n"),
        line("--name=globals.db --rw=randread --bs=8k --name=b --size=64k"),
    ] {
        let names: Vec<&str> = typing.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["b"]);
        assert_eq!(typing.jobs[0].bs[0], 8192);
    }
}

#[test]
fn both_dashes_blanks_and_order_on_command_lines() {
    let typing = line("-name=x -rw randread --bs=4k --kb_base=1000 -thread -size 4k --readonly");
    let job = only(&typing);
    assert_eq!((job.rw, job.bs[0], job.size), (Rw::RandRead, 4096, Some(Amount::Bytes(4000))));
    assert!(job.is_thread && typing.program.is_readonly);
    let typing = line("--bs=8k --name=a --name=global --bs=2k --name=b --output-format json");
    let seen: Vec<_> = typing.jobs.iter().map(|j| (&*j.name, j.bs[0])).collect();
    assert_eq!(seen, [("a", 8192), ("b", 2048)]);
}

#[test]
fn what_is_wrong_is_marked() {
    let shown = refusal("[a]\nioengine=null\nfoobar=3\n");
    assert_eq!(
        shown,
        "a.fio:3:1: there is no option 'foobar'\n  foobar=3\n  ^^^^^^\n  `iolab fio --cmdhelp=all` \
         lists all"
    );
    let shown = refusal("[a]\n rw=ranread\n");
    assert!(shown.starts_with("a.fio:2:5: rw has no value 'ranread' (did you mean `randread`?)"));
    assert!(shown.contains("\n      ^^^^^^^\n"), "{shown}");
    for (text, part) in [
        ("rw=read\n[a]\n", "outside of [] job section"),
        ("[a]\nrwmixread=150\n", "150 is out of range (100 at most)"),
        ("[a]\ndirect=5\n", "direct is 0 or 1, not '5'"),
        ("[a]\nbs=4q\n", "'q' is no unit"),
        ("[a]\ninclude nosuch.inc\n", "'nosuch.inc' cannot be included"),
        ("[a]\nRW=read\n", "did you mean `rw`?"),
        ("[a\nrw=read\n", "a section without ]"),
        ("[a]\nsize\n", "size needs a value"),
        ("[a]\nallow-exec=1\n", "give it as --allow-exec of iolab fio"),
    ] {
        let shown = refusal(text);
        assert!(shown.contains(part), "{text}: {shown}");
    }
    let shown = read(&words("--name=x --bs=2*$pagesize"), &Paper::default());
    assert!(shown.is_err_and(|e| e.to_string().contains("$pagesize is replaced in job files")));
}

#[test]
fn the_default_of_what_is_not_done_changes_nothing() {
    only(&file("[a]\natomic=0\ncontinue_on_error=none\nrate_process=linear\n"));
    assert!(refusal("[a]\natomic=1\n").contains("atomic=1: O_ATOMIC"));
}

#[test]
fn a_very_long_line_is_shown_in_part() {
    let text = format!("[a]\ndescription={}\nnosuch={}\n", "x".repeat(9), "y".repeat(1 << 20));
    let shown = refusal(&text);
    assert!(shown.len() < 1000, "{}", shown.len());
}

/// Before, a file of 16 MiB of options took a gibibyte of memory.
#[test]
fn no_more_options_and_names_are_read_than_anybody_writes() {
    let many = format!("[a]\n{}", "bs=4k\n".repeat(200_001));
    assert!(refusal(&many).contains("more than 200000 options"));
    let names = format!("filename={}\n", "a:".repeat(8000));
    let many = format!("[a]\n{}", names.repeat(9));
    assert!(refusal(&many).contains("more than 65536 files"));
}

#[test]
fn marks_of_an_encoding_are_skipped_and_bytes_of_0_refused() {
    assert_eq!(file("\u{feff}[a]\nsize=4k\n").jobs[0].name, "a");
    let told = refusal("[a]\nfilename=x\0y\n");
    assert!(told.contains("a byte of value 0") && told.contains("a.fio:2"), "{told}");
}

#[test]
fn too_many_sections_are_refused() {
    let text = "[a]\n".repeat(5000);
    assert!(refusal(&text).contains("more jobs and clones than --max-jobs=4096"));
}

#[test]
fn showcmd_prints_what_fio_prints() {
    let typing = file(
        "[global]\nfilename=A\nrw=randrw\n[j x]\nfilename=B\nblocksize = 4k # c\n\
         group_reporting\nsize=8*$pagesize\nreadwrite=write\ndescription=hello\n",
    );
    assert_eq!(
        showcmd(&typing),
        "fio --rw=randrw --filename=A --name=j x --bs=4k --group_reporting --size=32768 \
         --rw=write --description=\"hello\" --filename=B \n"
    );
}

#[test]
fn every_row_takes_values_of_its_kind() {
    let mut names: Vec<&str> = options::rows()
        .flat_map(|row| std::iter::once(row.name).chain(row.aliases.iter().copied()))
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name is used twice");
    for row in options::rows() {
        assert!(!row.doc.is_empty() && !row.doc.ends_with('.'), "{}", row.name);
        if !row.default.is_empty() && row.name != "directory" {
            let value = row.read(Some(row.default), 1024);
            let value = value.unwrap_or_else(|(_, p)| panic!("{}: {p:?}", row.name));
            (row.set)(&mut Job::new("x", job_place()), value).unwrap();
        }
        if row.tier == Tier::T3 {
            assert!(matches!(row.standing, Standing::Refused(..)), "{}", row.name);
        }
        if let Kind::Choice(words) | Kind::ChoiceAndMore(words) = row.kind {
            for word in words {
                assert!(matches!(row.read(Some(word), 1024), Ok(Value::Word(..))), "{word}");
            }
        }
    }
}

fn job_place() -> super::super::place::Place {
    super::super::place::Place::Word { index: 0, within: 0..0 }
}

#[test]
fn overwrite_is_fios_switch_or_iolabs_file() {
    let read = |line: &str| read(&words(line), &Paper::default()).map_err(|e| e.to_string());
    for line in ["--overwrite=1 --size=4k", "--size=4k --overwrite", "--overwrite --size=4k"] {
        let typing = read(&format!("--name=a {line}")).unwrap();
        assert!(typing.jobs[0].is_overwritten, "{line}");
        assert!(typing.common.overwrite.is_empty(), "{line}");
    }
    let typing = read("--overwrite=0 --iolab-overwrite=1 --name=a --size=4k").unwrap();
    assert_eq!(
        (typing.jobs[0].is_overwritten, &*typing.common.overwrite),
        (false, &["1".into()][..])
    );
    let typing = read("--name=a --overwrite notes --size=4k --iolab-repeat=3").unwrap();
    assert_eq!((typing.jobs[0].is_overwritten, typing.common.repeat), (false, 3));
    assert_eq!(typing.common.overwrite, ["notes"]);
}

/// Before, these were accepted, or their message named neither the fault nor a remedy.
#[test]
fn odd_command_lines_are_refused_in_a_line_that_says_what_is_wrong() {
    let paper = Paper::with(&[("a.fio", "[a]\nsize=4k\n")]);
    for (text, part) in [
        ("--name=a --size=1m --bsrange=4k", "'4k' is no range"),
        ("--enghelp=psyn", "there is no ioengine 'psyn' (did you mean `psync`?)"),
        ("--output= --name=a --size=4k", "--output needs a value"),
        ("--showcmd", "No job(s) defined"),
        ("--section=zz a.fio", "there is no section zz"),
        ("--cmdhelp=blokcsize", "did you mean `blocksize`?"),
        ("--name= --size=4k", "a job without a name"),
        ("--name=a --size=4k --random_distribution=pareto:2", "pareto:2 is out of range"),
    ] {
        let told = super::super::dialect::plan(&words(text), &paper);
        let told = told.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told.contains(part), "{text}: {told}");
    }
}

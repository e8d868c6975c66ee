//! Reading command lines with a small table.

use super::*;

#[derive(Default, Debug, PartialEq)]
struct Typed {
    log: Vec<String>,
    count: usize,
}

#[allow(clippy::unnecessary_wraps, reason = "it stands in rows")]
fn note(typed: &mut Typed, given: &Given<'_>) -> Result<(), Problem> {
    let all = [&[given.name.to_owned(), given.value.to_owned()][..], given.words].concat();
    typed.log.push(all.join(" ").trim().to_owned());
    Ok(())
}

const fn row(name: &'static str, takes: Takes<Typed>, standing: Standing) -> OptionRow<Typed> {
    OptionRow { name, takes, group: "G", doc: "does it", standing, update: note }
}

const ROWS: &[OptionRow<Typed>] = &[
    row("-a", Takes::Nothing, Standing::Done),
    row("-s", Takes::Value("SIZE"), Standing::Done),
    row("-+p", Takes::NextWord("PERCENT"), Standing::Done),
    row("-F", Takes::Words("files", |typed| typed.count), Standing::Done),
    row("-q", Takes::Nothing, Standing::Refused("it is gone", "use -a")),
    OptionRow {
        name: "-t",
        takes: Takes::Value("N"),
        group: "G",
        doc: "counts",
        standing: Standing::Done,
        update: |typed, given| {
            typed.count = given.number("a count")?;
            Ok(())
        },
    },
];

fn parse(text: &str) -> Result<(Typed, Common), String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let (mut typed, mut common) = (Typed::default(), Common::default());
    let grammar = Grammar { program: "try", rows: ROWS, word: None };
    read(&grammar, &words, &mut typed, &mut common).map_err(|error| error.to_string())?;
    Ok((typed, common))
}

#[test]
fn clusters_attached_values_and_repetitions() {
    let (typed, _) = parse("-aas4k -s 8k -+p 75 -a").unwrap();
    assert_eq!(typed.log, ["-a", "-a", "-s 4k", "-s 8k", "-+p 75", "-a"]);
}

#[test]
fn counted_words_are_taken_whatever_they_look_like() {
    assert_eq!(parse("-t2 -F x -a -a").unwrap().0.log, ["-F  x -a", "-a"]);
    assert!(parse("-t 3 -F x y").unwrap_err().contains("-F takes 3 files, there are 2"));
}

#[test]
fn long_options_are_iolabs() {
    let (typed, common) = parse("-a --on=loop:1g --repeat 3 --compat").unwrap();
    assert_eq!(typed.log, ["-a"]);
    assert_eq!((common.on.as_deref(), common.repeat), (Some("loop:1g"), 3));
    assert!(common.is_compat);
    assert!(parse("--repaet 3").unwrap_err().contains("--repeat"));
    assert!(parse("--compat=yes").unwrap_err().contains("takes no value"));
    assert!(parse("--repeat 0").unwrap_err().contains("measures nothing"));
}

#[test]
fn complaints_name_the_option_and_what_to_do() {
    for (text, wanted) in [
        ("-A", "did you mean -a (does it)?"),
        ("-5", "there is no option -5\n  try -5\n       ^"),
        ("-q", "-q: it is gone\n  try -q\n       ^\n  use -a"),
        ("-s", "-s needs a value: SIZE"),
        ("-s --compat", "-s needs a value: SIZE\n  try -s --compat\n         ^^^^^^^^"),
        ("-+p75", "write -+p 75"),
        ("-+9", "there is no option -+9"),
        ("-t x", "-t takes a count, not 'x'\n  try -t x\n         ^"),
        ("-a word", "'word' is neither an option nor the value of one"),
    ] {
        let found = parse(text).unwrap_err();
        assert!(found.contains(wanted), "{text}: {found}");
    }
}

#[test]
fn help_and_reference_have_every_row() {
    let grammar = Grammar { program: "try", rows: ROWS, word: None };
    for text in [help_text(&grammar), reference_text(&grammar)] {
        for row in ROWS {
            assert!(text.contains(row.name), "{}: {text}", row.name);
        }
        assert!(text.contains("--repeat N"), "{text}");
    }
}

//! The dialect as the list of dialects knows it: JSON in, JSON and text out.

use std::fmt::Write as _;
use std::io::Read as _;

use iolab_model::nearest::did_you_mean;

use super::command::{self, Takes, Typed};
use super::lex::{LexemeKind, SCRIPT_BYTES_MAX, Source, tokens};
use super::lower::{self, LoweredScript, LoweringWishes};
use super::personality::{self, PERSONALITIES};
use super::plan::{Plan, Show};
use super::render;
use super::result::{Event, ReportEvent, RowResult};
use super::script::{self, variables_of};
use super::words::{ATTRIBUTES, CUSTOM, DISTRIBUTIONS, FLOWOPS, Of, STATEMENTS, StatementRow};
use crate::columns::two_columns;
use crate::diagnostic::{Diagnostic, Problem, quoted};
use crate::option::{Grammar, Standing, help_text, reference_text};
use crate::plan::{Asked, Row};
use crate::{Dialect, RenderError, read_json};

/// The dialect.
pub struct Filebench;

const PROGRAM: &str = "filebench";

/// Text above the options in `--help`.
const HELP: &str = "\
iolab filebench: scripts in the workload model language (WML) of Filebench, and
its personalities, on real or simulated storage

  iolab filebench -f FILE.f                run a script as it is
  iolab filebench fileserver --set nfiles=1000 --run 30
                                           a personality with other parameters
  iolab filebench varmail --on loop:4g --repeat 5
                                           on its own disk, five times
  iolab filebench --list                   all personalities
  iolab filebench oltp --print             the script of one

";

/// Only the options that every dialect has.
const GRAMMAR: Grammar<()> = Grammar { program: PROGRAM, rows: &[], word: None };

impl Dialect for Filebench {
    fn name(&self) -> &'static str {
        PROGRAM
    }

    fn parse(&self, words: &[String]) -> Result<String, Diagnostic> {
        let plan = plan(words)?;
        Ok(serde_json::to_string(&plan).expect("a plan has only text keys"))
    }

    fn render(&self, plan: &str, event: &str) -> Result<String, RenderError> {
        let Event { event: kind } = read_json((PROGRAM, "event"), event)?;
        if kind == ReportEvent::End {
            return Ok(String::new());
        }
        let plan: Plan = read_json((PROGRAM, "plan"), plan)?;
        if kind == ReportEvent::Begin {
            return Ok(render::begin(&plan));
        }
        // Read by itself: sums of 128 bits do not pass through a tagged enum.
        let row: RowResult = read_json((PROGRAM, "event"), event)?;
        Ok(render::row(&plan, &row))
    }

    fn file(&self, plan: &str, event: &str) -> Result<Vec<u8>, RenderError> {
        self.render(plan, event).map(String::into_bytes)
    }

    fn help(&self) -> String {
        let mut text = HELP.to_owned();
        for row in command::ROWS {
            let typed = format!("{}{}", row.name, metavar(row.takes));
            let meaning = format!("{}{}", row.doc, row.standing.remark());
            text += &two_columns(&format!("  {typed}"), 29, &meaning);
        }
        let flowops: Vec<&str> = FLOWOPS.iter().map(|row| row.name).collect();
        text += "\n";
        text += &two_columns("flowops:", 20, &flowops.join(" "));
        for (head, is_refused) in [("statements", false), ("refused statements", true)] {
            let are_refused =
                |row: &&StatementRow| matches!(row.standing, Standing::Refused(..)) == is_refused;
            let mut names: Vec<&str> =
                STATEMENTS.iter().filter(are_refused).map(|row| row.name).collect();
            names.dedup();
            text += &two_columns(&format!("{head}:"), 20, &names.join(", "));
        }
        text + &help_text(&GRAMMAR)
    }

    fn reference(&self) -> String {
        reference()
    }
}

const fn metavar(takes: Takes) -> &'static str {
    match takes {
        Takes::Nothing => "",
        Takes::Value(_) => " ...",
        Takes::Perhaps(_) => " [...]",
    }
}

/// The plan of a command line.
pub fn plan(words: &[String]) -> Result<Plan, Diagnostic> {
    let typed = command::read(words)?;
    let all = |problem| Diagnostic::of_all(PROGRAM, words, problem);
    if let Some(text) = only_text(&typed).map_err(all)? {
        return Ok(text_plan(&typed, text));
    }
    let source = source(&typed, words)?;
    if typed.is_printed {
        return Ok(text_plan(&typed, source.text));
    }
    if typed.is_shown {
        return Ok(text_plan(&typed, showcmd(&typed, &source)));
    }
    let script = script::read(&source, &typed.overrides).map_err(|problem| match problem {
        Ok(wrong) => source.tell(wrong),
        Err(problem) => all(problem),
    })?;
    check_overrides(&typed, &source, &script.scope).map_err(all)?;
    let wishes = LoweringWishes {
        may_execute: typed.may_execute,
        has_testbed: typed.common.on.is_some(),
        engine: typed.engine.clone(),
    };
    let outcome = lower::lower(&script, &wishes).map_err(|wrong| source.tell(wrong))?;
    Ok(plan_of(typed, outcome))
}

fn plan_of(typed: Typed, outcome: LoweredScript) -> Plan {
    let LoweredScript { workload, directory, mut show, notes, record_bytes, file_bytes } = outcome;
    let Some(workload) = workload else {
        let lines: Vec<String> = show.said.iter().map(|line| format!("0.000: {line}\n")).collect();
        let text = format!("{}\n{}", render::VERSION, lines.concat());
        return text_plan(&typed, text);
    };
    (show.format, show.output) = (typed.format, typed.output.clone());
    let name = typed.personality.clone().unwrap_or_else(|| PROGRAM.to_owned());
    let workers = workload.phases[0].tenants.iter().map(|tenant| tenant.workers).sum();
    Plan {
        dialect: PROGRAM.to_owned(),
        common: typed.common,
        only_text: None,
        notes,
        directory,
        files: Vec::new(),
        cache: "as_is".to_owned(),
        asked: Asked { is_scratch: true, ..Asked::default() },
        show,
        rows: vec![Row {
            name,
            file_kb: file_bytes.div_ceil(1024).max(1),
            record_kb: record_bytes.div_ceil(1024).max(1),
            children: workers,
            workload,
            control_groups: Vec::new(),
        }],
    }
}

/// A text that is all that is wanted, and needs no script.
fn only_text(typed: &Typed) -> Result<Option<String>, Problem> {
    if typed.common.is_help {
        return Ok(Some(Filebench.help()));
    }
    if typed.is_listed {
        let line = |row: &personality::Personality| format!("{:22} {}\n", row.name, row.doc);
        return Ok(Some(PERSONALITIES.iter().map(line).collect()));
    }
    match typed.custom.as_deref() {
        None => Ok(None),
        Some("") => {
            let line =
                |row: &super::words::DistributionRow| format!("{:18} {}\n", row.name, row.doc);
            Ok(Some(CUSTOM.iter().map(line).collect()))
        }
        Some(name) => {
            let Some(row) = CUSTOM.iter().find(|row| row.name == name) else {
                let hint = did_you_mean(name, CUSTOM.iter().map(|row| row.name));
                let what = format!("there is no custom variable '{name}'{hint}");
                return Err(Problem::new(what, "`iolab filebench -c` lists them"));
            };
            let line = |it: &(&str, f64)| format!("  {:8} default {}\n", it.0, it.1);
            let lines: String = row.parameters.iter().map(line).collect();
            Ok(Some(format!("{}: {}\n{lines}", row.name, row.doc)))
        }
    }
}

/// Text of a script; a device or a pipe, which might have no end, is none.
fn text_of(name: &str) -> Result<String, String> {
    let found = std::fs::metadata(name).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is no regular file".into());
    }
    let mut text = String::new();
    let most = SCRIPT_BYTES_MAX as u64 + 1;
    let file = std::fs::File::open(name).map_err(|error| error.to_string())?;
    file.take(most).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// The script that a command line names.
fn source(typed: &Typed, words: &[String]) -> Result<Source, Diagnostic> {
    let at = |problem| match typed.script_word {
        Some(index) => Diagnostic::of_words(PROGRAM, words, (index, 0..usize::MAX), problem),
        None => Diagnostic::of_all(PROGRAM, words, problem),
    };
    match (&typed.script, &typed.file, &typed.personality) {
        (Some(text), None, None) => Ok(Source { name: "script".to_owned(), text: text.clone() }),
        (None, Some(name), None) => {
            let text = text_of(name).map_err(|reason| {
                at(Problem::new(format!("{name} cannot be read: {reason}"), "name a script (*.f)"))
            })?;
            Ok(Source { name: name.clone(), text })
        }
        (None, None, Some(name)) => {
            let Some(row) = personality::find(name) else {
                let hint = did_you_mean(name, PERSONALITIES.iter().map(|row| row.name));
                let what = format!("there is no personality '{name}'{hint}");
                return Err(at(Problem::new(what, "`iolab filebench --list` shows all")));
            };
            Ok(Source { name: name.clone(), text: row.text.to_owned() })
        }
        (None, None, None) => {
            let remedy = "write -f FILE.f, or name a personality: `iolab filebench --list`";
            Err(at(Problem::new("no script", remedy)))
        }
        _ => Err(at(Problem::new("more than one script", "name one"))),
    }
}

/// Refuses to set variables that the script does not know.
fn check_overrides(
    typed: &Typed,
    source: &Source,
    scope: &super::scope::ScriptScope,
) -> Result<(), Problem> {
    let known = variables_of(source);
    for (name, _) in &typed.overrides.variables {
        if known.iter().any(|variable| variable.0 == *name) || scope.was_asked(name) {
            continue;
        }
        let names = known.iter().map(|variable| variable.0.as_str());
        let hint = did_you_mean(name, names.clone());
        let all = names.collect::<Vec<_>>().join(", ");
        let remedy = format!("its variables are {all}");
        return Err(Problem::new(format!("the script has no variable ${name}{hint}"), remedy));
    }
    Ok(())
}

/// The command line with the script in it, in one line: a study keeps it without a file.
fn showcmd(typed: &Typed, source: &Source) -> String {
    let mut words = vec![PROGRAM.to_owned()];
    if let Some(name) = &typed.personality {
        words.push(name.clone());
    } else {
        words.push("--script".to_owned());
        words.push(in_one_line(source));
    }
    for (name, value) in &typed.overrides.variables {
        words.extend(["--set".to_owned(), format!("{name}={value}")]);
    }
    if let Some(seconds) = typed.overrides.run_s {
        words.extend(["--run".to_owned(), seconds.to_string()]);
    }
    if let Some(engine) = &typed.engine {
        words.extend(["--engine".to_owned(), engine.clone()]);
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// The words of a script without comments and new lines.
fn in_one_line(source: &Source) -> String {
    let Ok(all) = tokens(source) else { return source.text.clone() };
    let word = |kind: &LexemeKind| match kind {
        LexemeKind::Word(text) => text.clone(),
        LexemeKind::Integer(value) => value.to_string(),
        LexemeKind::Variable(name) => format!("${name}"),
        LexemeKind::Quoted(text) => format!("\"{}\"", text.replace('\n', "\\n")),
        LexemeKind::Symbol(symbol) => symbol.to_string(),
        LexemeKind::End => String::new(),
    };
    all.iter().map(|token| word(&token.kind)).collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

fn text_plan(typed: &Typed, text: String) -> Plan {
    Plan {
        dialect: PROGRAM.to_owned(),
        common: typed.common.clone(),
        only_text: Some(text),
        notes: Vec::new(),
        directory: String::new(),
        files: Vec::new(),
        cache: "as_is".to_owned(),
        asked: Asked::default(),
        show: Show::default(),
        rows: Vec::new(),
    }
}

/// Tables of the reference page.
fn reference() -> String {
    let mut text = String::from("\n### Command line\n\n| option | does | here |\n|---|---|---|\n");
    for row in command::ROWS {
        let value = match row.takes {
            Takes::Nothing => String::new(),
            Takes::Value(value) => format!(" {value}"),
            Takes::Perhaps(value) => format!(" [{value}]"),
        };
        let _ = writeln!(text, "| `{}{value}` | {} | {} |", row.name, row.doc, row.standing.here());
    }
    text.push_str("\n### Statements\n\n| statement | form | does | here |\n|---|---|---|---|\n");
    for row in STATEMENTS {
        let form = if row.form.is_empty() { String::new() } else { format!("`{}`", row.form) };
        let (name, doc) = (row.name, row.doc);
        let _ = writeln!(text, "| `{name}` | {form} | {doc} | {} |", row.standing.here());
    }
    text.push_str("\n### Flow operations\n\n| flowop | does | here |\n|---|---|---|\n");
    for row in FLOWOPS {
        let _ = writeln!(text, "| `{}` | {} | {} |", row.name, row.doc, row.standing.here());
    }
    let groups = [
        ("Attributes of files and filesets", Of::Files),
        ("Attributes of processes", Of::Process),
        ("Attributes of threads", Of::Thread),
        ("Attributes of flowops", Of::Flowop),
        ("Attributes of random variables (randvar)", Of::Random),
        ("Attributes of custom variables (cvar)", Of::Custom),
        ("Attributes of eventgen", Of::Events),
    ];
    for (title, of) in groups {
        let _ = writeln!(text, "\n### {title}\n");
        text.push_str("| attribute | default | meaning | here |\n|---|---|---|---|\n");
        for row in ATTRIBUTES.iter().filter(|row| row.of.contains(&of)) {
            let names =
                row.names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let (default, doc) = (row.default, row.doc);
            let _ = writeln!(text, "| {names} | {default} | {doc} | {} |", row.standing.here());
        }
    }
    text.push_str("\n### Distributions\n\n| type | parameters | is |\n|---|---|---|\n");
    for row in DISTRIBUTIONS.iter().chain(CUSTOM) {
        let defaults: Vec<String> =
            row.parameters.iter().map(|it| format!("`{}` ({})", it.0, it.1)).collect();
        let _ = writeln!(text, "| `{}` | {} | {} |", row.name, defaults.join(", "), row.doc);
    }
    text.push_str("\n### Personalities\n\n| name | does | variables |\n|---|---|---|\n");
    for row in PERSONALITIES {
        let source = Source { name: row.name.to_owned(), text: row.text.to_owned() };
        let variables: Vec<String> =
            variables_of(&source).iter().map(|(name, _)| format!("`{name}`")).collect();
        let _ = writeln!(text, "| `{}` | {} | {} |", row.name, row.doc, variables.join(", "));
    }
    text + &reference_text(&GRAMMAR)
}

//! From words to statements.

use iolab_model::nearest::did_you_mean;

use super::lex::{Lexeme, LexemeKind, ScriptFault, ScriptSpot, Source, tokens};
use super::syntax::{
    Composite, Flowop, Given, Givens, Placed, PlacedStatement, Quit, Statement, Thread, Value,
    WmlProcess,
};
use super::words::{ATTRIBUTES, FLOWOPS, Of, STATEMENTS, attribute, flowop};
use crate::option::Standing;

type Result<T> = std::result::Result<T, ScriptFault>;

struct Parser {
    tokens: Vec<Lexeme>,
    at: usize,
    /// Names of composites that are defined so far.
    composites: Vec<String>,
    /// Values around the one that is read.
    depth: u32,
}

/// Deepest value inside values: tables of tables, random variables with random attributes.
const DEPTH_MAX: u32 = 16;
/// Most operators of a calculation.
const OPERATORS_MAX: usize = 64;

/// Statements of a script.
pub fn parse(source: &Source) -> Result<Vec<PlacedStatement>> {
    let mut parser = Parser { tokens: tokens(source)?, at: 0, composites: Vec::new(), depth: 0 };
    let mut all = Vec::new();
    while parser.peek().kind != LexemeKind::End {
        let spot = parser.peek().spot;
        all.push(PlacedStatement { statement: parser.statement()?, spot });
    }
    Ok(all)
}

/// A value that stands alone, as `--set` gives it; what is none is text.
pub fn lone_value(text: &str) -> Value {
    let source = Source { name: String::new(), text: text.to_owned() };
    let Ok(found) = tokens(&source) else { return Value::Quoted(text.to_owned()) };
    let is_alone = found.len() == 2;
    let mut parser = Parser { tokens: found, at: 0, composites: Vec::new(), depth: 0 };
    match parser.value() {
        Ok(placed) if is_alone => placed.value,
        Ok(Placed { value: value @ Value::Random(..), .. }) => value,
        _ => Value::Quoted(text.to_owned()),
    }
}

impl Parser {
    fn peek(&self) -> &Lexeme {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Lexeme {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn is_symbol(&self, symbol: char) -> bool {
        self.peek().kind == LexemeKind::Symbol(symbol)
    }

    fn takes(&mut self, symbol: char) -> bool {
        let is_there = self.is_symbol(symbol);
        self.at += usize::from(is_there);
        is_there
    }

    fn symbol(&mut self, symbol: char, after: &str) -> Result<()> {
        if self.takes(symbol) {
            return Ok(());
        }
        let token = self.peek();
        let what = format!("syntax error at '{}'", token.shown());
        Err(ScriptFault::new(token.spot, what, format!("write {symbol} after {after}")))
    }

    fn word(&mut self, remedy: &str) -> Result<(String, ScriptSpot)> {
        let token = self.next();
        if let LexemeKind::Word(word) = token.kind {
            Ok((word, token.spot))
        } else {
            let what = format!("syntax error at '{}'", token.shown());
            Err(ScriptFault::new(token.spot, what, remedy))
        }
    }

    /// Takes the word that comes next if it is one of these.
    fn takes_word(&mut self, words: &[&str]) -> bool {
        let is_there =
            matches!(&self.peek().kind, LexemeKind::Word(word) if words.contains(&word.as_str()));
        self.at += usize::from(is_there);
        is_there
    }

    fn statement(&mut self) -> Result<Statement> {
        let (word, spot) = self.word("begin a statement with a keyword: set, define, run ...")?;
        Ok(match word.as_str() {
            "set" => return self.set(spot),
            "define" => return self.define(spot),
            "create" => {
                if !self.takes_word(&["files", "file", "fileset", "filesets", "processes"]) {
                    return self.syntax("write create files");
                }
                Statement::Create
            }
            "eventgen" => Statement::Events(self.attributes(Of::Events, spot)?),
            "enable" if self.takes_word(&["lathist"]) => Statement::Histograms,
            "run" => Statement::Run(self.number()?),
            "psrun" => Statement::ReportingRun(self.number()?, self.number()?),
            "echo" => Statement::Echo(self.text()?),
            "system" => Statement::System(self.text()?),
            "usage" => {
                self.text()?;
                Statement::Noted(String::new())
            }
            "sleep" | "debug" => {
                self.number()?;
                Statement::Noted(format!("{word} changes nothing here"))
            }
            "version" => Statement::Version,
            "list" if self.takes_word(&["fileset", "filesets", "flowop", "flowops"]) => {
                Statement::List
            }
            "quit" => Statement::End,
            "load" => Statement::Load(self.word("name a personality")?.0),
            other => return Err(unknown_statement(other, spot)),
        })
    }

    fn syntax<T>(&self, remedy: &str) -> Result<T> {
        let token = self.peek();
        Err(ScriptFault::new(token.spot, format!("syntax error at '{}'", token.shown()), remedy))
    }

    /// A number or a variable, if one comes next.
    fn number(&mut self) -> Result<Option<Placed>> {
        match self.peek().kind {
            LexemeKind::Integer(_) | LexemeKind::Variable(_) => self.value().map(Some),
            _ => Ok(None),
        }
    }

    fn text(&mut self) -> Result<Placed> {
        match self.peek().kind {
            LexemeKind::Quoted(_) | LexemeKind::Word(_) | LexemeKind::Variable(_) => self.value(),
            _ => self.syntax("write a text in double quotes"),
        }
    }

    fn set(&mut self, spot: ScriptSpot) -> Result<Statement> {
        if self.takes_word(&["mode"]) {
            if self.takes_word(&["nousestats"]) {
                return Ok(Statement::Noted("set mode nousestats changes nothing here".into()));
            }
            let remedy = "write set mode quit timeout, alldone or firstdone";
            if !self.takes_word(&["quit"]) {
                return self.syntax(remedy);
            }
            let rules = [
                ("timeout", Quit::Timeout),
                ("firstdone", Quit::FirstDone),
                ("alldone", Quit::AllDone),
            ];
            let found = rules.iter().find(|(name, _)| self.takes_word(&[name]));
            return found.map_or_else(|| self.syntax(remedy), |rule| Ok(Statement::Quit(rule.1)));
        }
        let LexemeKind::Variable(name) = self.next().kind else {
            return Err(ScriptFault::new(spot, "set without a variable", "write set $name=VALUE"));
        };
        self.symbol('=', "the variable")?;
        Ok(Statement::Set(name, self.calculation()?))
    }

    /// A value, or several with operators between them, from the left to the right.
    fn calculation(&mut self) -> Result<Placed> {
        let mut left = self.value()?;
        for operators in 0.. {
            let operator = match self.peek().kind {
                LexemeKind::Symbol(symbol @ ('*' | '+')) => symbol,
                LexemeKind::Word(ref word) if word == "-" || word == "/" => {
                    word.chars().next().unwrap_or('-')
                }
                _ => return Ok(left),
            };
            if operators == OPERATORS_MAX {
                let what = format!("a calculation of more than {OPERATORS_MAX} operators");
                return Err(ScriptFault::new(left.spot, what, "write its value"));
            }
            self.at += 1;
            let right = self.value()?;
            let spot = ScriptSpot { to: right.spot.to.max(left.spot.to), ..left.spot };
            let value = Value::Calculated(Box::new(left), operator, Box::new(right));
            left = Placed { value, spot };
        }
        Ok(left)
    }

    fn value(&mut self) -> Result<Placed> {
        if self.depth == DEPTH_MAX {
            let what = format!("a value inside {DEPTH_MAX} others");
            return Err(ScriptFault::new(self.peek().spot, what, "write fewer braces"));
        }
        self.depth += 1;
        let found = self.one_value();
        self.depth -= 1;
        found
    }

    fn one_value(&mut self) -> Result<Placed> {
        let Lexeme { kind, spot } = self.next();
        let value = match kind {
            LexemeKind::Integer(value) => Value::Integer(value),
            LexemeKind::Variable(name) => Value::Variable(name),
            LexemeKind::Quoted(text) => Value::Quoted(text),
            LexemeKind::Word(word) => match word.as_str() {
                "true" => Value::Boolean(true),
                "false" => Value::Boolean(false),
                "randvar" | "cvar" if self.is_symbol('(') => return self.random(&word, spot),
                _ => Value::Word(word),
            },
            LexemeKind::Symbol('{') => {
                self.at -= 1;
                Value::Table(self.table()?)
            }
            other => {
                let token = Lexeme { kind: other, spot };
                let what = format!("syntax error at '{}'", token.shown());
                let remedy = "write a value: a number, a word, a text in double quotes, a variable";
                return Err(ScriptFault::new(spot, what, remedy));
            }
        };
        Ok(Placed { value, spot })
    }

    fn random(&mut self, word: &str, spot: ScriptSpot) -> Result<Placed> {
        self.at += 1;
        let of = if word == "cvar" { Of::Custom } else { Of::Random };
        let given = self.attributes(of, spot)?;
        self.symbol(')', "the attributes")?;
        Ok(Placed { value: Value::Random(of == Of::Custom, given.all), spot })
    }

    /// `{{percent, from, below}, ...}`.
    fn table(&mut self) -> Result<Vec<[Placed; 3]>> {
        self.symbol('{', "randtable=")?;
        let mut rows = Vec::new();
        loop {
            self.symbol('{', "the last row, or close the table with }")?;
            let percent = self.value()?;
            self.symbol(',', "the percentage")?;
            let from = self.value()?;
            self.symbol(',', "the smallest value")?;
            let below = self.value()?;
            self.symbol('}', "the largest value")?;
            rows.push([percent, from, below]);
            if !self.takes(',') {
                break;
            }
        }
        self.symbol('}', "the rows")?;
        Ok(rows)
    }

    /// Attributes of a thing, separated by commas; none is allowed.
    fn attributes(&mut self, of: Of, spot: ScriptSpot) -> Result<Givens> {
        let mut all = Vec::new();
        while matches!(self.peek().kind, LexemeKind::Word(_)) && !self.is_thread_or_flowop(&all) {
            all.push(self.attribute(of)?);
            if !self.takes(',') {
                break;
            }
        }
        Ok(Givens { all, spot })
    }

    /// Tell whether the next thing begins: attributes may be missing altogether.
    fn is_thread_or_flowop(&self, before: &[Given]) -> bool {
        let next = self.tokens.get(self.at + 1).map(|token| &token.kind);
        let is_attribute = matches!(next, Some(LexemeKind::Symbol('=' | ',')));
        before.is_empty()
            && !is_attribute
            && matches!(&self.peek().kind,
                LexemeKind::Word(word) if word == "thread" || word == "flowop")
    }

    fn attribute(&mut self, of: Of) -> Result<Given> {
        let (name, spot) = self.word("write an attribute")?;
        let Some(row) = attribute(of, &name) else {
            return Err(unknown_attribute(of, &name, spot));
        };
        if let Standing::Refused(why, instead) = row.standing {
            return Err(ScriptFault::new(spot, format!("{name}: {why}"), instead));
        }
        let value = if self.takes('=') {
            self.value()?
        } else {
            Placed { value: Value::Boolean(true), spot }
        };
        let name = row.names.iter().find(|known| **known == name).copied();
        let name = name.unwrap_or(row.names[0]);
        Ok(Given { attribute: row.attribute, name, spot, value })
    }

    fn define(&mut self, spot: ScriptSpot) -> Result<Statement> {
        let remedy = "write define file, fileset, process, flowop or randvar";
        let (word, at) = self.word(remedy)?;
        match word.as_str() {
            "file" | "files" => Ok(Statement::Files(true, self.attributes(Of::Files, spot)?)),
            "fileset" | "filesets" => {
                Ok(Statement::Files(false, self.attributes(Of::Files, spot)?))
            }
            "process" | "processes" => Ok(Statement::Process(self.process(spot)?)),
            "flowop" => Ok(Statement::Composite(self.composite(spot)?)),
            "randvar" => {
                let given = self.attributes(Of::Random, spot)?;
                let named = given.find(super::words::Attribute::Name);
                match named.map(|given| &given.value.value) {
                    Some(Value::Variable(name)) => {
                        let value = Value::Random(false, given.all.clone());
                        Ok(Statement::Set(name.clone(), Placed { value, spot }))
                    }
                    _ => Err(ScriptFault::new(
                        spot,
                        "a random variable without a name",
                        "write name=$v",
                    )),
                }
            }
            other => {
                let known = ["file", "fileset", "process", "flowop", "randvar"];
                let what = format!("syntax error at '{other}'{}", did_you_mean(other, known));
                Err(ScriptFault::new(at, what, remedy))
            }
        }
    }

    fn process(&mut self, spot: ScriptSpot) -> Result<WmlProcess> {
        let given = self.attributes(Of::Process, spot)?;
        self.symbol('{', "the attributes of the process")?;
        let mut threads = Vec::new();
        while !self.takes('}') {
            let (word, spot) = self.word("write thread, or close the process with }")?;
            if word != "thread" {
                let what = format!("syntax error at '{word}'{}", did_you_mean(&word, ["thread"]));
                return Err(ScriptFault::new(
                    spot,
                    what,
                    "write thread, or close the process with }",
                ));
            }
            let given = self.attributes(Of::Thread, spot)?;
            let flowops = self.flowops()?;
            threads.push(Thread { given, flowops });
        }
        Ok(WmlProcess { given, threads })
    }

    fn composite(&mut self, spot: ScriptSpot) -> Result<Composite> {
        let (mut name, mut parameters) = (None, Vec::new());
        loop {
            if let LexemeKind::Variable(parameter) = &self.peek().kind {
                let parameter = parameter.clone();
                self.at += 1;
                let default = if self.takes('=') { Some(self.value()?) } else { None };
                parameters.push((parameter, default));
            } else {
                let given = self.attribute(Of::Flowop)?;
                match given.value.value {
                    Value::Word(word) | Value::Quoted(word) if given.name == "name" => {
                        name = Some(word);
                    }
                    _ => {
                        let remedy = "write name=NAME, and parameters as $v or $v=DEFAULT";
                        return Err(ScriptFault::new(
                            given.spot,
                            "an attribute of a composite",
                            remedy,
                        ));
                    }
                }
            }
            if !self.takes(',') {
                break;
            }
        }
        let Some(name) = name else {
            return Err(ScriptFault::new(
                spot,
                "a composite flowop without a name",
                "write name=NAME",
            ));
        };
        self.composites.push(name.clone());
        let flowops = self.flowops()?;
        Ok(Composite { name, spot, parameters, flowops })
    }

    fn flowops(&mut self) -> Result<Vec<Flowop>> {
        self.symbol('{', "the attributes")?;
        let mut all = Vec::new();
        while !self.takes('}') {
            let (word, spot) = self.word("write flowop, or close the list with }")?;
            if word != "flowop" {
                let what = format!("syntax error at '{word}'{}", did_you_mean(&word, ["flowop"]));
                return Err(ScriptFault::new(spot, what, "write flowop, or close the list with }"));
            }
            all.push(self.flowop()?);
        }
        Ok(all)
    }

    fn flowop(&mut self) -> Result<Flowop> {
        let (kind, spot) = self.word("name the kind of the flowop")?;
        let row = flowop(&kind);
        if row.is_none() && !self.composites.contains(&kind) {
            let known = FLOWOPS.iter().map(|row| row.name);
            let known = known.chain(self.composites.iter().map(String::as_str));
            let hint = did_you_mean(&kind, known);
            let what = format!("define flowop: flowop type {kind} not found{hint}");
            let remedy = "`iolab filebench --help` lists them; a composite is defined before";
            return Err(ScriptFault::new(spot, what, remedy));
        }
        let (mut all, mut parameters) = (Vec::new(), Vec::new());
        loop {
            match &self.peek().kind {
                LexemeKind::Variable(name) => {
                    let name = name.clone();
                    self.at += 1;
                    self.symbol('=', "the parameter")?;
                    parameters.push((name, self.value()?));
                }
                LexemeKind::Word(word) if word != "flowop" || !all.is_empty() => {
                    all.push(self.attribute(Of::Flowop)?);
                }
                _ => break,
            }
            if !self.takes(',') {
                break;
            }
        }
        if let (Some(row), Some((name, value))) = (row, parameters.first()) {
            let what = format!("a parameter ${name} of {}", row.name);
            return Err(ScriptFault::new(
                value.spot,
                what,
                "only composite flowops have parameters",
            ));
        }
        Ok(Flowop { row, kind, given: Givens { all, spot }, parameters })
    }
}

fn unknown_statement(word: &str, spot: ScriptSpot) -> ScriptFault {
    let rows = STATEMENTS.iter().filter(|row| row.name.split(' ').next() == Some(word));
    let mut refused = rows.filter_map(|row| match row.standing {
        Standing::Refused(why, instead) => Some((row, why, instead)),
        _ => None,
    });
    if let Some((row, why, instead)) = refused.next() {
        return ScriptFault::new(spot, format!("{}: {why}", row.name), instead);
    }
    let known = STATEMENTS.iter().filter_map(|row| row.name.split(' ').next());
    let what = format!("syntax error at '{word}'{}", did_you_mean(word, known));
    ScriptFault::new(spot, what, "`iolab filebench --help` lists the statements")
}

fn unknown_attribute(of: Of, name: &str, spot: ScriptSpot) -> ScriptFault {
    let known = || ATTRIBUTES.iter().filter(|row| row.of.contains(&of)).flat_map(|row| row.names);
    let what = format!("syntax error at '{name}'{}", did_you_mean(name, known().copied()));
    let all = known().copied().collect::<Vec<_>>().join(", ");
    ScriptFault::new(spot, what, format!("its attributes are {all}"))
}

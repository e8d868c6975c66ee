//! A script as it was read: statements with attributes, nothing evaluated.

use super::lex::ScriptSpot;
use super::words::{Attribute, AttributeRow, FlowopRow};

/// A value as it stands in a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// `true`, `false`, or an attribute that stands alone.
    Boolean(bool),
    /// A bare word.
    Word(String),
    /// Text in double quotes: variables in it are filled in.
    Quoted(String),
    /// A variable.
    Variable(String),
    /// Rows of a random table: percentage, smallest, largest.
    Table(Vec<[Placed; 3]>),
    /// Factors or summands with the operator between them.
    Calculated(Box<Placed>, char, Box<Placed>),
    /// A random variable: `true` if it is a custom one.
    Random(bool, Vec<Given>),
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Value.
    pub value: Value,
    /// Place.
    pub spot: ScriptSpot,
}

/// An attribute that was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// The attribute.
    pub attribute: Attribute,
    /// As it was called, for messages.
    pub name: &'static str,
    /// Place of its name.
    pub spot: ScriptSpot,
    /// Its value.
    pub value: Placed,
}

/// Attributes of one thing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Givens {
    /// In the order in which they were given.
    pub all: Vec<Given>,
    /// Place of the thing.
    pub spot: ScriptSpot,
}

impl Givens {
    /// The last one of a kind: it counts.
    pub fn find(&self, attribute: Attribute) -> Option<&Given> {
        self.all.iter().rev().find(|given| given.attribute == attribute)
    }
}

/// A flow operation, or a call of a composite one.
#[derive(Clone, Debug)]
pub struct Flowop {
    /// Kind of it; absent: a composite.
    pub row: Option<&'static FlowopRow>,
    /// Its kind as it stands there.
    pub kind: String,
    /// Attributes.
    pub given: Givens,
    /// Parameters of a composite.
    pub parameters: Vec<(String, Placed)>,
}

/// A thread of a process.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Attributes.
    pub given: Givens,
    /// Operations of its loop.
    pub flowops: Vec<Flowop>,
}

/// A process.
#[derive(Clone, Debug)]
pub struct WmlProcess {
    /// Attributes.
    pub given: Givens,
    /// Threads.
    pub threads: Vec<Thread>,
}

/// A composite operation.
#[derive(Clone, Debug)]
pub struct Composite {
    /// Name.
    pub name: String,
    /// Place of its definition.
    pub spot: ScriptSpot,
    /// Parameters, with their defaults.
    pub parameters: Vec<(String, Option<Placed>)>,
    /// Operations.
    pub flowops: Vec<Flowop>,
}

/// Rule that ends a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quit {
    /// Time; whoever has nothing to do ends the run without results.
    #[default]
    Timeout,
    /// The first thread that has nothing more to do.
    FirstDone,
    /// All threads have nothing more to do.
    AllDone,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `set $name=value`.
    Set(String, Placed),
    /// `set mode quit ...`.
    Quit(Quit),
    /// `define file` (`true`: one file) or `define fileset`.
    Files(bool, Givens),
    /// `define process`.
    Process(WmlProcess),
    /// `define flowop`.
    Composite(Composite),
    /// `eventgen rate=`.
    Events(Givens),
    /// `enable lathist`.
    Histograms,
    /// `run [SECONDS]`.
    Run(Option<Placed>),
    /// `psrun [[-]PERIOD [SECONDS]]`.
    ReportingRun(Option<Placed>, Option<Placed>),
    /// `echo`.
    Echo(Placed),
    /// `system`.
    System(Placed),
    /// `version`.
    Version,
    /// `list`.
    List,
    /// `quit`.
    End,
    /// `load NAME`, of 1.4.9.
    Load(String),
    /// A statement that changes nothing here, with a note for the user.
    Noted(String),
    /// `create`.
    Create,
}

/// A statement with its place.
#[derive(Clone, Debug)]
pub struct PlacedStatement {
    /// Statement.
    pub statement: Statement,
    /// Place of its first word.
    pub spot: ScriptSpot,
}

/// Attributes that a thing may have.
pub type Allowed = fn(&AttributeRow) -> bool;

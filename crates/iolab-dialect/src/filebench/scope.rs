//! Variables and their values: attributes are resolved when the run begins, not where they stand.

use std::collections::BTreeMap;

use iolab_model::nearest::did_you_mean;
use iolab_workload::program::Amount;

use super::lex::{ScriptFault, ScriptSpot};
use super::random;
use super::syntax::{Given, Givens, Placed, Value};
use super::words::Attribute;

type Result<T> = std::result::Result<T, ScriptFault>;

/// A resolved value.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A whole number.
    Integer(i64),
    /// A boolean.
    Boolean(bool),
    /// Text.
    Text(String),
    /// Drawn at each use.
    Random(Amount),
}

impl Bound {
    /// The value as text, as echo prints it.
    pub fn text(&self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Boolean(value) => value.to_string(),
            Self::Text(text) => text.clone(),
            Self::Random(_) => "a random variable".to_owned(),
        }
    }
}

/// Variables that are known.
#[derive(Clone, Debug, Default)]
pub struct ScriptScope {
    /// By name: values as they were assigned.
    pub variables: BTreeMap<String, Placed>,
    /// Parameters of the composites around, innermost last.
    pub parameters: Vec<BTreeMap<String, Bound>>,
    /// Names that were asked for.
    asked: std::cell::RefCell<std::collections::BTreeSet<String>>,
}

/// Deepest chain of variables that are each other's values.
const DEPTH_MAX: u32 = 64;
/// Longest text with its variables filled in.
const TEXT_BYTES_MAX: usize = 64 << 10;

impl ScriptScope {
    /// Value of a variable.
    pub fn variable(&self, name: &str, spot: ScriptSpot, depth: u32) -> Result<Bound> {
        self.asked.borrow_mut().insert(name.to_owned());
        if let Some(found) = self.parameters.iter().rev().find_map(|frame| frame.get(name)) {
            return Ok(found.clone());
        }
        let Some(placed) = self.variables.get(name) else {
            let known = self.variables.keys().map(String::as_str);
            let what = format!("Noninitialized variable ${name}{}", did_you_mean(name, known));
            return Err(ScriptFault::new(
                spot,
                what,
                format!("write set ${name}=VALUE before the run"),
            ));
        };
        if depth > DEPTH_MAX {
            let what = format!("the variable ${name} is its own value");
            return Err(ScriptFault::new(spot, what, "give it a value"));
        }
        self.resolve_at(placed, depth + 1)
    }

    /// Tell whether some part of the script asked for a variable.
    pub fn was_asked(&self, name: &str) -> bool {
        self.asked.borrow().contains(name)
    }

    /// Value of something that stands in the script.
    pub fn resolve(&self, placed: &Placed) -> Result<Bound> {
        self.resolve_at(placed, 0)
    }

    fn resolve_at(&self, placed: &Placed, depth: u32) -> Result<Bound> {
        let spot = placed.spot;
        Ok(match &placed.value {
            Value::Integer(value) => Bound::Integer(*value),
            Value::Boolean(value) => Bound::Boolean(*value),
            Value::Word(word) => Bound::Text(word.clone()),
            Value::Quoted(text) => Bound::Text(self.expanded(text, spot, depth)?),
            Value::Variable(name) => self.variable(name, spot, depth)?,
            Value::Calculated(left, operator, right) => {
                let left = self.resolve_at(left, depth)?;
                let right = self.resolve_at(right, depth)?;
                calculate(&left, *operator, &right, spot)?
            }
            Value::Random(is_custom, given) => {
                let givens = Givens { all: given.clone(), spot };
                Bound::Random(random::amount(self, *is_custom, &givens)?)
            }
            Value::Table(_) => {
                return Err(ScriptFault::new(spot, "a table", "tables belong to randtable"));
            }
        })
    }

    /// Text with its variables filled in; `\n` is a new line, `\$` a dollar sign.
    fn expanded(&self, text: &str, spot: ScriptSpot, depth: u32) -> Result<String> {
        let (mut found, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(['$', '\\']) {
            found.push_str(&rest[..at]);
            let tail = &rest[at..];
            if let Some(after) = tail.strip_prefix('\\') {
                let escaped = after.chars().next();
                match escaped {
                    Some('n') => found.push('\n'),
                    Some(c @ ('$' | '"' | '\\')) => found.push(c),
                    Some(c) => found.extend(['\\', c]),
                    None => found.push('\\'),
                }
                rest = &after[escaped.map_or(0, char::len_utf8)..];
                continue;
            }
            let inner = tail[1..].strip_prefix(['{', '(']);
            let from = inner.unwrap_or(&tail[1..]);
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let name: &str = &from[..from.find(|c| !is_part(c)).unwrap_or(from.len())];
            if name.len() < 2 {
                found.push('$');
                rest = &tail[1..];
                continue;
            }
            found.push_str(&self.variable(name, spot, depth)?.text());
            if found.len() > TEXT_BYTES_MAX {
                let what = format!("a text of more than {} KiB", TEXT_BYTES_MAX >> 10);
                return Err(ScriptFault::new(spot, what, "write less of it"));
            }
            rest = &from[name.len()..];
            if inner.is_some() {
                rest = rest.strip_prefix(['}', ')']).unwrap_or(rest);
            }
        }
        Ok(found + rest)
    }

    /// Value of an attribute, if it was given.
    pub fn given(&self, givens: &Givens, attribute: Attribute) -> Result<Option<Bound>> {
        givens.find(attribute).map(|given| self.resolve(&given.value)).transpose()
    }

    /// A whole number of at least 0; a random one is refused.
    pub fn number(&self, givens: &Givens, attribute: Attribute, default: u64) -> Result<u64> {
        let Some(given) = givens.find(attribute) else { return Ok(default) };
        match self.amount_of(given)? {
            Amount::Constant(value) => Ok(value),
            Amount::Drawn(_) => {
                let what = format!("a random {}", given.name);
                Err(ScriptFault::new(given.value.spot, what, "write a whole number"))
            }
        }
    }

    /// A whole number, or one that is drawn.
    pub fn amount(&self, givens: &Givens, attribute: Attribute) -> Result<Option<Amount>> {
        givens.find(attribute).map(|given| self.amount_of(given)).transpose()
    }

    fn amount_of(&self, given: &Given) -> Result<Amount> {
        let spot = given.value.spot;
        match self.resolve(&given.value)? {
            Bound::Integer(value) => u64::try_from(value).map(Amount::Constant).map_err(|_| {
                let what = format!("{} of {value}", given.name);
                ScriptFault::new(spot, what, "write a number of at least 0")
            }),
            // A switch that old scripts write where a number is meant.
            Bound::Boolean(value) => Ok(Amount::Constant(u64::from(value))),
            Bound::Random(amount) => Ok(amount),
            Bound::Text(text) => {
                let what = format!("{} takes a number, not '{text}'", given.name);
                Err(ScriptFault::new(spot, what, "write a whole number, perhaps with k, m or g"))
            }
        }
    }

    /// A switch: absent is false; a number is true unless it is 0.
    pub fn switch(&self, givens: &Givens, attribute: Attribute) -> Result<bool> {
        let Some(given) = givens.find(attribute) else { return Ok(false) };
        match self.resolve(&given.value)? {
            Bound::Boolean(value) => Ok(value),
            Bound::Integer(value) => Ok(value != 0),
            Bound::Text(_) | Bound::Random(_) => {
                let what = format!("{} is true or false", given.name);
                Err(ScriptFault::new(
                    given.value.spot,
                    what,
                    "write true, false, or the name alone",
                ))
            }
        }
    }

    /// Text of an attribute.
    pub fn text(&self, givens: &Givens, attribute: Attribute) -> Result<Option<String>> {
        Ok(self.given(givens, attribute)?.map(|bound| bound.text()))
    }
}

fn calculate(left: &Bound, operator: char, right: &Bound, spot: ScriptSpot) -> Result<Bound> {
    let (Bound::Integer(a), Bound::Integer(b)) = (left, right) else {
        let what = format!("{} {operator} {}", left.text(), right.text());
        return Err(ScriptFault::new(spot, what, "calculate with whole numbers"));
    };
    let value = match operator {
        '*' => a.checked_mul(*b),
        '+' => a.checked_add(*b),
        '-' => a.checked_sub(*b),
        _ => a.checked_div(*b),
    };
    value.map(Bound::Integer).ok_or_else(|| {
        let what = format!("{a} {operator} {b} has no value");
        ScriptFault::new(spot, what, "use other numbers")
    })
}

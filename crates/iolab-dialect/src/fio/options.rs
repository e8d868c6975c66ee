//! The job options of fio, one row each: names, type, unit, default, tier, what is done here.
//!
//! Facts: fio 3.33 as it behaves. The default of a refused option is accepted: it changes nothing.

mod files;
mod io;
mod jobs;
mod logs;
mod refused;
mod results;
mod rules;

use super::row::Row;

/// All job options by group.
pub const TABLES: [&[Row]; 8] = [
    files::ROWS,
    io::ROWS,
    jobs::ROWS,
    results::ROWS,
    rules::ROWS,
    logs::ROWS,
    refused::ROWS,
    refused::OF_ENGINES,
];

/// All job options.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    TABLES.into_iter().flatten()
}

/// The option of this name.
pub fn find(name: &str) -> Option<&'static Row> {
    rows().find(|row| row.is_called(name))
}

/// Rows of one group: `"name" | "alias": kind, default, tier, doc, standing => setter;`.
macro_rules! done_rows {
    ($group:expr; $(
        $name:literal $(| $alias:literal)*: $kind:expr, $default:literal, $tier:ident,
        $doc:literal, $standing:expr => $set:expr;
    )+) => {
        &[$( $crate::fio::row::Row {
            name: $name,
            aliases: &[$($alias),*],
            group: $group,
            kind: $kind,
            default: $default,
            tier: $crate::fio::row::Tier::$tier,
            doc: $doc,
            standing: $standing,
            set: $set,
        }, )+]
    };
}
pub(crate) use done_rows;

/// Rows that are refused: `"name" | "alias": kind, default, tier, doc, why, instead;`.
macro_rules! refused_rows {
    ($group:expr; $(
        $name:literal $(| $alias:literal)*: $kind:expr, $default:literal, $tier:ident,
        $doc:literal, $why:literal, $instead:literal;
    )+) => {
        &[$( $crate::fio::row::Row {
            name: $name,
            aliases: &[$($alias),*],
            group: $group,
            kind: $kind,
            default: $default,
            tier: $crate::fio::row::Tier::$tier,
            doc: $doc,
            standing: $crate::option::Standing::Refused($why, $instead),
            set: |_, _| Ok(()),
        }, )+]
    };
}
pub(crate) use refused_rows;

/// Rows of options that engines have which are not done: `"engine": "name", ...;`.
macro_rules! engine_rows {
    ($group:expr; $($engine:literal: $($name:literal),+;)+) => {
        &[$($( $crate::fio::row::Row {
            name: $name,
            aliases: &[],
            group: $group,
            kind: $crate::fio::row::Kind::Text,
            default: "",
            tier: $crate::fio::row::Tier::T3,
            doc: concat!("an option of the engine ", $engine),
            standing: $crate::option::Standing::Refused(
                concat!("the engine ", $engine, " is not supported"),
                "use another ioengine",
            ),
            set: |_, _| Ok(()),
        }, )+)+]
    };
}
pub(crate) use engine_rows;

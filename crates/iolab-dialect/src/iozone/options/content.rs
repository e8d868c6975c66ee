//! Options about the data that are written. Facts: the behaviour of `IOzone` 3.489.
//!
//! Its dedup options fill half of each record with zeros whatever is asked; here the shares are
//! those that are asked for.

use super::super::values::{at_least, percent};
use super::{Row, refused, value};
use crate::diagnostic::Problem;
use crate::option::Standing::{Differs, Done};

const CONTENT: &str = "What is written";
const SHARES: &str = "the share is as asked; half of the original's data are zeros in any case";
const DATA: &str = "data are incompressible, and each page differs";
const DATA_INSTEAD: &str = "leave it out, use -+w and -+a, or --compat for zero-filled data";

pub(super) const ROWS: &[Row] = &[
    value(
        ("-+w", "PERCENT"),
        CONTENT,
        "so much of each record can be de-duplicated: files have it at the same places",
        Differs(SHARES),
        |t, g| {
            t.how.data.duplicate_percent = percent(g)?;
            t.say(&format!("Dedup activated {} percent.", g.value))
        },
    ),
    value(
        ("-+y", "PERCENT"),
        CONTENT,
        "so much of -+w repeats inside each file, too",
        Differs(SHARES),
        |t, g| {
            t.how.data.everywhere_percent = percent(g)?;
            t.say(&format!("Dedup within & across {} percent.", g.value))
        },
    ),
    value(
        ("-+C", "PERCENT"),
        CONTENT,
        "so much of -+w repeats inside a file only",
        Differs(SHARES),
        |t, g| {
            t.how.data.within_percent = percent(g)?;
            t.say(&format!("Dedup within {} percent.", g.value))
        },
    ),
    value(
        ("-+a", "PERCENT"),
        CONTENT,
        "so much of what is not -+w is zeros",
        Differs("it works without -+w, too"),
        |t, g| {
            t.how.data.zero_percent = percent(g)?;
            t.say(&format!("Zero Percent {}", g.value))
        },
    ),
    value(("-+S", "SEED"), CONTENT, "seed of the data of -+w", Done, |t, g| {
        t.how.data.seed = g.number("a seed")?;
        t.say(&format!("Dedup manual seed {} .", g.value))
    }),
    value(
        ("-+W", "N"),
        CONTENT,
        "makes what files do not share differ from that of another machine's",
        Done,
        |t, g| {
            t.how.data.skew = g.number("a number")?;
            t.say(&format!("Dedup chid_skew {} .", g.value))
        },
    ),
    value(
        ("-+Q", "BYTES"),
        CONTENT,
        "granule of -+w: its shares are those of each piece of this size (the record)",
        Done,
        |t, g| {
            let bytes = at_least(g, 512, "a number of bytes")?;
            if bytes % 512 != 0 {
                let what = format!("-+Q {bytes} is no multiple of 512");
                return Err(Problem::new(what, "write for instance -+Q 4096"));
            }
            t.how.data.granule_bytes = Some(bytes);
            t.say(&format!("Dedup granule size {bytes}"))
        },
    ),
    refused("-+M", CONTENT, "duplicates that also compress", DATA, "use -+w and -+a together"),
    refused("-+X", CONTENT, "a short pattern", DATA, DATA_INSTEAD),
    refused("-+Z", CONTENT, "an old pattern", DATA, DATA_INSTEAD),
];

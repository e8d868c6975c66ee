//! Options about the data that are written. Facts: the behaviour of `IOzone` 3.489.

use super::{Row, refused};

const CONTENT: &str = "What is written";
const DATA: &str = "data are incompressible, and each page differs";
const DATA_INSTEAD: &str = "leave it out, or use --compat for the original's zero-filled data";

pub(super) const ROWS: &[Row] = &[
    refused("-+w", CONTENT, "data with duplicates", DATA, DATA_INSTEAD),
    refused("-+y", CONTENT, "duplicates inside a file", DATA, DATA_INSTEAD),
    refused("-+C", CONTENT, "duplicates only inside a file", DATA, DATA_INSTEAD),
    refused("-+a", CONTENT, "compressible share of the data", DATA, DATA_INSTEAD),
    refused("-+S", CONTENT, "seed of duplicates", DATA, DATA_INSTEAD),
    refused("-+W", CONTENT, "offset of duplicates", DATA, DATA_INSTEAD),
    refused("-+Q", CONTENT, "granule of duplicates", DATA, DATA_INSTEAD),
    refused("-+M", CONTENT, "check sums", DATA, "use -+d"),
    refused("-+X", CONTENT, "a short pattern", DATA, DATA_INSTEAD),
    refused("-+Z", CONTENT, "an old pattern", DATA, DATA_INSTEAD),
];

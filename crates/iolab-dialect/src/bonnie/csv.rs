//! bonnie++'s CSV line: written as 2.00 does (format 1.98, 50 fields, its quirks included), read
//! in every format: 1.98, 1.97 and 1.96 (48 fields), and that of before 1.90 (27).

use serde::{Deserialize, Serialize};

/// Stands for the rate of a phase that took less than half a second.
pub const TOO_SHORT: &str = "+++++";
/// The same for its processor share.
pub const TOO_SHORT_CPU: &str = "+++";
/// Phases on the large file, then those on many files.
pub const PHASES: [&str; 12] = [
    "putc",
    "put_block",
    "rewrite",
    "getc",
    "get_block",
    "seeks",
    "seq_create",
    "seq_stat",
    "seq_del",
    "ran_create",
    "ran_stat",
    "ran_del",
];
/// Number of phases on the large file.
pub const IO_PHASES: usize = 6;

/// Rate and processor share of a phase, as printed; empty: it did not run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "BonnieCell")]
pub struct Cell {
    /// A number, `+++++` or nothing.
    pub rate: String,
    /// A whole number of percent, `+++` or nothing.
    pub cpu: String,
    /// Longest step with its unit, or nothing.
    pub latency: String,
}

/// One result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs, reason = "the fields are those of the line")]
#[schemars(rename = "BonnieLine")]
pub struct Line {
    pub program: String,
    pub name: String,
    pub concurrency: String,
    pub seed: String,
    pub file_size: String,
    pub chunk: String,
    pub seeks: String,
    pub seekers: String,
    pub files: String,
    pub size_max: String,
    pub size_min: String,
    pub directories: String,
    pub cells: [Cell; 12],
}

/// The line that 2.00 prints above several results: two names short, as there.
pub const HEADER: &str = "format_version,bonnie_version,name,concurrency,seed,file_size,\
io_chunk_size,putc,putc_cpu,put_block,put_block_cpu,rewrite,rewrite_cpu,getc,getc_cpu,get_block,\
get_block_cpu,seeks,seeks_cpu,num_files,max_size,min_size,num_dirs,file_chunk_size,seq_create,\
seq_create_cpu,seq_stat,seq_stat_cpu,seq_del,seq_del_cpu,ran_create,ran_create_cpu,ran_stat,\
ran_stat_cpu,ran_del,ran_del_cpu,putc_latency,put_block_latency,rewrite_latency,getc_latency,\
get_block_latency,seeks_latency,seq_create_latency,seq_stat_latency,seq_del_latency,\
ran_create_latency,ran_stat_latency,ran_del_latency";

impl Line {
    /// The line in format 1.98.
    pub fn write(&self) -> String {
        let mut fields: Vec<&str> = vec![
            "1.98",
            &self.program,
            &self.name,
            &self.concurrency,
            &self.seed,
            &self.file_size,
            // The chunk is never printed, as in 2.00.
            "",
            &self.seeks,
            &self.seekers,
        ];
        let (io, files) = self.cells.split_at(IO_PHASES);
        fields.extend(io.iter().flat_map(|cell| [cell.rate.as_str(), &cell.cpu]));
        // The number of directories stands where the header names a chunk, as in 2.00.
        fields.extend([&*self.files, &self.size_max, &self.size_min, "", &self.directories]);
        fields.extend(files.iter().flat_map(|cell| [cell.rate.as_str(), &cell.cpu]));
        fields.extend(self.cells.iter().map(|cell| cell.latency.as_str()));
        fields.join(",")
    }

    /// Reads a line of any format; `None` for a header or an empty line.
    ///
    /// # Errors
    ///
    /// The fault, in words.
    pub fn read(text: &str) -> Result<Option<Self>, String> {
        let text = text.trim();
        if text.is_empty() || text.starts_with("name,") || text.starts_with("format_version,") {
            return Ok(None);
        }
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let line = match (fields[0], fields.len()) {
            ("1.98", 50) => Self::newer(&fields, true),
            ("1.96" | "1.97", 48) => Self::newer(&fields, false),
            (version @ ("1.98" | "1.97" | "1.96"), count) => {
                let wanted = if version == "1.98" { 50 } else { 48 };
                return Err(format!("{count} fields, but format {version} has {wanted}"));
            }
            (_, 27) => Self::older(&fields),
            (first, count) => {
                return Err(format!(
                    "not a line of bonnie++: {count} fields, the first is '{}'; formats are 1.98 \
                     (50 fields), 1.97 and 1.96 (48), and that of before 1.90 (27)",
                    first.chars().take(20).collect::<String>()
                ));
            }
        };
        line.check()?;
        Ok(Some(line))
    }

    fn newer(fields: &[&str], has_seeks: bool) -> Self {
        let shift = if has_seeks { 2 } else { 0 };
        let at = |place: usize| fields[place].to_owned();
        let cell = |phase: usize| {
            let first = if phase < IO_PHASES { 7 } else { 12 } + shift + 2 * phase;
            Cell { rate: at(first), cpu: at(first + 1), latency: at(36 + shift + phase) }
        };
        Self {
            program: at(1),
            name: at(2),
            concurrency: at(3),
            seed: at(4),
            file_size: at(5),
            chunk: at(6),
            seeks: if has_seeks { at(7) } else { String::new() },
            seekers: if has_seeks { at(8) } else { String::new() },
            files: at(19 + shift),
            size_max: at(20 + shift),
            size_min: at(21 + shift),
            directories: at(23 + shift),
            cells: std::array::from_fn(cell),
        }
    }

    fn older(fields: &[&str]) -> Self {
        let at = |place: usize| fields[place].to_owned();
        let cell = |phase: usize| {
            let first = if phase < IO_PHASES { 2 } else { 3 } + 2 * phase;
            Cell { rate: at(first), cpu: at(first + 1), latency: String::new() }
        };
        let (file_size, chunk) = fields[1].split_once(':').unwrap_or((fields[1], ""));
        let (shape, directories) = fields[14].split_once('/').unwrap_or((fields[14], ""));
        let mut sizes = shape.split(':').map(str::to_owned);
        let mut next = || sizes.next().unwrap_or_default();
        Self {
            program: "1.03".into(),
            name: at(0),
            file_size: file_size.into(),
            chunk: chunk.into(),
            files: next(),
            size_max: next(),
            size_min: next(),
            directories: directories.into(),
            cells: std::array::from_fn(cell),
            ..Self::default()
        }
    }

    /// Tell whether rates and shares are what they can be.
    fn check(&self) -> Result<(), String> {
        let is_number = |text: &str| text.parse::<f64>().is_ok_and(|n| n.is_finite() && n >= 0.0);
        let is_mark = |text: &str| text.is_empty() || text.bytes().all(|byte| byte == b'+');
        for (cell, phase) in self.cells.iter().zip(PHASES) {
            for text in [&cell.rate, &cell.cpu] {
                if !is_mark(text) && !is_number(text) {
                    let shown: String = text.chars().take(20).collect();
                    return Err(format!("{phase}: '{shown}' is neither a number nor +++++"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "1.98,2.00a,testhost,1,7,64M,,8192,5,1155,52,+++++,+++,+++++,+++,2024,49,\
+++++,+++,+++++,+++,1,2048,512,,4,964,26,+++++,+++,+++++,+++,1486,26,+++++,+++,+++++,+++,12348us,\
4095us,4066us,18383us,4086us,12105us,20344us,38us,8349us,16211us,1584us,1535us";
    const OLD: &str = "1.96,1.96,testhost,1,1363116047,7G,,665,99,99412,19,44104,11,3042,99,\
114312,14,246.9,9,16,,,,,+++++,+++,+++++,+++,+++++,+++,+++++,+++,+++++,+++,+++++,+++,12ms,34ms,\
56ms,7ms,8ms,9ms,1us,2us,3us,4us,5us,6us";

    #[test]
    fn what_is_read_is_written_again() {
        let line = Line::read(NEW).unwrap().unwrap();
        assert_eq!((line.directories.as_str(), line.size_min.as_str()), ("4", "512"));
        assert_eq!(line.cells[6].rate, "964");
        assert_eq!(line.cells[11].latency, "1535us");
        assert_eq!(line.write(), NEW);
    }

    #[test]
    fn older_formats_are_read() {
        let line = Line::read(OLD).unwrap().unwrap();
        assert_eq!((line.cells[5].rate.as_str(), line.cells[6].rate.as_str()), ("246.9", "+++++"));
        assert_eq!(line.cells[0].latency, "12ms");
        let oldest = "host,2G:16k,30,98,39,9,16,4,31,91,42,5,222.2,0,16:4096:512/8,3022,99,+++++,\
+++,+++++,+++,3100,98,+++++,+++,8100,99";
        let line = Line::read(oldest).unwrap().unwrap();
        assert_eq!((line.chunk.as_str(), line.directories.as_str()), ("16k", "8"));
        assert_eq!((line.files.as_str(), line.size_max.as_str()), ("16", "4096"));
        assert_eq!(line.cells[11].rate, "8100");
    }

    #[test]
    fn what_is_none_is_refused() {
        for (text, message) in [
            (NEW.replacen("1.98", "1.93", 1), "not a line of bonnie++"),
            (NEW.replacen(",964,26", ",964", 1), "49 fields, but format 1.98 has 50"),
            (NEW.replacen("1155", "fast", 1), "putc: 'fast' is neither"),
        ] {
            let error = Line::read(&text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        assert_eq!(Line::read(HEADER).unwrap(), None);
        assert_eq!(HEADER.split(',').count(), 48);
    }
}

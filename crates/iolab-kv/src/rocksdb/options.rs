//! Options as the library's own texts: `name=value;name=value`.

use iolab_model::kv::KvOption;

/// Part of options of the database or of a column family.
const TABLE: &str = "table";
/// Part of the name that says from what options begin.
pub const BASE: &str = "base";

/// All options as one text; those of the table in the braces of their factory.
pub fn text(options: &[KvOption]) -> String {
    let pair = |option: &KvOption| format!("{}={};", option.name, option.value);
    let is_of_table = |option: &&KvOption| option.part == TABLE;
    let plain = options.iter().filter(|option| option.part != TABLE && option.part != BASE);
    let mut text: String = plain.map(pair).collect();
    let table: String = options.iter().filter(is_of_table).map(pair).collect();
    if !table.is_empty() {
        text.push_str("block_based_table_factory={");
        text.push_str(&table);
        text.push_str("};");
    }
    text
}

/// Tell whether options begin from the library's own defaults, not from those of YCSB's binding.
pub fn begins_plain(options: &[KvOption]) -> bool {
    options.iter().any(|option| option.part == BASE && option.value == "plain")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_table_are_in_braces() {
        let option = |part: &str, name: &str, value: &str| KvOption {
            part: part.into(),
            name: name.into(),
            value: value.into(),
        };
        let options = [
            option("base", "defaults", "plain"),
            option("db", "max_open_files", "100"),
            option("table", "block_size", "8192"),
            option("cf", "compression", "kNoCompression"),
        ];
        assert_eq!(
            text(&options),
            "max_open_files=100;compression=kNoCompression;\
             block_based_table_factory={block_size=8192;};"
        );
        assert!(begins_plain(&options) && !begins_plain(&options[1..]));
    }
}

//! Compiles the folder `profiles` in: adding a drive of a known kind is adding a file.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=profiles");
    let folder =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("profiles");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .expect("the folder profiles is part of the crate")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    names.sort();
    let mut code = String::from("&[\n");
    for name in names {
        let path = folder.join(format!("{name}.toml")).display().to_string();
        writeln!(code, "    ({name:?}, include_str!({path:?})),").expect("writing to a string");
    }
    code.push_str("]\n");
    let target = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("profiles.rs");
    fs::write(target, code).expect("OUT_DIR is writable");
}

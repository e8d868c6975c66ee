//! The conformance suite on every engine, in a directory of this machine.
//!
//! An engine that cannot be used there must say why before anything is done; it is counted.

use std::path::{Path, PathBuf};

use iolab_model::conformance::{Failure, check};
use iolab_model::{Bytes, LaneRequest, Seed, Target, target::Content};
use iolab_real::{Engine, EngineVisitor};

/// Why the engine cannot be used in a directory, or what it broke there.
struct Conform<'a>(&'a Path);

impl EngineVisitor for Conform<'_> {
    type Output = Result<Vec<Failure>, String>;
    fn visit<T: Target + Sync>(self, target: &T) -> Self::Output {
        let request = LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes::PAGE,
            content: Content::Zero,
            seed: Seed(1),
            priority: None,
            paths: [self.0.join("probe")].into(),
        };
        target.open(&request).map_err(|error| error.to_string())?;
        Ok(check(target, self.0))
    }
}

/// Where to run: `IOLAB_TEST_DIRS` (colon separated: one per file system), else the temporary
/// directory.
fn directories() -> Vec<PathBuf> {
    match std::env::var_os("IOLAB_TEST_DIRS") {
        Some(list) => std::env::split_paths(&list).collect(),
        None => vec![std::env::temp_dir()],
    }
}

#[test]
fn every_engine_conforms() {
    for base in directories() {
        let mut conforming = 0;
        for &engine in Engine::ALL {
            let directory = tempfile::tempdir_in(&base).unwrap();
            match engine.visit(Conform(directory.path())) {
                Ok(failures) => {
                    assert!(failures.is_empty(), "{engine} on {}: {failures:#?}", base.display());
                    conforming += 1;
                }
                // The kernel refuses it, or the device cannot poll; and what to do instead.
                Err(why) => {
                    let may_be_refused = engine.probe(std::slice::from_ref(&base)).is_err();
                    assert!(may_be_refused && why.contains("--engine"), "{engine}: {why}");
                    println!("skipped: {why}");
                }
            }
        }
        println!("{}: {conforming} of {} engines conform", base.display(), Engine::ALL.len());
        assert!(conforming >= 7, "the synchronous engines work everywhere");
    }
}

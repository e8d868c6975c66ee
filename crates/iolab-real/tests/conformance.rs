//! The conformance suite on every engine, in a directory of this machine.

use iolab_model::Target;
use iolab_model::conformance::check;
use iolab_real::{Engine, EngineVisitor};

struct Conform<'a>(&'a std::path::Path);

impl EngineVisitor for Conform<'_> {
    type Output = Vec<iolab_model::conformance::Failure>;
    fn visit<T: Target + Sync>(self, target: &T) -> Self::Output {
        check(target, self.0)
    }
}

/// Where to run: `IOLAB_TEST_DIRS` (colon separated: one per file system), else the temporary
/// directory.
fn directories() -> Vec<std::path::PathBuf> {
    match std::env::var_os("IOLAB_TEST_DIRS") {
        Some(list) => std::env::split_paths(&list).collect(),
        None => vec![std::env::temp_dir()],
    }
}

#[test]
fn every_engine_conforms() {
    for base in directories() {
        for &engine in Engine::ALL {
            let directory = tempfile::tempdir_in(&base).unwrap();
            let failures = engine.visit(Conform(directory.path()));
            assert!(failures.is_empty(), "{engine} on {}: {failures:#?}", base.display());
        }
    }
}

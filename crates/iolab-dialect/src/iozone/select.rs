//! Tests that a command line selects, in the order in which they run.

use iolab_workload::preset::IozoneTest;
use iolab_workload::preset::IozoneTest as T;

use super::typed::Typed;
use crate::diagnostic::Problem;

/// Tests of single and automatic mode, in their order.
pub fn single_tests(typed: &mut Typed) -> Result<Vec<IozoneTest>, Problem> {
    select_replays(typed);
    let asked = typed.tests.clone();
    let has = |number: u32| asked.contains(&number);
    let is_positioned = has(9) || has(10);
    if has(8) {
        typed.notes.push("-i 8 needs several children (-t N): it is left out".into());
    }
    if is_positioned && !typed.table.has_extensions {
        if typed.is_compat {
            typed.notes.push("-i 9 and -i 10 do nothing without -E, as in the original".into());
        } else {
            typed.notes.push("-i 9 and -i 10: their columns are added (-E)".into());
            typed.table.has_extensions = true;
        }
    }
    let is_async = typed.how.depth.is_some();
    let has_streams = !typed.how.is_mapped && !is_async;
    let mut tests = Vec::new();
    for (number, pair) in TESTS {
        let is_possible = match number {
            6 | 7 => has_streams,
            9 | 10 => typed.table.has_extensions && has_streams,
            11 | 12 => has(*number) && has_streams,
            _ => true,
        };
        if (asked.is_empty() || has(*number)) && is_possible {
            let passes = if typed.table.has_no_retest { &pair[..1] } else { &pair[..] };
            // Of test 2 only the reads are done in files of others.
            let is_two_tests = *number == 2 && !typed.children.is_foreign;
            let passes =
                if typed.children.is_foreign && *number == 2 { &pair[..1] } else { passes };
            tests.extend(if is_two_tests { pair } else { passes });
        }
    }
    if tests.is_empty() {
        return Err(Problem::new(
            "none of the tests asked for can run in this mode",
            "select others with -i; test 8 needs -t N, tests 6, 7 and 9 to 12 plain I/O",
        ));
    }
    Ok(tests)
}

/// A telemetry file asks for the test that it is about.
fn select_replays(typed: &mut Typed) {
    if typed.how.replays.write.is_some() {
        typed.tests.push(0);
    }
    if typed.how.replays.read.is_some() {
        typed.tests.push(1);
    }
}

/// Numbers and passes.
const TESTS: &[(u32, &[IozoneTest])] = &[
    (0, &[T::Write, T::Rewrite]),
    (1, &[T::Read, T::Reread]),
    (2, &[T::RandomRead, T::RandomWrite]),
    (3, &[T::BackwardRead]),
    (4, &[T::RecordRewrite]),
    (5, &[T::StrideRead]),
    (6, &[T::Fwrite, T::Frewrite]),
    (7, &[T::Fread, T::Freread]),
    (9, &[T::Pwrite, T::Repwrite]),
    (10, &[T::Pread, T::Repread]),
    (11, &[T::Pwritev]),
    (12, &[T::Preadv]),
];

/// Order of throughput mode, with the number that selects it and whether it is a second pass.
const THROUGHPUT: &[(u32, IozoneTest, bool)] = &[
    (0, T::Write, false),
    (0, T::Rewrite, true),
    (1, T::Read, false),
    (1, T::Reread, true),
    (3, T::BackwardRead, false),
    (5, T::StrideRead, false),
    (2, T::RandomRead, false),
    (8, T::Mix, false),
    (2, T::RandomWrite, false),
    (9, T::Pwrite, false),
    (10, T::Pread, false),
    (6, T::Fwrite, false),
    (7, T::Fread, false),
];

/// Tests of throughput mode, in its order.
pub fn throughput_tests(typed: &mut Typed) -> Result<Vec<IozoneTest>, Problem> {
    select_replays(typed);
    for (number, why) in [
        (4, "-i 4 does not exist in throughput mode: it is left out"),
        (11, "-i 11 does not exist in throughput mode: it is left out"),
        (12, "-i 12 does not exist in throughput mode: it is left out"),
    ] {
        if typed.tests.contains(&number) {
            typed.notes.push(why.into());
        }
    }
    let how = &typed.how;
    let is_plain = !how.is_mapped && how.depth.is_none();
    let is_asked = |number: &u32| typed.tests.is_empty() || typed.tests.contains(number);
    let is_possible = |number: &u32| is_plain || !matches!(number, 6 | 7 | 9 | 10);
    let tests: Vec<IozoneTest> = THROUGHPUT
        .iter()
        .filter(|(number, _, again)| {
            is_asked(number) && is_possible(number) && !(*again && typed.table.has_no_retest)
        })
        .filter(|(_, test, _)| !(typed.children.is_foreign && test.writes()))
        .map(|(_, test, _)| *test)
        .collect();
    if tests.is_empty() {
        let what = "none of the tests asked for exists in throughput mode";
        return Err(Problem::new(what, "select others with -i: 0 to 3 and 5 to 10 exist"));
    }
    Ok(tests)
}

//! Waits for the journal of ext4.

mod race;

use iolab_model::Ns;
use iolab_sim::target::Simulation;
use race::workers::{flushed_writes, race, stack};

/// Two loops of appending and fsync. Linux 6.18 makes 198 commits for 200 fsyncs on a loop device:
/// ext4 has no handles that wait for others, so no commit is delayed to take in a second fsync
/// (`jbd2_journal_stop`, `h_sync`), and each that comes during a commit needs one of its own.
#[test]
fn x4_13_no_commit_waits_for_a_second_fsync() {
    let calls = flushed_writes(100, 4096);
    let loops = |count| {
        let target = stack(
            "name = \"x\"\n[device]\nlike = \"fixed-100us\"\nname = \"x\"\ntitle = \"x\"\n\
             parameters = { latency = 3000 }\n[files]\nfs = \"ext4\"\n",
        );
        let ends = race(&target, count, &calls);
        let counters = target.inspect(Simulation::counters);
        let commits = counters.iter().find(|(name, _)| name == "fs.journal_commits").unwrap().1;
        let slowest = ends.iter().flat_map(|ends| ends.windows(2).map(|pair| pair[1] - pair[0]));
        (commits, slowest.max().unwrap())
    };
    let (alone, longest_alone) = loops(1);
    let (both, longest) = loops(2);
    assert!((99.0..=101.0).contains(&alone), "{alone} commits for 100 fsyncs");
    assert!((190.0..=201.0).contains(&both), "{both} commits for 200 fsyncs");
    // Its own commit, and the other's that was under way.
    assert!(longest.0 <= 2 * longest_alone.0, "{longest:?}, alone {longest_alone:?}");
}

/// A device that takes longer for a commit than there is between two of them.
#[test]
fn a_device_slower_than_the_time_between_commits_is_waited_for() {
    let calls = flushed_writes(6, 1 << 20);
    for row in iolab_files::fs::list::FILE_SYSTEMS {
        for latency_s in [2, 9, 100] {
            let target = stack(&format!(
                "name = \"x\"\n[device]\nlike = \"fixed-100us\"\nname = \"x\"\ntitle = \"x\"\n\
                 parameters = {{ latency = {}, depth = 1 }}\n[files]\nfs = {:?}\n",
                latency_s * 1_000_000,
                row.name
            ));
            let ends = race(&target, 2, &calls);
            assert!(ends[0][12] >= Ns::from_ms(latency_s * 1000), "{}: {:?}", row.name, ends[0]);
        }
    }
}

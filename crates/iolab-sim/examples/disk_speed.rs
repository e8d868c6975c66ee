//! Number of simulated disk commands a second that the disk model handles on one core.
//!
//! ```text
//! cargo run --release -p iolab-sim --example disk_speed -- [PROFILE] [DEPTH]
//! ```

use std::process::ExitCode;

use iolab_model::{Ns, Sector, Seed};
use iolab_sim::device::disk::Disk;
use iolab_sim::{Bio, BioId, Ended, Flags, Layer, Operation, Profile, SimError, Submitter};

/// Commands that one run sends.
const COMMANDS: u32 = 2_000_000;

/// Random 4 KiB bios in a closed queue; answers simulated time.
fn run(profile: &Profile, operation: Operation, depth: u32) -> Result<Ns, SimError> {
    let mut disk = Disk::from_profile(profile, Seed(1), "speed")?;
    let slots = disk.info().capacity.0 / 8;
    let mut addresses = Seed(2).stream("addresses", 0);
    let mut done: Vec<Ended> = (0..depth).map(BioId).map(Ended::ok).collect();
    let mut now = Ns(0);
    let mut sent = 0;
    while sent < COMMANDS {
        for &Ended { id, .. } in &done {
            let bio = Bio {
                id,
                operation,
                sector: Sector(addresses.below(slots) * 8),
                sectors: 8,
                flags: Flags::NONE,
                submitter: Submitter::default(),
                segments: 0,
            };
            disk.submit(now, &bio);
            sent += 1;
        }
        done.clear();
        now = disk.next_event();
        disk.advance(now, &mut done);
    }
    Ok(now)
}

#[allow(clippy::disallowed_methods)] // The program measures itself; the model has no clock.
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "scsi10k-1998".to_owned());
    let depth = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(32);
    let profile = match Profile::built_in(&name) {
        Ok(profile) => profile,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    for operation in [Operation::Read, Operation::Write] {
        let start = std::time::Instant::now();
        match run(&profile, operation, depth) {
            Ok(simulated) => {
                let seconds = start.elapsed().as_secs_f64();
                let rate = f64::from(COMMANDS) / seconds / 1e6;
                println!(
                    "{name}, {operation:?}, depth {depth}: {rate:.2} million commands a second \
                     of real time ({simulated} simulated in {seconds:.2} s)"
                );
            }
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

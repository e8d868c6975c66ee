//! Replays a validation trace of the `DiskSim` distribution and prints the demerit figure.
//!
//! The traces are not part of iolab; they are public with `DiskSim` (folder `valid`, files
//! `*.trace`). A line is: R or W, a guess of hit or miss, first sector, sectors, service time in
//! microseconds, and the pause until the next command in microseconds. As in the published
//! validation, one command is in flight at a time and the pause is kept.
//!
//! Below the figures stands what is left of each class of commands: direction, direction of the
//! command before, and whether it continues that one; simulated minus real time, mean and median.
//!
//! ```text
//! cargo run --release -p iolab-sim --example disk_demerit -- cheetah9lp-1998 cheetah9LP.trace
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;

use iolab_model::{Ns, Sector, Seed};
use iolab_sim::device::disk::Disk;
use iolab_sim::{Bio, BioId, Ended, Flags, Layer, Operation, Profile, Submitter};

/// One line of a trace.
struct Row {
    bio: Bio,
    service: Ns,
    pause: Ns,
}

fn parse(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let operation = if words.next()? == "R" { Operation::Read } else { Operation::Write };
    words.next()?;
    let sector = Sector(words.next()?.parse().ok()?);
    let sectors = words.next()?.parse().ok()?;
    let mut time = || -> Option<Ns> {
        let us: f64 = words.next()?.parse().ok()?;
        Some(Ns((us * 1e3).round() as u64))
    };
    let (service, pause) = (time()?, time()?);
    let (flags, submitter) = (Flags::NONE, Submitter::default());
    let bio = Bio { id: BioId(0), operation, sector, sectors, flags, submitter, segments: 0 };
    Some(Row { bio, service, pause })
}

/// Advances the disk up to an instant, or until a bio is done.
fn work(disk: &mut Disk, until: Ns, done: &mut Vec<Ended>) -> Ns {
    while disk.next_event() <= until {
        let now = disk.next_event();
        disk.advance(now, done);
        if !done.is_empty() {
            return now;
        }
    }
    until
}

/// Simulated service times.
fn replay(disk: &mut Disk, rows: &[Row]) -> Vec<u64> {
    let mut now = Ns(0);
    let mut done = Vec::new();
    let mut times = Vec::with_capacity(rows.len());
    for row in rows {
        disk.submit(now, &row.bio);
        let end = work(disk, Ns(u64::MAX - 1), &mut done);
        times.push((end - now).0);
        done.clear();
        now = work(disk, end + row.pause, &mut done);
    }
    times
}

/// Linear interpolation between order statistics at positions q * (n - 1).
fn quantile(sorted: &[u64], q: f64) -> f64 {
    let position = q * (sorted.len() - 1) as f64;
    let index = (position as usize).min(sorted.len() - 2);
    let part = position - index as f64;
    sorted[index] as f64 * (1.0 - part) + sorted[index + 1] as f64 * part
}

/// Root mean square horizontal distance of two distributions, in milliseconds.
fn demerit(real: &mut [u64], simulated: &mut [u64]) -> f64 {
    real.sort_unstable();
    simulated.sort_unstable();
    let square = |q: f64| (quantile(real, q) - quantile(simulated, q)).powi(2);
    let sum: f64 = (1..10_000).map(|i| square(f64::from(i) * 1e-4)).sum();
    (sum / 9_999.0).sqrt() * 1e-6
}

fn mean(times: &[u64]) -> f64 {
    times.iter().sum::<u64>() as f64 / times.len().max(1) as f64 * 1e-6
}

fn report(label: &str, rows: &[Row], simulated: &[u64], chosen: impl Fn(&Row) -> bool) {
    let pairs = rows.iter().zip(simulated).filter(|(row, _)| chosen(row));
    let (mut real, mut simulated): (Vec<u64>, Vec<u64>) =
        pairs.map(|(row, &time)| (row.service.0, time)).unzip();
    if real.len() < 2 {
        return;
    }
    let (real_mean, simulated_mean) = (mean(&real), mean(&simulated));
    let demerit = demerit(&mut real, &mut simulated);
    println!(
        "{label:6} {:6} commands  mean real {real_mean:7.3} ms  simulated {simulated_mean:7.3} ms  \
         demerit {demerit:6.3} ms  {:5.1} %",
        real.len(),
        demerit / real_mean * 100.0
    );
}

/// Direction of a command in a word.
fn word(row: &Row) -> &'static str {
    if row.bio.operation == Operation::Read { "read" } else { "write" }
}

/// Prints what is left of every class of commands: simulated minus real, in milliseconds.
fn residuals(rows: &[Row], simulated: &[u64]) {
    let mut classes: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (pair, &time) in rows.windows(2).zip(&simulated[1..]) {
        let [before, row] = pair else { unreachable!("a window of two has two rows") };
        let place = if row.bio.sector == before.bio.end() { "contiguous" } else { "elsewhere" };
        let class = format!("{} after {}, {place}", word(row), word(before));
        classes.entry(class).or_default().push((time as f64 - row.service.0 as f64) * 1e-6);
    }
    for (class, mut errors) in classes {
        errors.sort_unstable_by(f64::total_cmp);
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let middle = errors[errors.len() / 2];
        println!(
            "{class:29} {:6} commands  simulated - real: mean {mean:+.3} median {middle:+.3} ms",
            errors.len()
        );
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let dump = arguments.get(3);
    let [_, name, trace, ..] = arguments.as_slice() else {
        eprintln!("usage: disk_demerit PROFILE TRACE [FILE for the simulated times in us]");
        return ExitCode::from(2);
    };
    let text = match std::fs::read_to_string(trace) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{trace}: {error}");
            return ExitCode::from(2);
        }
    };
    let made = Profile::built_in(name)
        .and_then(|profile| Disk::from_profile(&profile, Seed(1), "validation"));
    let mut disk = match made {
        Ok(disk) => disk,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let capacity = disk.info().capacity;
    let rows: Vec<Row> = text.lines().filter_map(parse).collect();
    let rows: Vec<Row> = rows.into_iter().filter(|row| row.bio.end() <= capacity).collect();
    let simulated = replay(&mut disk, &rows);
    if let Some(path) = dump {
        let lines: Vec<String> =
            simulated.iter().map(|time| (*time as f64 * 1e-3).to_string()).collect();
        std::fs::write(path, lines.join("\n")).expect("the file named last is writable");
    }
    // Overheads were fitted to the first half; the figure is that of the second.
    let half = rows.len() / 2;
    report("fitted", &rows[..half], &simulated[..half], |_| true);
    let (rows, simulated) = (&rows[half..], &simulated[half..]);
    report("all", rows, simulated, |_| true);
    report("reads", rows, simulated, |row| row.bio.operation == Operation::Read);
    report("writes", rows, simulated, |row| row.bio.operation == Operation::Write);
    residuals(rows, simulated);
    ExitCode::SUCCESS
}

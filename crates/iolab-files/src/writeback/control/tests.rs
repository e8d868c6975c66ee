//! Throttled writers beside a device of constant bandwidth.

use super::*;

const MIB: u64 = 256;

/// A writer: pages per millisecond that it would dirty, and what it has dirtied.
struct Source {
    to: u16,
    rate: u64,
    dirtied: u64,
    wakes: Ns,
}

/// Runs writers for some seconds; answers pages dirtied per writer after half of the time, the
/// range of dirty pages there, and the longest pause.
fn run(
    speeds: &[u64],
    sources: &mut [Source],
    dirtyable: u64,
    seconds: u64,
) -> (Vec<u64>, (u64, u64), Ns) {
    let mut control = DirtyControl::new(VmSettings::default(), 2, Kernel::DEFAULT);
    let mut dirty = vec![0u64; speeds.len()];
    let (mut range, mut longest) = ((u64::MAX, 0), Ns(0));
    let mut half = Vec::new();
    for ms in 0..seconds * 1000 {
        let now = Ns::from_ms(ms);
        for (index, speed) in speeds.iter().enumerate() {
            // The flusher works in pieces of 4 ms.
            if ms % 4 == 0 {
                let all: u64 = dirty.iter().sum();
                let view = DirtyView { dirtyable, dirty: all, device_dirty: dirty[index], cpus: 2 };
                let pages = (speed * 4 / 1000).min(dirty[index]);
                if control.wants_background(&view) {
                    dirty[index] -= pages;
                    control.written(now, BackingId(index as u16), pages);
                }
            }
        }
        for (number, source) in sources.iter_mut().enumerate() {
            if now < source.wakes {
                continue;
            }
            let (task, to) = (TaskId(number as u32), BackingId(source.to));
            for _ in 0..source.rate {
                dirty[usize::from(source.to)] += 1;
                source.dirtied += 1;
                if !control.dirtied(now, task, to, 1) {
                    continue;
                }
                let view = DirtyView {
                    dirtyable,
                    dirty: dirty.iter().sum(),
                    device_dirty: dirty[usize::from(source.to)],
                    cpus: 2,
                };
                if let Pause::Sleep(time) = control.look(now, task, to, &view) {
                    longest = longest.max(time);
                    source.wakes = now + time;
                    break;
                }
            }
        }
        if ms == seconds * 500 {
            half = sources.iter().map(|source| source.dirtied).collect();
        }
        if ms >= seconds * 500 {
            let all = dirty.iter().sum();
            range = (range.0.min(all), range.1.max(all));
        }
    }
    let second_half = sources.iter().zip(half).map(|(source, half)| source.dirtied - half);
    (second_half.collect(), range, longest)
}

fn source(to: u16) -> Source {
    Source { to, rate: 2_000, dirtied: 0, wakes: Ns(0) }
}

#[test]
fn wb_8_steady_state() {
    let dirtyable = 8 << 18;
    let limits = DirtyLimits::new(&VmSettings::default(), dirtyable);
    let (dirtied, range, longest) = run(&[100 * MIB], &mut [source(0)], dirtyable, 120);
    let rate = dirtied[0] as f64 / 60.0 / MIB as f64;
    assert!((97.0..=103.0).contains(&rate), "{rate} MiB/s");
    assert!(range.0 >= limits.free_run() - 5_000 && range.1 <= limits.threshold, "{range:?}");
    assert!(longest <= Ns::from_ms(200), "{longest:?}");
}

#[test]
fn wb_9_n_writers() {
    let mut four = [source(0), source(0), source(0), source(0)];
    let (dirtied, _, _) = run(&[100 * MIB], &mut four, 8 << 18, 120);
    for pages in dirtied {
        let rate = pages as f64 / 60.0 / MIB as f64;
        assert!((22.5..=27.5).contains(&rate), "{rate} MiB/s");
    }
}

#[test]
fn wb_10_slow_device_beside_fast() {
    let mut two = [source(0), source(1)];
    let (dirtied, _, _) = run(&[100 * MIB, 5 * MIB], &mut two, 8 << 18, 240);
    let rate = dirtied[0] as f64 / 120.0 / MIB as f64;
    assert!(rate >= 90.0, "{rate} MiB/s");
}

#[test]
fn wb_13_a_source_runs_free_up_to_the_mean_of_the_limits() {
    let dirtyable = 30 << 18;
    let mut fast = [Source { to: 0, rate: 512, dirtied: 0, wakes: Ns(0) }];
    let (_, range, _) = run(&[500 * MIB], &mut fast, dirtyable, 40);
    let limits = DirtyLimits::new(&VmSettings::default(), dirtyable);
    assert!(range.0 as f64 > limits.free_run() as f64 * 0.95, "{range:?}");
    assert!(range.1 <= limits.threshold, "{range:?}");
    assert!((limits.free_run() as f64 / 262_144.0 - 4.5).abs() < 0.01);
}

#[test]
fn a_writer_of_an_old_kernel_writes_itself() {
    let mut control = DirtyControl::new(VmSettings::default(), 2, Kernel::new(2, 6));
    let view = |dirty| DirtyView { dirtyable: 1 << 20, dirty, device_dirty: dirty, cpus: 2 };
    let (task, to) = (TaskId(1), BackingId(0));
    assert_eq!(control.look(Ns(0), task, to, &view(100_000)), Pause::Go);
    while !control.dirtied(Ns(0), task, to, 1) {}
    let high = view(300_000);
    let first = control.look(Ns(0), task, to, &high);
    assert_eq!(first, Pause::Write(1_024));
    assert_eq!(control.look(Ns(0), task, to, &high), Pause::Sleep(OLD_WAIT));
    assert_eq!(control.look(Ns(0), task, to, &view(100_000)), Pause::Go);
}

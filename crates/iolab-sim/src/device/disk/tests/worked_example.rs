//! The worked example of the reference page: six reads at once, and where the arm goes.

use super::*;

/// Reads at these cylinders of `scsi7200-1995`, sent together in this order.
const CYLINDERS: [u32; 6] = [2_000, 150, 3_200, 400, 2_100, 900];

/// Order of completion: cylinder, seek, rotational wait and response in microseconds.
fn order(policy: &str) -> Vec<(u32, u64, u64, u64)> {
    let mut disk = disk("scsi7200-1995", &[("queue_policy", text(policy))], 1);
    let mut host = Host::new();
    for (id, &cylinder) in CYLINDERS.iter().enumerate() {
        let sector = disk.mechanism().geometry.first_sector(cylinder) + 40 * id as u64;
        disk.submit(host.now, &bio(id as u32, Operation::Read, sector, 8));
        host.sent.push(Response { sent: host.now, done: Ns::MAX });
    }
    let mut rows = Vec::new();
    let mut before = (0, 0);
    let mut done = Vec::new();
    while rows.len() < CYLINDERS.len() {
        done.clear();
        host.step(&mut disk, &mut done);
        for Ended { id, .. } in &done {
            let total = (counter(&disk, "seek_ns") as u64, counter(&disk, "rotation_ns") as u64);
            let cylinder = CYLINDERS[id.0 as usize];
            let response = host.sent[id.0 as usize].done.0;
            let (seek, wait) = (total.0 - before.0, total.1 - before.1);
            rows.push((cylinder, seek / 1_000, wait / 1_000, response / 1_000));
            before = total;
        }
    }
    rows
}

#[test]
fn six_reads_at_once() {
    let fcfs = [
        (2_000, 11_780, 5_361, 18_508),
        (150, 11_234, 433, 31_457),
        (3_200, 15_602, 1_438, 49_932),
        (400, 14_692, 8_329, 74_234),
        (2_100, 10_688, 4_013, 90_303),
        (900, 8_868, 1_560, 102_012),
    ];
    let sptf = [
        (150, 3_718, 1_457, 6_457),
        (400, 4_579, 3_583, 15_901),
        (900, 6_162, 3_667, 27_012),
        (2_100, 8_868, 3_055, 40_303),
        (2_000, 3_175, 6_996, 51_841),
        (3_200, 8_868, 4_454, 66_599),
    ];
    assert_eq!(order("fcfs"), fcfs);
    assert_eq!(order("sptf"), sptf);
}

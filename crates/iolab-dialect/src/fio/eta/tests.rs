use super::*;
use crate::fio::dialect;
use crate::fio::plan::Plan;
use crate::fio::tests::{Paper, words};

fn plan(text: &str) -> Plan {
    dialect::plan(&words(text), &Paper::default()).unwrap()
}

fn told(phases: &str, ended: usize) -> Progress {
    let text = format!(
        "{{\"phases\":{phases},\"ended\":{ended},\"interval_ns\":1000000000,\
         \"phase_ns\":2000000000,\"elapsed_ns\":2000000000}}"
    );
    serde_json::from_str(&text).unwrap()
}

fn phase(read: u64, written: u64, ops: u64) -> String {
    format!(
        "{{\"name\":\"p\",\"elapsed_ns\":0,\"tenants\":[{{\"name\":\"t\",\"service\":{{}},\
         \"series\":{{\"interval_ns\":1,\"ops\":[],\"bytes\":[]}},\"workers\":[{{\"ops\":{ops},\
         \"read_bytes\":{read},\"write_bytes\":{written},\"elapsed_ns\":0}}]}}]}}"
    )
}

fn shown(text: &str, told: &Progress) -> String {
    let plan = plan(text);
    line(&plan.show, &plan.rows[0].workload, told).line
}

#[test]
fn a_timed_job_has_its_time_left_and_the_rate_of_the_last_interval() {
    let mut now = told(&format!("[{}]", phase(4 << 20, 0, 1024)), 0);
    now.before = Transferred { read_bytes: 3 << 20, reads: 768, ..Transferred::default() };
    let job = "--name=a --rw=randread --size=1m --time_based --runtime=10";
    let expected = "Jobs: 1 (f=1): [r(1)][20.0%][r=1024KiB/s][r=256 IOPS][eta 00m:08s]";
    assert_eq!(shown(job, &now), expected);
}

#[test]
fn an_amount_ends_after_the_time_that_its_rate_says() {
    let now = told(&format!("[{}]", phase(0, 1 << 20, 256)), 0);
    let text = shown("--name=a --rw=write --size=4m", &now);
    assert!(text.contains("[W(1)][25.0%]"), "{text}");
    assert!(text.ends_with("[w=256 IOPS][eta 00m:06s]"), "{text}");
}

#[test]
fn later_jobs_wait_and_jobs_that_have_ended_are_told_as_such() {
    let jobs = "--name=a --rw=write --size=1m --verify=crc32c --name=b --stonewall --rw=randrw \
                --size=1m --numjobs=2 --time_based --runtime=100";
    let first = told(&format!("[{}]", phase(0, 512 << 10, 128)), 0);
    let text = shown(jobs, &first);
    assert!(text.starts_with("Jobs: 1 (f=1): [W(1),P(2)]"), "{text}");
    // 512 KiB in 2 s: 2 s more, then 1 MiB is read in 4 s, then 100 s pass.
    assert!(text.ends_with("[eta 01m:46s]"), "{text}");
    let both = format!("[{},{}]", phase(0, 1 << 20, 256), phase(1 << 20, 0, 256));
    assert!(shown(jobs, &told(&both, 1)).contains("[V(1),P(2)]"));
    let all = format!("[{},{},{}]", phase(0, 1 << 20, 256), phase(1 << 20, 0, 256), phase(0, 0, 0));
    assert!(shown(jobs, &told(&all, 2)).starts_with("Jobs: 2 (f=2): [_(1),m(2)]"));
}

#[test]
fn nothing_is_guessed_where_nothing_is_known() {
    let text = shown("--name=a --rw=read --size=1m", &told("[]", 0));
    assert_eq!(text, "Jobs: 1 (f=1): [R(1)][-.-%][eta --]");
}

#[test]
fn what_is_asked_for_is_handed_on_and_a_simulation_has_a_note() {
    let show = plan("--status-interval=2 --eta=never --eta-newline=500ms --name=a --size=1m").show;
    assert_eq!((show.status_ns, show.eta_newline_ns), (2_000_000_000, 500_000_000));
    assert_eq!(show.eta, When::Never);
    let usual = plan("--name=a --size=1m").show;
    assert_eq!((usual.status_ns, usual.eta, usual.eta_newline_ns), (0, When::Auto, 0));
    let simulated = plan("--on sim:hdd-7200 --status-interval=2 --name=a --size=1m");
    assert!(simulated.notes.iter().any(|note| note.contains("--status-interval")));
}

#[test]
fn times_have_days_and_hours_where_there_are_any() {
    assert_eq!(time_left(16), "00m:16s");
    assert_eq!(time_left(3 * 3600 + 65), "03h:01m:05s");
    assert_eq!(time_left(2 * 86_400 + 1), "2d:00h:00m:01s");
}

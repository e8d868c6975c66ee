//! Mechanism of a simulated trial in numbers: what tells why levels differ.

use iolab_model::Ns;

/// Idle time of the stack, movements of arms, answers of caches and merges, as one fact.
#[allow(clippy::cast_precision_loss, reason = "shares of times are approximate")]
pub fn mechanism(counters: &[(String, f64)], elapsed: Ns) -> Option<String> {
    let first = |name: &str| counters.iter().find(|(known, _)| known == name).map(|row| row.1);
    let sum =
        |name: &str| counters.iter().filter(|(known, _)| known == name).map(|row| row.1).sum();
    let requests = first("read_requests")? + first("write_requests")?;
    let bytes = first("read_bytes")?;
    if requests == 0.0 || elapsed == Ns(0) {
        return None;
    }
    let share = |part: f64, whole: f64| if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 };
    let merges = first("read_merges")? + first("write_merges")? + first("joined")?;
    let mut parts = vec![
        format!("idle_share={:.4}", 1.0 - share(first("busy_ns")?, elapsed.as_seconds() * 1e9)),
        format!("merges_per_request={:.3}", merges / requests),
    ];
    if counters.iter().any(|(name, _)| name == "seeks") {
        let (seeks, hits): (f64, f64) = (sum("seeks"), sum("cache_hit_bytes"));
        parts.push(format!("seeks_per_request={:.4}", seeks / requests));
        parts.push(format!("cache_share={:.4}", share(hits, bytes)));
    }
    Some(parts.join(" "))
}

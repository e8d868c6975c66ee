//! The state in words, for the question why a queue was served.

use super::entity::Place;
use super::marks::Mark;
use super::state::Bfq;
use crate::api::request::Requests;

/// Facts that decide between queues, and their names.
const MARKS: [(Mark, &str); 7] = [
    (Mark::Awaited, "waited for"),
    (Mark::Resumable, "may go on with its budget"),
    (Mark::ShortThink, "thinks briefly"),
    (Mark::IoBound, "I/O bound"),
    (Mark::InLargeBurst, "in a large burst"),
    (Mark::Shared, "shared"),
    (Mark::MustSplit, "to be split"),
];

impl Bfq {
    /// The device, then every queue that is busy or has requests in the device.
    pub(super) fn lines(&self, requests: &Requests) -> Vec<String> {
        let name = |id: Option<u32>| id.map_or_else(|| "none".to_owned(), |id| self.name(id));
        let device = &self.device;
        let queueing = match device.has_queueing {
            Some(true) => "queues requests",
            Some(false) => "takes one request at a time",
            None => "not known to queue",
        };
        let mut lines = vec![
            format!(
                "in service: {}; next: {}; {} requests queued, {} in the device ({queueing})",
                name(self.in_service),
                name(self.agenda.next),
                self.queued,
                device.in_flight,
            ),
            format!(
                "budget ceiling {} sectors, peak rate {:.2} sectors/us, last request ended at \
                 sector {}, tick {}",
                self.budget_ceiling(),
                self.rate.rate as f64 / 65_536.0,
                device.last_position.0,
                self.ticks,
            ),
        ];
        let is_shown = |id: &u32| {
            let queue = self.queue(*id);
            queue.has(Mark::Live) && (queue.is_busy() || queue.in_flight > 0)
        };
        let shown = (0..self.queues.len() as u32).filter(is_shown);
        lines.extend(shown.map(|id| self.line(requests, id)));
        lines
    }

    fn name(&self, id: u32) -> String {
        self.queue(id).owner.map_or_else(
            || format!("queue {id}"),
            |owner| format!("queue {id} of process {}", self.processes.get(owner).id.0),
        )
    }

    fn line(&self, requests: &Requests, id: u32) -> String {
        let (queue, entity) = (self.queue(id), self.entity(id));
        let next = queue.next.map_or_else(String::new, |next| {
            let request = &requests[next];
            format!(", next is sector {} + {}", request.sector.0, request.sectors)
        });
        let times = match entity.place {
            Place::Active => {
                let virtual_time = self.agenda.virtual_time_of(id);
                let from_now = |time: u64| time as i64 - virtual_time as i64;
                let (start, finish) = (from_now(entity.start), from_now(entity.finish));
                format!(", virtual start {start:+} and finish {finish:+} from now")
            }
            Place::Idle | Place::Nowhere => String::new(),
        };
        let marks = MARKS.iter().filter(|(mark, _)| queue.has(*mark));
        let marks: Vec<&str> = marks.map(|&(_, name)| name).collect();
        let marks =
            if marks.is_empty() { String::new() } else { format!("; {}", marks.join(", ")) };
        format!(
            "{}: {} queued, {} in the device{next}; {} of {} sectors used, weight {} x {}{times}; \
             {} of 32 requests far; injects up to {}{marks}",
            self.name(id),
            queue.backlog.len(),
            queue.in_flight,
            entity.service,
            entity.budget,
            entity.original_weight,
            entity.raise,
            queue.seeks.count_ones(),
            queue.habits.inject_limit,
        )
    }
}

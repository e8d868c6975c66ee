//! The list of schedulers.

use crate::api::scheduler::{Attach, Framework, Replayable, Scheduler, SchedulerContext};

macro_rules! schedulers {
    ( $( $(#[$meta:meta])* $Row:ident = $name:literal => $Type:path, )+ ) => {
        iolab_model::registry! {
            /// An I/O scheduler.
            pub enum SchedulerKind as "scheduler" {
                $( $(#[$meta])* $Row = $name, )+
            }
        }

        impl SchedulerKind {
            /// A fresh scheduler with default tunables.
            pub fn attach(self, context: &SchedulerContext) -> Box<dyn Scheduler> {
                match self { $( Self::$Row => Box::new(<$Type>::attach(context)), )+ }
            }

            /// A fresh scheduler whose choices can be forced, if this one can be replayed so.
            pub fn attach_replayable(
                self,
                context: &SchedulerContext,
            ) -> Option<Box<dyn Replayable>> {
                match self { $( Self::$Row => <$Type>::attach_replayable(context), )+ }
            }

            /// Requests are put into it; without one they wait for a device tag alone.
            pub const fn is_elevator(self) -> bool {
                match self { $( Self::$Row => <$Type>::IS_ELEVATOR, )+ }
            }

            /// Attaching it ends write-back throttling that is on by default.
            pub const fn ends_default_throttling(self) -> bool {
                match self { $( Self::$Row => <$Type>::ENDS_DEFAULT_THROTTLING, )+ }
            }

            /// Tell whether it looks for merges by itself; the elevator's index is not kept for it.
            pub const fn finds_own_merges(self) -> bool {
                match self { $( Self::$Row => <$Type>::FINDS_OWN_MERGES, )+ }
            }

            /// The kernel code around it.
            pub const fn framework(self) -> Framework {
                match self { $( Self::$Row => <$Type>::FRAMEWORK, )+ }
            }
        }
    };
}

schedulers! {
    /// First in, first out, with back merges (legacy kernels, to 4.20).
    Noop = "noop" => super::noop::Noop,
    /// Waits a little for the process it has just served (2.6.0 to 2.6.32).
    Anticipatory = "anticipatory" => super::anticipatory::Anticipatory,
    /// Sorted batches per direction with deadlines (legacy kernels, to 4.20).
    Deadline = "deadline" => super::deadline::Deadline,
    /// Completely fair queueing: time slices per process (legacy kernels, to 4.20).
    Cfq = "cfq" => super::cfq::Cfq,
    /// No scheduler: requests wait for a device tag (blk-mq).
    None = "none" => super::none::None,
    /// Sorted batches per direction with deadlines and priority classes (blk-mq, from 4.11).
    MqDeadline = "mq-deadline" => super::mq_deadline::MqDeadline,
    /// Per kind of operation, with latency targets (blk-mq, from 4.12).
    Kyber = "kyber" => super::kyber::Kyber,
    /// Budget fair queueing: shares of sectors, waits for sequential readers (blk-mq, since 4.12).
    Bfq = "bfq" => super::bfq::Bfq,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::exercise::CONTEXT;
    use crate::tunable::{TunableInfo, Unit};

    fn row_of(info: &TunableInfo) -> String {
        let TunableInfo { name, unit, default, min, max, .. } = info;
        let unit = match unit {
            Unit::Count => "count",
            Unit::Switch => "0/1",
            unit => unit.symbol(),
        };
        format!("| `{name}` | {unit} | {default} | {min} to {max} |")
    }

    #[test]
    fn reference_pages_show_every_tunable_as_it_is() {
        use SchedulerKind::{Anticipatory, Deadline, Kyber, MqDeadline, Noop};
        for kind in [Noop, SchedulerKind::None, Deadline, MqDeadline, Anticipatory, Kyber] {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/schedulers");
            let page = std::fs::read_to_string(format!("{folder}/{kind}.md")).unwrap();
            let tunables = kind.attach(&CONTEXT).tunables();
            for info in &tunables {
                assert!(page.contains(&row_of(info)), "{kind}: no row `{}`", row_of(info));
            }
            let has_range =
                |line: &&str| line.split('|').nth(4).is_some_and(|cell| cell.contains(" to "));
            let rows = page.lines().filter(has_range);
            assert_eq!(rows.count(), tunables.len(), "{kind}: the page has other rows");
        }
    }
}

//! bfq: budget fair queueing (blk-mq, since 4.12).
//!
//! Every process has a queue; the device is given to one queue at a time, until its budget of
//! sectors is used up, 125 ms have passed, or it has nothing more to do (after an idle period,
//! where that pays). B-WF2Q+ decides who is next. Around that core: raised weights for interactive
//! and soft real-time processes, requests of others injected into idle periods, queues merged
//! while processes read interleaved, budgets that follow an estimate of the device's peak rate.
//!
//! Left out: cgroups ([`service::Agenda`] is one level of the hierarchy; a group would be an
//! entity with an agenda of its own), several actuators, the queue for out-of-memory situations.
//!
//! Source: Linux 6.9-6.12 block/bfq-iosched.c and block/bfq-wf2q.c (behaviour and constants only).

mod backlog;
mod bursts;
mod choose;
mod describe;
mod dispatch;
mod entity;
mod expire;
mod hooks;
mod idling;
mod injection;
mod insert;
mod marks;
mod merging;
mod ownership;
mod position;
mod process;
mod queue;
mod raising;
mod rate;
mod service;
mod slots;
mod split;
mod state;
mod tree;
mod tunables;
mod wakers;
mod weights;

pub use state::Bfq;

#[cfg(test)]
mod tests;

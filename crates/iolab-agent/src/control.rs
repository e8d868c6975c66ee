//! The wire to the front end while something runs: progress out, interrupts in.
//!
//! An `interrupt` is answered at once and counts for the request that runs when its line comes up
//! in order, so one that was sent right behind a request is neither lost nor applied to an earlier
//! one.

use std::io::Write;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::Error;
use crate::lines::{LineReader, WAITING_BYTES_MAX};
use crate::protocol::{Answer, Message, Nothing, Progress, answer, parse};
use crate::sys;

/// Hurry that the front end is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// No hurry.
    Calm,
    /// End early, keep what there is.
    Interrupt,
    /// End now.
    Abort,
}

/// Service of the wire to a long request.
pub trait Control {
    /// Tells how far it is.
    fn progress(&mut self, params: Progress);

    /// Looks, without waiting, whether it should end.
    fn urgency(&mut self) -> Urgency;

    /// Number of `proceed`s of the front end since the last question.
    fn take_proceeds(&mut self) -> u32 {
        0
    }

    /// Waits until one of `readers` or the wire has something to say, and reads it.
    fn wait(&mut self, readers: &mut [&mut LineReader], timeout: Duration);
}

/// Standard input and output.
#[derive(Debug)]
pub struct Wire<W> {
    input: LineReader,
    output: W,
    interrupts: u32,
    proceeds: u32,
    is_broken: bool,
}

/// A termination signal that arrives just before a poll is noticed after this time.
const SIGNAL_LATENCY: Duration = Duration::from_millis(250);

impl<W: Write> Wire<W> {
    /// A wire to whoever holds the other ends.
    pub fn new(input: LineReader, output: W) -> Self {
        Self { input, output, interrupts: 0, proceeds: 0, is_broken: false }
    }

    /// The next line that is not empty; none at the end of input or after a termination signal.
    pub fn next_line(&mut self) -> Option<String> {
        (self.interrupts, self.proceeds) = (0, 0);
        loop {
            if sys::is_terminated() || self.is_broken {
                return None;
            }
            match self.input.next_line() {
                Some(line) if line.trim().is_empty() => {}
                Some(line) => return Some(line),
                None if self.input.is_finished() => return None,
                None => self.wait(&mut [], SIGNAL_LATENCY),
            }
        }
    }

    /// Says why nothing more is read, if that is the other side's fault.
    pub fn send_complaint(&mut self) {
        if self.input.is_too_long() {
            let limit = WAITING_BYTES_MAX >> 20;
            let what = format!("more than {limit} MiB of requests at once: nothing more is read");
            self.send(&answer(0, Err(Error::protocol(what))));
        }
    }

    /// Sends one message.
    pub fn send(&mut self, message: &Message) {
        let mut line = serde_json::to_string(message).expect("messages have only text keys");
        line.push('\n');
        let sent = self.output.write_all(line.as_bytes()).and_then(|()| self.output.flush());
        self.is_broken |= sent.is_err();
    }

    /// Takes what may be said while a request runs.
    fn take_interrupts(&mut self) {
        while let Some(line) = self.input.peek_line() {
            match parse(line) {
                Ok(request) if matches!(&*request.method, "interrupt" | "proceed") => {
                    self.input.next_line();
                    let is_interrupt = request.method == "interrupt";
                    *if is_interrupt { &mut self.interrupts } else { &mut self.proceeds } += 1;
                    self.send(&answer(request.id, Ok(Answer::Nothing(Nothing {}))));
                }
                _ => return,
            }
        }
    }
}

impl<W: Write> Control for Wire<W> {
    fn progress(&mut self, params: Progress) {
        self.send(&Message::Event { event: "progress", params });
    }

    fn take_proceeds(&mut self) -> u32 {
        self.input.fill();
        self.take_interrupts();
        std::mem::take(&mut self.proceeds)
    }

    fn urgency(&mut self) -> Urgency {
        self.input.fill();
        self.take_interrupts();
        let is_over = self.input.is_at_end() || self.is_broken || sys::is_terminated();
        match self.interrupts {
            _ if is_over => Urgency::Abort,
            0 => Urgency::Calm,
            1 => Urgency::Interrupt,
            _ => Urgency::Abort,
        }
    }

    fn wait(&mut self, readers: &mut [&mut LineReader], timeout: Duration) {
        let timeout = timeout.min(SIGNAL_LATENCY).as_millis() as u16;
        {
            let open = readers.iter().map(|reader| &**reader).chain([&self.input]);
            let mut fds: Vec<PollFd> = open
                .filter(|reader| !reader.is_at_end())
                .map(|reader| PollFd::new(reader.as_fd(), PollFlags::POLLIN))
                .collect();
            // Interrupted by a signal or not: whatever is there is read below.
            let _ = poll(&mut fds, PollTimeout::from(timeout));
        }
        for reader in readers {
            reader.fill();
        }
        self.input.fill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(lines: &str) -> (Wire<Vec<u8>>, std::os::fd::OwnedFd) {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        nix::unistd::write(&writer, lines.as_bytes()).unwrap();
        (Wire::new(LineReader::new(reader), Vec::new()), writer)
    }

    const RUN: &str = "{\"id\":1,\"method\":\"run_trial\",\"params\":{}}\n";
    const STOP: &str = "{\"id\":2,\"method\":\"interrupt\",\"params\":{}}\n";

    #[test]
    fn an_interrupt_right_behind_a_request_belongs_to_it() {
        let (mut wire, _writer) = wire(&format!("{RUN}{STOP}"));
        assert!(wire.next_line().unwrap().contains("run_trial"));
        assert_eq!(wire.urgency(), Urgency::Interrupt);
        assert_eq!(wire.output, b"{\"id\":2,\"result\":{}}\n");
    }

    #[test]
    fn an_interrupt_behind_the_next_request_waits_for_that() {
        let (mut wire, writer) = wire(&format!("{RUN}{RUN}{STOP}"));
        assert!(wire.next_line().is_some());
        assert_eq!(wire.urgency(), Urgency::Calm);
        assert!(wire.next_line().is_some());
        assert_eq!(wire.urgency(), Urgency::Interrupt);
        nix::unistd::write(&writer, STOP.as_bytes()).unwrap();
        assert_eq!(wire.urgency(), Urgency::Abort);
    }

    #[test]
    fn each_proceed_counts_once() {
        let go = "{\"id\":2,\"method\":\"proceed\",\"params\":{}}\n";
        let (mut wire, _writer) = wire(&format!("{RUN}{go}{go}"));
        assert!(wire.next_line().is_some());
        assert_eq!(wire.urgency(), Urgency::Calm);
        assert_eq!((wire.take_proceeds(), wire.take_proceeds()), (2, 0));
    }

    #[test]
    fn the_end_of_input_aborts_what_runs() {
        let (mut wire, writer) = wire(RUN);
        assert!(wire.next_line().is_some());
        drop(writer);
        assert_eq!(wire.urgency(), Urgency::Abort);
        assert_eq!(wire.next_line(), None);
    }
}

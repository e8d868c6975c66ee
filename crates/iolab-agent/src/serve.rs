//! The loop: one line in, one answer out, until the input ends; then everything is put back.

use std::io::Write;
use std::process::ExitCode;

use crate::control::Wire;
use crate::lines::LineReader;
use crate::protocol::{Call, RunAs, answer, call_of, parse};
use crate::session::Session;
use crate::sys;

/// Exit code if the agent cannot start.
const EXIT_NO_START: u8 = 2;
/// Exit code if something could not be put back (rule R12).
const EXIT_UNRESTORED: u8 = 3;

/// Serves standard input and output; for `caller`, if root works for somebody.
pub fn main(caller: Option<RunAs>) -> ExitCode {
    if let Err(error) = sys::adopt_signals() {
        eprintln!("iolab-agent: cannot start: {error}");
        return ExitCode::from(EXIT_NO_START);
    }
    let input = LineReader::new(sys::standard_input());
    let mut session = Session::of(caller);
    serve(&mut Wire::new(input, std::io::stdout()), &mut session);
    exit_code(session.end())
}

/// Exit code of a program that had to restore something.
pub fn exit_code(is_restored: bool) -> ExitCode {
    if is_restored { ExitCode::SUCCESS } else { ExitCode::from(EXIT_UNRESTORED) }
}

fn serve<W: Write>(wire: &mut Wire<W>, session: &mut Session) {
    loop {
        let Some(line) = wire.next_line() else {
            wire.send_complaint();
            return;
        };
        let request = match parse(&line) {
            Ok(request) => request,
            Err(error) => {
                wire.send(&answer(0, Err(error)));
                continue;
            }
        };
        let id = request.id;
        let call = call_of(request);
        let is_last = matches!(call, Ok(Call::Shutdown));
        let result = call.and_then(|call| session.handle(call, wire));
        wire.send(&answer(id, result));
        if is_last {
            return;
        }
    }
}

//! A session with the server, and its interruption.

use crate::failure::Failure;
use narrows_runner::interrupt;
use narrows_runner::remote::{Remote, Session};
use narrows_runner::stop::Stop;

/// Opens a session and shows the position in the queue meanwhile; Ctrl-C ends the wait.
pub(crate) fn open_session<'a>(remote: &'a Remote, stop: &Stop, quiet: bool) -> Result<Session<'a>, Failure> {
    let mut shown = 0;
    remote
        .open_session(&mut |position, why| {
            if !quiet && shown != position {
                anstream::eprintln!("waiting, number {position} in the queue: {why}");
            }
            shown = position;
            !stop.is_set()
        })
        .map_err(Failure::run)
}

/// A flag that Ctrl-C raises; a second one ends the process.
pub(crate) fn stop_on_interrupt() -> Result<Stop, Failure> {
    let stop = Stop::new();
    let raised = stop.clone();
    interrupt::on_interrupt(move || raised.stop()).map_err(Failure::run)?;
    Ok(stop)
}

//! What commands that measure have in common: the connection, its interruption, live lines, and the exit code.

use crate::failure::{Failure, Outcome};
use crate::flags::RemoteArgs;
use crate::output::print;
use narrows_model::{Ending, Target};
use narrows_runner::ends::Ends;
use narrows_runner::foreign::{Foreign, ForeignEnds, Here};
use narrows_runner::live::{LiveEnds, LiveInstruments};
use narrows_runner::remote::{Remote, RemoteError, Session};
use narrows_runner::tune::Tuner;
use narrows_runner::{Stop, interrupt, state};
use std::cell::RefCell;

/// The exit code of a command that Ctrl-C ended, as a shell has it: 128 and the number of SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// The connection of a command that Ctrl-C ends.
pub(crate) struct Connection {
    pub(crate) remote: Remote,
    instruments: LiveInstruments,
    stop: Stop,
}

impl Connection {
    /// Connects. `tune`: whether a server that ssh starts may change its host. `collect`: whether counters are read around trials.
    pub(crate) fn open(remote: &RemoteArgs, tune: bool, collect: bool) -> Result<Self, Failure> {
        let stop = stop_on_interrupt()?;
        let instruments = LiveInstruments::of(collect);
        Ok(Self { remote: remote.connect(tune, instruments)?, instruments, stop })
    }

    /// Opens a session, in which trials are made.
    pub(crate) fn ends(&self, tuner: Option<Tuner>, quiet: bool) -> Result<LiveEnds, Failure> {
        let session = open_session(&self.remote, &self.stop, quiet)?;
        Ok(LiveEnds::new(self.remote.clone(), session, self.instruments, tuner, self.stop.clone()))
    }
}

/// Opens the two ends: what changes this host, and whether nothing is said of a queue.
type Open = Box<dyn FnOnce(Option<Tuner>, bool) -> Result<Box<dyn Ends>, Failure>>;

/// The far end of a measurement: narrows, iperf3 or ndt7.
pub(crate) struct Far {
    pub(crate) target: Target,
    pub(crate) open: Open,
    /// Raised by Ctrl-C.
    pub(crate) stop: Stop,
    pub(crate) tune: Tuning,
}

/// Whose settings may be changed, and why no others.
pub(crate) enum Tuning {
    Both,
    /// Only this host's.
    Here(String),
    Neither(String),
}

/// Finds the far end; of narrows, connects to it. Flags as of [`Connection::open`].
pub(crate) fn far(remote: &RemoteArgs, tune: bool, collect: bool) -> Result<Far, Failure> {
    if let Some(peer) = remote.iperf3()? {
        return foreign(peer, collect);
    }
    if let Some(server) = remote.ndt7()? {
        return foreign(server, collect);
    }
    let connection = Connection::open(remote, tune, collect)?;
    let hello = connection.remote.hello();
    let allowed = if hello.permissions.tune {
        Tuning::Both
    } else {
        Tuning::Here(format!(
            "the server on {} does not allow changes there: only fixes of this host are tried; `narrows serve --allow-tune` there allows all",
            hello.host
        ))
    };
    let (target, stop) = (connection.remote.target(), connection.stop.clone());
    let open = move |tuner, quiet| Ok(Box::new(connection.ends(tuner, quiet)?) as Box<dyn Ends>);
    Ok(Far { target, open: Box::new(open), stop, tune: allowed })
}

/// A far end that does not speak narrows' protocol.
pub(crate) fn foreign<F: Foreign + 'static>(far: F, collect: bool) -> Result<Far, Failure> {
    let stop = stop_on_interrupt()?;
    let here = Here { instruments: LiveInstruments::of(collect), stop: stop.clone() };
    let target = far.target();
    let no_tune = format!(
        "cannot tune {}: {} cannot change its host; run `narrows serve --allow-tune` there, or drop --try",
        target.asked,
        F::NAME
    );
    let open = Box::new(move |_, _| Ok(Box::new(ForeignEnds::new(far, here)) as Box<dyn Ends>));
    Ok(Far { target, open, stop, tune: Tuning::Neither(no_tune) })
}

/// Opens a session and shows the position in the queue meanwhile; Ctrl-C ends the wait.
pub(crate) fn open_session(remote: &Remote, stop: &Stop, quiet: bool) -> Result<Session, Failure> {
    let mut shown = 0;
    remote
        .open_session(&mut |position, why| {
            if !quiet && shown != position {
                crate::failure::note!("waiting, position {position} in the queue: {why}");
            }
            shown = position;
            !stop.is_set()
        })
        .map_err(|error| match error {
            RemoteError::Busy(_) if stop.is_set() => Failure::interrupted(),
            error => Failure::run(error),
        })
}

/// What makes changes of this host, with its journal. `role`: whose changes they are.
pub(crate) fn tuner(role: &'static str) -> Result<Tuner, Failure> {
    let missing =
        || Failure::run("cannot place the journal of changes: no state directory; set HOME or XDG_STATE_HOME");
    Ok(Tuner::new(&state::directory().ok_or_else(missing)?, role))
}

/// A flag that Ctrl-C raises; a second one ends the process.
pub(crate) fn stop_on_interrupt() -> Result<Stop, Failure> {
    let stop = Stop::new();
    let raised = stop.clone();
    interrupt::on_interrupt(move || raised.stop()).map_err(Failure::run)?;
    Ok(stop)
}

/// Prints lines while something is measured. The first failure is kept for the exit code, because the measurement goes on.
#[derive(Debug, Default)]
pub(crate) struct LiveLines {
    failure: RefCell<Option<Failure>>,
}

impl LiveLines {
    pub(crate) fn print(&self, line: Result<String, Failure>) {
        if let Err(failure) = line.and_then(|line| print(&line)) {
            self.failure.borrow_mut().get_or_insert(failure);
        }
    }

    /// The exit code of a run that has been reported.
    pub(crate) fn end(self, ending: &Ending) -> Outcome {
        match (self.failure.into_inner(), ending) {
            (Some(failure), _) => Err(failure),
            (None, Ending::Failed(why)) => Err(Failure::run(why)),
            (None, Ending::Interrupted) => Ok(INTERRUPTED),
            (None, Ending::Complete) => Ok(0),
        }
    }
}

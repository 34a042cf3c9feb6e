//! A diagnosis of a path of this host that a reader of its page started.

use super::shared::Shared;
use crate::diagnosis::usual::{self, DIAGNOSIS_MS};
use crate::diagnosis::{self, Pace};
use crate::instruments::LiveInstruments;
use crate::live::LiveEnds;
use crate::remote::{Options, Remote, TargetSpec};
use crate::trust::same_secret;
use crate::web::live::{Ended, Live};
use crate::{DEFAULT_PORT, Stop, stored, trusted};
use narrows_model::{Direction, Ending, Place, Progress, Run};
use narrows_sys::clock;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pace of a load is said so often.
const SAYS_EVERY: Duration = Duration::from_secs(1);

/// What a diagnosis says, line by line, and whether its run is kept.
struct Said<'a> {
    live: &'a Live,
    pace: Pace,
    at: Instant,
    kept: Result<(), String>,
}

impl diagnosis::Watch for Said<'_> {
    fn step(&mut self, text: &str) {
        self.live.say(text);
    }

    fn result(&mut self, text: &str) {
        self.live.say(&format!("  {text}"));
    }

    fn progress(&mut self, place: Place, progress: &Progress, planned_ms: Option<u64>) {
        if let Some(pace) = self.pace.take(place, progress, planned_ms).filter(|_| self.at.elapsed() >= SAYS_EVERY) {
            self.live.say(&format!("  {pace}"));
            self.at = clock::now();
        }
    }

    fn save(&mut self, run: &Run) {
        let kept = stored::keep(run, &[]).map_err(|error| error.to_string());
        // What waits for a server is not where the page reads.
        self.kept = kept.and_then(|()| stored::waiting().map_or(Ok(()), Err));
    }
}

/// Servers whose tokens this host has, as a reader names them.
pub(super) fn ends() -> Vec<String> {
    let known = trusted::file().and_then(|file| trusted::list(&file)).unwrap_or_default();
    let word = |it: trusted::Trusted| match (it.port, it.host.contains(':')) {
        (DEFAULT_PORT, _) => it.host,
        (port, false) => format!("{}:{port}", it.host),
        (port, true) => format!("[{}]:{port}", it.host),
    };
    known.into_iter().map(word).collect()
}

/// Diagnoses the path to a server whose token this host has, or from it.
/// Errors: a client loads this host now, the other one cannot be reached, or it has no token here.
pub(super) fn diagnose(own: &Arc<Shared>, asked: &str, down: bool, live: &Live, stop: &Stop) -> Result<Ended, String> {
    fn words(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
    let spec = TargetSpec { asked: asked.to_owned(), family: None, port: DEFAULT_PORT, token: None };
    // A server starts no ssh, and a reader names no host that its user does not know.
    let (host, port, None) = spec.server().map_err(words)? else {
        return Err("the other end is a host with `narrows serve`: a page starts nothing by ssh".to_owned());
    };
    let token = trusted::stored(&host, port);
    let token = token.ok_or_else(|| format!("this host has no token of {asked}; `narrows trust` stores it"))?;
    if own.secret.as_ref().is_some_and(|secret| same_secret(&token.secret, secret)) {
        return Err(format!("{asked} is this server itself: name another host"));
    }
    let spec = TargetSpec { token: Some(token), ..spec };
    let _turn = own.own_turn(stop).ok_or("a client loads this host now: try again when it is done")?;
    // What an earlier one could not bring to the store's server is brought there now.
    let _ = stored::opened();
    let instruments = LiveInstruments::All;
    live.say(&format!("connecting to {asked}"));
    let remote = Remote::connect(&spec, &Options::new(instruments)).map_err(words)?;
    let mut shown = 0;
    let mut waits = |position: u32, why: &str| {
        if shown != position {
            live.say(&format!("waiting, position {position} in the queue: {why}"));
        }
        shown = position;
        !stop.is_set()
    };
    let session = match remote.open_session(&mut waits) {
        Err(_) if stop.is_set() => return Ok(("stopped".to_owned(), None)),
        session => session.map_err(words)?,
    };
    let target = remote.target();
    let mut ends = LiveEnds::new(remote, session, instruments, None, stop.clone());
    let direction = if down { Direction::Down } else { Direction::Up };
    let plan = usual::plan(usual::load(1, direction, DIAGNOSIS_MS * 2 / 5));
    let mut said = Said { live, pace: Pace::default(), at: clock::now(), kept: Ok(()) };
    let run = diagnosis::diagnose(&mut ends, &mut said, &plan, target, stored::new_name().map_err(words)?);
    let found = narrows_diagnose::report(&run).map(|it| it.verdict.headline);
    let mut ended = match (&run.ending, found) {
        (Ending::Complete, Some(found)) => found,
        (Ending::Complete, None) => "nothing was measured".to_owned(),
        (Ending::Interrupted, _) => "stopped".to_owned(),
        (Ending::Failed(why), _) => why.clone(),
    };
    if let Err(why) = &said.kept {
        ended += &format!("; its run is not in the store: {why}");
    }
    Ok((ended, said.kept.is_ok().then_some(run.id)))
}

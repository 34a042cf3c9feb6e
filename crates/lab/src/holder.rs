//! The process that holds a lab: it builds the network, answers on a socket, and removes everything when it ends, however it
//! ends.

use crate::protocol::{HostState, LINE_MAX, Order, Reply, Request, State, Status};
use crate::registry::Registry;
use crate::{Error, Lab, Result};
use narrows_model::Flow;
use narrows_sys::process;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// Time limit for one client: nobody can block the others for longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The whole life of the holder: reads its order from standard input, builds the lab, reports success or the error on
/// standard output, detaches from the terminal and answers requests until it is told to end.
///
/// Call it first in its process, while it has one thread: only then can it become root of a user namespace.
/// Errors: the error is already reported on standard output: the caller need not print it.
pub fn hold() -> Result<()> {
    match begin() {
        Ok((lab, listener, registry)) => {
            say(&Reply::Status(Box::new(Status::of(&lab))));
            process::detach_standard_streams()?;
            answer_all(&lab, &listener);
            registry.forget(&lab.spec().name)
        }
        Err(error) => {
            say(&Reply::Error { text: error.to_string() });
            Err(error)
        }
    }
}

fn say(reply: &Reply) {
    let mut line = serde_json::to_string(reply).unwrap_or_default();
    line.push('\n');
    let mut out = std::io::stdout();
    // The starter may be gone; the lab runs all the same.
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

fn begin() -> Result<(Lab, UnixListener, Registry)> {
    let mut line = String::new();
    let stdin = std::io::stdin().lock();
    let format = |cause: String| Error::Format { what: "the order on standard input".to_owned(), cause };
    stdin.take(LINE_MAX).read_line(&mut line).map_err(|error| format(error.to_string()))?;
    let order: Order = serde_json::from_str(&line).map_err(|error| format(error.to_string()))?;
    order.spec.check()?;
    if order.user_namespace {
        crate::enter_user_namespace()?;
    }
    // Not an error if it is a session leader already.
    let _ = process::new_session();
    let registry = Registry::at(order.directory);
    let lab = Lab::up(&order.spec)?;
    let path = registry.socket_path(&order.spec.name);
    narrows_sys::files::make_directory(registry.directory())?;
    narrows_sys::files::remove(&path)?;
    let listener =
        UnixListener::bind(&path).map_err(|source| Error::Socket { operation: "listen at", path, source })?;
    registry.write(&state(&lab)?)?;
    Ok((lab, listener, registry))
}

fn state(lab: &Lab) -> Result<State> {
    let pid = std::process::id();
    let started = process::start_time(pid)
        .ok_or_else(|| Error::CannotRun("/proc does not show this process; is it mounted?".to_owned()))?;
    let host =
        |host: &crate::Host| HostState { name: host.name().to_owned(), descriptors: host.namespaces().descriptors() };
    Ok(State { name: lab.spec().name.clone(), pid, started, hosts: lab.hosts().iter().map(host).collect() })
}

fn answer_all(lab: &Lab, listener: &UnixListener) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        // One at a time: requests that change a lab are serialised.
        if let Ok(true) = answer_one(lab, &stream) {
            return;
        }
    }
}

/// Whether it was the last request.
fn answer_one(lab: &Lab, stream: &UnixStream) -> std::io::Result<bool> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LINE_MAX)).read_line(&mut line)?;
    let reply = match serde_json::from_str(&line) {
        Ok(request) => answer(lab, request),
        Err(error) => Reply::Error { text: format!("cannot parse the request: {error}") },
    };
    let mut bytes = serde_json::to_vec(&reply)?;
    bytes.push(b'\n');
    let mut out = stream;
    let sent = out.write_all(&bytes);
    if reply == Reply::Gone {
        return Ok(true);
    }
    sent.map(|()| false)
}

fn answer(lab: &Lab, request: Request) -> Reply {
    let done = match request {
        Request::Status => Ok(Reply::Status(Box::new(Status::of(lab)))),
        Request::Set { direction, impairment } => direction
            .flows()
            .iter()
            .try_for_each(|flow: &Flow| lab.set(*flow, impairment.clone()))
            .map(|()| Reply::Status(Box::new(Status::of(lab)))),
        Request::Fault { id, at, value, direction } => {
            lab.fault(&id, at, value.as_deref(), direction).map(|fault| Reply::Faults { faults: vec![fault] })
        }
        Request::Unfault { id, at } => lab.unfault(&id, at).map(|faults| Reply::Faults { faults }),
        Request::Down => Ok(Reply::Gone),
    };
    done.unwrap_or_else(|error| Reply::Error { text: error.to_string() })
}

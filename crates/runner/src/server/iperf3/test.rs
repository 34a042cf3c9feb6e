//! The data of a test: the engine runs until the client ends it, or leaves, or until its time is over.

use super::control::Control;
use super::limits::{GRACE, MAX_TEST};
use crate::instruments::LiveInstruments;
use narrows_model::{Flow, LoadPlan, LoadRecord, Place};
use narrows_sys::{clock, tcp};
use narrows_traffic::{Connections, DataStream, Socket, Stop};
use narrows_wire::iperf3::{Params, State};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use tokio::time::sleep;

/// How often the last data is looked for …
const LOOK: Duration = Duration::from_millis(25);
/// … until none came for so many times …
const QUIET_LOOKS: u32 = 8;
/// … or for this time in all.
const LAST_DATA: Duration = Duration::from_secs(5);

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The client said so.
    InOrder,
    /// The client gave up or is gone.
    Left,
    /// The client did not end it in time.
    Late,
}

/// Stops the engine of a test that is given up.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The longest that the test may take.
pub(super) fn longest(params: &Params) -> Duration {
    let planned = Duration::from_secs(params.time_s.saturating_add(params.omit_s));
    if params.is_counted() || params.time_s == 0 { MAX_TEST } else { planned + GRACE }
}

/// What is left of a test.
pub(super) struct Outcome {
    /// What this end saw.
    pub(super) record: LoadRecord,
    /// When the last data moved.
    pub(super) end_us: Option<u64>,
    pub(super) ended: Ended,
    /// The engine closes its sockets abortively; the client must not see that before it has the results.
    _sockets: Vec<TcpStream>,
}

pub(super) async fn run(
    control: &mut Control,
    params: &Params,
    plan: LoadPlan,
    streams: Vec<DataStream>,
    instruments: LiveInstruments,
) -> io::Result<Outcome> {
    let kept: Vec<TcpStream> = streams.iter().filter_map(|stream| socket(stream)?.try_clone().ok()).collect();
    let sends = plan.streams().iter().map(|stream| stream.flow == Flow::Down).collect::<Vec<_>>();
    let stop = Stop::new();
    let _guard = StopOnDrop(stop.clone());
    let (stopped, backstop) = (stop.clone(), longest(params));
    let began = clock::now();
    let engine = tokio::task::spawn_blocking(move || {
        instruments.run(Place::Server, &plan, Connections::of(streams), &stopped, &mut |_| ())
    });
    let ended = tokio::select! {
        state = control.state() => match state? {
            State::TestEnd => Ended::InOrder,
            _ => Ended::Left,
        },
        () = sleep(backstop) => Ended::Late,
    };
    // A receiver of iperf3 waits for whole blocks, and would not see the end of the test in the middle of one.
    for (socket, _) in kept.iter().zip(sends).filter(|(_, sends)| *sends) {
        let _ = socket.shutdown(Shutdown::Write);
    }
    // A call that waits for data ends later than the test.
    let mut elapsed = began.elapsed();
    if ended == Ended::InOrder && params.is_counted() && !params.reverse {
        let quiet = last_data(&kept).await;
        elapsed = began.elapsed().saturating_sub(quiet);
    }
    stop.stop();
    let record = engine.await.map_err(io::Error::other)?.map_err(io::Error::other)?;
    Ok(Outcome { record, end_us: u64::try_from(elapsed.as_micros()).ok(), ended, _sockets: kept })
}

const fn socket(stream: &DataStream) -> Option<&TcpStream> {
    match &stream.socket {
        Socket::Tcp(socket) => Some(socket),
        _ => None,
    }
}

/// Waits until all that a test of bytes sent is here; for how long nothing had come then.
async fn last_data(sockets: &[TcpStream]) -> Duration {
    let arrived = || -> u64 {
        let of = |socket: &TcpStream| tcp::info(socket).ok().and_then(|info| info.bytes_received).unwrap_or(0);
        let queued = |socket: &TcpStream| u64::from(tcp::queued_in(socket).unwrap_or(0));
        // What is read counts as a change, too.
        sockets.iter().map(|socket| of(socket).wrapping_mul(2).wrapping_sub(queued(socket))).fold(0, u64::wrapping_add)
    };
    let (began, mut last, mut quiet) = (clock::now(), arrived(), 0);
    while quiet < QUIET_LOOKS && began.elapsed() < LAST_DATA {
        sleep(LOOK).await;
        let now = arrived();
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
    }
    LOOK * quiet
}

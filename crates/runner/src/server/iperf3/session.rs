//! One test from its cookie to its results.

use super::control::{Control, within};
use super::gather::gather;
use super::limits::{ANSWER, GRACE, IDLE, MAX_TEST, REFUSAL};
use super::listen::Server;
use super::output;
use super::table::Seat;
use super::test::{self, Ended};
use crate::iperf3::auth::Users;
use crate::server::audit::{self, By};
use crate::server::limits::words_of;
use crate::server::shared::source_of;
use crate::server::unauthenticated::Pending;
use narrows_model::LoadPlan;
use narrows_sys::{clock, tcp};
use narrows_wire::iperf3::{Cookie, MAX_OWN_RESULTS, MAX_PARAMS, Params, Protocol, Results, State, errors, json, own};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// Why a test ended before its results.
#[derive(Debug)]
pub(super) enum Broken {
    /// Refused with iperf3's code.
    Refused(i32, String),
    /// There is no room for it, or others have all of the rate.
    Full,
    /// It lasted too long.
    Late,
    /// The connection is lost, or what came is no iperf3.
    Lost(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

/// Conducts the test, and tells the client why it ended early.
pub(super) async fn run(server: &Server, cookie: Cookie, stream: TcpStream, peer: SocketAddr, pending: &Pending) {
    let _ = tcp::set_keep_alive(&stream, IDLE);
    let _ = tcp::set_user_timeout(&stream, 2 * IDLE);
    let since = clock::now();
    let mut control = Control::new(stream);
    let (mut kind, mut who) = ("iperf3", None);
    let enter = || {
        let seat = server.tests.enter(cookie, source_of(peer.ip()), peer.ip()).ok_or(Broken::Full)?;
        pending.admit();
        Ok(seat)
    };
    let outcome = conduct(server, enter, &mut control, peer, (&mut kind, &mut who)).await;
    let failure = match &outcome {
        Ok(_) => None,
        Err(Broken::Refused(_, why)) => Some(audit::text(why)),
        Err(Broken::Full) => return control.deny().await,
        Err(Broken::Late) => Some(audit::text("the client did not end the test in time")),
        Err(Broken::Lost(error)) => Some(audit::text(&error.to_string())),
    };
    let bytes = outcome.as_ref().ok().copied();
    let duration_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    server.shared.tally.load(failure.is_none(), bytes);
    let rate_bps = bytes.map(|bytes| bytes.saturating_mul(8000) / duration_ms.max(1));
    let who = who.map_or_else(|| audit::STRANGER.to_owned(), |user| format!("iperf3 user {}", audit::text(&user)));
    let by = By { who: Some(&who), from: Some(peer.ip().to_canonical()), session: None };
    server.shared.audit.note(&by, &audit::Event::Measured { kind, duration_ms, bytes, rate_bps, failure });
    match outcome {
        Err(Broken::Refused(code, _)) => control.refuse(code).await,
        Err(Broken::Late) => control.terminate().await,
        Ok(_) | Err(Broken::Lost(_) | Broken::Full) => {}
    }
}

async fn conduct(
    server: &Server,
    enter: impl Fn() -> Result<Seat, Broken>,
    control: &mut Control,
    peer: SocketAddr,
    (kind, who): (&mut &'static str, &mut Option<String>),
) -> Result<u64, Broken> {
    let users = server.shared.config.iperf3_users.as_ref();
    // Where users are known, a stranger takes no seat.
    let early = users.is_none().then(&enter).transpose()?;
    control.tell(State::ParamExchange).await?;
    let params = control.json(MAX_PARAMS).await?;
    let params = Params::parse(&params).map_err(|error| Broken::Refused(error.code, error.why))?;
    if let Some(users) = users {
        *who = Some(admit(server, users, source_of(peer.ip()), params.auth_token.clone()).await?);
    }
    let seat = &early.map_or_else(enter, Ok)?;
    let plan = planned(server, seat, &params)?;
    *kind = plan.kind();
    let count = plan.streams().len();
    if !seat.take_streams(count) {
        return Err(Broken::Refused(errors::ACCEPT, "the server has no room for its streams".to_owned()));
    }
    let streams = gather(control, seat, &params, &plan).await;
    let streams = streams.map_err(|error| match error.kind() {
        ErrorKind::TimedOut => Broken::Refused(errors::ACCEPT, "not all streams were opened in time".to_owned()),
        _ => Broken::Refused(errors::ACCEPT, error.to_string()),
    })?;
    control.send(&[State::TestStart.byte(), State::TestRunning.byte()]).await?;
    let outcome = test::run(control, &params, plan, streams, server.shared.config.instruments).await?;
    match outcome.ended {
        Ended::InOrder => {}
        Ended::Left => return Err(Broken::Lost(io::Error::other("the client gave up"))),
        Ended::Late => return Err(Broken::Late),
    }
    let mut results = own::results(&outcome.record, params.omit_s * 1_000_000, outcome.end_us);
    if params.server_output {
        results.server_output = Some(output::text(peer, &params, &results));
    }
    control.tell(State::ExchangeResults).await?;
    let theirs = control.json(MAX_OWN_RESULTS).await?;
    // Other tasks of this thread do not wait for it.
    let checked = tokio::task::spawn_blocking(move || Results::check(&theirs, count)).await;
    checked.map_err(io::Error::other)?.map_err(|why| Broken::Refused(117, why))?;
    control.send(&json(&results.to_json()).map_err(io::Error::other)?).await?;
    control.tell(State::DisplayResults).await?;
    // Whether the client says goodbye makes no difference.
    let _ = within(ANSWER, control.state()).await;
    Ok(results.streams.iter().map(|stream| stream.bytes).sum())
}

/// Admits a user. A refusal takes the same time whatever its reason, so that the time tells nothing of the key (RSA decryption).
async fn admit(server: &Server, users: &Arc<Users>, source: IpAddr, word: Option<String>) -> Result<String, Broken> {
    let due = tokio::time::Instant::now() + REFUSAL;
    let users = users.clone();
    if let Some(word) = word {
        let admitted = server.logins.run(source, move || users.admits(&word)).await;
        if let Some(user) = admitted {
            return Ok(user);
        }
    }
    tokio::time::sleep_until(due).await;
    Err(Broken::Refused(errors::AUTH, "the user is not known, or the password, clock or padding is wrong".to_owned()))
}

/// The load that the parameters ask for, if this server carries it.
fn planned(server: &Server, seat: &Seat, params: &Params) -> Result<LoadPlan, Broken> {
    let refused = |code, why: &str| Err(Broken::Refused(code, why.to_owned()));
    if Duration::from_secs(params.time_s.saturating_add(params.omit_s)) > MAX_TEST {
        return refused(errors::DURATION, "the test would last too long");
    }
    // Another name would have the kernel load a module, or a helper set what no user may.
    let allowed = words_of("net.ipv4.tcp_allowed_congestion_control");
    if params.congestion.as_ref().is_some_and(|name| !allowed.contains(name)) {
        return refused(errors::CONGESTION, "the congestion control is not available");
    }
    let most_bps = server.shared.config.iperf3_rate_bps;
    let asked_bps = params.rate_bps.saturating_mul(params.parallel.into());
    let is_udp = params.protocol == Protocol::Udp;
    if asked_bps > most_bps || is_udp && asked_bps == 0 {
        return refused(errors::RATE, "the rate is above that of --iperf3-rate");
    }
    let granted_bps = seat.take_rate(if asked_bps == 0 { most_bps } else { asked_bps }, most_bps);
    // What is sent up over UDP cannot be slowed down from here, and below its least rate TCP cannot be paced.
    let least_bps = if is_udp { asked_bps } else { LEAST_OF_STREAM_BPS.saturating_mul(params.parallel.into()) };
    if granted_bps < least_bps {
        return Err(Broken::Full);
    }
    let duration = test::longest(params) + GRACE;
    let plan = params.plan(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
    let plan = bounded(plan, granted_bps);
    plan.check().map_err(|why| Broken::Refused(errors::PARAMS, why))?;
    Ok(plan)
}

/// The slowest pace of a stream.
const LEAST_OF_STREAM_BPS: u64 = 8_000;

/// The plan within the limits of strangers: no DSCP, and the rate of its seat.
fn bounded(mut plan: LoadPlan, most_bps: u64) -> LoadPlan {
    match &mut plan {
        LoadPlan::Tcp(plan) => {
            plan.dscp = 0;
            let of_stream = (most_bps / u64::from(plan.streams.max(1))).max(LEAST_OF_STREAM_BPS);
            plan.pacing_bps = Some(plan.pacing_bps.map_or(of_stream, |bps| bps.min(of_stream)));
            plan.application.read_bps = most_bps;
        }
        LoadPlan::Udp(plan) => plan.dscp = 0,
        _ => {}
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{TcpPlan, UdpPlan};

    #[test]
    fn strangers_mark_no_packets_and_keep_to_the_rate() {
        let asked = TcpPlan { streams: 4, dscp: 46, ..TcpPlan::default() };
        let LoadPlan::Tcp(plan) = bounded(asked.into(), 1_000_000) else { panic!("TCP") };
        assert_eq!((plan.dscp, plan.pacing_bps, plan.application.read_bps), (0, Some(250_000), 1_000_000));
        let asked = UdpPlan { dscp: 46, ..UdpPlan::default() };
        assert_eq!(bounded(asked.into(), 1_000_000), LoadPlan::Udp(UdpPlan::default()));
    }
}

//! What a client may do, by how it showed who it is.

use crate::trace::UDP_PORT;
use narrows_model::{
    Absent, Cap, LoadPlan, Snapshot, StreamSpec, TcpPlan, TracePlan, TraceProtocol, Transport, UdpPlan,
};
use narrows_wire::api::Permissions;
use std::net::IpAddr;
use std::time::Duration;

/// From the acceptance of a connection to the end of its TLS handshake or data hello.
pub(super) const GREETING: Duration = Duration::from_secs(5);
/// From there to the first request that shows a right to be here.
pub(super) const SHOW_RIGHT: Duration = Duration::from_secs(10);
/// For a client's kernel to acknowledge what was sent to it: the events of a session have a heartbeat, which an overloaded path delays.
pub(super) const UNACKNOWLEDGED: Duration = Duration::from_millis(4 * narrows_wire::api::CLIENT_SILENCE_MS);
/// For the whole body of a request.
pub(super) const BODY: Duration = Duration::from_secs(10);
/// The largest body of a request of a client without a token.
pub(super) const MAX_OPEN_REQUEST_BYTES: usize = 64 << 10;
/// From a trial's announcement to the last of its data connections.
pub(super) const CONNECT_ALL: Duration = Duration::from_secs(20);
/// The longest trace back to a client; what was seen until then is answered.
pub(super) const TRACE: Duration = Duration::from_secs(25);
/// Between two readings of the host's connections, of whatever clients: each walks through all its sockets.
pub(super) const CONNECTIONS_EVERY: Duration = Duration::from_millis(25);
/// For an engine to end after it was told to.
pub(super) const ENGINE_END: Duration = Duration::from_secs(5);
/// For a trial of bytes instead of time, the longest that a server with a token waits.
const MAX_TRIAL_MS: u64 = TcpPlan::LONGEST_MS;
/// The longest trial of a client without a token.
const MAX_OPEN_TRIAL_MS: u64 = 60_000;
/// The longest session of a client without a token.
pub(super) const OPEN_SESSION: Duration = Duration::from_secs(300);
/// The most streams per flow of a client without a token.
const MAX_OPEN_STREAMS: u32 = 16;

/// How a client showed who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// By the token, or by having got in through ssh.
    Trusted,
    /// Not at all, and the server is open.
    Open,
}

impl Standing {
    pub(super) fn permissions(self, allow_tune: bool) -> Permissions {
        match self {
            Self::Trusted => {
                Permissions { measure: true, inventory: true, tune: allow_tune, trial_most_ms: MAX_TRIAL_MS }
            }
            Self::Open => {
                Permissions { measure: true, inventory: false, tune: false, trial_most_ms: MAX_OPEN_TRIAL_MS }
            }
        }
    }

    /// What this client sees of an inventory: without a token the TCP stack's parameters and counters, which a measurement shows in
    /// part anyway, and nothing of the machine.
    pub(super) fn visible(self, mut snapshot: Snapshot) -> Snapshot {
        const PUBLIC: &[&str] = &["tcp.", "tcpext.", "ip.", "socket.", "core.", "netstat."];
        if self == Self::Trusted {
            return snapshot;
        }
        snapshot.facts.retain(|fact| PUBLIC.iter().any(|prefix| fact.key.starts_with(prefix)));
        snapshot.absent = vec![Absent {
            collector: "serve".to_owned(),
            what: "*".to_owned(),
            why: "this server is open and shows its host only to clients with its token".to_owned(),
        }];
        snapshot.collectors.clear();
        snapshot
    }
}

/// The trace back to a client: its kind and its rhythm within limits, so that it is over within [`TRACE`] and little is sent.
pub(super) fn bounded_trace(asked: &TracePlan, client: IpAddr) -> TracePlan {
    let tcp = asked.protocol == TraceProtocol::Tcp;
    TracePlan {
        asked: client.to_string(),
        target: client,
        // A port of the client that is open would have to be known.
        protocol: if tcp { TraceProtocol::Udp } else { asked.protocol },
        port: if tcp { UDP_PORT } else { asked.port.max(1) },
        first_ttl: asked.first_ttl.clamp(1, 64),
        max_ttl: asked.max_ttl.clamp(1, 64),
        gap: asked.gap.clamp(1, 10),
        rounds: asked.rounds.clamp(1, 40),
        continuous: false,
        flows: asked.flows.clamp(1, 64),
        interval_ms: asked.interval_ms.clamp(20, 1_000),
        wait_ms: asked.wait_ms.clamp(20, 2_000),
        probe_bytes: asked.probe_bytes.clamp(64, 1_400),
        ports: asked.ports.iter().copied().take(usize::try_from(UdpPlan::MAX_STREAMS).unwrap_or(0)).collect(),
        mtu: asked.mtu && !tcp,
        names: false,
    }
}

/// The plan as this client may run it: checked, bounded in rate if there is a maximum, and for a client without a token also in time and
/// streams.
pub(super) fn bounded(plan: LoadPlan, standing: Standing, max_bps: Option<u64>) -> Result<LoadPlan, String> {
    plan.check()?;
    let of_tcp = |stream: &StreamSpec| plan.tcp_options(stream.id);
    if plan.streams().iter().filter_map(of_tcp).any(|options| options.transport == Transport::Quic) {
        return Err("QUIC has a server of its own; start it with `narrows serve --quic`".to_owned());
    }
    // Another name would have the kernel load a module.
    for name in plan.streams().iter().filter_map(|stream| plan.tcp_options(stream.id)?.congestion_control) {
        let available = words_of("net.ipv4.tcp_available_congestion_control");
        if !available.contains(&name) {
            return Err(format!("congestion control {name} is not available; this host has: {}", available.join(", ")));
        }
    }
    let Some(max_bps) = max_bps else { return Ok(plan) };
    if standing == Standing::Trusted {
        let (max_streams, congestion_controls) = (u32::MAX, Vec::new());
        return plan.capped(&Cap { guest: false, max_streams, max_bps, congestion_controls });
    }
    if let Some(ms) = plan.duration_ms().filter(|ms| *ms > MAX_OPEN_TRIAL_MS) {
        return Err(format!(
            "a trial of {} s is not allowed: without a token the maximum is {} s",
            ms.div_ceil(1000),
            MAX_OPEN_TRIAL_MS / 1000
        ));
    }
    let congestion_controls = words_of("net.ipv4.tcp_allowed_congestion_control");
    plan.capped(&Cap { guest: true, max_streams: MAX_OPEN_STREAMS, max_bps, congestion_controls })
}

pub(super) fn words_of(parameter: &str) -> Vec<String> {
    narrows_sys::sysctl::read(parameter).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// The longest that a trial of this client may take, as a backstop behind the engine's own end.
pub(super) fn longest(plan: &LoadPlan, standing: Standing) -> Duration {
    let planned = plan.duration_ms().unwrap_or(match standing {
        Standing::Trusted => MAX_TRIAL_MS,
        Standing::Open => MAX_OPEN_TRIAL_MS,
    });
    Duration::from_millis(planned) + Duration::from_secs(10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{Application, Fact, Limit, UdpPlan, UdpRate, Unit, Value};

    const MOST: u64 = 1_000_000_000;

    #[test]
    fn without_a_token_time_streams_and_rate_are_bounded() {
        let tcp = TcpPlan { streams: 4, ..TcpPlan::default() };
        let plan = LoadPlan::Tcp(tcp.clone());
        assert_eq!(bounded(plan.clone(), Standing::Trusted, None), Ok(plan.clone()));
        let paced = LoadPlan::Tcp(TcpPlan { pacing_bps: Some(MOST / 4), ..tcp });
        assert_eq!(bounded(plan, Standing::Open, Some(MOST)), Ok(paced));
        let udp = UdpPlan { rate_up: UdpRate::Max, ..UdpPlan::default() };
        let slow = UdpPlan { rate_up: UdpRate::Bps(MOST), ..UdpPlan::default() };
        assert_eq!(bounded(LoadPlan::Udp(udp), Standing::Open, Some(MOST)), Ok(LoadPlan::Udp(slow)));
        let long = LoadPlan::Tcp(TcpPlan { limit: Limit::DurationMs(61_000), ..TcpPlan::default() });
        assert!(bounded(long, Standing::Open, Some(MOST)).expect_err("too long").contains("maximum is 60 s"));
        let exotic = |name: &str| TcpPlan { congestion_control: Some(name.to_owned()), ..TcpPlan::default() };
        for standing in [Standing::Trusted, Standing::Open] {
            let refused =
                bounded(LoadPlan::Tcp(exotic("nosuch")), standing, (standing == Standing::Open).then_some(MOST))
                    .expect_err("unknown");
            assert!(refused.starts_with("congestion control nosuch is not available; this host has: "), "{refused}");
        }
        let costly = [
            (TcpPlan { dscp: 46, ..TcpPlan::default() }, "a DSCP"),
            (TcpPlan { awake: true, ..TcpPlan::default() }, "keeping CPUs awake"),
            (
                TcpPlan {
                    application: Application { read_cpu_us_per_mib: 1, ..Application::default() },
                    ..TcpPlan::default()
                },
                "an application that uses CPU time",
            ),
        ];
        for (plan, what) in costly {
            assert_eq!(bounded(LoadPlan::Tcp(plan.clone()), Standing::Trusted, None), Ok(LoadPlan::Tcp(plan.clone())));
            let refused = bounded(LoadPlan::Tcp(plan), Standing::Open, Some(MOST)).expect_err(what);
            assert!(refused.starts_with(what) && refused.contains("token"), "{refused}");
        }
        let wide = LoadPlan::Tcp(TcpPlan { streams: 17, ..TcpPlan::default() });
        assert!(bounded(wide, Standing::Open, Some(MOST)).expect_err("too many").contains("at most 16"));
    }

    /// Each number of a plan, also those that are left open, with the pointer to it (RFC 6901).
    fn numbers(value: &serde_json::Value, at: &str, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => {
                map.iter().for_each(|(name, value)| numbers(value, &format!("{at}/{name}"), found));
            }
            serde_json::Value::Array(all) => {
                all.iter().enumerate().for_each(|(nth, value)| numbers(value, &format!("{at}/{nth}"), found));
            }
            serde_json::Value::Number(_) | serde_json::Value::Null => found.push(at.to_owned()),
            _ => {}
        }
    }

    #[test]
    fn no_number_in_a_plan_gives_a_guest_more() {
        let load = TcpPlan { direction: narrows_model::Direction::Both, ..TcpPlan::default() };
        let rr = narrows_model::RrPlan { load: Some(load.clone()), ..Default::default() };
        let (udp, profile) = (UdpPlan::default(), narrows_model::load::profile::ProfilePlan::default());
        let plans = [LoadPlan::Tcp(load), LoadPlan::Udp(udp), LoadPlan::Rr(rr), LoadPlan::Profile(profile)];
        let extremes = [0, 1, u64::from(u32::MAX) - 1, u64::from(u32::MAX), 1 << 31, u64::MAX - 1, u64::MAX];
        let mut tried = 0;
        for plan in plans {
            let written = serde_json::to_value(&plan).expect("a plan");
            let mut places = Vec::new();
            numbers(&written, "", &mut places);
            // Two at a time: what is added may overflow only together.
            let pairs = places.iter().flat_map(|one| places.iter().map(move |two| [one, two]));
            for (pair, extreme) in pairs.flat_map(|pair| extremes.map(|extreme| (pair, extreme))) {
                let mut changed = written.clone();
                pair.iter().for_each(|at| *changed.pointer_mut(at).expect("a place") = extreme.into());
                let Ok(plan) = serde_json::from_value::<LoadPlan>(changed) else { continue };
                tried += 1;
                let Ok(plan) = bounded(plan, Standing::Open, Some(MOST)) else { continue };
                assert!(plan.duration_ms().is_none_or(|ms| ms <= MAX_OPEN_TRIAL_MS), "{plan:?}");
                assert!(plan.rate_limit_bps().is_none_or(|bps| bps <= MOST), "{plan:?}");
                if let LoadPlan::Rr(plan) = &plan {
                    let bits = 8.0 * (f64::from(plan.response_bytes) + 64.0);
                    let most = plan.max_answers_per_s.map_or(f64::INFINITY, |rate| rate * bits);
                    let is_within = most <= MOST as f64 * 1.000_001;
                    assert!(is_within, "{plan:?}");
                }
                assert!(plan.streams().len() <= 3 * MAX_OPEN_STREAMS as usize, "{plan:?}");
                for options in plan.streams().iter().filter_map(|stream| plan.tcp_options(stream.id)) {
                    let Application { write_cpu_us_per_mib, read_cpu_us_per_mib, .. } = options.application;
                    assert_eq!([write_cpu_us_per_mib, read_cpu_us_per_mib, options.dscp.into()], [0; 3], "{plan:?}");
                }
            }
        }
        assert!(tried > 1_000, "{tried}");
    }

    #[test]
    fn a_token_with_a_rate_is_bounded_in_nothing_else() {
        let bounded = |plan: LoadPlan| bounded(plan, Standing::Trusted, Some(MOST));
        let tcp =
            TcpPlan { streams: 40, dscp: 46, awake: true, limit: Limit::DurationMs(90_000), ..TcpPlan::default() };
        let paced = TcpPlan { pacing_bps: Some(MOST / 40), ..tcp.clone() };
        assert_eq!(bounded(LoadPlan::Tcp(tcp)), Ok(LoadPlan::Tcp(paced)));
        let udp = |rate| LoadPlan::Udp(UdpPlan { rate_up: rate, rate_down: rate, ..UdpPlan::default() });
        assert_eq!(bounded(udp(UdpRate::Max)), Ok(udp(UdpRate::Bps(MOST))));
        let refused = bounded(udp(UdpRate::Pps(1000.0))).expect_err("packets");
        assert!(refused.contains("for a token with a rate this server accepts bit/s only"), "{refused}");
    }

    #[test]
    fn without_a_token_the_machine_is_not_shown() {
        let fact =
            |key: &str| Fact { key: key.into(), value: Value::Integer(1), unit: Unit::Number, source: "test".into() };
        let whole = Snapshot { facts: vec![fact("cpu.model"), fact("tcp.rmem.max")], ..Snapshot::default() };
        let part = Standing::Open.visible(whole);
        assert_eq!(part.facts.iter().map(|f| f.key.as_str()).collect::<Vec<_>>(), ["tcp.rmem.max"]);
        assert!(part.why_absent("cpu.model").expect("a reason").contains("token"));
    }
}

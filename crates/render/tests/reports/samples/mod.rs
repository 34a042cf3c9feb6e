//! Hand-made reports: one of each shape that a reader may meet.

pub(crate) mod fits;
pub(crate) mod frames;
pub(crate) mod runs;
pub(crate) mod same;
pub(crate) mod udp;

use narrows_model::run::report::*;
use narrows_model::*;

/// Facts of a host, as collectors would give them.
pub(crate) fn host(name: &str, facts: &[(&str, Value, Unit)]) -> HostView {
    let mut facts: Vec<Fact> = facts
        .iter()
        .map(|(key, value, unit)| Fact { key: (*key).into(), value: value.clone(), unit: *unit, source: "test".into() })
        .collect();
    facts.sort_by(|a, b| a.key.cmp(&b.key));
    HostView { name: name.into(), facts, absent: vec![] }
}

/// A usual host with the ends of its `tcp_rmem` and `tcp_wmem`.
pub(crate) fn usual(name: &str, rmem_max: i64, wmem_max: i64) -> HostView {
    let int = Value::Integer;
    let flag = |on| Value::Flag(on);
    host(
        name,
        &[
            ("host.name", name.into(), Unit::Text),
            ("host.kernel", "6.18.2-amd64".into(), Unit::Text),
            ("cpu.model", "Intel Xeon X5550 @ 2.67GHz".into(), Unit::Text),
            ("cpu.count", int(8), Unit::Number),
            ("nic.name", "eth2".into(), Unit::Text),
            ("nic.driver", "e1000e".into(), Unit::Text),
            ("nic.speed", int(1_000_000_000), Unit::BitsPerSecond),
            ("nic.speed.max", int(1_000_000_000), Unit::BitsPerSecond),
            ("nic.mtu", int(1500), Unit::Bytes),
            ("nic.ring.rx", int(256), Unit::Number),
            ("nic.ring.rx.max", int(4096), Unit::Number),
            ("tcp.rmem.min", int(4096), Unit::Bytes),
            ("tcp.rmem.default", int(131_072), Unit::Bytes),
            ("tcp.rmem.max", int(rmem_max), Unit::Bytes),
            ("tcp.wmem.min", int(4096), Unit::Bytes),
            ("tcp.wmem.default", int(16_384), Unit::Bytes),
            ("tcp.wmem.max", int(wmem_max), Unit::Bytes),
            ("tcp.congestion_control", "cubic".into(), Unit::Text),
            ("tcp.sack", flag(true), Unit::Flag),
            ("tcp.window_scaling", flag(true), Unit::Flag),
            ("qdisc.root.kind", "fq_codel".into(), Unit::Text),
            ("path.mtu", int(1500), Unit::Bytes),
        ],
    )
}

fn ceiling(id: &str, at: Place, bps: f64, spread: f64, method: Method, how: &str) -> Ceiling {
    Ceiling {
        id: id.into(),
        at,
        bps,
        interval_bps: [bps * (1.0 - spread), bps * (1.0 + spread)],
        at_least: false,
        method,
        how: how.into(),
    }
}

/// The ceilings of the 1 Gbit/s path of 35 ms.
pub(crate) fn roofline() -> Vec<Ceiling> {
    vec![
        ceiling("tcp-receive-window", Place::Server, 37.2e6, 0.03, Method::Inferred, "162 KiB / 35.0 ms"),
        ceiling("tcp-send-buffer", Place::Client, 634e6, 0.05, Method::Computed, "2.77 MiB / 35.0 ms"),
        ceiling("path-capacity", Place::Path, 949e6, 0.01, Method::Measured, "1 Gbit/s x 0.949"),
        ceiling("link-speed", Place::Client, 949e6, 0.001, Method::Computed, "1 Gbit/s x 1448/1526"),
        ceiling("app-core-saturated", Place::Server, 11.2e9, 0.3, Method::Inferred, "0.033 cores at 37 Mbit/s"),
    ]
}

fn witness(kind: &str, says: &str) -> Witness {
    Witness { kind: kind.into(), says: says.into() }
}

fn rejected(id: &str, why: &str) -> Rejected {
    Rejected { id: id.into(), why: why.into() }
}

pub(crate) fn cause() -> CauseView {
    CauseView {
        id: "tcp-receive-window".into(),
        at: Place::Server,
        confidence: 0.97,
        summary:
            "The server announces a receive window that is too small for this round-trip time: the client waits for \
                  room most of the time."
                .into(),
        ceiling_bps: Some(37.2e6),
        predicted_bps: Some(634e6),
        predicted_interval_bps: Some([602e6, 666e6]),
        then: Some("tcp-send-buffer".into()),
        witnesses: vec![
            witness("ceiling", "162 KiB of window in 35.0 ms allow 37.2 Mbit/s; 37.1 Mbit/s were measured."),
            witness("counter", "The client's kernel was held back by the receiver's window for 97 % of its busy time."),
            witness("parameter", "net.ipv4.tcp_rmem on the server ends at 256 KiB; the path needs 8.35 MiB."),
        ],
        rejected: vec![
            rejected("receiver-app-slow", "the server's receive queue was empty (0 B of 256 KiB)"),
            rejected("window-scaling-off", "window scaling was negotiated"),
            rejected("random-loss", "no segment was retransmitted"),
            rejected("sender-app-slow", "the application was idle for 0.1 % of the time"),
        ],
        fix: FixView {
            advice: "Let the server's receive buffers grow to twice the bandwidth-delay product, 8 MiB.".into(),
            commands: vec![Command {
                at: Place::Server,
                run: "sysctl -w net.ipv4.tcp_rmem='4096 131072 8388608'".into(),
            }],
        },
    }
}

/// Limited, with a fix: the first round of the story.
pub(crate) fn limited() -> Report {
    Report {
        schema: SCHEMA.into(),
        run: RunView {
            elapsed_s: 14.2,
            target: Target { asked: "umfs05".into(), address: "192.41.230.25:5220".into(), family: Family::Ipv4 },
            idle_rtt_us: Some(34_851),
            ..udp::run_view()
        },
        verdict: VerdictView {
            both_bps: None,
            both_interval_bps: None,
            status: Status::Limited,
            headline: "The server's receive window holds this path to 37.1 Mbit/s; 634 Mbit/s are possible.".into(),
            goodput_bps: 37.1e6,
            direction: Direction::Up,
            causes: vec![cause()],
            missing: vec![],
            hazards: vec!["rx ring of the client is 256 of 4096: ethtool -G eth2 rx 4096".into()],
        },
        accounts: AccountsView {
            ledger: vec![],
            roofline: roofline(),
            path_profile: None,
            underlay: None,
            latency: None,
            phases: vec![],
            time_budget: Some(TimeBudget {
                app_idle: 0.001,
                receive_window: 0.968,
                send_buffer: 0.0,
                congestion_window: 0.025,
                recovery: 0.0,
                unexplained: 0.006,
            }),
        },
        hosts: HostsView { client: usual("dct00", 33_554_432, 4_194_304), server: usual("umfs05", 262_144, 4_194_304) },
        experiments: vec![ExperimentView {
            id: "more-streams".into(),
            what: "Four streams instead of one: goodput grew with them, so a limit of each stream binds.".into(),
            goodput_bps: 148.2e6,
        }],
        rounds: vec![],
        proof: None,
        carried_bytes: 64 << 20,
        congestion_control: Some("cubic".to_owned()),
    }
}

fn sysctl(at: Place, key: &str, value: &str, before: &str) -> Change {
    Change {
        id: "1".into(),
        at,
        set: Setting::Sysctl { key: key.into(), value: value.into() },
        before: before.into(),
        made_unix_us: 1_190_232_900_000_000,
        in_force: false,
    }
}

fn proof(before: [f64; 3], after: [f64; 3], gain: f64, interval: [f64; 2], predicted: f64) -> ProofView {
    ProofView {
        before_bps: before.to_vec(),
        after_bps: after.to_vec(),
        before_loss: Vec::new(),
        after_loss: Vec::new(),
        gain: Some(gain),
        gain_interval: Some(interval),
        predicted_bps: predicted,
        predicted_interval_bps: Some([predicted * 0.95, predicted * 1.05]),
        helped: interval[0] > 1.0,
    }
}

/// Three rounds with their proofs, all rolled back.
pub(crate) fn three_acts() -> Report {
    let mut report = limited();
    report.rounds = vec![
        RoundView {
            round: 0,
            cause: Some("tcp-receive-window".into()),
            at: Some(Place::Server),
            status: Status::Limited,
            headline: report.verdict.headline.clone(),
            goodput_bps: 37.1e6,
            changes: vec![sysctl(Place::Server, "net.ipv4.tcp_rmem", "4096 131072 8388608", "4096 131072 262144")],
            proof: Some(proof([37.0e6, 37.2e6, 37.1e6], [633e6, 629e6, 641e6], 17.1, [16.7, 17.5], 634e6)),
        },
        RoundView {
            round: 1,
            cause: Some("tcp-send-buffer".into()),
            at: Some(Place::Client),
            status: Status::Limited,
            headline: "The client's send buffer holds this path to 634 Mbit/s.".into(),
            goodput_bps: 634e6,
            changes: vec![sysctl(Place::Client, "net.ipv4.tcp_wmem", "4096 16384 16777216", "4096 16384 4194304")],
            proof: Some(proof([633e6, 629e6, 641e6], [941e6, 940e6, 943e6], 1.484, [1.459, 1.51], 949e6)),
        },
        RoundView {
            round: 2,
            cause: Some("path-capacity".into()),
            at: Some(Place::Path),
            status: Status::Healthy,
            headline: "Healthy: at capacity.".into(),
            goodput_bps: 942e6,
            changes: vec![],
            proof: None,
        },
    ];
    report.proof = Some(proof([37.0e6, 37.2e6, 37.1e6], [941e6, 940e6, 943e6], 25.4, [25.2, 25.6], 949e6));
    report
}

/// The same rounds with their fixes kept, between two network namespaces of one host.
pub(crate) fn kept() -> Report {
    let mut report = three_acts();
    report.rounds.iter_mut().flat_map(|round| &mut round.changes).for_each(|change| change.in_force = true);
    report.hosts.server.name = report.hosts.client.name.clone();
    report
}

/// A fix that did not help.
pub(crate) fn no_help() -> Report {
    let mut report = three_acts();
    report.rounds.truncate(1);
    let proof = ProofView {
        predicted_interval_bps: Some([602e6, 666e6]),
        ..proof([37.0e6, 37.2e6, 37.1e6], [37.1e6, 36.9e6, 37.2e6], 0.999, [0.993, 1.005], 634e6)
    };
    report.rounds[0].proof = Some(proof.clone());
    report.proof = Some(proof);
    report
}

/// Nothing passed before the fix, and what the path carries is known up to a rate only.
pub(crate) fn at_least() -> Report {
    let mut report = no_help();
    let cause = &mut report.verdict.causes[0];
    (cause.predicted_bps, cause.predicted_interval_bps, cause.then) = (Some(949e6), None, None);
    (report.verdict.both_bps, report.verdict.both_interval_bps) = (Some(949e6), None);
    report.verdict.causes.push(self::cause());
    report.verdict.goodput_bps = 0.0;
    report.accounts.roofline[2].at_least = true;
    for proof in report.rounds.iter_mut().filter_map(|round| round.proof.as_mut()).chain(&mut report.proof) {
        (proof.before_bps, proof.after_bps) = (vec![0.0; 3], vec![951e6, 952e6, 950e6]);
        (proof.gain, proof.gain_interval, proof.helped) = (None, None, true);
        (proof.predicted_bps, proof.predicted_interval_bps) = (949e6, None);
    }
    report
}

pub(crate) fn healthy() -> Report {
    let mut report = limited();
    report.verdict = VerdictView {
        status: Status::Healthy,
        headline: "Healthy: at capacity. The path carries 942 Mbit/s, all that a link of 1 Gbit/s can.".into(),
        goodput_bps: 942e6,
        causes: vec![CauseView {
            id: "path-capacity".into(),
            at: Place::Path,
            confidence: 0.95,
            summary: "The goodput is that of the slowest link of the path, and a queue stands before it.".into(),
            ceiling_bps: Some(949e6),
            predicted_bps: None,
            predicted_interval_bps: None,
            then: None,
            witnesses: vec![witness(
                "counter",
                "The RTT rose from 34.9 ms to 47.1 ms under load before anything was lost.",
            )],
            rejected: vec![],
            fix: FixView { advice: String::new(), commands: vec![] },
        }],
        hazards: vec![],
        ..report.verdict
    };
    report.accounts.roofline.drain(..2);
    report.accounts.time_budget =
        Some(TimeBudget { congestion_window: 0.97, recovery: 0.02, unexplained: 0.01, ..TimeBudget::default() });
    report.accounts.path_profile = Some(profile());
    report.accounts.latency = Some(WorkingLatency {
        direction: Direction::Up,
        idle_us: Some(LatencySpread { count: 100, p50: 34_900.0, p95: Some(35_300.0), p99: Some(36_100.0) }),
        loaded_us: Some(LatencySpread { count: 80, p50: 47_100.0, p95: Some(52_300.0), p99: None }),
        waits: vec![
            Wait { queue: Queue::Socket, us: 86_000.0 },
            Wait { queue: Queue::Device, us: 1_200.0 },
            Wait { queue: Queue::Path, us: 11_000.0 },
        ],
    });
    report.hosts.server = usual("umfs05", 33_554_432, 4_194_304);
    report.experiments.clear();
    report
}

/// A path of 1 Gbit/s with a queue, that loses one datagram of a thousand.
pub(crate) fn profile() -> PathProfileView {
    let step = |offered_bps: f64, loss, queue_us| ProfileStepView {
        offered_bps,
        delivered_bps: offered_bps.min(978e6),
        loss,
        queue_us,
    };
    PathProfileView {
        summary: "the path sustains 978 Mbit/s behind a queue".into(),
        capacity_bps: Some(978e6),
        capacity_interval_bps: Some([968e6, 988e6]),
        limit: Some("queue".into()),
        bucket_bytes: None,
        carried_bps: 830e6,
        burst_bps: Some(981e6),
        idle_rtt_us: Some([34_851.0, 34_902.0, 35_310.0]),
        jitter_us: 140.0,
        queue_us: 12_400.0,
        lost_below: [12_000, 12],
        reordered: 0.0,
        duplicated: 0.0,
        steps: vec![
            step(415e6, 0.001, 20.0),
            step(830e6, 0.001, 31.0),
            step(1_120e6, 0.02, 11_800.0),
            step(1_177e6, 0.17, 12_400.0),
        ],
    }
}

/// One witness only, and a second hypothesis left.
pub(crate) fn suspected() -> Report {
    let mut report = limited();
    report.verdict.status = Status::Suspected;
    report.verdict.headline = "Perhaps loss on the path; one witness only.".into();
    let mut first = cause();
    first.id = "random-loss".into();
    first.at = Place::Path;
    first.confidence = 0.4;
    first.summary = "Segments are lost without a queue building up.".into();
    first.ceiling_bps = None;
    first.predicted_bps = None;
    first.predicted_interval_bps = None;
    first.then = None;
    first.witnesses.truncate(1);
    first.rejected.clear();
    first.fix = FixView { advice: "Look for errors on the links between the hosts.".into(), commands: vec![] };
    let mut second = cause();
    second.confidence = 0.2;
    report.verdict.causes = vec![first, second];
    report.verdict.missing = vec!["The server's counters: its collector `netstat` had no permission.".into()];
    report
}

/// Nothing is known, since the evidence is missing; the server was lost.
pub(crate) fn unknown() -> Report {
    let mut report = limited();
    report.verdict = VerdictView {
        status: Status::Unknown,
        headline: "What limits this path cannot be said.".into(),
        goodput_bps: 12.4e6,
        direction: Direction::Down,
        causes: vec![],
        missing: vec![
            "TCP_INFO of the server: its kernel returned 104 bytes, which end before the limited times.".into(),
            "The server's CPU times: /proc/stat could not be read.".into(),
        ],
        hazards: vec![],
        ..report.verdict
    };
    report.run.ending = Ending::Failed("the server was lost after 4.1 s".into());
    report.run.idle_rtt_us = None;
    let phase = |from_s, to_s, goodput_bps| PhaseView { from_s, to_s, goodput_bps, ..PhaseView::default() };
    let slow = PhaseView {
        sent: Some(13_200),
        retransmitted: Some(271),
        rtt_us: Some(54_800.0),
        shares: Some(PhaseShares { receive_window: 0.004, send_buffer: 0.0, rest: 0.996 }),
        ..phase(4.2, 8.0, 40.2e6)
    };
    let phases = vec![phase(2.0, 4.2, 300e6), slow];
    let underlay = Some(UnderlayView {
        address: "198.51.100.2".into(),
        goodput_bps: 935e6,
        overlay_bps: vec![150e6, 155e6],
        layer: Layer::Inside,
        why: "the underlay carries more: the tunnel's packets are fragmented (120000 fragments for 60000 segments)"
            .into(),
    });
    report.accounts = AccountsView { roofline: vec![], time_budget: None, underlay, phases, ..report.accounts };
    report.experiments.clear();
    report.hosts.server = HostView {
        name: String::new(),
        facts: vec![],
        absent: vec![Absent { collector: "sysctl".into(), what: "tcp.*".into(), why: "the server was lost".into() }],
    };
    report
}

/// Long IPv6 addresses and names, and a peer that sends escape sequences.
pub(crate) fn long_names() -> Report {
    let mut report = limited();
    report.run.target = Target {
        asked: "a-very-long-host-name-that-somebody-gave-to-a-virtual-machine.rack-17.row-b.example.org".into(),
        address: "[2001:db8:1234:5678:9abc:def0:1234:5678%enp129s0f0np0]:5220".into(),
        family: Family::Ipv6,
    };
    let long = "a-very-long-host-name-that-somebody-gave-to-a-virtual-machine.rack-17.row-b.example.org";
    report.hosts.server = usual(long, 262_144, 4_194_304);
    for (key, value) in [
        ("nic.driver", "\x1b[2Jdriver with a name that goes on and on and on until the column ends"),
        ("tcp.congestion_control", "2001:db8:1234:5678:9abc:def0:1234:5678%enp129s0f0np0"),
    ] {
        let fact = report.hosts.server.facts.iter_mut().find(|fact| fact.key == key).expect("usual hosts have it");
        fact.value = value.into();
    }
    report.verdict.causes[0].witnesses[0].says =
        "The stream [2001:db8:1234:5678:9abc:def0:1234:5678%enp129s0f0np0]:51234 -> \
         [2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:5220 had 162 KiB of window."
            .into();
    report
}

/// Every shape with its name.
pub(crate) fn all() -> Vec<(&'static str, Report)> {
    vec![
        ("limited", limited()),
        ("three_acts", three_acts()),
        ("kept", kept()),
        ("no_help", no_help()),
        ("healthy", healthy()),
        ("suspected", suspected()),
        ("unknown", unknown()),
        ("long_names", long_names()),
        ("at_least", at_least()),
    ]
}

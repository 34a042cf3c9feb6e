//! A scene of UDP: one trial of one flow, told by what happened to its datagrams and written as the counters of both ends.

use super::fact;
use crate::evidence::udp::UdpEvidence;
use crate::experiments::ports::MANY_PORTS;
use crate::judge::{Assessment, Cause};
use crate::role::Role;
use crate::{Diagnosis, diagnose};
use narrows_model::host::fact::{Fact, Snapshot, Unit};
use narrows_model::load::host::{CpuTimes, HostSample, SocketMemory};
use narrows_model::load::udp::record::{
    Distribution, UdpEndRecord, UdpReceived, UdpSample, UdpSent, UdpStreamRecord, Unsent,
};
use narrows_model::load::udp::{DatagramSizes, UdpPlan, UdpRate};
use narrows_model::run::{Purpose, TrialRecord};
use narrows_model::{Finding, Flow, LoadRecord, Place, Run, Status, Trial, Verdict};

/// Where datagrams were dropped, in path order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Died {
    pub(crate) refused: Unsent,
    /// In the sender's queue, without a word to the application.
    pub(crate) qdisc: u64,
    /// In the sender's queue, reported as `ENOBUFS` (not in `refused`).
    pub(crate) qdisc_told: u64,
    pub(crate) device: u64,
    pub(crate) path: u64,
    pub(crate) ring: u64,
    pub(crate) softnet: u64,
    pub(crate) filter: u64,
    pub(crate) corrupt: u64,
    pub(crate) buffer: u64,
    pub(crate) memory: u64,
    /// In no place that counts.
    pub(crate) nowhere: u64,
}

impl Died {
    pub(crate) fn total(&self) -> u64 {
        self.refused.total() + self.qdisc + self.qdisc_told + self.device + self.path + self.behind_the_path()
    }

    pub(crate) fn behind_the_path(&self) -> u64 {
        self.ring + self.softnet + self.filter + self.corrupt + self.buffer + self.memory + self.nowhere
    }
}

/// One UDP trial as it shall look. The defaults: 100 Mbit/s of 1472 bytes for 8 s, nothing lost, on hosts of their own.
#[derive(Debug, Clone)]
pub(crate) struct UdpScene {
    /// Handed over by the application, refused ones included.
    pub(crate) offered: u64,
    pub(crate) died: Died,
    pub(crate) copies: u64,
    /// What the plan asked for in that time; `None`: as many as were handed over.
    pub(crate) intended: Option<u64>,
    pub(crate) skipped: u64,
    pub(crate) size: u32,
    pub(crate) rate: UdpRate,
    pub(crate) burst: Option<u32>,
    pub(crate) span_us: u64,
    pub(crate) rcvbuf: u32,
    pub(crate) rcvbuf_requested: u32,
    pub(crate) asked_rcvbuf: Option<u32>,
    pub(crate) loss_burst_max: u64,
    /// How many are lost in a row; 0: the receiving end does not say.
    pub(crate) loss_run: u64,
    /// Share of the samples that find the receive buffer full.
    pub(crate) buffer_full: bool,
    pub(crate) sender_thread: f64,
    pub(crate) receiver_thread: f64,
    pub(crate) sender_core: CpuTimes,
    pub(crate) receiver_core: CpuTimes,
    pub(crate) delay_us: [u64; 3],
    /// Packets of TCP that both ends exchange besides.
    pub(crate) others: u64,
    pub(crate) one_kernel: bool,
    /// Whether the reasons of drops were watched.
    pub(crate) watched: bool,
    pub(crate) sender_facts: Vec<Fact>,
    pub(crate) receiver_facts: Vec<Fact>,
    /// Counts that replace those that follow from the scene.
    pub(crate) sender_counts: Vec<(&'static str, i64)>,
    pub(crate) receiver_counts: Vec<(&'static str, i64)>,
    /// Counts that an end does not give.
    pub(crate) hidden: &'static [&'static str],
    /// Whether the socket tells of its drops.
    pub(crate) socket_tells: bool,
    pub(crate) flow: Flow,
}

impl Default for UdpScene {
    fn default() -> Self {
        Self {
            offered: 67_935,
            died: Died::default(),
            copies: 0,
            intended: None,
            skipped: 0,
            size: 1472,
            rate: UdpRate::Bps(100_000_000),
            burst: None,
            span_us: 8_000_000,
            rcvbuf: 4_194_304,
            rcvbuf_requested: 4_194_304,
            asked_rcvbuf: None,
            loss_burst_max: 0,
            loss_run: 1,
            buffer_full: false,
            sender_thread: 0.1,
            receiver_thread: 0.1,
            sender_core: CpuTimes { system_us: 800_000, idle_us: 7_200_000, ..CpuTimes::default() },
            receiver_core: CpuTimes { softirq_us: 800_000, idle_us: 7_200_000, ..CpuTimes::default() },
            delay_us: [20, 60, 120],
            others: 0,
            one_kernel: false,
            watched: true,
            sender_facts: host_facts(),
            receiver_facts: host_facts(),
            sender_counts: Vec::new(),
            receiver_counts: Vec::new(),
            hidden: &[],
            socket_tells: true,
            flow: Flow::Up,
        }
    }
}

/// So many of 4,250 datagrams of a second lost on the path, with so much delay: a base or a paced trial.
pub(crate) fn lost(path: u64, delay_us: u64) -> UdpScene {
    UdpScene {
        offered: 4_250,
        died: Died { path, ..Died::default() },
        delay_us: [delay_us; 3],
        span_us: 1_000_000,
        ..UdpScene::default()
    }
}

/// What the rules of UDP read of an ordinary host.
pub(crate) fn host_facts() -> Vec<Fact> {
    let mut facts = super::ordinary_host();
    facts.extend([
        fact("core.rmem.max", 212_992_i64, Unit::Bytes),
        fact("core.wmem.max", 212_992_i64, Unit::Bytes),
        fact("core.netdev_max_backlog", 1000_i64, Unit::Packets),
        fact("udp.mem.low", 100_000_i64, Unit::Pages),
        fact("udp.mem.pressure", 130_000_i64, Unit::Pages),
        fact("udp.mem.high", 200_000_i64, Unit::Pages),
        fact("nic.txqueuelen", 1000_i64, Unit::Packets),
        fact("qdisc.limit.packets", 1000_i64, Unit::Packets),
    ]);
    facts
}

impl UdpScene {
    pub(crate) fn delivered(&self) -> u64 {
        self.offered - self.died.total()
    }

    /// What the socket took: all but what it refused or was told of.
    fn accepted(&self) -> u64 {
        self.offered - self.died.refused.total() - self.died.qdisc_told
    }

    fn left_the_device(&self) -> u64 {
        self.accepted() - self.died.qdisc - self.died.device
    }

    fn reached_the_device(&self) -> u64 {
        self.left_the_device() - self.died.path - self.died.ring + self.copies
    }

    fn sender(&self) -> Vec<(&'static str, i64)> {
        let died = &self.died;
        let drops = died.qdisc + died.qdisc_told;
        vec![
            ("qdisc.drops", drops as i64),
            ("qdisc.sent.packets", (self.left_the_device() + died.device + self.others) as i64),
            ("nic.counter.tx_packets", (self.left_the_device() + self.others) as i64),
            ("nic.counter.tx_dropped", died.device as i64),
            ("nic.counter.tx_errors", 0),
            ("nic.counter.rx_packets", self.others as i64),
            ("snmp.Tcp.OutSegs", self.others as i64),
            ("snmp.Tcp.InSegs", self.others as i64),
            ("snmp.Udp.SndbufErrors", (drops + died.device) as i64),
            ("snmp.Ip.OutDiscards", (drops + died.device) as i64),
            ("snmp.Ip.FragOKs", 0),
            ("snmp.Ip.FragCreates", 0),
            ("softnet.dropped", if self.one_kernel { died.softnet as i64 } else { 0 }),
            ("drop.lost_records", 0),
            ("drop.reason.QDISC_DROP", drops as i64),
        ]
    }

    fn receiver(&self) -> Vec<(&'static str, i64)> {
        let died = &self.died;
        let arrived = self.reached_the_device() - died.softnet;
        vec![
            ("nic.counter.rx_packets", (self.reached_the_device() + self.others) as i64),
            ("nic.counter.rx_dropped", died.softnet as i64),
            ("nic.counter.rx_missed_errors", died.ring as i64),
            ("nic.counter.rx_fifo_errors", 0),
            ("nic.counter.rx_over_errors", 0),
            ("nic.counter.rx_crc_errors", 0),
            ("softnet.dropped", died.softnet as i64),
            ("filter.drop.packets", died.filter as i64),
            ("filter.drop.bytes", (died.filter * (u64::from(self.size) + 28)) as i64),
            ("netstat.TcpExt.IPReversePathFilter", 0),
            ("netstat.IpExt.InNoECTPkts", (arrived + self.others) as i64),
            ("netstat.IpExt.InECT0Pkts", 0),
            ("netstat.IpExt.InECT1Pkts", 0),
            ("netstat.IpExt.InCEPkts", 0),
            ("snmp.Icmp.InMsgs", 0),
            ("snmp.Tcp.InSegs", self.others as i64),
            ("snmp.Tcp.OutSegs", self.others as i64),
            ("snmp.Ip.InReceives", (arrived + self.others) as i64),
            ("snmp.Ip.InDelivers", (arrived - died.filter + self.others) as i64),
            ("snmp.Ip.ForwDatagrams", 0),
            ("snmp.Ip.ReasmReqds", 0),
            ("snmp.Ip.ReasmOKs", 0),
            ("snmp.Ip.ReasmFails", 0),
            ("snmp.Udp.InDatagrams", (self.delivered() + self.copies) as i64),
            ("snmp.Udp.NoPorts", 0),
            ("snmp.Udp.InCsumErrors", died.corrupt as i64),
            ("snmp.Udp.RcvbufErrors", died.buffer as i64),
            ("snmp.Udp.MemErrors", died.memory as i64),
            ("snmp.Udp.InErrors", (died.corrupt + died.buffer + died.memory) as i64),
            ("drop.lost_records", 0),
            ("drop.reason.SOCKET_RCVBUFF", died.buffer as i64),
            ("drop.reason.PROTO_MEM", died.memory as i64),
            ("drop.reason.UDP_CSUM", died.corrupt as i64),
            ("drop.reason.NETFILTER_DROP", died.filter as i64),
            ("drop.reason.CPU_BACKLOG", died.softnet as i64),
        ]
    }

    fn snapshots(&self, sending: bool) -> (Snapshot, Snapshot) {
        let (mut counts, replaced, facts) = if sending {
            (self.sender(), &self.sender_counts, &self.sender_facts)
        } else {
            (self.receiver(), &self.receiver_counts, &self.receiver_facts)
        };
        counts.retain(|(key, _)| !replaced.iter().any(|(other, _)| key == other));
        counts.extend(replaced.iter().copied());
        counts.retain(|(key, _)| {
            let hidden = self.hidden.iter().any(|hidden| key.starts_with(hidden));
            !(hidden || !self.watched && key.starts_with("drop."))
        });
        let boot = if self.one_kernel {
            "0123abcd"
        } else if sending {
            "11111111"
        } else {
            "22222222"
        };
        let snapshot = |grown: bool| Snapshot {
            facts: counts
                .iter()
                .map(|(key, n)| fact(key, if grown { *n } else { 0 }, Unit::Count))
                .chain(facts.iter().cloned())
                .chain([fact("host.boot", boot, Unit::Text)])
                .collect(),
            ..Snapshot::default()
        };
        (snapshot(false), snapshot(true))
    }

    fn end(&self, place: Place) -> UdpEndRecord {
        let sending = self.flow.sender() == place;
        let (before, after) = self.snapshots(sending);
        let drops = self.died.buffer + self.died.memory + self.died.corrupt;
        let [p50, p99, max] = self.delay_us.map(|us| us * 1000);
        let burst_max = u64::from(self.burst.unwrap_or(1));
        let sent = UdpSent {
            intended: self.intended.unwrap_or(self.offered),
            datagrams: self.accepted(),
            bytes: self.accepted() * u64::from(self.size),
            calls: self.accepted().div_ceil(8),
            errors: 0,
            unsent: Unsent { no_buffers: self.died.refused.no_buffers + self.died.qdisc_told, ..self.died.refused },
            skipped: self.skipped,
            // The last burst leaves one pacing interval before the end.
            active_ns: self.span_us * 1000 * self.accepted().saturating_sub(burst_max) / self.accepted().max(1),
            gaps_ns: Distribution::default(),
            burst_max,
        };
        let got = UdpReceived {
            datagrams: self.delivered() + self.copies,
            bytes: (self.delivered() + self.copies) * u64::from(self.size),
            distinct: self.delivered(),
            duplicates: self.copies,
            lost: self.accepted() - self.delivered(),
            loss_bursts: match self.loss_run {
                0 => 0,
                run => (self.accepted() - self.delivered()).div_ceil(run),
            },
            loss_burst_max: self.loss_burst_max,
            socket_drops: self.socket_tells.then_some(drops),
            active_ns: self.span_us * 1000,
            stamps: "kernel".to_owned(),
            delay_variation_ns: Distribution {
                count: self.delivered(),
                p50,
                p90: p99,
                p99,
                max,
                ..Distribution::default()
            },
            ..UdpReceived::default()
        };
        let thread = if sending { self.sender_thread } else { self.receiver_thread };
        let sample = |part: u64| UdpSample {
            at_us: self.span_us * part / 8,
            datagrams: (if sending { self.accepted() } else { self.delivered() }) * part / 8,
            bytes: (if sending { self.accepted() } else { self.delivered() }) * part / 8 * u64::from(self.size),
            thread_cpu_us: Some((self.span_us as f64 * part as f64 / 8.0 * thread) as u64),
            memory: (!sending && self.socket_tells).then(|| SocketMemory {
                rcvbuf_bytes: self.rcvbuf,
                rmem_alloc_bytes: if self.buffer_full && part > 0 { self.rcvbuf } else { 0 },
                drops: u32::try_from(drops * part / 8).unwrap_or(u32::MAX),
                ..SocketMemory::default()
            }),
            ..UdpSample::default()
        };
        let core = if sending { self.sender_core } else { self.receiver_core };
        let idle = CpuTimes { cpu: 1, idle_us: 8_000_000, ..CpuTimes::default() };
        UdpEndRecord {
            place,
            streams: vec![UdpStreamRecord {
                id: 0,
                flow: self.flow,
                local: "192.0.2.1:5000".to_owned(),
                remote: "192.0.2.2:5220".to_owned(),
                datagram_bytes: self.size,
                path_mtu_bytes: Some(1500),
                sndbuf_bytes: Some(4_194_304),
                rcvbuf_bytes: Some(self.rcvbuf),
                rcvbuf_requested_bytes: Some(self.rcvbuf_requested),
                method: if sending { "sendmmsg" } else { "recvmmsg" }.to_owned(),
                sent: sending.then_some(sent),
                received: (!sending).then_some(got),
                samples: (0..=8).map(sample).collect(),
            }],
            host: vec![
                HostSample { at_us: 0, cpus: vec![CpuTimes::default(), CpuTimes { cpu: 1, ..CpuTimes::default() }] },
                HostSample { at_us: self.span_us, cpus: vec![core, idle] },
            ],
            before,
            after,
            remarks: Vec::new(),
        }
    }

    pub(crate) fn trial(&self) -> Trial {
        let plan = UdpPlan {
            direction: self.flow.direction(),
            rate_up: self.rate,
            rate_down: self.rate,
            sizes: DatagramSizes::Sequence(vec![self.size]),
            duration_ms: self.span_us / 1000,
            burst_datagrams: self.burst,
            receive_buffer_bytes: self.asked_rcvbuf,
            ..UdpPlan::default()
        };
        Trial::new(plan, self.end(Place::Client), self.end(Place::Server), self.span_us)
    }
}

/// One end's record of UDP, to be changed.
pub(crate) fn udp_end(record: &mut LoadRecord) -> &mut UdpEndRecord {
    record.get_mut().expect("a record of UDP")
}

// What the tests ask: one rule's assessment, or the whole verdict.

fn record(purpose: Purpose, scene: &UdpScene) -> TrialRecord {
    TrialRecord { purpose, at_us: 0, trial: scene.trial() }
}

pub(crate) fn diagnosis(scene: &UdpScene, experiments: &[(&str, &UdpScene)]) -> Diagnosis {
    diagnose(&run(scene, experiments), 0).expect("a baseline")
}

/// The run with this baseline and those experiments.
pub(crate) fn run(scene: &UdpScene, experiments: &[(&str, &UdpScene)]) -> Run {
    let mut trials = vec![record(Purpose::Baseline { round: 0 }, scene)];
    trials.extend(
        experiments.iter().map(|(id, scene)| record(Purpose::Experiment { round: 0, id: (*id).to_owned() }, scene)),
    );
    let host = |place| Snapshot {
        facts: if scene.flow.sender() == place { scene.sender_facts.clone() } else { scene.receiver_facts.clone() },
        ..Snapshot::default()
    };
    Run { trials, client: host(Place::Client), server: host(Place::Server), ..super::Scene::default().run(&[]) }
}

/// The run with a trial of many ports: flows that sent so many datagrams each, and what each of them lost on the path.
pub(crate) fn with_ports(mut run: Run, sent: u64, lost: &[u64]) -> Run {
    let died = Died { path: lost.iter().sum(), ..Died::default() };
    let scene = UdpScene { offered: sent * lost.len() as u64, died, span_us: 3_000_000, ..UdpScene::default() };
    let mut trial = scene.trial();
    for end in [&mut trial.client, &mut trial.server] {
        let whole = udp_end(end).streams.remove(0);
        udp_end(end).streams = (0_u16..)
            .zip(lost)
            .map(|(id, lost)| UdpStreamRecord {
                id: id.into(),
                local: format!("192.0.2.1:{}", 50_000 + id),
                sent: whole.sent.clone().map(|it| UdpSent { datagrams: sent, intended: sent, bytes: sent * 64, ..it }),
                received: whole.received.clone().map(|it| UdpReceived { lost: *lost, distinct: sent - lost, ..it }),
                ..whole.clone()
            })
            .collect();
    }
    let purpose = Purpose::Experiment { round: 0, id: MANY_PORTS.id.to_owned() };
    run.trials.push(TrialRecord { purpose, at_us: 0, trial });
    run
}

/// The finding of loss of the whole path: a suspicion, and proven once flows of other ports lose alike.
#[track_caller]
pub(crate) fn random_loss(run: Run) -> Finding {
    let judged = |run: &Run| diagnose(run, 0).expect("a baseline").verdict;
    let first = |verdict: &Verdict| (verdict.status, verdict.causes.first().map(|it| (it.id.clone(), it.at)));
    let named = |status| (status, Some(("random-loss".to_owned(), Place::Path)));
    let before = judged(&run);
    assert_eq!(first(&before), named(Status::Suspected), "{before:#?}");
    assert!(
        before.causes[0].confidence < 0.5 && before.missing.iter().any(|it| it.contains("many flows")),
        "{before:#?}"
    );
    let after = judged(&with_ports(run, 1_000, &[12, 9, 10, 8, 13, 11, 7, 10, 9, 12, 10, 11]));
    assert_eq!(first(&after), named(Status::Limited), "{after:#?}");
    after.causes.into_iter().next().expect("it is there")
}

pub(crate) fn verdict_with(scene: &UdpScene, experiments: &[(&str, &UdpScene)]) -> Verdict {
    diagnosis(scene, experiments).verdict
}

/// The finding of a cause that is proven and first.
#[track_caller]
pub(crate) fn named_with(scene: &UdpScene, experiments: &[(&str, &UdpScene)], id: &str, at: Place) -> Finding {
    let verdict = verdict_with(scene, experiments);
    let first = verdict.causes.first().map(|finding| (finding.id.as_str(), finding.at));
    assert_eq!((verdict.status, first), (Status::Limited, Some((id, at))), "{verdict:#?}");
    verdict.causes.into_iter().next().expect("it is there")
}

#[track_caller]
pub(crate) fn named(scene: &UdpScene, id: &str, at: Place) -> Finding {
    named_with(scene, &[], id, at)
}

#[track_caller]
pub(crate) fn suspected(scene: &UdpScene, id: &str) {
    let verdict = verdict_with(scene, &[]);
    let first = verdict.causes.first().map(|finding| finding.id.as_str());
    assert_eq!((verdict.status, first), (Status::Suspected, Some(id)), "{verdict:#?}");
    assert!(verdict.causes[0].confidence < 0.5, "{}", verdict.causes[0].confidence);
}

#[track_caller]
pub(crate) fn healthy(scene: &UdpScene) {
    let verdict = verdict_with(scene, &[]);
    assert_eq!((verdict.status, verdict.causes.len()), (Status::Healthy, 0), "{verdict:#?}");
}

#[track_caller]
pub(crate) fn rejects(finding: &Finding, id: &str, why: &str) {
    let rejected = finding.rejected.iter().find(|rejected| rejected.id == id);
    assert!(rejected.is_some_and(|rejected| rejected.why.contains(why)), "{id}, {why}: {:#?}", finding.rejected);
}

/// What one rule says of a scene.
pub(crate) fn assessment_with(
    cause: &Cause<UdpEvidence>,
    role: Role,
    scene: &UdpScene,
    experiments: &[(&str, &UdpScene)],
) -> Assessment {
    let trials: Vec<(&str, Trial)> = experiments.iter().map(|(id, scene)| (*id, scene.trial())).collect();
    let experiments: Vec<_> = trials.iter().map(|(id, trial)| (*id, trial.of().expect("UDP"))).collect();
    let (base, none) = (scene.trial(), Snapshot::default());
    let base = base.of().expect("UDP");
    (cause.assess)(&UdpEvidence::of(base, &experiments, scene.flow, &none, &none).expect("a flow"), role)
}

pub(crate) fn assessment(cause: &Cause<UdpEvidence>, role: Role, scene: &UdpScene) -> Assessment {
    assessment_with(cause, role, scene, &[])
}

pub(crate) use super::{assert_cannot_tell, assert_contradicts, assert_supports};

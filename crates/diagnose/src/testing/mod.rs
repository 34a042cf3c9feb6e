//! A scene for the tests of rules: a run of one baseline, told in the terms of the rules and written as raw samples.

mod asking;
pub(crate) mod profile;
pub(crate) mod udp;

use crate::experiments::profile::REVERSE_PROFILE;
pub(crate) use asking::*;
use narrows_model::host::fact::{Fact, Snapshot, Unit, Value};
use narrows_model::load::host::{CpuTimes, HostSample, SocketMemory};
use narrows_model::load::tcp::{BufferLock, TcpEndRecord, TcpSample, TcpStreamRecord};
use narrows_model::load::tcp::{Limit, TcpPlan};
use narrows_model::run::{DiagnosePlan, Ending, Purpose, RunPlan, Target, TrialRecord};
use narrows_model::{Direction, Family, Flow, LoadRecord, Place, Run, TcpInfo, Trial};

/// One trial as it shall look. The defaults are a clean path of 1 Gbit/s and 35 ms at capacity.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) goodput_bps: f64,
    pub(crate) min_rtt_us: u64,
    pub(crate) rtt_us: u64,
    /// RTT of each fourth sample: how far a short queue fills now and then.
    pub(crate) rtt_high_us: Option<u64>,
    pub(crate) busy: f64,
    pub(crate) rwnd: f64,
    pub(crate) sndbuf: f64,
    /// Share of the samples that find the sender repairing loss.
    pub(crate) recovery: f64,
    pub(crate) snd_wnd: u64,
    pub(crate) rcvbuf: u32,
    pub(crate) sndbuf_bytes: u32,
    pub(crate) queued: Option<u32>,
    pub(crate) recv_q: u32,
    /// The part of the receive buffer that unread packets fill.
    pub(crate) rcvbuf_filled: f64,
    pub(crate) cwnd: u64,
    pub(crate) segments: u64,
    /// Part of the delivered segments that carry a congestion mark.
    pub(crate) marked: f64,
    pub(crate) lost: u64,
    pub(crate) lock: BufferLock,
    pub(crate) options: u64,
    pub(crate) mss: u64,
    pub(crate) max_pacing_bytes_s: u64,
    pub(crate) early_peak_bps: f64,
    /// How long the early peak lasts, seconds.
    pub(crate) bucket_s: f64,
    pub(crate) congestion_control: &'static str,
    pub(crate) sender_thread: f64,
    pub(crate) receiver_thread: f64,
    /// How much of the time the writing thread waits for a core …
    pub(crate) sender_waits: Option<f64>,
    /// … and the reading one.
    pub(crate) receiver_waits: Option<f64>,
    pub(crate) sender_core: CpuTimes,
    pub(crate) receiver_core: CpuTimes,
    /// The second core of either host.
    pub(crate) other_core: CpuTimes,
    pub(crate) sender_facts: Vec<Fact>,
    pub(crate) receiver_facts: Vec<Fact>,
    pub(crate) sender_counts: Vec<(&'static str, i64)>,
    pub(crate) receiver_counts: Vec<(&'static str, i64)>,
    pub(crate) load: TcpPlan,
    pub(crate) family: Family,
    /// Bytes that wait unsent in the socket.
    pub(crate) unsent: u64,
    /// By how much the rate changes over the trial, as a part of its mean: 0 is steady.
    pub(crate) ramp: f64,
    /// How far the rate swings about its mean, five times in the trial, as a part of it: 0 is steady.
    pub(crate) wobble: f64,
    /// How long the data flowed.
    pub(crate) span_us: u64,
    pub(crate) hidden: &'static [Hidden],
    /// What a profile of the path showed, where one was made.
    pub(crate) profile: Option<profile::ProfiledPath>,
    /// What a profile of the reverse path showed, where one was made.
    pub(crate) reverse_path: Option<profile::ProfiledPath>,
    /// Acknowledgements that the receiver sent and that reached the sender, where the sockets count them.
    pub(crate) acks: Option<[u64; 2]>,
    /// Whether the kernel marks the sender as limited by its application.
    pub(crate) starved: bool,
    /// Of what TCP sent again, what the receiver had had already.
    pub(crate) spurious: u64,
    /// Segments that were acknowledged after later ones.
    pub(crate) reord_seen: u64,
    /// The window scales of the sender's and the receiver's socket: the peer's in the low half, its own in the high half.
    pub(crate) scales: Option<[u64; 2]>,
    /// Segments in flight, where the windows do not say.
    pub(crate) in_flight: Option<u64>,
    /// Kernel memory that TCP has handed to the device.
    pub(crate) below: u32,
    /// The slow-start threshold of the first moment.
    pub(crate) first_ssthresh: Option<u64>,
    /// Bytes that the sending application writes in one call.
    pub(crate) write_bytes: u64,
    /// Whether each second sample finds the congestion window shrunk to ten segments.
    pub(crate) restarts: bool,
}

/// What a kernel or a host does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// Time busy and limited (before 4.10).
    LimitedTimes,
    /// `SO_MEMINFO`.
    SocketMemory,
    /// `SO_BUF_LOCK` (before 5.15).
    BufferLock,
    /// Unread bytes of the receiver.
    RecvQ,
    /// RTT, idle and loaded.
    Rtt,
    /// Times of the cores.
    Cores,
    /// CPU time of the data threads.
    Threads,
    Options,
    /// Sent and retransmitted segments.
    Segments,
    /// Size of a segment.
    Mss,
}

/// A fact as a collector would give it.
pub(crate) fn fact(key: &str, value: impl Into<Value>, unit: Unit) -> Fact {
    Fact { key: key.to_owned(), value: value.into(), unit, source: "test".to_owned() }
}

/// Facts of an ordinary host with a link of 1 Gbit/s and the buffers of Linux 6.18.
pub(crate) fn ordinary_host() -> Vec<Fact> {
    vec![
        fact("nic.kind", "physical", Unit::Text),
        fact("nic.name", "eth0", Unit::Text),
        fact("nic.speed", 1_000_000_000_i64, Unit::BitsPerSecond),
        fact("nic.mtu", 1500_i64, Unit::Bytes),
        fact("nic.feature.tso", true, Unit::Flag),
        fact("nic.feature.gso", true, Unit::Flag),
        fact("nic.feature.gro", true, Unit::Flag),
        fact("nic.feature.tx_checksum", true, Unit::Flag),
        fact("nic.feature.rx_checksum", true, Unit::Flag),
        fact("qdisc.root.kind", "pfifo_fast", Unit::Text),
        fact("tcp.rmem.min", 4096_i64, Unit::Bytes),
        fact("tcp.rmem.default", 131_072_i64, Unit::Bytes),
        fact("tcp.rmem.max", 33_554_432_i64, Unit::Bytes),
        fact("tcp.wmem.min", 4096_i64, Unit::Bytes),
        fact("tcp.wmem.default", 16_384_i64, Unit::Bytes),
        fact("tcp.wmem.max", 33_554_432_i64, Unit::Bytes),
        fact("tcp.sack", true, Unit::Flag),
        fact("tcp.window_scaling", true, Unit::Flag),
        fact("tcp.congestion_control", "cubic", Unit::Text),
        fact("tcp.congestion_control.available", vec!["cubic".to_owned(), "bbr".to_owned()], Unit::Text),
        fact("path.mtu", 1500_i64, Unit::Bytes),
    ]
}

pub(crate) fn with(mut facts: Vec<Fact>, replaced: Fact) -> Vec<Fact> {
    facts.retain(|fact| fact.key != replaced.key);
    facts.push(replaced);
    facts
}

/// Leaves one fact out.
pub(crate) fn without(mut facts: Vec<Fact>, key: &str) -> Vec<Fact> {
    facts.retain(|fact| fact.key != key);
    facts
}

impl Default for Scene {
    fn default() -> Self {
        Self {
            goodput_bps: 941e6,
            min_rtt_us: 35_000,
            rtt_us: 44_000,
            rtt_high_us: None,
            busy: 1.0,
            rwnd: 0.0,
            sndbuf: 0.0,
            recovery: 0.0,
            snd_wnd: 12_000_000,
            rcvbuf: 24_000_000,
            sndbuf_bytes: 16_000_000,
            queued: None,
            recv_q: 0,
            rcvbuf_filled: 0.0,
            cwnd: 3600,
            segments: 600_000,
            marked: 0.0,
            lost: 0,
            lock: BufferLock::default(),
            options: TcpInfo::OPT_SACK | TcpInfo::OPT_TIMESTAMPS | TcpInfo::OPT_WSCALE,
            mss: 1448,
            max_pacing_bytes_s: u64::MAX,
            early_peak_bps: 941e6,
            bucket_s: 0.0,
            congestion_control: "cubic",
            sender_thread: 0.1,
            receiver_thread: 0.1,
            sender_waits: None,
            receiver_waits: None,
            sender_core: CpuTimes { system_us: 800_000, idle_us: 7_200_000, ..CpuTimes::default() },
            receiver_core: CpuTimes {
                system_us: 400_000,
                softirq_us: 400_000,
                idle_us: 7_200_000,
                ..CpuTimes::default()
            },
            other_core: CpuTimes { idle_us: 8_000_000, ..CpuTimes::default() },
            sender_facts: ordinary_host(),
            receiver_facts: ordinary_host(),
            sender_counts: Vec::new(),
            receiver_counts: Vec::new(),
            load: TcpPlan { limit: Limit::DurationMs(8_000), omit_ms: 0, interval_ms: 1_000, ..TcpPlan::default() },
            family: Family::Ipv4,
            unsent: 0,
            ramp: 0.0,
            wobble: 0.0,
            span_us: 8_000_000,
            hidden: &[],
            profile: None,
            reverse_path: None,
            acks: None,
            starved: false,
            spurious: 0,
            reord_seen: 0,
            scales: None,
            in_flight: None,
            below: 0,
            first_ssthresh: None,
            write_bytes: 128 << 10,
            restarts: false,
        }
    }
}

/// Sampling intervals of a trial.
const INTERVALS: u64 = 80;

impl Scene {
    fn tells<T>(&self, what: Hidden, value: T) -> Option<T> {
        (!self.hidden.contains(&what)).then_some(value)
    }

    /// Bytes of one stream after a part of the trial: the rate rises by `ramp` and swings by `wobble`.
    fn bytes(&self, interval: u64) -> u64 {
        let (part, streams) = (interval as f64 / INTERVALS as f64, f64::from(self.load.streams.max(1)));
        let turn = std::f64::consts::TAU * 5.0;
        let swung = self.wobble * (1.0 - (turn * part).cos()) / turn;
        let carried = part * (1.0 - self.ramp / 2.0) + self.ramp * part * part / 2.0 + swung;
        let early_s = self.bucket_s.min(part * self.span_us as f64 / 1e6);
        let early = early_s * (self.early_peak_bps - self.goodput_bps).max(0.0) / 8.0;
        ((self.goodput_bps / 8e6 * self.span_us as f64 * carried + early) / streams) as u64
    }

    /// Memory of what waits in the send queue: all of the buffer where it limits, else half of it, or what is said.
    fn queued(&self) -> u32 {
        self.queued.unwrap_or(if self.sndbuf >= 0.2 { self.sndbuf_bytes } else { self.sndbuf_bytes / 2 })
    }

    fn tcp(&self, interval: u64, at_us: u64, sending: bool) -> TcpInfo {
        let streams = u64::from(self.load.streams.max(1));
        let part = interval as f64 / INTERVALS as f64;
        let high = self.rtt_high_us.filter(|_| interval.is_multiple_of(4)).unwrap_or(self.rtt_us);
        // Nothing queues from the first moment.
        let early = at_us <= 500_000;
        let high = if early { self.min_rtt_us.min(high) } else { high };
        let rate_bps = if early { self.early_peak_bps } else { self.goodput_bps };
        let share = |part: f64| self.tells(Hidden::LimitedTimes, (part * at_us as f64) as u64);
        let segments = |n: u64| self.tells(Hidden::Segments, (n as f64 * part) as u64 / streams);
        TcpInfo {
            ca_state: Some(if part < self.recovery { 3 } else { 0 }),
            options: self.tells(Hidden::Options, self.options),
            snd_mss_bytes: self.tells(Hidden::Mss, self.mss),
            // No more is in flight than either window allows.
            unacked: self.in_flight.or(Some(if self.starved {
                self.cwnd / 2
            } else {
                self.cwnd.min(self.snd_wnd / self.mss.max(1))
            })),
            flags: Some(u64::from(self.starved)),
            snd_cwnd: Some(if self.restarts && interval % 2 == 1 { 10 } else { self.cwnd }),
            snd_ssthresh: self.first_ssthresh,
            rtt_us: self.tells(Hidden::Rtt, high),
            min_rtt_us: self.tells(Hidden::Rtt, self.min_rtt_us),
            max_pacing_rate_bytes_s: Some(self.max_pacing_bytes_s),
            delivery_rate_bytes_s: Some((rate_bps / 8.0) as u64 / streams),
            busy_time_us: share(self.busy),
            rwnd_limited_us: share(self.rwnd),
            sndbuf_limited_us: share(self.sndbuf),
            data_segs_out: segments(self.segments).filter(|_| sending),
            // Only a scene with a profile tells it: it makes a ledger.
            data_segs_in: self
                .profile
                .filter(|_| !sending)
                .and_then(|_| segments(self.segments.saturating_sub(self.lost.saturating_sub(self.spurious)))),
            segs_out: self.acks.filter(|_| !sending).and_then(|[sent, _]| segments(sent)),
            segs_in: self.acks.filter(|_| sending).and_then(|[_, arrived]| segments(arrived)),
            delivered: segments(self.segments),
            delivered_ce: Some((self.marked * self.segments as f64 * part) as u64 / streams),
            dsack_dups: Some((self.spurious as f64 * part) as u64 / streams),
            reord_seen: Some((self.reord_seen as f64 * part) as u64 / streams),
            total_retrans: segments(self.lost),
            notsent_bytes: Some(self.unsent),
            snd_wnd_bytes: Some(self.snd_wnd),
            ..TcpInfo::default()
        }
    }

    fn sample(&self, interval: u64, sending: bool) -> TcpSample {
        let at_us = (self.span_us as f64 * (interval as f64 / INTERVALS as f64)) as u64;
        let (thread, waits) =
            if sending { (self.sender_thread, self.sender_waits) } else { (self.receiver_thread, self.receiver_waits) };
        TcpSample {
            at_us,
            bytes: self.bytes(interval),
            calls: self.bytes(interval) / self.write_bytes.max(1),
            thread_cpu_us: self.tells(Hidden::Threads, (thread * at_us as f64) as u64),
            thread_wait_us: waits.map(|part| (part * at_us as f64) as u64),
            tcp: TcpInfo {
                wscale: self.scales.map(|scales| scales[usize::from(!sending)]),
                ..self.tcp(interval, at_us, sending)
            },
            memory: self.tells(
                Hidden::SocketMemory,
                SocketMemory {
                    rcvbuf_bytes: self.rcvbuf,
                    rmem_alloc_bytes: if sending { 0 } else { (f64::from(self.rcvbuf) * self.rcvbuf_filled) as u32 },
                    sndbuf_bytes: self.sndbuf_bytes,
                    wmem_queued_bytes: self.queued(),
                    wmem_alloc_bytes: if sending { self.below } else { 0 },
                    ..SocketMemory::default()
                },
            ),
            recv_q_bytes: self.tells(Hidden::RecvQ, if sending { 0 } else { self.recv_q }),
            send_q_bytes: Some((f64::from(self.queued()) * 0.9) as u32),
        }
    }

    fn end(&self, place: Place, flow: Flow) -> TcpEndRecord {
        let sending = flow.sender() == place;
        let (core, facts, counts) = if sending {
            (self.sender_core, &self.sender_facts, &self.sender_counts)
        } else {
            (self.receiver_core, &self.receiver_facts, &self.receiver_counts)
        };
        let snapshot = |grown: bool| Snapshot {
            facts: counts
                .iter()
                .map(|(key, n)| fact(key, if grown { *n } else { 0 }, Unit::Count))
                .chain(facts.iter().cloned())
                .collect(),
            ..Snapshot::default()
        };
        TcpEndRecord {
            place,
            streams: (0..self.load.streams)
                .map(|id| TcpStreamRecord {
                    id,
                    flow,
                    local: "192.0.2.1:5000".into(),
                    remote: "192.0.2.2:5220".into(),
                    congestion_control: Some(self.congestion_control.into()),
                    mss_bytes: Some(self.mss as u32),
                    buffer_lock: self.tells(Hidden::BufferLock, self.lock),
                    sndbuf_bytes: None,
                    rcvbuf_bytes: None,
                    method: "test".into(),
                    samples: (0..=INTERVALS).map(|interval| self.sample(interval, sending)).collect(),
                    subflows: Vec::new(),
                })
                .collect(),
            host: self
                .tells(
                    Hidden::Cores,
                    [(0, CpuTimes::default(), CpuTimes::default()), (self.span_us, core, self.other_core)],
                )
                .into_iter()
                .flatten()
                .map(|(at_us, first, other)| HostSample { at_us, cpus: vec![first, CpuTimes { cpu: 1, ..other }] })
                .collect(),
            before: snapshot(false),
            after: snapshot(true),
            remarks: Vec::new(),
        }
    }

    pub(crate) fn trial(&self) -> Trial {
        let flow = if self.load.direction == Direction::Down { Flow::Down } else { Flow::Up };
        let [client, server] = [Place::Client, Place::Server].map(|place| self.end(place, flow));
        Trial::new(self.load.clone(), client, server, self.span_us)
    }

    /// The run with this baseline and those experiments.
    pub(crate) fn run(&self, experiments: &[(&str, &Self)]) -> Run {
        let flow = if self.load.direction == Direction::Down { Flow::Down } else { Flow::Up };
        let host = |place: Place| Snapshot {
            facts: if flow.sender() == place { self.sender_facts.clone() } else { self.receiver_facts.clone() },
            ..Snapshot::default()
        };
        let mut trials = vec![TrialRecord { purpose: Purpose::Baseline { round: 0 }, at_us: 0, trial: self.trial() }];
        trials.extend(experiments.iter().map(|(id, scene)| TrialRecord {
            purpose: Purpose::Experiment { round: 0, id: (*id).to_owned() },
            at_us: 0,
            trial: scene.trial(),
        }));
        let run = Run {
            format: Run::FORMAT,
            id: "test".into(),
            made_by: "test".into(),
            started_unix_us: 0,
            elapsed_us: self.span_us,
            plan: RunPlan::Diagnose(DiagnosePlan { budget_ms: 20_000, ..DiagnosePlan::of(self.load.clone().into()) }),
            target: Target { asked: "server".into(), address: "192.0.2.2:5220".into(), family: self.family },
            client: host(Place::Client),
            server: host(Place::Server),
            idle_rtt_us: self.tells(Hidden::Rtt, self.min_rtt_us).into_iter().collect(),
            trials,
            search: None,
            sweep: None,
            path: None,
            attempts: Vec::new(),
            ending: Ending::Complete,
        };
        let run = match self.profile {
            // Its steps pass the sender's own queueing discipline, too.
            Some(path) => path.beside(run, Some(&self.end(flow.sender(), flow))),
            None => run,
        };
        self.reverse_path.map_or(run.clone(), |path| path.made(run, &REVERSE_PROFILE, flow.reversed(), None))
    }
}

/// One end's record of TCP, to be changed.
pub(crate) fn tcp_end(record: &mut LoadRecord) -> &mut TcpEndRecord {
    record.get_mut().expect("a record of TCP")
}

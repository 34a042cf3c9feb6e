//! A trial in the words of a document, written as what both ends' kernels would have said.
//!
//! A document gives goodput, round-trip time, buffers and options; what it leaves out is filled in as an unremarkable kernel
//! would have it: no loss, nothing unread, no pacing.

use narrows_collect::{Recorded, counters};
use narrows_model::load::host::{CpuTimes, HostSample, SocketMemory};
use narrows_model::load::tcp::{BufferLock, TcpEndRecord, TcpPlan, TcpSample, TcpStreamRecord};
use narrows_model::{Direction, Flow, Place, Snapshot, TcpInfo, Trial, Unit, Value};

/// Where the time of one end went: shares of a core.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Busy {
    /// Cores of the host; the first one does the work.
    pub(crate) cores: u32,
    /// The thread that moves the data.
    pub(crate) thread: f64,
    /// Soft interrupts on its core.
    pub(crate) softirq: f64,
}

/// One stream of one trial.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) plan: TcpPlan,
    /// Goodput of each interval of the plan, Mbit/s.
    pub(crate) mbps: Vec<f64>,
    pub(crate) min_rtt_us: u64,
    /// Smoothed RTT under load.
    pub(crate) rtt_us: u64,
    pub(crate) mss_bytes: u64,
    /// Options that were negotiated.
    pub(crate) options: u64,
    /// The window that the receiver announces.
    pub(crate) window_bytes: u64,
    pub(crate) rcvbuf_bytes: u32,
    pub(crate) sndbuf_bytes: u32,
    pub(crate) lock: BufferLock,
    /// Share of the time in which the window held the sender back.
    pub(crate) held_by_window: f64,
    pub(crate) sender: Busy,
    pub(crate) receiver: Busy,
}

/// What the stream had done at one instant.
#[derive(Debug, Clone, Copy)]
struct Instant {
    at_us: u64,
    received: u64,
    bps: f64,
}

fn part(share: f64, of: u64) -> u64 {
    (share * of as f64) as u64
}

fn narrow(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Told {
    fn flow(&self) -> Flow {
        if self.plan.direction == Direction::Down { Flow::Down } else { Flow::Up }
    }

    /// The trial between two recorded hosts.
    pub(crate) fn trial(&self, client: &Recorded, server: &Recorded) -> Trial {
        let instants = self.instants();
        let (client, server) = (self.end(Place::Client, client, &instants), self.end(Place::Server, server, &instants));
        Trial::new(self.plan.clone(), client, server, instants.last().map_or(0, |last| last.at_us))
    }

    fn instants(&self) -> Vec<Instant> {
        let span_us = self.plan.interval_ms * 1000;
        let first = Instant { at_us: 0, received: 0, bps: self.mbps.first().map_or(0.0, |mbps| mbps * 1e6) };
        let later = self.mbps.iter().scan(first, |last, mbps| {
            let received = last.received + part(mbps / 8.0, span_us);
            *last = Instant { at_us: last.at_us + span_us, received, bps: mbps * 1e6 };
            Some(*last)
        });
        std::iter::once(first).chain(later).collect()
    }

    fn end(&self, place: Place, host: &Recorded, instants: &[Instant]) -> TcpEndRecord {
        let sending = self.flow().sender() == place;
        let busy = if sending { self.sender } else { self.receiver };
        let port = |place| if place == Place::Client { 40_000 } else { 5_220 };
        let (local, remote) =
            (port(place), if place == Place::Client { port(Place::Server) } else { port(Place::Client) });
        let total = instants.last().map_or(0, |last| last.received);
        let stream = TcpStreamRecord {
            id: 0,
            flow: self.flow(),
            local: format!("{place}:{local}"),
            remote: format!("peer:{remote}"),
            congestion_control: Some("cubic".into()),
            mss_bytes: Some(narrow(self.mss_bytes)),
            buffer_lock: Some(self.lock),
            sndbuf_bytes: Some(self.sndbuf_bytes),
            rcvbuf_bytes: Some(self.rcvbuf_bytes),
            method: if sending { "send" } else { "recv" }.into(),
            samples: instants.iter().map(|at| self.sample(*at, sending, busy)).collect(),
            subflows: Vec::new(),
        };
        TcpEndRecord {
            place,
            streams: vec![stream],
            host: instants.iter().map(|at| cores(busy, at.at_us)).collect(),
            before: counted(host, 0, 0, sending),
            after: counted(host, total, total / self.mss_bytes, sending),
            remarks: Vec::new(),
        }
    }

    fn sample(&self, at: Instant, sending: bool, busy: Busy) -> TcpSample {
        let in_flight = if at.at_us == 0 { 0 } else { part(at.bps / 8e6, self.rtt_us) };
        // A writer that is always ready keeps the buffer nearly full; three quarters of the memory is payload.
        let queued = if sending && at.at_us > 0 { part(0.9, self.sndbuf_bytes.into()) } else { 0 };
        let payload = part(0.75, queued).max(in_flight);
        let tcp = if sending { self.sent(at, in_flight, payload - in_flight) } else { self.received(at) };
        TcpSample {
            at_us: at.at_us,
            bytes: at.received + if sending { payload } else { 0 },
            calls: at.received / u64::from(self.plan.message_bytes),
            thread_cpu_us: Some(part(busy.thread, at.at_us)),
            thread_wait_us: None,
            tcp: TcpInfo { state: Some(1), ca_state: Some(0), options: Some(self.options), ..tcp },
            memory: Some(SocketMemory {
                rcvbuf_bytes: self.rcvbuf_bytes,
                sndbuf_bytes: self.sndbuf_bytes,
                wmem_queued_bytes: narrow(queued),
                ..SocketMemory::default()
            }),
            recv_q_bytes: Some(0),
            send_q_bytes: Some(if sending { narrow(payload) } else { 0 }),
        }
    }

    fn sent(&self, at: Instant, in_flight: u64, unsent: u64) -> TcpInfo {
        let segments = in_flight / self.mss_bytes;
        TcpInfo {
            snd_mss_bytes: Some(self.mss_bytes),
            unacked: Some(segments),
            snd_cwnd: Some(segments.max(10) + 10),
            lost: Some(0),
            rtt_us: Some(self.rtt_us),
            min_rtt_us: Some(self.min_rtt_us),
            total_retrans: Some(0),
            max_pacing_rate_bytes_s: Some(u64::MAX),
            bytes_acked: Some(at.received),
            data_segs_out: Some((at.received + in_flight) / self.mss_bytes),
            delivered: Some(at.received / self.mss_bytes),
            delivery_rate_bytes_s: Some(part(at.bps / 8.0, 1)),
            notsent_bytes: Some(unsent),
            busy_time_us: Some(at.at_us),
            rwnd_limited_us: Some(part(self.held_by_window, at.at_us)),
            sndbuf_limited_us: Some(0),
            snd_wnd_bytes: Some(self.window_bytes),
            ..TcpInfo::default()
        }
    }

    fn received(&self, at: Instant) -> TcpInfo {
        TcpInfo {
            rcv_mss_bytes: Some(self.mss_bytes),
            bytes_received: Some(at.received),
            data_segs_in: Some(at.received / self.mss_bytes),
            rcv_wnd_bytes: Some(self.window_bytes),
            rcv_ooopack: Some(0),
            ..TcpInfo::default()
        }
    }
}

fn cores(busy: Busy, at_us: u64) -> HostSample {
    let first = CpuTimes {
        cpu: 0,
        system_us: part(busy.thread, at_us),
        softirq_us: part(busy.softirq, at_us),
        idle_us: part(1.0 - busy.thread - busy.softirq, at_us),
        ..CpuTimes::default()
    };
    let others = (1..busy.cores).map(|cpu| CpuTimes { cpu, idle_us: at_us, ..CpuTimes::default() });
    HostSample { at_us, cpus: std::iter::once(first).chain(others).collect() }
}

/// The facts that a host gives around a trial, its device's counters grown by what passed. Absences stay in the inventory.
fn counted(host: &Recorded, bytes: u64, segments: u64, sending: bool) -> Snapshot {
    let mut snapshot = counters(host, None);
    let way = if sending { "tx" } else { "rx" };
    for fact in snapshot.facts.iter_mut().filter(|fact| fact.unit == Unit::Count) {
        let more = match fact.key.strip_prefix("nic.counter.").and_then(|key| key.strip_prefix(way)) {
            Some("_bytes") => bytes,
            Some("_packets") => segments,
            _ => 0,
        };
        if let Value::Integer(count) = &mut fact.value {
            *count += i64::try_from(more).unwrap_or_default();
        }
    }
    Snapshot { absent: Vec::new(), collectors: Vec::new(), ..snapshot }
}

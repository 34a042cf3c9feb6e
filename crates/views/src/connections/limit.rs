//! What limits one connection between two readings of its counters.

use narrows_model::words::figures::float;
use narrows_model::words::units;
use narrows_model::{ConnectionCeiling, ConnectionLimit as Limit, ConnectionSample, ConnectionShares, TcpInfo};

/// Half of the time names what limits: nothing else can have more.
const HALF: f64 = 0.5;
/// Share of the time that is enough if the congestion window has room.
const MINOR: f64 = 0.2;
/// The same under BBR, which paces at the rate that a window or buffer allows, and then waits for its own pacing.
const MINOR_BBR: f64 = 0.1;
/// The same under BBR if the rate is one window per RTT: its pacing fills the window only now and then.
const TOUCHED: f64 = 0.02;
/// A receiver uses its window where what arrives in one RTT is this part of it.
const WINDOW_FULL: f64 = 0.75;
/// Unread data of this part of the receive buffer stays because the application does not read; or of this part of its memory, since a
/// packet that is read in part holds all of its own (see the cause `receiver-app-slow`, as for the next).
const UNREAD: f64 = 0.25;
const UNREAD_MEMORY: f64 = 0.5;
/// What is read within this time waits for no more than for its reader to be woken.
const PROMPT_US: f64 = 500.0;
/// A rate this close to the cap of the socket is that of the cap.
const AT_CAP: f64 = 0.85;
/// Loss that a loss-based congestion control notices (see the cause `random-loss`), and one that BBR does.
const LOSSY: f64 = 1e-3;
const LOSSY_BBR: f64 = 0.02;
/// An RTT above its least by this part and this time is a queue.
const QUEUE: f64 = 0.25;
const QUEUE_US: f64 = 500.0;
/// A full queue that loses a connection's segments holds so many of them, or is there at both readings: one RTT that is a little late
/// beside random loss is none.
const QUEUED_SEGMENTS: f64 = 4.0;

/// A risen RTT that connections of one host to one peer share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Risen {
    pub(super) rtt_us: u64,
    /// The least RTT of the connection that saw it rise.
    pub(super) least_us: u64,
}

impl Risen {
    /// Of a connection whose RTT has risen above its own least.
    pub(super) fn of(sample: &ConnectionSample) -> Option<Self> {
        let (rtt_us, least_us) = sample.tcp.rtt_us.zip(sample.tcp.min_rtt_us)?;
        is_risen(rtt_us, least_us).then_some(Self { rtt_us, least_us })
    }

    pub(super) fn queue_us(self) -> u64 {
        self.rtt_us.saturating_sub(self.least_us)
    }
}

/// One connection between two readings.
pub(super) struct Interval<'a> {
    seconds: f64,
    /// What another connection to the same peer knows of a queue.
    risen: Option<Risen>,
    before: &'a ConnectionSample,
    now: &'a ConnectionSample,
}

impl<'a> Interval<'a> {
    /// `us` apart.
    pub(super) fn of(
        before: &'a ConnectionSample,
        now: &'a ConnectionSample,
        us: u64,
        risen: Option<Risen>,
    ) -> Option<Self> {
        (us > 0).then(|| Self { seconds: float(us) / 1e6, risen, before, now })
    }

    /// Whether something holds at both readings.
    fn both(&self, holds: impl Fn(&ConnectionSample) -> Option<bool>) -> bool {
        [self.before, self.now].into_iter().all(|sample| holds(sample) == Some(true))
    }

    fn grew(&self, of: fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
        Some(float(of(&self.now.tcp)?.saturating_sub(of(&self.before.tcp)?)))
    }

    pub(super) fn bps(&self, of: fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
        Some(self.grew(of)? * 8.0 / self.seconds)
    }

    /// Part of the interval that a limited-time counter grew by.
    fn share(&self, of: fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
        Some((self.grew(of)? / 1e6 / self.seconds).clamp(0.0, 1.0))
    }

    pub(super) fn shares(&self) -> Option<ConnectionShares> {
        let busy = self.share(|tcp| tcp.busy_time_us)?;
        let receive_window = self.share(|tcp| tcp.rwnd_limited_us)?.min(busy);
        let send_buffer = self.share(|tcp| tcp.sndbuf_limited_us)?.min(busy - receive_window);
        Some(ConnectionShares {
            application: 1.0 - busy,
            receive_window,
            send_buffer,
            network: busy - receive_window - send_buffer,
        })
    }

    pub(super) fn retransmitted(&self) -> Option<f64> {
        let sent = self.grew(|tcp| tcp.data_segs_out)?;
        Some(if sent > 0.0 { (self.grew(|tcp| tcp.total_retrans)? / sent).min(1.0) } else { 0.0 })
    }

    /// What limits the sender; the sentence is the evidence.
    fn sending(&self) -> (Limit, String) {
        let tcp = &self.now.tcp;
        if let Some(timeouts) = tcp.retransmits.filter(|timeouts| *timeouts > 0) {
            let times = units::grouped(i128::from(timeouts));
            return (Limit::Loss, format!("nothing was acknowledged after {times} retransmission timeouts"));
        }
        // A window stays zero only where the buffer is full of what is not read.
        if tcp.probes.is_some_and(|probes| probes > 0) || self.both(is_closed) {
            return (
                Limit::ReceivingApplication,
                "the peer's window stays zero: its application does not read".to_owned(),
            );
        }
        let Some(shares) = self.shares() else {
            return (Limit::Unknown, "the kernel does not report what the sender waited for".to_owned());
        };
        let part = |share: f64| units::percent(share);
        // Where the congestion window has room, what the network takes of the time is not what ends the rate.
        let most = match (is_bbr(self.now), self.both(has_room)) {
            (true, _) => MINOR_BBR,
            (false, true) => MINOR,
            (false, false) => HALF * (1.0 - shares.application),
        };
        let more = |share: f64, other: f64| share >= most && share > shares.application && share > other;
        let window = tcp.snd_wnd_bytes.map_or_else(String::new, |window| format!(" of {}", units::bytes(window)));
        if more(shares.receive_window, shares.send_buffer) {
            let share = part(shares.receive_window);
            return (Limit::ReceiveWindow, format!("the peer's window{window} was full {share} of the time"));
        }
        if more(shares.send_buffer, shares.receive_window) {
            let size = self.now.memory.map(|memory| units::bytes(memory.sndbuf_bytes.into()));
            let size = size.map_or_else(String::new, |size| format!(" of {size}"));
            let share = part(shares.send_buffer);
            return (Limit::SendBuffer, format!("the send buffer{size} was full {share} of the time"));
        }
        // All was sent and acknowledged for so long: nothing else keeps data waiting on the whole.
        if shares.application >= MINOR {
            return (Limit::Application, format!("nothing to send {} of the time", part(shares.application)));
        }
        if self.both(window_full) {
            return (Limit::ReceiveWindow, format!("what is in flight fills the peer's window{window}"));
        }
        // The RTT is that of the path, whoever fills its queue: a window that is used up in each of them is the limit.
        let least = if is_bbr(self.now) { TOUCHED } else { MINOR };
        if let Some(used) = self.window_used().filter(|_| shares.receive_window >= least) {
            let share = part(shares.receive_window);
            return (
                Limit::ReceiveWindow,
                format!(
                    "{} of the peer's window{window} is sent in each RTT; it was full {share} of the time",
                    part(used)
                ),
            );
        }
        self.by_application_or_host().unwrap_or_else(|| self.by_network())
    }

    /// The rate as a part of what the peer's window allows at the RTT of both readings: at most one window in each RTT.
    fn window_used(&self) -> Option<f64> {
        let rtt_us = float(self.before.tcp.rtt_us? + self.now.tcp.rtt_us?) / 2.0;
        let window = float(self.before.tcp.snd_wnd_bytes?.max(self.now.tcp.snd_wnd_bytes?));
        let used = self.bps(|tcp| tcp.bytes_acked)? / 8.0 * rtt_us / 1e6 / window;
        (used.is_finite() && used >= WINDOW_FULL).then_some(used.min(1.0))
    }

    /// The RTT above its least, microseconds; another connection to the same peer may know a lower one.
    fn queue_us(&self, sample: &ConnectionSample) -> Option<f64> {
        let (rtt, own) = sample.tcp.rtt_us.zip(sample.tcp.min_rtt_us)?;
        // Only one whose RTT is about the same now takes the same path.
        let shared = self.risen.filter(|risen| float(rtt.abs_diff(risen.rtt_us)) <= QUEUE * float(rtt));
        let least = shared.map_or(own, |risen| own.min(risen.least_us));
        is_risen(rtt, least).then(|| float(rtt - least))
    }

    /// Limits that the kernel keeps no timer for: an application whose data leaves at once, a pacing cap, a queue on this host.
    fn by_application_or_host(&self) -> Option<(Limit, String)> {
        let (tcp, bps) = (&self.now.tcp, self.bps(|tcp| tcp.bytes_acked).unwrap_or(0.0));
        // A queue that others fill takes segments of a slow writer, too, so that its congestion window is full at times.
        if starved(self.now) == Some(true) || self.both(nothing_unsent) || self.both(was_starved) {
            return Some((
                Limit::Application,
                "the application writes less than the congestion window carries".to_owned(),
            ));
        }
        if let Some(cap) = tcp.max_pacing_bps().map(float).filter(|cap| bps >= AT_CAP * cap) {
            return Some((
                Limit::PacingCap,
                format!("{} of the cap of {} (SO_MAX_PACING_RATE)", units::percent(bps / cap), units::bps(cap)),
            ));
        }
        let [then, now] = [self.before, self.now].map(|sample| local_wait_us(sample, bps));
        let waits = now.filter(|_| then.is_some())?;
        let waits = units::micros(rounded(waits));
        Some((
            Limit::LocalQueue,
            format!("data waits {waits} in this host's own send queue, which explains the rise of the RTT"),
        ))
    }

    /// What of the network limits a sender that has data, a window and a buffer.
    fn by_network(&self) -> (Limit, String) {
        let tcp = &self.now.tcp;
        let bbr = is_bbr(self.now);
        let lost = self.retransmitted().unwrap_or(0.0);
        let lossy = lost >= if bbr { LOSSY_BBR } else { LOSSY };
        let queued = self.queue_us(self.now).filter(|queue| {
            let segment = float(tcp.snd_mss_bytes.unwrap_or(0)) * 8.0;
            let own = self.bps(|tcp| tcp.bytes_acked).unwrap_or(0.0) * queue / 1e6;
            !lossy || own >= QUEUED_SEGMENTS * segment || self.both(|sample| Some(self.queue_us(sample).is_some()))
        });
        if lossy && queued.is_none() {
            return (Limit::Loss, format!("{} of the segments were sent again, without a queue", units::percent(lost)));
        }
        if let Some(queue) = queued {
            let queue = units::micros(rounded(queue));
            return (Limit::Path, format!("the RTT is {queue} above its minimum, as behind a full queue"));
        }
        if bbr {
            return (Limit::Path, "BBR sends at the rate that it measured on the path".to_owned());
        }
        let (unacked, window) = (tcp.unacked.unwrap_or(0), tcp.snd_cwnd.unwrap_or(0));
        if window > 0 && unacked.saturating_mul(10) >= window.saturating_mul(7) {
            let window = units::grouped(i128::from(window));
            return (
                Limit::CongestionWindow,
                format!("the congestion window of {window} segments was full, without a queue and without loss"),
            );
        }
        (Limit::Unknown, "the sender waited for the network; its counters do not show for what".to_owned())
    }

    /// What limits the receiver, as far as this end knows it.
    fn receiving(&self) -> (Limit, String) {
        let bps = self.bps(|tcp| tcp.bytes_received).unwrap_or(0.0);
        if self.both(unread) && [self.before, self.now].iter().all(|sample| is_left(sample.unread_bytes, bps)) {
            let unread = units::bytes(self.now.unread_bytes.into());
            return (Limit::ReceivingApplication, format!("{unread} are received and not read by the application"));
        }
        let per_rtt = |rtt: f64| self.grew(|tcp| tcp.bytes_received).unwrap_or(0.0) / self.seconds * rtt / 1e6;
        // The RTT of a connection that only receives is that of its handshake, mostly: without the queue on its way now, which the time
        // stamps of what it receives tell.
        let stamped =
            self.now.tcp.rcv_rtt_us.filter(|_| self.now.tcp.negotiated(TcpInfo::OPT_TIMESTAMPS) == Some(true));
        let own = self.now.tcp.min_rtt_us.or(self.now.tcp.rtt_us);
        let rtt = stamped.max(own).map(float).filter(|rtt| *rtt > 0.0);
        if let Some((rtt, window)) = rtt.zip(self.now.tcp.rcv_wnd_bytes.map(float).filter(|window| *window > 0.0))
            && per_rtt(rtt) >= WINDOW_FULL * window
        {
            let bytes = units::bytes(rounded(window));
            return (
                Limit::ReceiveWindow,
                format!(
                    "{} of this host's window of {bytes} arrive in each RTT",
                    units::percent((per_rtt(rtt) / window).min(1.0))
                ),
            );
        }
        (Limit::Unknown, "only the sending end sees what limits it".to_owned())
    }

    pub(super) fn limit(&self) -> (Limit, String) {
        let sent = self.grew(|tcp| tcp.bytes_sent).or_else(|| self.grew(|tcp| tcp.bytes_acked)).unwrap_or(0.0);
        let received = self.grew(|tcp| tcp.bytes_received).unwrap_or(0.0);
        let waits = self.now.tcp.unacked.unwrap_or(0) > 0 || self.now.tcp.notsent_bytes.unwrap_or(0) > 0;
        if received > sent && received > 0.0 {
            return self.receiving();
        }
        if sent == 0.0 && !waits {
            return (Limit::Idle, "no data".to_owned());
        }
        self.sending()
    }
}

fn rounded(value: f64) -> u64 {
    value as u64
}

/// The RTT is above its least as far as a queue makes it.
fn is_risen(rtt_us: u64, least_us: u64) -> bool {
    let (queue, least) = (float(rtt_us) - float(least_us), float(least_us));
    queue > QUEUE * least && queue > QUEUE_US
}

fn is_bbr(sample: &ConnectionSample) -> bool {
    sample.congestion_control.as_deref().is_some_and(|name| name.starts_with("bbr"))
}

/// The congestion window is not full; a tenth is what super-packets leave.
fn has_room(sample: &ConnectionSample) -> Option<bool> {
    Some(sample.tcp.unacked?.saturating_mul(10) < sample.tcp.snd_cwnd?.saturating_mul(9))
}

/// The peer's window is zero, and data waits for it.
fn is_closed(sample: &ConnectionSample) -> Option<bool> {
    Some(sample.tcp.snd_wnd_bytes? == 0 && sample.tcp.notsent_bytes? > 0)
}

/// Data waits, and no further segment fits into the window that the peer announced (net/ipv4/tcp_output.c, `tcp_snd_wnd_test`). The
/// congestion window may be full as well: it does not grow beyond what is used of it (`tcp_is_cwnd_limited`), and so ends at that window.
fn window_full(sample: &ConnectionSample) -> Option<bool> {
    let tcp = &sample.tcp;
    let (mss, window) = (tcp.snd_mss_bytes?, tcp.snd_wnd_bytes?);
    Some(tcp.notsent_bytes? >= mss && tcp.unacked?.saturating_add(1).saturating_mul(mss) > window)
}

/// All that the application wrote is on its way but a part of a segment, which waits for the rest of it or for an acknowledgement (RFC 896),
/// and the send buffer has room for more: a writer that is always ready fills it with what is not sent yet. The kernel draws the same line
/// (net/ipv4/tcp_rate.c, `tcp_rate_check_app_limited`).
fn nothing_unsent(sample: &ConnectionSample) -> Option<bool> {
    let tcp = &sample.tcp;
    let repairs = tcp.ca_state.is_some_and(|state| state >= 3);
    Some(tcp.notsent_bytes? < tcp.snd_mss_bytes? && tcp.unacked? > 0 && !repairs && !buffer_full(sample)?)
}

/// A writer that found the buffer full is woken when a third of it is free.
fn buffer_full(sample: &ConnectionSample) -> Option<bool> {
    let memory = sample.memory?;
    Some(u64::from(memory.wmem_queued_bytes) * 10 >= u64::from(memory.sndbuf_bytes) * 6)
}

/// What the kernel marks as limited by the application (net/ipv4/tcp_rate.c, `tcp_rate_check_app_limited`). A send buffer that is
/// full looks the same, but holds two thirds of what it may.
fn starved(sample: &ConnectionSample) -> Option<bool> {
    let tcp = &sample.tcp;
    let room = has_room(sample)? && !buffer_full(sample)?;
    Some(tcp.delivery_rate_app_limited()? && tcp.notsent_bytes? < tcp.snd_mss_bytes? && room)
}

/// The application was the limit within the last round trip, and what it wrote since is on its way out: a pace spreads it.
fn was_starved(sample: &ConnectionSample) -> Option<bool> {
    let tcp = &sample.tcp;
    let in_flight = tcp.unacked?.saturating_mul(tcp.snd_mss_bytes?);
    Some(tcp.delivery_rate_app_limited()? && tcp.notsent_bytes? <= in_flight && !buffer_full(sample)?)
}

/// How long data waits in this host below TCP, microseconds, if that explains what the RTT rose by. A queueing discipline that paces
/// (`fq`) holds data as well, but by departure times that do not count for the RTT.
fn local_wait_us(sample: &ConnectionSample, bps: f64) -> Option<f64> {
    let (tcp, memory) = (&sample.tcp, sample.memory?);
    let payload = float(tcp.notsent_bytes?) + float(tcp.unacked?) * float(tcp.snd_mss_bytes?);
    let part = (payload / float(memory.wmem_queued_bytes.into())).min(1.0);
    let wait = float(memory.wmem_alloc_bytes.into()) * part * 8.0 / bps * 1e6;
    let queue = float(tcp.rtt_us?) - float(tcp.min_rtt_us?);
    (wait > QUEUE_US && (0.5..=2.0).contains(&(wait / queue))).then_some(wait)
}

/// Much of the receive buffer holds what is unread.
fn unread(sample: &ConnectionSample) -> Option<bool> {
    let memory = sample.memory?;
    let [unread, held, buffer] =
        [sample.unread_bytes, memory.rmem_alloc_bytes, memory.rcvbuf_bytes].map(|bytes| float(bytes.into()));
    Some(unread >= UNREAD * buffer || (unread > 0.0 && held >= UNREAD_MEMORY * buffer))
}

/// Whether unread bytes wait for longer than a prompt reader takes, at the rate at which they are read.
pub(super) fn is_left(unread_bytes: u32, bps: f64) -> bool {
    float(unread_bytes.into()) * 8e6 > PROMPT_US * bps
}

/// What each limit allows at the present RTT.
pub(super) fn ceilings(sample: &ConnectionSample) -> Vec<ConnectionCeiling> {
    let tcp = &sample.tcp;
    let Some(rtt_s) = tcp.rtt_us.filter(|rtt| *rtt > 0).map(|rtt| float(rtt) / 1e6) else { return Vec::new() };
    let window = |bytes: Option<f64>| Some(bytes? * 8.0 / rtt_s);
    let cwnd = tcp.snd_cwnd.zip(tcp.snd_mss_bytes).map(|(segments, mss)| float(segments) * float(mss));
    // Of the send buffer about half is overhead of the kernel (net/ipv4/tcp_input.c, tcp_sndbuf_expand).
    let buffer = sample.memory.map(|memory| float(memory.sndbuf_bytes.into()) / 2.0);
    let found = [
        (Limit::ReceiveWindow, window(tcp.snd_wnd_bytes.map(float))),
        (Limit::SendBuffer, window(buffer)),
        (Limit::CongestionWindow, window(cwnd)),
        (Limit::PacingCap, tcp.max_pacing_bps().map(float)),
    ];
    let mut ceilings: Vec<_> =
        found.into_iter().filter_map(|(limit, bps)| Some(ConnectionCeiling { limit, bps: bps? })).collect();
    ceilings.sort_by(|a, b| a.bps.total_cmp(&b.bps));
    ceilings
}

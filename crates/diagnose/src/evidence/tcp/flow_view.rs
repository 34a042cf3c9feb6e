//! One flow of one trial in the terms of the rules, over its counted part (after `omit`).

use super::acks::Acks;
use super::counted::{Counted, counted, goodput, thread_share, thread_waits};
use super::loss::Loss;
use super::outages::{Outage, outages};
use super::shares::Shares;
use super::signals::{self, Signal};
use crate::evidence::cores::{self, CoreShare};
use crate::evidence::shaper::own_rate;
use crate::ledger::sent_and_arrived;
use crate::role::Role;
use narrows_model::load::tcp::{TcpEndRecord, TcpSample, TcpStreamRecord};
use narrows_model::{Flow, TcpTrial, Unit, keys};
use std::collections::BTreeMap;

/// A data thread that waits less for its turn hardly slows a bulk transfer down.
pub const WAITS: f64 = 0.2;

/// One end of a flow.
#[derive(Debug, Clone, Default)]
pub struct EndView {
    /// The busiest data thread's share of a core.
    pub thread_share: Option<f64>,
    /// How much of the time the data thread that waited most was ready and waited for a core.
    pub thread_waits: Option<f64>,
    /// CPU time of all data threads of the flow per second.
    pub threads_share: Option<f64>,
    /// Each core of the host.
    pub cores: Vec<CoreShare>,
    /// By how much the host's counters grew over the whole trial.
    pub counts: BTreeMap<String, u64>,
    /// Plain numbers read right after the trial.
    pub facts: BTreeMap<String, f64>,
    /// Whether a shaper of the host has classes, and the load passed none of them.
    pub is_unshaped: bool,
}

impl EndView {
    fn of(end: &TcpEndRecord, streams: &[(&TcpStreamRecord, &[TcpSample])], omit_us: u64) -> Self {
        let shares: Option<Vec<f64>> = streams.iter().map(|(_, samples)| thread_share(samples)).collect();
        let numbers = end.after.facts.iter().filter(|fact| fact.unit != Unit::Count);
        let numbers = numbers.filter(|fact| fact.key != keys::QDISC_RATE.name);
        let numbers = numbers.filter_map(|fact| Some((fact.key.clone(), fact.value.as_f64()?)));
        let own_rate = own_rate(&end.before, &end.after);
        let rate = own_rate.map(|bps| (keys::QDISC_RATE.name.to_owned(), bps));
        Self {
            thread_share: shares.as_ref().and_then(|shares| shares.iter().copied().reduce(f64::max)),
            thread_waits: streams.iter().filter_map(|(_, samples)| thread_waits(samples)).reduce(f64::max),
            threads_share: shares.map(|shares| shares.iter().sum()),
            cores: cores::shares(&end.host, omit_us),
            counts: end.after.counts_since(&end.before),
            facts: numbers.chain(rate).collect(),
            is_unshaped: own_rate.is_none() && end.after.get(keys::QDISC_RATE).is_some(),
        }
    }

    /// The core with the most softirq time.
    pub fn softirq_core(&self) -> Option<&CoreShare> {
        self.cores.iter().max_by(|a, b| a.softirq.total_cmp(&b.softirq))
    }

    /// Mean of all cores.
    fn mean(&self, of: fn(&CoreShare) -> f64) -> Option<f64> {
        narrows_stats::mean(&self.cores.iter().map(of).collect::<Vec<_>>())
    }

    pub fn machine_busy(&self) -> Option<f64> {
        self.mean(|core| core.busy + core.steal)
    }

    /// Whether other programs take most of the machine: the engine lives in system calls and softirqs, so much user code is theirs.
    pub fn others_fill(&self) -> bool {
        self.mean(|core| core.user + core.steal).is_some_and(|user| user > 0.5)
    }

    /// What a hypervisor gave to others, as a part of all cores' time; 0 where that cannot be read.
    pub fn stolen(&self) -> f64 {
        self.mean(|core| core.steal).unwrap_or(0.0)
    }

    /// Whether a data thread waited for a core: that is full, though others of the machine may be idle (both ends bound to one).
    pub fn waits_for_core(&self) -> bool {
        self.thread_waits.is_some_and(|waits| waits >= WAITS)
    }

    /// What the load takes of all cores: its data threads and soft interrupts. `None` where that cannot be read or is nothing.
    pub fn load_busy(&self) -> Option<f64> {
        let threads = self.threads_share? / self.cores.len().max(1) as f64;
        Some(threads + self.mean(|core| core.softirq)?).filter(|share| *share > 0.0)
    }
}

/// One flow of one trial.
#[derive(Debug, Clone)]
pub struct FlowView {
    pub flow: Flow,
    pub streams: usize,
    /// Length of the counted part, seconds.
    pub counted_s: f64,
    /// Length of the whole trial, seconds.
    pub whole_s: f64,
    /// What the receiving application got, bits per second.
    pub goodput_bps: f64,
    /// What had arrived by each sample of the first second, over all streams: seconds since the start, and bits.
    pub early: Vec<(f64, f64)>,
    /// Goodput of each sampling interval, of the whole trial.
    pub interval_bps: Vec<f64>,
    /// The same over the counted part, and from 100 ms on at least: sampling is closer before.
    pub counted_bps: Vec<f64>,
    /// Median of the smoothed RTT, microseconds.
    pub rtt_us: Option<f64>,
    /// The RTT that a tenth of the samples exceed, microseconds.
    pub rtt_high_us: Option<f64>,
    /// The highest smoothed RTT of the whole trial, slow start included.
    pub rtt_peak_us: Option<f64>,
    /// Smallest RTT that TCP saw, microseconds.
    pub min_rtt_us: Option<f64>,
    /// 5th percentile of the smoothed RTT, microseconds: single packets that overtook others do not move it.
    pub low_srtt_us: Option<f64>,
    /// Payload of a full segment, bytes.
    pub mss_bytes: Option<f64>,
    /// Whether timestamps were negotiated.
    pub timestamps: bool,
    /// Where the sender's time went.
    pub shares: Option<Shares>,
    /// Share of samples that found the announced window filled by what was in flight.
    pub window_full_share: Option<f64>,
    /// Share of samples that found the send buffer filled by what was in flight, with next to nothing unsent in it.
    pub buffer_full_share: Option<f64>,
    /// Share of samples that found the send buffer less than half full: the writer had room and did not use it.
    pub buffer_room_share: Option<f64>,
    /// Share of samples in which the kernel waited for the application: nothing unsent, and room in the congestion window.
    pub starved_share: Option<f64>,
    /// Share of samples in which full segments waited unsent though both windows had room: the host itself held them back.
    pub held_below_share: Option<f64>,
    /// Median of the kernel memory that TCP had handed to the device in those samples, per stream, bytes.
    pub below_bytes: Option<f64>,
    /// Share of samples in which a part of a segment waited for the acknowledgement of what was in flight (Nagle's algorithm).
    pub nagle_share: Option<f64>,
    /// Bytes that the sending application wrote in one call, on average.
    pub write_bytes: Option<f64>,
    /// The slow-start threshold that a connection began with, where it did not begin without one: segments, the lowest.
    pub first_ssthresh: Option<f64>,
    /// How often the congestion window was found shrunk though nothing had been sent again; `None` where the samples do not say.
    pub restarts: Option<u64>,
    /// Of the segments that were delivered, those with a congestion mark; `None` where that is not counted.
    pub marked_share: Option<f64>,
    /// What the receiver acknowledged with; `None` where the sockets do not count it.
    pub acks: Option<Acks>,
    /// When the sender was told to slow down, in the whole trial.
    pub signals: Vec<Signal>,
    pub loss: Option<Loss>,
    /// Loss over the whole trial, the omitted part included.
    pub loss_whole: Option<Loss>,
    /// The same of each stream, over the counted part.
    pub losses: Vec<Loss>,
    /// Times of the whole trial in which nothing arrived although a whole window was on its way.
    pub outages: Option<Vec<Outage>>,
    /// The widest window that the receiver announced to one stream, bytes.
    pub snd_wnd_bytes: Option<f64>,
    /// A tenth of the samples found a narrower one, bytes.
    pub snd_wnd_low_bytes: Option<f64>,
    /// The deepest receive buffer of a stream, bytes.
    pub rcvbuf_bytes: Option<f64>,
    /// The deepest send buffer of a stream, bytes.
    pub sndbuf_bytes: Option<f64>,
    /// Median of what waited unread at the receiver, per stream, bytes.
    pub recv_q_bytes: Option<f64>,
    /// How full the receive buffer of a stream was on average, in kernel memory: a packet that is read in part still holds
    /// all of its own.
    pub rcvbuf_filled: Option<f64>,
    /// Kernel memory in the send queue of a stream: the mean, and what a tenth of the samples exceed, bytes.
    pub queued_bytes: Option<[f64; 2]>,
    /// Median of payload in flight per stream, bytes.
    pub in_flight_bytes: Option<f64>,
    /// Median of the congestion window per stream, bytes.
    pub cwnd_bytes: Option<f64>,
    /// Payload per byte of kernel memory in the send queue.
    pub send_density: Option<f64>,
    /// Whether the application fixed the receive buffer.
    pub receive_locked: Option<bool>,
    /// Whether the application fixed the send buffer.
    pub send_locked: Option<bool>,
    /// Options that were negotiated, from the sender's socket.
    pub sack: Option<bool>,
    pub window_scaling: Option<bool>,
    /// Cap on the pacing rate of one stream, bits per second.
    pub max_pacing_bps: Option<f64>,
    /// The congestion control in use.
    pub congestion_control: Option<String>,
    /// The highest delivery rate that the sender saw before a queue first showed in the RTT, over all streams, bits per second.
    pub early_peak_bps: Option<f64>,
    /// Share of samples in which the send queue held something that was not sent.
    pub unsent_share: Option<f64>,
    pub sender: EndView,
    pub receiver: EndView,
}

fn each<'a>(streams: &'a Counted<'_>, of: impl Fn(&TcpSample) -> Option<u64> + 'a) -> Vec<f64> {
    streams.iter().flat_map(|(_, samples)| samples.iter()).filter_map(|sample| of(sample).map(|n| n as f64)).collect()
}

fn largest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

fn smallest(values: &[f64]) -> Option<f64> {
    values.iter().copied().filter(|value| *value > 0.0).reduce(f64::min)
}

impl FlowView {
    pub const fn end(&self, role: Role) -> Option<&EndView> {
        match role {
            Role::Sender => Some(&self.sender),
            Role::Receiver => Some(&self.receiver),
            Role::Path => None,
        }
    }

    /// Whether the sender shows nothing of its connection but what it counted in all (iperf3).
    pub const fn is_silent(&self) -> bool {
        self.cwnd_bytes.is_none()
    }

    /// Whether its congestion control is BBR, of any version.
    pub fn is_bbr(&self) -> bool {
        self.congestion_control.as_deref().is_some_and(|name| name.starts_with("bbr"))
    }

    /// Whether each tenth of a second carried the same, within a fiftieth: something enforces such a rate, and what waits for a core
    /// varies by more.
    pub fn is_even(&self) -> bool {
        let [low, high] = [0.1, 0.9].map(|part| narrows_stats::quantile(&self.counted_bps, part));
        low.zip(high).is_some_and(|(low, high)| self.counted_bps.len() >= 10 && high <= 1.02 * low)
    }

    /// What a hypervisor took of the CPU time of the host that lost more.
    pub fn stolen(&self) -> f64 {
        self.sender.stolen().max(self.receiver.stolen())
    }

    /// Of its streams the one that lost the largest part.
    pub fn worst_loss(&self) -> Option<Loss> {
        let whole = self.loss.filter(|_| self.streams == 1);
        whole.or_else(|| self.losses.iter().copied().max_by(|a, b| a.rate().total_cmp(&b.rate())))
    }

    /// The view of a flow; `None` where nothing was received.
    pub fn of(trial: TcpTrial<'_>, flow: Flow) -> Option<Self> {
        let omit_us = trial.plan.omit_ms.saturating_mul(1000);
        let (sending, receiving) = (trial.end(flow.sender())?, trial.end(flow.receiver())?);
        let (sent, got) = (counted(sending, flow, omit_us), counted(receiving, flow, omit_us));
        let (goodput_bps, counted_s) = goodput(&counted(receiving, flow, 0), omit_us)?;
        let whole = counted(sending, flow, 0);
        let first = sent.first()?;
        // Of a sender that does not show it the receiver's kernel has an estimate.
        let mss_bytes = median(each(&sent, |sample| sample.tcp.snd_mss_bytes))
            .or_else(|| median(each(&got, |sample| sample.tcp.rcv_mss_bytes)).filter(|mss| *mss > 0.0));
        let last = first.1.last()?;
        let locked = |of: fn(&TcpStreamRecord) -> Option<bool>, streams: &Counted<'_>| {
            streams.iter().map(|(stream, _)| of(stream)).collect::<Option<Vec<_>>>().map(|all| all.iter().any(|on| *on))
        };
        let none = Vec::new();
        let all = |streams: &Counted<'_>, got: &Counted<'_>| {
            let told = || streams.iter().map(|(_, samples)| *samples);
            Loss::of(told()).or_else(|| Loss::by_bytes(told(), got.iter().map(|(_, samples)| *samples), mss_bytes?))
        };
        // Of a sender that shows nothing the receiver knows the window that it announced, and how long its acknowledgements take to be answered.
        let got_whole = counted(receiving, flow, 0);
        let rtts = |sent: &Counted<'_>, got: &Counted<'_>| {
            let seen = each(sent, |sample| sample.tcp.rtt_us);
            if seen.is_empty() { each(got, |sample| sample.tcp.rcv_rtt_us.filter(|us| *us > 0)) } else { seen }
        };
        let windows = {
            let seen = each(&sent, |sample| sample.tcp.snd_wnd_bytes);
            if seen.is_empty() { each(&got, |sample| sample.tcp.rcv_wnd_bytes) } else { seen }
        };
        let loss_whole = all(&whole, if omit_us > 0 { &got_whole } else { &none });
        let loss_whole = loss_whole.map(|loss| sent_and_arrived(trial, flow).map_or(loss, |both| loss.counted(both)));
        Some(Self {
            flow,
            streams: got.len(),
            counted_s,
            whole_s: trial.elapsed_us as f64 / 1e6,
            goodput_bps,
            early: super::shares::early(&counted(receiving, flow, 0)),
            interval_bps: intervals(&counted(receiving, flow, 0)),
            counted_bps: intervals(&counted(receiving, flow, omit_us.max(100_000))),
            rtt_us: median(rtts(&sent, &got)),
            rtt_peak_us: largest(&rtts(&whole, &got_whole)),
            rtt_high_us: narrows_stats::quantile(&rtts(&sent, &got), 0.9),
            low_srtt_us: narrows_stats::quantile(&rtts(&whole, &got_whole), 0.05),
            min_rtt_us: smallest(&each(&whole, |sample| sample.tcp.min_rtt_us.filter(|&us| us < u64::from(u32::MAX)))),
            mss_bytes,
            timestamps: last.tcp.negotiated(narrows_model::TcpInfo::OPT_TIMESTAMPS).unwrap_or(true),
            shares: Shares::of(sent.iter().map(|(_, samples)| *samples)),
            window_full_share: share_of(&sent, window_full),
            buffer_full_share: share_of(&sent, buffer_full),
            buffer_room_share: share_of(&sent, buffer_room),
            starved_share: share_of(&sent, starved),
            held_below_share: share_of(&sent, held_below),
            below_bytes: median(each(&sent, |sample| {
                held_below(sample)?.then_some(sample.memory?.wmem_alloc_bytes.into())
            })),
            nagle_share: share_of(&sent, waits_for_ack),
            write_bytes: write_bytes(&sent),
            first_ssthresh: smallest(&first_ssthresh(&whole)),
            restarts: signals::restarts(&sent),
            marked_share: signals::marked(&sent),
            acks: Acks::of(&sent, &got),
            signals: signals::of(whole.iter().map(|(_, samples)| *samples)),
            // Where nothing arrives there is no slow start to leave out.
            loss: if omit_us == 0 || goodput_bps <= 0.0 { loss_whole } else { all(&sent, &none) },
            loss_whole,
            losses: sent.iter().filter_map(|(_, samples)| Loss::of(std::iter::once(*samples))).collect(),
            outages: outages(&whole, &counted(receiving, flow, 0), trial.plan.interval_ms.saturating_mul(1000)),
            snd_wnd_bytes: largest(&windows),
            snd_wnd_low_bytes: narrows_stats::quantile(&windows, 0.1),
            rcvbuf_bytes: largest(&each(&got, |sample| sample.memory.map(|memory| memory.rcvbuf_bytes.into()))),
            sndbuf_bytes: largest(&each(&sent, |sample| sample.memory.map(|memory| memory.sndbuf_bytes.into()))),
            recv_q_bytes: median(each(&got, |sample| sample.recv_q_bytes.map(u64::from))),
            rcvbuf_filled: mean(&got, filled),
            in_flight_bytes: mss_bytes
                .and_then(|mss| median(each(&sent, |sample| sample.tcp.unacked)).map(|segments| segments * mss)),
            cwnd_bytes: mss_bytes
                .and_then(|mss| median(each(&sent, |sample| sample.tcp.snd_cwnd)).map(|segments| segments * mss)),
            queued_bytes: queued(&sent),
            send_density: density(&sent),
            receive_locked: locked(|stream| stream.buffer_lock.map(|lock| lock.receive), &got),
            send_locked: locked(|stream| stream.buffer_lock.map(|lock| lock.send), &sent),
            sack: last.tcp.negotiated(narrows_model::TcpInfo::OPT_SACK),
            window_scaling: last.tcp.negotiated(narrows_model::TcpInfo::OPT_WSCALE),
            max_pacing_bps: last.tcp.max_pacing_bps().map(|bps| bps as f64),
            congestion_control: first.0.congestion_control.clone(),
            early_peak_bps: early_peak(&whole, omit_us),
            unsent_share: share_of(&sent, |sample| Some(sample.tcp.notsent_bytes? > 0)),
            sender: EndView::of(sending, &sent, omit_us),
            receiver: EndView::of(receiving, &got, omit_us),
        })
    }

    /// Goodput of the last third of the counted part over that of the first third; 1 is steady.
    pub fn trend(&self) -> Option<f64> {
        let third = self.interval_bps.len() / 3;
        if third < 3 {
            return None;
        }
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let (first, last) = (mean(&self.interval_bps[third..2 * third]), mean(&self.interval_bps[2 * third..]));
        (first > 0.0).then(|| last / first)
    }
}

/// The part of the samples of which something holds; `None` where no sample can say.
fn share_of(streams: &Counted<'_>, holds: impl Fn(&TcpSample) -> Option<bool>) -> Option<f64> {
    let said: Vec<bool> = streams.iter().flat_map(|(_, samples)| samples.iter()).filter_map(holds).collect();
    (!said.is_empty()).then(|| said.iter().filter(|holds| **holds).count() as f64 / said.len() as f64)
}

/// The mean of what the samples tell; `None` where none does.
fn mean(streams: &Counted<'_>, of: impl Fn(&TcpSample) -> Option<f64>) -> Option<f64> {
    let told: Vec<f64> = streams.iter().flat_map(|(_, samples)| samples.iter()).filter_map(of).collect();
    (!told.is_empty()).then(|| told.iter().sum::<f64>() / told.len() as f64)
}

fn filled(sample: &TcpSample) -> Option<f64> {
    let memory = sample.memory.filter(|memory| memory.rcvbuf_bytes > 0)?;
    Some(f64::from(memory.rmem_alloc_bytes) / f64::from(memory.rcvbuf_bytes))
}

/// What is in flight comes within a super-packet's rounding of the announced window.
fn window_full(sample: &TcpSample) -> Option<bool> {
    let in_flight = sample.tcp.unacked?.saturating_mul(sample.tcp.snd_mss_bytes?);
    Some(in_flight.saturating_mul(10) >= sample.tcp.snd_wnd_bytes?.saturating_mul(8))
}

/// A writer that found the buffer full is woken when a third of it is free, so a buffer that limits is between two
/// thirds full and full; all of it is in flight. Where the congestion window limits, most of what the buffer holds is
/// unsent.
fn buffer_full(sample: &TcpSample) -> Option<bool> {
    let memory = sample.memory?;
    let full = u64::from(memory.wmem_queued_bytes) * 10 >= u64::from(memory.sndbuf_bytes) * 6;
    Some(full && sample.tcp.notsent_bytes?.saturating_mul(10) <= u64::from(sample.send_q_bytes?))
}

/// A writer that is always ready keeps the buffer at two thirds or more: the kernel wakes it there. With `tcp_notsent_lowat` the kernel takes
/// less of it, and then data waits unsent all the same.
fn buffer_room(sample: &TcpSample) -> Option<bool> {
    let memory = sample.memory?;
    let unsent = sample.tcp.notsent_bytes.zip(sample.tcp.snd_mss_bytes).is_some_and(|(bytes, mss)| bytes >= mss);
    Some(!unsent && u64::from(memory.wmem_queued_bytes) * 2 < u64::from(memory.sndbuf_bytes))
}

/// What the kernel marks as limited by the application (`net/ipv4/tcp_rate.c`, `tcp_rate_check_app_limited`). A send buffer that is
/// full looks the same.
fn starved(sample: &TcpSample) -> Option<bool> {
    let tcp = &sample.tcp;
    let unsent = tcp.notsent_bytes? >= tcp.snd_mss_bytes?;
    Some(
        tcp.delivery_rate_app_limited()?
            && !unsent
            && tcp.unacked?.saturating_mul(10) < tcp.snd_cwnd?.saturating_mul(9),
    )
}

/// See [`FlowView::held_below_share`]. A tenth of a window is what rounding to super-packets leaves.
fn held_below(sample: &TcpSample) -> Option<bool> {
    let tcp = &sample.tcp;
    let (mss, in_flight) = (tcp.snd_mss_bytes?, tcp.unacked?);
    let window = (tcp.snd_cwnd?.saturating_mul(mss)).min(tcp.snd_wnd_bytes?);
    let room = in_flight.saturating_mul(mss).saturating_mul(10) < window.saturating_mul(9);
    Some(room && tcp.notsent_bytes? >= mss.saturating_mul(2) && tcp.ca_state? == 0)
}

/// See [`FlowView::nagle_share`]; `net/ipv4/tcp_output.c`, `tcp_nagle_test`.
fn waits_for_ack(sample: &TcpSample) -> Option<bool> {
    let tcp = &sample.tcp;
    let part = (1..tcp.snd_mss_bytes?).contains(&tcp.notsent_bytes?);
    Some(part && tcp.unacked? > 0 && tcp.unacked?.saturating_mul(2) <= tcp.snd_cwnd?)
}

/// See [`FlowView::write_bytes`].
fn write_bytes(sent: &Counted<'_>) -> Option<f64> {
    let (mut bytes, mut calls) = (0.0, 0.0);
    for (_, samples) in sent {
        let (first, last) = (samples.first()?, samples.last()?);
        bytes += last.bytes.saturating_sub(first.bytes) as f64;
        calls += last.calls.saturating_sub(first.calls) as f64;
    }
    (calls > 0.0).then_some(bytes / calls)
}

/// The threshold of each connection's first sample; the kernel's infinity (`TCP_INFINITE_SSTHRESH`) is none.
fn first_ssthresh(whole: &Counted<'_>) -> Vec<f64> {
    let first = whole.iter().filter_map(|(_, samples)| samples.first());
    first.filter_map(|sample| sample.tcp.snd_ssthresh).filter(|n| *n < 0x7fff_ffff).map(|n| n as f64).collect()
}

/// See [`FlowView::queued_bytes`].
fn queued(sent: &Counted<'_>) -> Option<[f64; 2]> {
    let queued = each(sent, |sample| sample.memory.map(|memory| memory.wmem_queued_bytes.into()));
    Some([narrows_stats::mean(&queued)?, narrows_stats::quantile(&queued, 0.9)?])
}

/// Payload per byte of send memory, where enough was queued for the ratio to mean something.
fn density(sent: &Counted<'_>) -> Option<f64> {
    let ratios = sent.iter().flat_map(|(_, samples)| samples.iter()).filter_map(|sample| {
        let queued = sample.memory?.wmem_queued_bytes;
        (queued >= 64 << 10).then(|| sample.send_q_bytes.map(|payload| f64::from(payload) / f64::from(queued)))?
    });
    median(ratios.collect()).filter(|ratio| (0.05..=1.5).contains(ratio))
}

/// Goodput of each sampling interval, all streams together; streams are sampled at the same instants.
fn intervals(got: &Counted<'_>) -> Vec<f64> {
    let shortest = got.iter().map(|(_, samples)| samples.len()).min().unwrap_or(0);
    (1..shortest)
        .map(|i| {
            got.iter()
                .map(|(_, samples)| {
                    let span = samples[i].at_us.saturating_sub(samples[i - 1].at_us).max(1);
                    samples[i].bytes.saturating_sub(samples[i - 1].bytes) as f64 * 8e6 / span as f64
                })
                .sum()
        })
        .collect()
}

/// The highest sum over streams of the delivery rate at one sample before a queue first shows in the RTT. A bucket is emptied before
/// anything queues behind it; later peaks are acknowledgements that came in a bunch.
fn early_peak(sent: &Counted<'_>, omit_us: u64) -> Option<f64> {
    let least = smallest(&each(sent, |sample| sample.tcp.min_rtt_us))?;
    let early = |sample: &TcpSample| sample.at_us <= omit_us.max(500_000);
    let queued = |sample: &TcpSample| sample.tcp.rtt_us.is_none_or(|rtt| rtt as f64 > 1.1 * least + 500.0);
    let per_stream: Vec<Vec<f64>> = sent
        .iter()
        .map(|(_, samples)| {
            // One late acknowledgement is the host's; two in a row are the queue's.
            let end = samples.windows(2).position(|two| two.iter().all(queued)).unwrap_or(samples.len());
            let free = samples[..end].iter().take_while(|sample| early(sample)).filter(|sample| !queued(sample));
            free.filter_map(|sample| sample.tcp.delivery_rate_bytes_s.map(|rate| rate as f64 * 8.0)).collect()
        })
        .collect();
    let shortest = per_stream.iter().map(Vec::len).min()?;
    (0..shortest).map(|i| per_stream.iter().map(|rates| rates[i]).sum::<f64>()).reduce(f64::max)
}

/// Median of finite numbers.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|value| value.is_finite());
    narrows_stats::median(&values)
}

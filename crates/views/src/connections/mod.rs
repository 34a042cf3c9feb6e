//! What limits each TCP connection of a host, from two readings of its counters and without any load.
//!
//! The sender's kernel keeps the time that it waited for the application, the receiver's window and the send buffer (`tcp_chrono`,
//! net/ipv4/tcp_output.c); what else it waited for is distinguished by loss, the pacing rate and the RTT above its minimum. A
//! receiver knows of its own application and window only.

mod both;
mod limit;

pub use both::join;

use limit::{Interval, Risen, ceilings};
use narrows_model::words::figures::float;
use narrows_model::{
    ConnectionLimit as Limit, ConnectionSample, ConnectionShares, ConnectionView, ConnectionsReading, ConnectionsView,
    Others, Owner,
};
use std::collections::HashMap;
use std::net::IpAddr;

/// The connections so far.
#[derive(Debug, Default)]
pub struct Accumulator {
    host: String,
    first_us: Option<u64>,
    /// Of the last two readings.
    at_us: [u64; 2],
    readings: u64,
    entries: HashMap<u64, Entry>,
}

/// A connection in the newest reading.
#[derive(Debug)]
struct Entry {
    sample: Box<ConnectionSample>,
    /// The counters before those; `None`: it is new.
    before: Option<Box<ConnectionSample>>,
    /// The reading of `sample`: it is quiet since.
    reading: u64,
    has_carried: bool,
}

impl Accumulator {
    pub fn new(host: &str) -> Self {
        Self { host: host.to_owned(), ..Self::default() }
    }

    /// Takes all connections at one instant. One that is gone is forgotten.
    pub fn push(&mut self, reading: ConnectionsReading) {
        self.first_us.get_or_insert(reading.at_us);
        self.at_us = [self.at_us[1], reading.at_us.max(self.at_us[1])];
        self.readings += 1;
        let reading_now = self.readings;
        for sample in reading.changed {
            let (id, sample) = (sample.id, Box::new(sample));
            let known = self.entries.remove(&id);
            let has_carried = known.as_ref().is_some_and(|it| it.has_carried || carried(&it.sample, &sample));
            let before = known.map(|known| known.sample);
            self.entries.insert(id, Entry { sample, before, reading: reading_now, has_carried });
        }
        match reading.others {
            Others::Gone => self.entries.retain(|_, entry| entry.reading == reading_now),
            Others::Quiet(gone) => gone.iter().for_each(|id| drop(self.entries.remove(id))),
        }
    }

    fn is_quiet(&self, entry: &Entry) -> bool {
        entry.reading < self.readings
    }

    /// The newest counters of each.
    pub fn newest(&self) -> impl Iterator<Item = &ConnectionSample> {
        self.entries.values().map(|entry| &*entry.sample)
    }

    /// Of the connections between the same two addresses, the one that sees the longest queue now: the others wait in it, too, though
    /// some began when it was there already.
    fn risen(&self) -> HashMap<(IpAddr, IpAddr), Risen> {
        let mut most: HashMap<_, Risen> = HashMap::new();
        for entry in self.entries.values().filter(|entry| !self.is_quiet(entry)) {
            let Some(risen) = Risen::of(&entry.sample) else { continue };
            let known = most.entry(path(&entry.sample)).or_insert(risen);
            if risen.queue_us() > known.queue_us() {
                *known = risen;
            }
        }
        most
    }

    /// The view of them, in order of their rate; without `all`, those that carried no data so far are counted only.
    pub fn view(&self, owners: &HashMap<u64, Owner>, all: bool) -> ConnectionsView {
        let us = self.at_us[1] - self.at_us[0];
        let risen = self.risen();
        let one = |entry: &Entry| {
            let before = if self.is_quiet(entry) { Some(&entry.sample) } else { entry.before.as_ref() };
            let interval = before
                .and_then(|before| Interval::of(before, &entry.sample, us, risen.get(&path(&entry.sample)).copied()));
            view(&entry.sample, interval.as_ref(), owners.get(&entry.sample.inode).cloned())
        };
        let listed = self.entries.values().filter(|entry| all || !self.is_quiet(entry) || entry.has_carried);
        let mut connections: Vec<ConnectionView> = listed.map(one).collect();
        connections.sort_by(|a, b| b.bps().total_cmp(&a.bps()).then_with(|| a.id.cmp(&b.id)));
        ConnectionsView {
            host: self.host.clone(),
            elapsed_s: float(self.at_us[1].saturating_sub(self.first_us.unwrap_or(self.at_us[1]))) / 1e6,
            matching: self.entries.len(),
            active: connections.iter().filter(|it| it.bps() > 0.0).count(),
            quiet: self.entries.len() - connections.len(),
            connections,
            remarks: Vec::new(),
        }
    }
}

fn path(sample: &ConnectionSample) -> (IpAddr, IpAddr) {
    (sample.local.ip(), sample.remote.ip())
}

/// Whether data moved between two readings.
fn carried(before: &ConnectionSample, now: &ConnectionSample) -> bool {
    before.tcp.bytes_acked != now.tcp.bytes_acked || before.tcp.bytes_received != now.tcp.bytes_received
}

fn view(sample: &ConnectionSample, interval: Option<&Interval<'_>>, process: Option<Owner>) -> ConnectionView {
    let tcp = &sample.tcp;
    let (limit, why) = interval
        .map_or_else(|| (Limit::Unknown, "seen once so far: a rate needs two readings".to_owned()), Interval::limit);
    let sends = |shares: &ConnectionShares| shares.application < 1.0;
    let ms = |us: Option<u64>| Some(float(us?) / 1e3);
    ConnectionView {
        id: format!("{:x}", sample.id),
        local: sample.local.to_string(),
        remote: sample.remote.to_string(),
        process,
        uid: sample.uid,
        limit,
        why,
        shares: interval.and_then(Interval::shares).filter(sends),
        send_bps: interval.and_then(|it| it.bps(|tcp| tcp.bytes_acked)),
        receive_bps: interval.and_then(|it| it.bps(|tcp| tcp.bytes_received)),
        rtt_ms: ms(tcp.rtt_us),
        min_rtt_ms: ms(tcp.min_rtt_us.filter(|us| *us < u64::from(u32::MAX))),
        retransmitted: interval.and_then(Interval::retransmitted),
        retransmitted_total: tcp.total_retrans,
        ceilings: ceilings(sample),
        congestion_control: sample.congestion_control.clone(),
        unread_bytes: sample.unread_bytes,
        unsent_bytes: tcp.notsent_bytes,
        ends: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::TcpInfo;

    const SECOND: u64 = 1_000_000;

    fn at_start() -> ConnectionSample {
        ConnectionSample {
            id: 7,
            at_us: 0,
            local: "192.0.2.1:443".parse().unwrap(),
            remote: "192.0.2.2:50000".parse().unwrap(),
            state: 1,
            uid: 0,
            inode: 11,
            cgroup: None,
            unread_bytes: 0,
            congestion_control: Some("cubic".to_owned()),
            memory: Some(narrows_model::SocketMemory {
                sndbuf_bytes: 200_000,
                rcvbuf_bytes: 131_072,
                ..Default::default()
            }),
            tcp: TcpInfo {
                bytes_acked: Some(0),
                bytes_sent: Some(0),
                bytes_received: Some(0),
                busy_time_us: Some(0),
                rwnd_limited_us: Some(0),
                sndbuf_limited_us: Some(0),
                data_segs_out: Some(0),
                total_retrans: Some(0),
                retransmits: Some(0),
                probes: Some(0),
                rtt_us: Some(20_000),
                min_rtt_us: Some(20_000),
                snd_wnd_bytes: Some(500_000),
                rcv_wnd_bytes: Some(65_536),
                snd_cwnd: Some(100),
                snd_mss_bytes: Some(1_448),
                unacked: Some(0),
                notsent_bytes: Some(0),
                flags: Some(0),
                ..TcpInfo::default()
            },
        }
    }

    fn all(at_us: u64, changed: Vec<ConnectionSample>) -> ConnectionsReading {
        ConnectionsReading { at_us, changed, others: Others::Gone }
    }

    /// A second later: 10 Mbit sent, all the time with data, with changes.
    fn limit_of(change: impl FnOnce(&mut ConnectionSample)) -> (Limit, String) {
        limit_from(at_start(), change)
    }

    fn limit_from(before: ConnectionSample, change: impl FnOnce(&mut ConnectionSample)) -> (Limit, String) {
        let mut now = at_start();
        now.at_us = SECOND;
        now.tcp.bytes_acked = Some(1_250_000);
        now.tcp.bytes_sent = Some(1_250_000);
        now.tcp.data_segs_out = Some(864);
        now.tcp.busy_time_us = Some(SECOND);
        now.tcp.unacked = Some(100);
        now.tcp.notsent_bytes = Some(30_000);
        change(&mut now);
        let mut seen = Accumulator::new("a");
        seen.push(all(0, vec![before]));
        assert_eq!(seen.view(&HashMap::new(), true).connections[0].limit, Limit::Unknown, "seen once");
        seen.push(all(SECOND, vec![now]));
        let view = seen.view(&HashMap::new(), true);
        (view.connections[0].limit, view.connections[0].why.clone())
    }

    #[test]
    fn what_the_sender_waits_for_is_named() {
        let named = |change: fn(&mut ConnectionSample)| limit_of(change).0;
        assert_eq!(named(|_| {}), Limit::CongestionWindow);
        assert_eq!(named(|now| now.tcp.busy_time_us = Some(SECOND / 3)), Limit::Application);
        assert_eq!(named(|now| now.tcp.rwnd_limited_us = Some(SECOND * 6 / 10)), Limit::ReceiveWindow);
        assert_eq!(named(|now| now.tcp.sndbuf_limited_us = Some(SECOND * 6 / 10)), Limit::SendBuffer);
        assert_eq!(named(|now| now.tcp.max_pacing_rate_bytes_s = Some(1_300_000)), Limit::PacingCap);
        assert_eq!(named(|now| now.tcp.total_retrans = Some(5)), Limit::Loss);
        assert_eq!(named(|now| now.tcp.rtt_us = Some(60_000)), Limit::Path);
        assert_eq!(named(|now| now.tcp.probes = Some(1)), Limit::ReceivingApplication);
        assert_eq!(named(|now| now.tcp.snd_wnd_bytes = Some(0)), Limit::CongestionWindow, "closed for a moment");
        let mut closed = at_start();
        (closed.tcp.snd_wnd_bytes, closed.tcp.notsent_bytes) = (Some(0), Some(9_000));
        let (limit, why) = limit_from(closed, |now| now.tcp.snd_wnd_bytes = Some(0));
        assert_eq!(limit, Limit::ReceivingApplication, "{why}");
        // Small enough to leave the congestion window room: BBR adapts its pace, so that the window is full for part of the time only.
        let roomy = |now: &mut ConnectionSample| {
            (now.tcp.unacked, now.tcp.rwnd_limited_us) = (Some(20), Some(SECOND * 3 / 10));
        };
        assert_eq!(named(roomy), Limit::ReceiveWindow);
        // 12.5 kB are in this host, which are 10 ms at 10 Mbit/s; the RTT rose by 9 ms. Without a rise (`fq`) they are not it.
        let waits = |sample: &mut ConnectionSample| {
            sample.tcp.unacked = Some(40);
            sample.tcp.notsent_bytes = Some(42_080);
            sample.tcp.rtt_us = Some(29_000);
            let memory = sample.memory.unwrap_or_default();
            let [wmem_alloc_bytes, wmem_queued_bytes] = [12_500, 100_000];
            sample.memory = Some(narrows_model::SocketMemory { wmem_alloc_bytes, wmem_queued_bytes, ..memory });
        };
        let mut before = at_start();
        waits(&mut before);
        let (limit, why) = limit_from(before.clone(), waits);
        assert_eq!(limit, Limit::LocalQueue, "{why}");
        let (limit, why) = limit_from(before, |now| {
            waits(now);
            now.tcp.rtt_us = Some(20_100);
        });
        assert_eq!(limit, Limit::Unknown, "{why}");
        assert_eq!(named(|now| now.tcp.retransmits = Some(3)), Limit::Loss);
        assert_eq!(named(|now| now.tcp.unacked = Some(20)), Limit::Unknown);
        // Few bytes that leave at once: the application, although the kernel was never without data.
        let small = |now: &mut ConnectionSample| {
            (now.tcp.unacked, now.tcp.notsent_bytes, now.tcp.flags) = (Some(20), Some(0), Some(1));
        };
        assert_eq!(named(small), Limit::Application);
        // Where no whole segment waits to be sent, the queue is that of others.
        let beside = |notsent| {
            let mut before = at_start();
            let set = |tcp: &mut TcpInfo| {
                (tcp.unacked, tcp.notsent_bytes, tcp.rtt_us) = (Some(90), Some(notsent), Some(60_000));
            };
            set(&mut before.tcp);
            limit_from(before, |now| set(&mut now.tcp)).0
        };
        assert_eq!([0, 900, 1_448].map(beside), [Limit::Application, Limit::Application, Limit::Path]);
        // Loss behind a full queue is that of the path; BBR bears some.
        assert_eq!(named(|now| (now.tcp.rtt_us, now.tcp.total_retrans) = (Some(60_000), Some(5))), Limit::Path);
        // One RTT that is late, and too few bytes for a queue of its own: the loss is what limits.
        let late = |now: &mut ConnectionSample| {
            (now.tcp.rtt_us, now.tcp.total_retrans, now.tcp.bytes_acked) = (Some(26_000), Some(5), Some(200_000));
        };
        assert_eq!(named(late), Limit::Loss);
        let mut queued = at_start();
        queued.tcp.rtt_us = Some(26_000);
        assert_eq!(limit_from(queued, late).0, Limit::Path);
        let bbr = |now: &mut ConnectionSample| {
            (now.congestion_control, now.tcp.total_retrans) = (Some("bbr".to_owned()), Some(5));
        };
        assert_eq!(named(bbr), Limit::Path);
        assert_eq!(limit_of(|now| now.tcp.busy_time_us = None).0, Limit::Unknown, "an old kernel");
        // All acknowledged for a quarter of the time.
        assert_eq!(named(|now| now.tcp.busy_time_us = Some(SECOND * 3 / 4)), Limit::Application);
    }

    #[test]
    fn under_bbr_a_window_and_a_writer_show_in_less_of_the_time() {
        // 400 kB/s at 80 ms are 32,000 bytes in each round trip; so many thousandths of the time the window was full.
        let of = |full: u64, window, flags, unsent| {
            let [(limit, _), _] = beside_bulk(|one, s| {
                one.congestion_control = Some("bbr".to_owned());
                let tcp = &mut one.tcp;
                (tcp.rwnd_limited_us, tcp.snd_wnd_bytes) = (Some(s * full * 1000), Some(window));
                (tcp.flags, tcp.notsent_bytes) = (Some(flags), Some(unsent));
            });
            limit
        };
        let limits = [
            of(0, 6_000_000, 0, 30_000),
            of(50, 6_000_000, 0, 30_000),
            of(120, 6_000_000, 0, 30_000),
            of(50, 40_000, 0, 30_000),
            // A part of what the application wrote last is spread by the pace.
            of(0, 6_000_000, 1, 5_000),
        ];
        use Limit::{Application, Path, ReceiveWindow};
        assert_eq!(limits, [Path, Path, ReceiveWindow, ReceiveWindow, Application]);
    }

    #[test]
    fn a_receiver_knows_the_queue_on_the_way_by_time_stamps() {
        let received = |options| {
            limit_of(|now| {
                (now.tcp.bytes_acked, now.tcp.bytes_sent) = (Some(0), Some(0));
                (now.tcp.bytes_received, now.tcp.rcv_rtt_us) = (Some(700_000), Some(90_000));
                now.tcp.options = Some(options);
            })
        };
        // 63,000 of 65,536 bytes in each RTT of 90 ms, 14,000 in that of the handshake.
        assert_eq!(received(TcpInfo::OPT_TIMESTAMPS).0, Limit::ReceiveWindow);
        assert_eq!(received(0).0, Limit::Unknown);
    }

    /// Beside a bulk flow to the same peer that keeps the RTT at 80 ms where 20 are the least: what limits the other one, changed at both
    /// readings, and the bulk flow.
    fn beside_bulk(change: impl Fn(&mut ConnectionSample, u64)) -> [(Limit, String); 2] {
        let at = |s: u64| {
            let with = |id, bytes, in_flight| {
                let mut one = ConnectionSample { id, at_us: s * SECOND, ..at_start() };
                let tcp = &mut one.tcp;
                (tcp.rtt_us, tcp.busy_time_us, tcp.notsent_bytes) = (Some(80_000), Some(s * SECOND), Some(30_000));
                (tcp.bytes_acked, tcp.bytes_sent, tcp.data_segs_out) =
                    (Some(s * bytes), Some(s * bytes), Some(s * bytes / 1_448));
                (tcp.unacked, tcp.snd_cwnd, tcp.snd_wnd_bytes) = (Some(in_flight), Some(in_flight), Some(6_000_000));
                one
            };
            let mut other = with(2, 400_000, 22);
            change(&mut other, s);
            vec![with(1, 11_000_000, 600), other]
        };
        let mut seen = Accumulator::new("a");
        (0..2).for_each(|s| seen.push(all(s * SECOND, at(s))));
        let view = seen.view(&HashMap::new(), true);
        ["2", "1"].map(|id| {
            let one = view.connections.iter().find(|one| one.id == id).unwrap();
            (one.limit, one.why.clone())
        })
    }

    #[test]
    fn a_queue_that_another_flow_fills_is_not_what_limits_a_window_a_pace_a_reader_and_a_writer() {
        let beside = |change: fn(&mut ConnectionSample, u64)| beside_bulk(change)[0].clone();
        let [(other, _), (bulk, why)] = beside_bulk(|_, _| {});
        assert_eq!((other, bulk), (Limit::Path, Limit::Path), "{why}");
        // 22 segments fill a window of 32 KiB. The congestion window ended there, and a loss of the bulk flow's queue makes it smaller
        // for a while.
        let (limit, why) = beside(|one, _| one.tcp.snd_wnd_bytes = Some(32_768));
        assert_eq!(limit, Limit::ReceiveWindow, "{why}");
        let (limit, why) = beside(|one, s| {
            (one.tcp.snd_wnd_bytes, one.tcp.rwnd_limited_us) = (Some(32_768), Some(s * SECOND * 3 / 10));
            one.tcp.unacked = Some(22 - 7 * s);
        });
        assert_eq!(
            (limit, why.as_str()),
            (
                Limit::ReceiveWindow,
                "98 % of the peer's window of 32 KiB is sent in each RTT; it was full 30 % of the time"
            )
        );
        // A slow reader opens the window little by little.
        let (limit, why) = beside(|one, s| {
            (one.tcp.snd_wnd_bytes, one.tcp.unacked) =
                if s == 0 { (Some(1_000), Some(0)) } else { (Some(20_000), Some(13)) };
            one.tcp.snd_cwnd = Some(13);
        });
        assert_eq!(limit, Limit::ReceiveWindow, "{why}");
        let (limit, why) = beside(|one, _| one.tcp.max_pacing_rate_bytes_s = Some(420_000));
        assert_eq!(limit, Limit::PacingCap, "{why}");
        // A slow writer whose last data is still on its way when it writes again.
        let (limit, why) = beside(|one, _| one.tcp.notsent_bytes = Some(0));
        assert_eq!(limit, Limit::Application, "{why}");
    }

    #[test]
    fn a_flow_that_began_in_a_queue_learns_of_it_from_another_one_to_the_same_peer() {
        let young = |one: &mut ConnectionSample| one.tcp.min_rtt_us = Some(78_000);
        let [(limit, why), _] = beside_bulk(|one, _| young(one));
        assert_eq!(
            (limit, why.as_str()),
            (Limit::Path, "the RTT is 60.0 ms above its minimum, as behind a full queue")
        );
        let [(limit, why), _] = beside_bulk(|one, _| {
            young(one);
            one.remote = "192.0.2.3:50000".parse().unwrap();
        });
        assert_eq!(limit, Limit::CongestionWindow, "{why}");
        // The same peer by another path.
        let [(limit, why), _] =
            beside_bulk(|one, _| (one.tcp.min_rtt_us, one.tcp.rtt_us) = (Some(39_000), Some(40_000)));
        assert_eq!(limit, Limit::CongestionWindow, "{why}");
    }

    #[test]
    fn a_receiver_knows_its_application_and_its_window() {
        let receives = |now: &mut ConnectionSample| {
            (now.tcp.bytes_acked, now.tcp.bytes_sent) = (Some(0), Some(0));
            now.tcp.bytes_received = Some(1_250_000);
        };
        assert_eq!(limit_of(receives).0, Limit::Unknown);
        let (limit, why) = limit_of(|now| {
            receives(now);
            now.unread_bytes = 64_000;
        });
        assert_eq!(limit, Limit::Unknown, "once may be chance: {why}");
        let lazy = ConnectionSample { unread_bytes: 60_000, ..at_start() };
        let (limit, why) = limit_from(lazy, |now| {
            receives(now);
            now.unread_bytes = 64_000;
        });
        assert_eq!(limit, Limit::ReceivingApplication, "{why}");
        // 29,000 bytes fill the memory of the buffer: at 10 Mbit/s they wait for 23 ms. At 1 Gbit/s they are what a prompt reader leaves.
        let full = |sample: &mut ConnectionSample| {
            sample.unread_bytes = 29_000;
            let memory = sample.memory.unwrap_or_default();
            sample.memory = Some(narrows_model::SocketMemory { rmem_alloc_bytes: 120_000, ..memory });
        };
        let at = |bytes_received| {
            let mut before = at_start();
            full(&mut before);
            let now = |now: &mut ConnectionSample| {
                receives(now);
                full(now);
                (now.tcp.bytes_received, now.tcp.min_rtt_us) = (Some(bytes_received), Some(50));
            };
            limit_from(before, now).0
        };
        assert_eq!((at(1_250_000), at(125_000_000)), (Limit::ReceivingApplication, Limit::Unknown));
        // 65,536 bytes in 20 ms are 26 Mbit/s.
        let (limit, why) = limit_of(|now| {
            receives(now);
            now.tcp.bytes_received = Some(3_000_000);
        });
        assert_eq!(
            (limit, why.as_str()),
            (Limit::ReceiveWindow, "92 % of this host's window of 64 KiB arrive in each RTT")
        );
    }

    #[test]
    fn an_idle_connection_and_one_that_is_gone() {
        let mut seen = Accumulator::new("a");
        seen.push(all(0, vec![at_start(), ConnectionSample { id: 8, ..at_start() }]));
        seen.push(ConnectionsReading { at_us: 2 * SECOND, changed: Vec::new(), others: Others::Quiet(vec![8, 9]) });
        let owner = Owner { pid: 1, name: "init".to_owned() };
        let counted = seen.view(&HashMap::new(), false);
        assert_eq!((counted.matching, counted.quiet, counted.connections.len()), (1, 1, 0));
        let view = seen.view(&HashMap::from([(11, owner.clone())]), true);
        assert_eq!((view.matching, view.active, view.elapsed_s), (1, 0, 2.0));
        let one = &view.connections[0];
        assert_eq!((one.limit, one.process.as_ref(), one.id.as_str()), (Limit::Idle, Some(&owner), "7"));
        assert_eq!((one.send_bps, one.shares), (Some(0.0), None));
        // 100 segments of 1,448 bytes in 20 ms; half of 200,000 bytes; 500,000 bytes.
        let ceilings: Vec<_> = one.ceilings.iter().map(|it| (it.limit, it.bps)).collect();
        let expected = [(Limit::SendBuffer, 40e6), (Limit::CongestionWindow, 57.92e6), (Limit::ReceiveWindow, 200e6)];
        assert_eq!(ceilings, expected);
    }
}

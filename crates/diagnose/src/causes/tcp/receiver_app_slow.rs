//! # receiver-app-slow
//!
//! The receiving application reads more slowly than the path delivers.
//!
//! **Shows**: the receive window limits the sender while the receiver's socket is full of unread data; zero-window
//! announcements and pruning grow.
//!
//! **Mistaken for**: a window that is too small (then data is unread for less than half a millisecond, which waking the reader takes),
//! a full core (then the reader never sleeps).
//!
//! **Fix**: the application: a dedicated reader thread, larger reads, more cores, a faster disk.
//!
//! Source: RFC 9293 3.8.6; `SIOCINQ`, tcp(7).

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp::{PACED, pace_ceiling};
use narrows_model::load::tcp::{Application, TcpPlan};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "receiver-app-slow",
    about: "the receiving application reads more slowly than the path delivers",
    roles: &[Role::Receiver],
    needs: &[keys::NETSTAT_TCP_EXT_TCP_TO_ZERO_WINDOW_ADV],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["tcp-receive-window", "tcp-receive-buffer-fixed", "app-core-saturated"],
    fix,
    rank: 6,
    excludes: Excludes::FullCore,
    ..Cause::COMMON
};

/// What waits unread, as a part of the window that could have been announced: the receiving application keeps up below a quarter.
///
/// On a short path the buffer stays small and the queue is short when it is looked at, while a packet that is read in part
/// holds all of its memory: then the buffer's own filling tells. In the fault bank it is 0.68 and more on average where
/// the reader lags and 0.16 at most elsewhere, so half of it counts. What is read promptly is no backlog, however full the buffer.
fn backlog(evidence: &TcpEvidence) -> Option<f64> {
    let base = &evidence.base;
    let unread = unread(evidence)? / (base.snd_wnd_bytes? + base.recv_q_bytes?).max(1.0);
    let filled = base.rcvbuf_filled.filter(|part| *part >= FILLED && !reads_promptly(evidence));
    Some(filled.map_or(unread, |part| part.max(unread)))
}

/// A reader takes this long to be woken on a busy host (see [`TcpEvidence::queue_stood`]).
const PROMPT_US: f64 = 500.0;

/// How long what waits unread has waited: its bytes at the rate at which they are read (Little's law).
fn unread_us(evidence: &TcpEvidence) -> Option<f64> {
    let base = &evidence.base;
    let held = base.rcvbuf_filled.zip(base.rcvbuf_bytes).map_or(0.0, |(part, buffer)| part * buffer);
    Some(base.recv_q_bytes?.max(held) * 8e6 / evidence.goodput_bps())
}

/// Whether data is read as soon as its reader can be woken. One super-packet of 64 KiB fills a small buffer, and whatever samples the
/// socket runs in place of its reader: a buffer full of unread data is then no sign of a slow one. In the fault bank data waited for
/// 2.7 ms and more where the reader was slow, and for 65 us at most behind 128 KiB at 14 Gbit/s.
fn reads_promptly(evidence: &TcpEvidence) -> bool {
    let pace_bps = evidence.load.application.read_bps as f64;
    let paced = pace_bps > 0.0 && evidence.goodput_bps() >= PACED * pace_bps;
    !paced && unread_us(evidence).is_some_and(|us| us < PROMPT_US)
}

/// What a reader leaves unread that does not read promptly, bytes.
pub(super) fn unread(evidence: &TcpEvidence) -> Option<f64> {
    evidence.base.recv_q_bytes.map(|bytes| if reads_promptly(evidence) { 0.0 } else { bytes })
}

/// How much is unread, and for how long, for sentences.
pub(super) fn unread_words(evidence: &TcpEvidence) -> String {
    let bytes = evidence.base.recv_q_bytes.unwrap_or(0.0) as u64;
    let waits = unread_us(evidence).filter(|us| bytes > 0 && us.is_finite());
    let waits = waits.map_or_else(String::new, |us| format!(", read within {}", units::micros(us as u64)));
    format!("{} unread{waits}", units::bytes(bytes))
}

/// A buffer this full on average waits for its reader.
const FILLED: f64 = 0.5;

/// Whether a good part of what could be under way waits unread at the receiver.
pub(in crate::causes) fn leaves_unread(evidence: &TcpEvidence) -> bool {
    backlog(evidence).is_some_and(|part| part >= 0.25)
}

/// Whether the reader, and not the window, is what the sender waits for.
pub(in crate::causes) fn reader_lags(evidence: &TcpEvidence) -> bool {
    leaves_unread(evidence) && evidence.held_by_window().is_some_and(|held| held >= 0.2)
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    if backlog(evidence)? < 0.25 || evidence.held_by_window()? < 0.2 {
        let read_bps = evidence.load.application.read_bps;
        return pace_ceiling(CAUSE.id, evidence, role, read_bps, "the load reads no more (--app-read-rate)");
    }
    let how = "read rate of the application while data was waiting".to_owned();
    ceiling_at(CAUSE.id, evidence, role, evidence.goodput_bps(), [0.98, 1.02], Method::Inferred, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let held = held(evidence.held_by_window(), "receive window")?;
    let (backlog, unread) = known(backlog(evidence).zip(evidence.base.recv_q_bytes), "the receiver's queue could not be read")?;
    if backlog < 0.25 {
        return Err(contradicts(format!("the receiving application keeps up ({})", unread_words(evidence))));
    }
    let mut witnesses = vec![
        counter(evidence.waited_words(held)),
        counter(match evidence.base.rcvbuf_filled.filter(|part| *part >= FILLED && *part >= backlog) {
            Some(part) => format!("the receive buffer was {} full of unread packets on average", units::percent(part)),
            None => format!(
                "{} had arrived and not been read by the application, {} of the receive window",
                units::bytes(unread as u64),
                units::percent(backlog)
            ),
        }),
    ];
    if let Some(zero) = evidence.grew(role, keys::NETSTAT_TCP_EXT_TCP_TO_ZERO_WINDOW_ADV).filter(|n| *n > 0) {
        witnesses.push(counter(format!("the receiver closed its window to zero {zero} times")));
    }
    supports(held, witnesses)
}

fn fix(evidence: &TcpEvidence, _: Role) -> Fix {
    let application = Application { read_bps: 0, read_cpu_us_per_mib: 0, ..evidence.load.application };
    let imitated = application != evidence.load.application;
    Fix {
        load: imitated.then(|| TcpPlan { application, ..evidence.load.clone() }.into()),
        ..advice(
            "make the receiving application read faster: a dedicated reader thread, larger reads, no disk access, \
            another core",
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use super::*;

    /// 100 Mbit/s is all that the reader takes: 3 MB wait for it.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 100e6,
            rtt_us: 35_200,
            rwnd: 0.9,
            snd_wnd: 1_000_000,
            recv_q: 3_000_000,
            cwnd: 500,
            receiver_counts: vec![("netstat.TcpExt.TCPToZeroWindowAdv", 40)],
            ..Scene::default()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn a_reader_with_data_waiting_for_it_is_named() {
        let mut scene = truth();
        scene.load.application.read_bps = 100_000_000;
        let finding = named(&scene, &[], "receiver-app-slow", Place::Server);
        assert_rejects(&finding, "tcp-receive-window", "the reader is slow, not the window");
        assert_rejects(&finding, "tcp-receive-buffer-fixed", "the application did not fix the buffer");
        assert_rejects(&finding, "app-core-saturated", "of a core");
        assert_eq!(finding.fix.load.expect("a load").get::<TcpPlan>().expect("TCP").application, Application::default());
    }

    #[test]
    fn without_a_small_window_a_load_still_keeps_to_its_own_pace() {
        let facts = with(ordinary_host(), fact("tcp.rmem.max", 262_144_i64, Unit::Bytes));
        let mut scene = Scene {
            goodput_bps: 42.1e6,
            rtt_us: 35_100,
            rwnd: 0.97,
            snd_wnd: 184_000,
            rcvbuf: 262_144,
            receiver_facts: facts,
            profile: Some(ProfiledPath { rate_bps: 200e6, burst_bps: 200e6, ..ProfiledPath::default() }),
            ..Scene::default()
        };
        let foretold = |scene: &Scene| {
            named(scene, &[], "tcp-receive-window", Place::Server).prediction.expect("a prediction")
        };
        assert_eq!(foretold(&scene).then, "path-capacity");
        scene.load.application.read_bps = 90_000_000;
        let paced = foretold(&scene);
        assert_eq!((paced.bps, &*paced.then, paced.interval_bps), (90e6, CAUSE.id, Some([81e6, 90e6])));
        scene.load.application = Application { write_bps: 60_000_000, ..scene.load.application };
        assert_eq!((foretold(&scene).bps, &*foretold(&scene).then), (60e6, "sender-app-slow"));
    }

    #[test]
    fn a_quarter_of_the_window_must_wait_unread() {
        // 24 and 26 % of what the window would be with the queue read.
        assert_contradicts(&of(&Scene { recv_q: 315_000, ..truth() }), "the receiving application keeps up");
        assert_supports(&of(&Scene { recv_q: 352_000, ..truth() }));
    }

    #[test]
    fn a_buffer_full_of_packets_read_in_part_is_unread_data() {
        // The queue is short at the instants of the samples, but its packets still fill the buffer (1 ms, 64 KiB packets).
        let scene = |filled: f64| Scene { recv_q: 30_000, rcvbuf_filled: filled, ..truth() };
        assert_contradicts(&of(&scene(0.4)), "the receiving application keeps up");
        let Assessment::Supports { witnesses, .. } = of(&scene(0.8)) else { panic!("it says") };
        assert!(witnesses[1].says.contains("80 % full of unread packets"), "{:?}", witnesses[1]);
    }

    #[test]
    fn a_full_buffer_that_is_read_promptly_is_no_slow_reader() {
        // Two veth devices and a tcp_rmem maximum of 16 KiB: each sample finds all of the window unread, for 60 us.
        let small = crate::testing::small_buffer();
        assert_contradicts(&of(&small), "keeps up (114 KiB unread, read within 60 us)");
        assert_contradicts(&of(&Scene { goodput_bps: 1.9e9, ..small.clone() }), "read within 489 us");
        assert_supports(&of(&Scene { goodput_bps: 1.8e9, ..small.clone() }));
        // One that sleeps to keep its own pace is slow, though it leaves data for a moment only; at half of its pace it is not the limit.
        let paced = |read_bps| {
            let mut scene = Scene { goodput_bps: 2.9e9, ..small.clone() };
            scene.load.application.read_bps = read_bps;
            of(&scene)
        };
        assert_supports(&paced(3_000_000_000));
        assert_contradicts(&paced(6_000_000_000), "keeps up");
    }

    #[test]
    fn a_window_that_does_not_hold_the_sender_back_is_no_matter() {
        assert_contradicts(&of(&Scene { rwnd: 0.19, ..truth() }), "only 19 %");
        assert_supports(&of(&Scene { rwnd: 0.21, ..truth() }));
    }

    #[test]
    fn a_queue_or_times_that_cannot_be_read_leave_it_open() {
        for (hidden, word) in [(&[Hidden::RecvQ] as &[Hidden], "queue"), (&[Hidden::LimitedTimes], "the sender's kernel does not report what limited it")] {
            let scene = Scene { hidden, ..truth() };
            assert_cannot_tell(&of(&scene), word);
            none_proven(&scene, &[]);
        }
    }
}

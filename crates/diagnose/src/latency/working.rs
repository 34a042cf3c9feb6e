//! Working latency in a diagnosis: round trips of the idle path beside those of the load, and the queue that the difference waits in.
//!
//! All of it is in the samples of the load: TCP's smoothed RTT (`tcpi_rtt`) runs from the moment a segment is given to the device, so it
//! holds the wait in the sender's queueing discipline, in the queues of the path and in the receiver until it acknowledges, and not the
//! wait in the socket. Only the profile of the path shows what of it the path can be. What the device has not sent yet is `sk_wmem_alloc`, what the socket has not sent yet is `tcpi_notsent_bytes`; over the rate both are times (Little's law).

use crate::evidence::tcp::{PathWait, TcpEvidence};
use crate::experiments::profile::PATH_PROFILE;
use narrows_model::load::tcp::{TcpSample, TcpStreamRecord};
use narrows_model::run::report::{LatencySpread, Queue, Wait, WorkingLatency};
use narrows_model::words::units;
use narrows_model::{Direction, Flow, ProfilePlan, ProfileTrial, Run};
use narrows_stats::quantile;

/// A queue of so long is felt in any conversation over the same path …
const BLOATED_US: f64 = 50_000.0;
/// … where it makes the round trip so many times as long.
const BLOATED: f64 = 3.0;

/// Shorter waits are of the sampling and of scheduling.
const SEEN_US: f64 = 500.0;

/// The latency of a round; `None` where the kernel gave no RTT of the load.
pub(crate) fn latency(run: &Run, round: u32, evidence: &TcpEvidence) -> Option<WorkingLatency> {
    let trial = evidence.judged_trial(run, round)?;
    let omit_us = trial.plan.omit_ms.saturating_mul(1000);
    let all = &trial.end(evidence.flow.sender())?.streams;
    let streams: Vec<&[TcpSample]> =
        all.iter().filter(|stream| stream.flow == evidence.flow).map(|stream| counted(stream, omit_us)).collect();
    let each = |of: &dyn Fn(&TcpSample, f64) -> Option<f64>| -> Vec<f64> {
        let of_stream = |samples: &&[TcpSample]| {
            let bps = rate(samples);
            samples.iter().filter_map(|sample| of(sample, bps?)).collect::<Vec<_>>()
        };
        streams.iter().flat_map(of_stream).filter(|us| us.is_finite()).collect()
    };
    streams.iter().flat_map(|samples| samples.iter()).find_map(rtt)?;
    let loaded = all.iter().filter(|stream| stream.flow == evidence.flow).flat_map(|stream| of_load(stream, omit_us));
    let loaded_us = spread(&loaded.collect::<Vec<_>>());
    let idle_us = spread(&idle(run, round, evidence.flow));
    let wait = |bytes: f64, bps: f64| bytes * 8e6 / bps;
    let socket = median(&each(&|sample, bps| Some(wait(float(sample.tcp.notsent_bytes?), bps))));
    let density = evidence.base.send_density.map(|density| density.min(1.0));
    let device = median(&each(&|sample, bps| Some(wait(f64::from(sample.memory?.wmem_alloc_bytes) * density?, bps))));
    let rise = loaded_us.zip(idle_us).map(|(loaded, idle)| (loaded.p50 - idle.p50).max(0.0));
    let rest = rise.map(|rise| (rise - device.unwrap_or(0.0)).max(0.0));
    let device = device.map(|us| rise.map_or(us, |rise| us.min(rise)));
    let [path, open, hosts] = rest.map_or([None; 3], |rest| match evidence.path_wait() {
        PathWait::Any => [Some(rest), None, None],
        PathWait::Unknown => [None, Some(rest), None],
        PathWait::AtMostUs(most) => {
            let open = Some(most.min(rest)).filter(|us| *us >= SEEN_US);
            [None, open, Some(rest - open.unwrap_or(0.0))]
        }
    });
    let beyond = [(Queue::Path, path), (Queue::PathOrHosts, open), (Queue::HostsOrReversePath, hosts)];
    let waits = [(Queue::Socket, socket), (Queue::Device, device)].into_iter().chain(beyond);
    // At a near-zero mean rate any queue appears to last longer than the load: no packet waited that long.
    let seen = |us: &f64| *us >= SEEN_US && *us <= float(trial.elapsed_us);
    let waits = waits.filter_map(|(queue, us)| us.filter(seen).map(|us| Wait { queue, us }));
    Some(WorkingLatency { direction: evidence.flow.direction(), idle_us, loaded_us, waits: waits.collect() })
}

/// That the load makes everybody wait who shares its queue (Gettys and Nichols, *Bufferbloat*, ACM Queue 9(11), 2011).
pub(crate) fn bufferbloat(latency: &WorkingLatency) -> Option<String> {
    let (idle, loaded) = (latency.idle_us?.p50, latency.loaded_us?.p50);
    if loaded - idle < BLOATED_US || loaded < BLOATED * idle {
        return None;
    }
    let seen = |wait: &&Wait| !matches!(wait.queue, Queue::Socket | Queue::HostsOrReversePath);
    let longest = latency.waits.iter().filter(seen).max_by(|a, b| a.us.total_cmp(&b.us))?;
    let (way, sender) = match latency.direction {
        Direction::Down => ("down", "server"),
        Direction::Up | Direction::Both => ("up", "client"),
    };
    let [idle, loaded, us] = [idle, loaded, longest.us].map(micros);
    Some(match longest.queue {
        Queue::Device => format!(
            "bufferbloat {way}, at {sender}: the RTT is {loaded} under load and {idle} when idle; {us} of that is queueing in the \
             {sender}'s own device; AQM there (`tc qdisc replace dev DEVICE root fq_codel`, below the shaper where one is set) removes the \
             delay at the same goodput"
        ),
        Queue::Path => format!(
            "bufferbloat {way}, at path: the RTT is {loaded} under load and {idle} when idle; {us} of that is queueing on the path; \
             a shorter queue or AQM (fq_codel, cake) at the bottleneck removes the delay at the same goodput"
        ),
        _ => format!(
            "bufferbloat {way}: the RTT that TCP sees is {loaded} under load and {idle} when idle; {us} of that is on the path or in the \
             hosts, which only a path profile tells apart; if it is a queue of the path, a shorter one or AQM (fq_codel, cake) at the \
             bottleneck removes the delay at the same goodput"
        ),
    })
}

/// Round trips of the idle path: the profile's probes, or those of the control connection.
fn idle(run: &Run, round: u32, flow: Flow) -> Vec<f64> {
    let probed = (0..=round).rev().find_map(|round| {
        let of_flow =
            |(id, trial): &(&str, ProfileTrial<'_>)| *id == PATH_PROFILE.id && trial.plan.direction == flow.direction();
        let (_, trial) = run.experiments::<ProfilePlan>(round).filter(of_flow).last()?;
        let probes = &trial.client.probes;
        (!probes.is_empty()).then(|| probes.iter().map(|probe| float(probe.rtt_ns) / 1e3).collect())
    });
    probed.unwrap_or_else(|| run.idle_rtt_us.iter().map(|us| float(*us)).collect())
}

fn counted(stream: &TcpStreamRecord, omit_us: u64) -> &[TcpSample] {
    let from = stream.samples.partition_point(|sample| sample.at_us < omit_us);
    let from = if stream.samples.len() - from < 2 { 0 } else { from };
    &stream.samples[from..]
}

/// Bits a second that the application of a stream wrote over its samples.
fn rate(samples: &[TcpSample]) -> Option<f64> {
    let (first, last) = (samples.first()?, samples.last()?);
    let us = last.at_us.checked_sub(first.at_us).filter(|us| *us > 0)?;
    Some(float(last.bytes.saturating_sub(first.bytes)) * 8e6 / float(us)).filter(|bps| *bps > 0.0)
}

fn of_load(stream: &TcpStreamRecord, omit_us: u64) -> impl Iterator<Item = f64> + '_ {
    stream.load_rtts_us(counted(stream, omit_us).first().map_or(0, |first| first.at_us)).map(float)
}

fn rtt(sample: &TcpSample) -> Option<f64> {
    sample.tcp.rtt_us.filter(|us| *us > 0).map(float)
}

fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// `None` without values.
fn spread(values: &[f64]) -> Option<LatencySpread> {
    // Fewer values have none beyond the percentile.
    let at = |p: f64, least: usize| quantile(values, p).filter(|_| values.len() >= least);
    Some(LatencySpread { count: values.len() as u64, p50: at(0.5, 1)?, p95: at(0.95, 20), p99: at(0.99, 100) })
}

const fn float(n: u64) -> f64 {
    n as f64
}

fn micros(us: f64) -> String {
    units::micros(us.clamp(0.0, 1e12).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::profile::{Excess, ProfiledPath};
    use crate::testing::{Scene, tcp_end};

    fn of(scene: &Scene) -> WorkingLatency {
        crate::diagnose(&scene.run(&[]), 0).and_then(|it| it.accounts.latency).expect("a latency")
    }

    fn us(latency: &WorkingLatency, queue: Queue) -> Option<u64> {
        latency.waits.iter().find(|wait| wait.queue == queue).map(|wait| wait.us.round() as u64)
    }

    fn bloated() -> Scene {
        Scene { goodput_bps: 20e6, min_rtt_us: 20_000, rtt_us: 520_000, ..Scene::default() }
    }

    #[test]
    fn the_queue_that_adds_most_is_named() {
        let open = of(&bloated());
        let (idle, loaded) =
            (open.idle_us.expect("idle round trips"), open.loaded_us.expect("round trips of the load"));
        assert_eq!((idle.p50, idle.p95, loaded.p50), (20_000.0, None, 520_000.0), "one idle value has no tail");
        assert_eq!((us(&open, Queue::PathOrHosts), us(&open, Queue::Device)), (Some(500_000), None));
        let says = bufferbloat(&open).expect("a finding");
        assert!(says.starts_with("bufferbloat up: the RTT that TCP sees is 520 ms under load and 20"), "{says}");
        // Only its profile shows that it is the path.
        let path = of(&Scene { profile: Some(queues(20.8e6)), ..bloated() });
        assert_eq!((us(&path, Queue::Path), us(&path, Queue::PathOrHosts)), (Some(500_000), None));
        let says = bufferbloat(&path).expect("a finding");
        assert!(says.starts_with("bufferbloat up, at path: the RTT is 520 ms under load and 20"), "{says}");

        // What the device has not sent: its memory by the payload that a byte of memory holds.
        let density = TcpEvidence::of(&bloated().run(&[]), 0).and_then(|it| it.base.send_density).expect("a density");
        let below = (0.48 * 20e6 / 8.0 / density) as u32;
        let mut down = Scene { below, unsent: 250_000, ..bloated() };
        down.load.direction = Direction::Down;
        let device = of(&down);
        let near = |queue, ms: u64| us(&device, queue).is_some_and(|us| us.abs_diff(ms * 1000) < 2_000);
        assert!(near(Queue::Device, 480) && near(Queue::PathOrHosts, 20) && near(Queue::Socket, 100), "{device:?}");
        let says = bufferbloat(&device).expect("a finding");
        assert!(says.starts_with("bufferbloat down, at server: ") && says.contains("server's own device"), "{says}");
    }

    /// A path of this rate that queues what exceeds it.
    fn queues(rate_bps: f64) -> ProfiledPath {
        ProfiledPath { rate_bps, burst_bps: rate_bps, idle_rtt_us: 20_000, ..ProfiledPath::default() }
    }

    #[test]
    fn what_the_profile_does_not_show_on_the_path_is_not_said_to_be_there() {
        // A policer has no queue: TCP's round trips grow in the hosts.
        let path = ProfiledPath { burst_bps: 900e6, excess: Excess::DroppedAfter(40), ..queues(20.8e6) };
        let policed = Scene { rtt_us: 80_000, lost: 300, profile: Some(path), ..bloated() };
        assert_eq!((us(&of(&policed), Queue::HostsOrReversePath), of(&policed).waits.len()), (Some(60_000), 1));
        assert_eq!(bufferbloat(&of(&policed)), None);
        let roofline = crate::diagnose(&policed.run(&[]), 0).expect("a diagnosis").accounts.roofline;
        assert!(roofline.iter().all(|ceiling| !ceiling.how.contains("queue")), "{roofline:#?}");
        // A slow reader on a path with much room: what is in flight leaves it in 2 ms.
        let read = Scene { rtt_us: 80_000, in_flight: Some(170), profile: Some(queues(1e9)), ..bloated() };
        let read = of(&read);
        let near = |queue, ms: u64| us(&read, queue).is_some_and(|us| us.abs_diff(ms * 1000) < 500);
        assert!(near(Queue::PathOrHosts, 2) && near(Queue::HostsOrReversePath, 58), "{read:?}");
    }

    #[test]
    fn the_round_trip_of_the_handshake_is_not_that_of_the_load() {
        let mut run = Scene { goodput_bps: 0.0, ..Scene::default() }.run(&[]);
        let acked = |run: &mut Run, of: fn(u64) -> u64| {
            for sample in &mut tcp_end(&mut run.trials[0].trial.client).streams[0].samples {
                sample.tcp.bytes_acked = Some(of(sample.at_us));
            }
            crate::diagnose(run, 0).and_then(|it| it.accounts.latency).expect("a latency")
        };
        let stuck = acked(&mut run, |_| 45);
        assert_eq!((stuck.loaded_us, &stuck.waits[..]), (None, &[][..]));
        assert_eq!(acked(&mut run, |at_us| 45 + at_us / 100).loaded_us.map(|it| it.count), Some(80));
    }

    #[test]
    fn a_short_queue_and_an_unknown_round_trip_are_no_finding() {
        let short = of(&Scene { rtt_us: 60_000, ..bloated() });
        assert_eq!((us(&short, Queue::PathOrHosts), bufferbloat(&short)), (Some(40_000), None));
        let far = of(&Scene { min_rtt_us: 200_000, rtt_us: 400_000, ..bloated() });
        assert_eq!((us(&far, Queue::PathOrHosts), bufferbloat(&far)), (Some(200_000), None), "twice is what TCP needs");
        let hidden = Scene { hidden: &[crate::testing::Hidden::Rtt], ..bloated() };
        let diagnosis = crate::diagnose(&hidden.run(&[]), 0).expect("a diagnosis");
        assert_eq!(diagnosis.accounts.latency, None);
    }

    #[test]
    fn nothing_waits_longer_than_the_load_lasts() {
        let stalled = Scene { goodput_bps: 40_000.0, unsent: 250_000, ..bloated() };
        let load_us = 10e6;
        assert!(of(&stalled).waits.iter().all(|wait| wait.us <= load_us), "{:?}", of(&stalled).waits);
        assert_eq!(us(&of(&stalled), Queue::Socket), None, "50 s of an unsent quarter megabyte");
    }

    #[test]
    fn a_percentile_needs_a_value_beyond_it() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let known = |n: usize| spread(&values[..n]).map(|it| (it.count, it.p95.is_some(), it.p99.is_some()));
        assert_eq!(
            [0, 19, 20, 100].map(known),
            [None, Some((19, false, false)), Some((20, true, false)), Some((100, true, true))]
        );
    }
}

//! The course of a test: the configuration, the idle path, then the load of each direction until it is stable.

use super::ResponsivenessFailure as Failure;
use super::connection::{Server, address_of};
use super::load::{Load, foreign};
use super::target::Target;
use crate::remote::Trust;
use crate::{Stop, lock};
use narrows_model::load::responsiveness::{
    ForeignProbe, ResponsivenessInterval, ResponsivenessLoad, ResponsivenessPlan, ResponsivenessRecord,
};
use narrows_model::words::figures::float;
use narrows_model::{Direction, Ending, Family, Flow};
use narrows_sys::clock;
use narrows_views::responsiveness::course;
use narrows_wire::responsiveness::{Configuration, MAX_BYTES};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The longest wait without a look at the stop flag.
const LOOK: Duration = Duration::from_millis(50);
/// Time between pairs of probes while the goodput is unknown.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Time between two directions: the queues empty.
const BETWEEN: Duration = Duration::from_secs(1);
/// Threads: bulk data on one must not hold up the probes on another.
const THREADS: usize = 3;

/// Runs a test. `progress` gets each load after each interval.
/// Errors: the server cannot be reached, its key is another, or it is no test server. What happens during a load is its
/// ending.
pub fn measure(
    plan: &ResponsivenessPlan,
    target: &Target,
    trust: &Trust,
    family: Option<Family>,
    stop: &Stop,
    progress: &mut dyn FnMut(&ResponsivenessLoad),
) -> Result<ResponsivenessRecord, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("narrows-nq")
        .enable_all()
        .build()
        .map_err(|error| Failure::Here(error.to_string()))?;
    let done = runtime.block_on(test(plan, target, trust, family, stop, progress));
    runtime.shutdown_background();
    done
}

async fn test(
    plan: &ResponsivenessPlan,
    target: &Target,
    trust: &Trust,
    family: Option<Family>,
    stop: &Stop,
    progress: &mut dyn FnMut(&ResponsivenessLoad),
) -> Result<ResponsivenessRecord, Failure> {
    let tls = trust.config(&[b"h2"])?;
    let unusable = |why: String| Failure::Server(target.url.authority(), why);
    let address = address_of(&target.url.host, target.url.port, family).await?;
    let first = Server { address, host: target.url.host.clone(), tls: tls.clone() };
    let (connection, _, congestion_control) = first.connect().await.map_err(unusable)?;
    let json = connection.get(&target.url, MAX_BYTES).await.map_err(unusable)?;
    let urls = Configuration::parse(&json).map_err(|error| unusable(error.to_string()))?;
    drop(connection);
    let host = urls.endpoint.as_ref().unwrap_or(&urls.large.host);
    let same = *host == target.url.host && urls.large.port == target.url.port;
    let address = if same { address } else { address_of(host, urls.large.port, family).await? };
    let server = Server { address, host: urls.large.host.clone(), tls };
    let mut record = ResponsivenessRecord {
        plan: plan.clone(),
        asked: target.asked.clone(),
        address: address.to_string(),
        trust: trust.words(),
        congestion_control,
        idle: idle(plan, &server, &urls, stop).await.map_err(unusable)?,
        loads: Vec::new(),
    };
    let flows: &[Flow] = match plan.direction {
        Direction::Both => &[Flow::Down, Flow::Up],
        one => one.flows(),
    };
    for flow in flows {
        if !record.loads.is_empty() {
            wait(BETWEEN, stop).await;
        }
        if stop.is_set() {
            break;
        }
        let load = Load::new(server.clone(), urls.clone(), *flow, FIRST_PAUSE);
        record.loads.push(run(plan, load, stop, progress).await);
    }
    Ok(record)
}

async fn wait(time: Duration, stop: &Stop) {
    let start = clock::now();
    while start.elapsed() < time && !stop.is_set() {
        sleep(LOOK.min(time.saturating_sub(start.elapsed()))).await;
    }
}

async fn idle(
    plan: &ResponsivenessPlan,
    server: &Server,
    urls: &Configuration,
    stop: &Stop,
) -> Result<Vec<ForeignProbe>, String> {
    let mut all = Vec::new();
    let start = clock::now();
    while all.len() < plan.idle_probes as usize && !stop.is_set() {
        let probe = foreign(server, &urls.small).await?;
        all.push(ForeignProbe { at_us: clock::micros_since(start), ..probe });
    }
    Ok(all)
}

async fn run(
    plan: &ResponsivenessPlan,
    load: std::sync::Arc<Load>,
    stop: &Stop,
    progress: &mut dyn FnMut(&ResponsivenessLoad),
) -> ResponsivenessLoad {
    // Dropped with all that runs in it.
    let mut tasks = JoinSet::new();
    tasks.spawn(load.clone().probe());
    let mut seen = ResponsivenessLoad {
        flow: load.flow,
        intervals: Vec::new(),
        foreign: Vec::new(),
        own: Vec::new(),
        failed_probes: 0,
        ending: Ending::Complete,
    };
    let (interval, limit) = (Duration::from_millis(plan.interval_ms), Duration::from_millis(plan.limit_ms));
    let (mut connections, mut bytes) = (0, 0);
    loop {
        let more = ResponsivenessPlan::STEP.min(plan.connections_max - connections);
        connections += more;
        (0..more).for_each(|_| drop(tasks.spawn(load.clone().carry())));
        let end = interval * u32::try_from(seen.intervals.len() + 1).unwrap_or(u32::MAX);
        while load.start.elapsed() < end && !stop.is_set() && lock(&load.broken).is_none() {
            sleep(LOOK.min(end.saturating_sub(load.start.elapsed()))).await;
        }
        let (end_us, total) = (clock::micros_since(load.start), load.bytes.load(Ordering::Relaxed));
        seen.foreign.clone_from(&lock(&load.foreign));
        seen.own.clone_from(&lock(&load.own));
        seen.failed_probes = load.failed.load(Ordering::Relaxed);
        // What was cut short counts where it is all that there is.
        let whole = load.start.elapsed() >= end;
        if whole || seen.intervals.is_empty() {
            seen.intervals.push(ResponsivenessInterval { end_us, connections, bytes: total - bytes });
            bytes = total;
        }
        if let Some(why) = lock(&load.broken).clone() {
            seen.ending = Ending::Failed(why);
        } else if stop.is_set() {
            seen.ending = Ending::Interrupted;
        }
        let course = course(&seen);
        progress(&seen);
        let over = load.start.elapsed() + interval > limit + LOOK;
        if seen.ending != Ending::Complete || course.stable || over {
            return seen;
        }
        let goodput_bps = course.goodput_bps.last().copied().unwrap_or(0.0);
        load.pause_us.store(pause_us(plan, goodput_bps), Ordering::Relaxed);
    }
}

/// Time between two pairs of probes, so that they have no more than their share of the goodput, nor more than so many a second.
fn pause_us(plan: &ResponsivenessPlan, goodput_bps: f64) -> u64 {
    let affordable = goodput_bps / 8.0 * ResponsivenessPlan::PROBES_SHARE / ResponsivenessPlan::PROBE_PAIR_BYTES;
    let pairs = affordable.min(f64::from(plan.probes_per_s) / 2.0).max(1.0);
    let us = (1e6 / pairs) as u64;
    debug_assert!(float(us) <= 1e6);
    us
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_have_a_share_of_the_goodput() {
        let plan = ResponsivenessPlan::default();
        // 5 % of 9.6 Mbit/s are 60,000 B/s: ten pairs.
        assert_eq!(pause_us(&plan, 9_600_000.0), 100_000);
        assert_eq!((pause_us(&plan, 1e10), pause_us(&plan, 0.0)), (20_000, 1_000_000));
    }
}

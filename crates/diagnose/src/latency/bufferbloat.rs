//! # bufferbloat
//!
//! A load fills a queue that is far longer than the path needs, and everything else that goes through it waits.
//!
//! **Shows**: with a load a transaction takes at least 30 ms more and twice as long as without; the RTT that the load's own senders see
//! grows as well.
//!
//! **Mistaken for**: ends that are too busy to answer in time (then the RTT that the kernels see does not grow, for no
//! thread's waking up is part of it); a queue of one bandwidth-delay product, which TCP needs to fill the path (the latency then
//! doubles at most); queues that keep flows apart (then only the load waits).
//!
//! **Fix**: an active queue management (`fq_codel`, `cake`) at the hop whose queue it is, with a rate just below the slowest link's.
//!
//! It is no limit of the goodput and has no ceiling, so it is not in the table of causes: two trials of requests and responses are its
//! evidence. The direction is that of the load.
//!
//! Source: Gettys and Nichols, *Bufferbloat: Dark Buffers in the Internet*, CACM 55(1), 2012; RFC 7567. One product as the rule of
//! thumb: Appenzeller et al., *Sizing Router Buffers*, SIGCOMM 2004. 30 ms is where the common tests of it stop calling
//! a path good. Not yet calibrated on the fault bank.

use super::seen::load_rtt;
use super::time;
use narrows_model::{Direction, Finding, Fix, Place, Rejected, RrTrial, Witness};

pub(super) const ID: &str = "bufferbloat";
/// Less is nothing that people notice.
const MIN_INCREASE_NS: f64 = 30e6;
/// What a queue of one bandwidth-delay product makes of the idle RTT.
const ONE_PRODUCT: f64 = 2.0;
/// The kernels' RTT explains the increase where it grew by this part of it.
const EXPLAINS: f64 = 0.5;

/// Whether a load makes the median latency so much longer: the one rule of all measurements that compare the idle path with the loaded one.
pub fn is_long_queue(idle_ns: f64, loaded_ns: f64) -> bool {
    loaded_ns - idle_ns >= MIN_INCREASE_NS && loaded_ns >= ONE_PRODUCT * idle_ns
}

/// How much longer `what` takes, in words.
pub fn takes_longer(what: &str, idle_ns: f64, loaded_ns: f64) -> String {
    format!(
        "with the load {what} takes {} instead of {} (medians), {:.1} times as long",
        time(loaded_ns),
        time(idle_ns),
        loaded_ns / idle_ns
    )
}

/// The finding, or why there is none, in a sentence. The latencies are medians in ns.
pub(super) fn judge(idle_ns: f64, loaded_ns: f64, loaded: RrTrial<'_>) -> Result<Finding, String> {
    let increase = loaded_ns - idle_ns;
    let rtt = load_rtt(loaded);
    let growth = rtt.as_ref().map(|rtt| rtt.mean_ns - rtt.min_ns);
    if !is_long_queue(idle_ns, loaded_ns) {
        let more = if increase > 0.0 { time(increase) } else { "nothing".to_owned() };
        let adds = format!("the load adds {more} to the median of the idle path, {}", time(idle_ns));
        let apart = rtt.zip(growth).filter(|(rtt, growth)| {
            *growth >= MIN_INCREASE_NS && rtt.mean_ns >= ONE_PRODUCT * rtt.min_ns && *growth >= 2.0 * increase
        });
        return Err(match apart {
            Some((rtt, _)) => format!(
                "{adds}: its own packets wait (RTT {} against {}), but the queue keeps other flows apart",
                time(rtt.mean_ns),
                time(rtt.min_ns)
            ),
            None if increase < MIN_INCREASE_NS => format!("{adds}: less than {}", time(MIN_INCREASE_NS)),
            None => format!("{adds}: no more than the queue that TCP needs to fill such a path"),
        });
    }
    let says = takes_longer("a transaction", idle_ns, loaded_ns);
    let mut witnesses = vec![Witness { kind: "experiment".to_owned(), says }];
    let mut rejected = Vec::new();
    match rtt.zip(growth) {
        Some((rtt, growth)) if growth >= EXPLAINS * increase => {
            let says = format!(
                "the kernels of the load's senders saw the RTT grow from {} to {}",
                time(rtt.min_ns),
                time(rtt.mean_ns)
            );
            witnesses.push(Witness { kind: "counter".to_owned(), says });
            rejected.push(Rejected {
                id: "cpu-contention".to_owned(),
                why: "the kernels' RTT grew as well, and no thread's waking up is part of it".to_owned(),
            });
        }
        Some((rtt, _)) => {
            return Err(format!(
                "with the load a transaction takes {} longer, but the RTT that the kernels see stays near {}: the ends \
                 answer late, not the path",
                time(increase),
                time(rtt.mean_ns)
            ));
        }
        None => {}
    }
    let way = match loaded.plan.load.as_ref().map(|load| load.direction) {
        Some(Direction::Up) => "on the way up",
        Some(Direction::Down) => "on the way down",
        _ => "in one direction or both: load one direction at a time to find out",
    };
    // As the verdict counts: one witness is a suspicion.
    let base = if witnesses.len() > 1 { 0.8 } else { 0.45 };
    Ok(Finding {
        id: ID.to_owned(),
        at: Place::Path,
        confidence: base * (0.75 + 0.25 * (1.0 - idle_ns / loaded_ns)),
        summary: format!("a load fills a queue that is too long, {way}"),
        ceiling_bps: None,
        prediction: None,
        witnesses,
        rejected,
        fix: Fix {
            advice: "use an active queue management (fq_codel, cake) at the hop whose queue it is, with a rate just below that \
                     of the slowest link; that hop may be the sender's own device"
                .to_owned(),
            ..Fix::default()
        },
    })
}

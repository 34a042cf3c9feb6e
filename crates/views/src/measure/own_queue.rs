//! What the sender's own queueing discipline did to datagrams before they left: it dropped them, or limited the sender.

use narrows_diagnose::ledger;
use narrows_model::run::measure::Remark;
use narrows_model::words::figures::float;
use narrows_model::words::units::{bps, grouped};
use narrows_model::{Flow, Place, Snapshot, UdpEndRecord, UdpRate, UdpTrial, keys};

/// A sender that kept this part of its plan was not held back.
const KEPT: f64 = 0.99;

/// A sentence for each flow that did not leave its host as asked.
pub(super) fn remarks(trial: UdpTrial<'_>) -> Vec<Remark> {
    trial.plan.flows().iter().filter_map(|flow| of_flow(trial, *flow)).collect()
}

fn of_flow(trial: UdpTrial<'_>, flow: Flow) -> Option<Remark> {
    let at = flow.sender();
    let end = if at == Place::Client { trial.client } else { trial.server };
    let before = &end.before;
    let rate = before.number(keys::QDISC_RATE);
    let shaper = before.text(keys::QDISC_RATE_KIND).filter(|_| rate.is_some());
    let kind = shaper.or_else(|| before.text(keys::QDISC_ROOT_KIND)).unwrap_or("a queueing discipline");
    let device = before.text(keys::QDISC_DEVICE).or_else(|| before.text(keys::NIC_NAME));
    let name = device.map_or_else(|| kind.to_owned(), |device| format!("{kind} on {device}"));
    let shaped = rate.map_or_else(String::new, |rate| format!(", which passes {},", bps(rate)));
    let ledger = ledger(trial, flow);
    let dropped = ledger.stages.iter().find(|stage| stage.id == "qdisc" && stage.counted).map_or(0, |it| it.dropped);
    let asked = trial.plan.rate(flow);
    let what = if dropped > 0 {
        format!("dropped {} datagrams before they left the host", grouped(dropped))
    } else if is_held_back(end, &end.after, flow) && rate.is_some_and(|rate| exceeds(asked, rate)) {
        "limited the sender".to_owned()
    } else {
        return None;
    };
    let says = format!("{name}{shaped} {what}; `narrows diagnose --udp` judges it");
    Some(Remark { at, says })
}

/// Whether a sender sent less than was due while its shaper delayed packets.
fn is_held_back(end: &UdpEndRecord, after: &Snapshot, flow: Flow) -> bool {
    let sent = || end.streams.iter().filter(|it| it.flow == flow).filter_map(|it| it.sent.as_ref());
    let sum = |of: [u64; 2], [intended, datagrams]: [u64; 2]| {
        [of[0].saturating_add(intended), of[1].saturating_add(datagrams)]
    };
    let [intended, datagrams] = sent().map(|it| [it.intended, it.datagrams]).fold([0; 2], sum);
    let delayed = after.counts_since(&end.before).get(keys::QDISC_OVERLIMITS.as_ref()).copied();
    delayed.is_some_and(|n| n > 0) && float(datagrams) < KEPT * float(intended)
}

/// Whether more was asked for than a shaper passes, as far as both are bits.
fn exceeds(asked: UdpRate, rate: f64) -> bool {
    match asked {
        UdpRate::Bps(asked) => float(asked) > KEPT * rate,
        UdpRate::Max => true,
        UdpRate::Pps(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::host::fact::{Fact, Unit, Value};
    use narrows_model::{Load as _, UdpPlan, UdpSample, UdpSent};

    /// What is said of a sender behind a tbf of 50 Mbit/s that dropped and delayed so many, and sent `datagrams` of 1000.
    fn says(asked: UdpRate, rate: Option<i64>, [drops, delayed]: [i64; 2], datagrams: u64) -> Vec<String> {
        let plan = UdpPlan { rate_up: asked, ..UdpPlan::default() };
        let end = |place| {
            let sample = |at_us, datagrams| UdpSample { at_us, datagrams, ..UdpSample::default() };
            let samples = vec![sample(0, 0), sample(1_000_000, datagrams)];
            UdpPlan::partial_record(place, vec![(0, Flow::Up, samples)], String::new())
        };
        let (mut client, server) = (end(Place::Client), end(Place::Server));
        client.streams[0].sent = Some(UdpSent { intended: 1000, datagrams, ..UdpSent::default() });
        let fact = |key: &str, value, unit| Fact { key: key.to_owned(), value, unit, source: "test".to_owned() };
        let facts = |grown: bool| {
            let count = |n: i64| Value::Integer(if grown { n } else { 0 });
            let mut facts = vec![
                fact("qdisc.device", Value::Text("eth0".into()), Unit::Text),
                fact("qdisc.root.kind", Value::Text("tbf".into()), Unit::Text),
                fact("qdisc.drops", count(drops), Unit::Count),
                fact("qdisc.overlimits", count(delayed), Unit::Count),
            ];
            facts.extend(rate.map(|rate| fact("qdisc.rate", Value::Integer(rate), Unit::BitsPerSecond)));
            facts.sort_by(|a, b| a.key.cmp(&b.key));
            Snapshot { facts, ..Snapshot::default() }
        };
        (client.before, client.after) = (facts(false), facts(true));
        let trial = UdpTrial { plan: &plan, client: &client, server: &server, elapsed_us: 1_000_000 };
        remarks(trial).into_iter().map(|it| it.says).collect()
    }

    #[test]
    fn the_own_queue_that_drops_or_delays_is_named() {
        let (fast, rate) = (UdpRate::Bps(200_000_000), Some(50_000_000));
        assert_eq!(
            says(fast, rate, [750, 900], 1000),
            ["tbf on eth0, which passes 50.0 Mbit/s, dropped 750 datagrams before they left the host; `narrows \
              diagnose --udp` judges it"]
        );
        assert_eq!(
            says(UdpRate::Max, rate, [0, 900], 250),
            ["tbf on eth0, which passes 50.0 Mbit/s, limited the sender; `narrows diagnose --udp` judges it"]
        );
        assert!(says(fast, None, [750, 0], 1000)[0].starts_with("tbf on eth0 dropped 750"));
        // A sender that kept its plan, a rate below that of the shaper, and a sender that stalled by itself.
        assert!(says(fast, rate, [0, 900], 1000).is_empty());
        assert!(says(UdpRate::Bps(10_000_000), rate, [0, 9], 250).is_empty());
        assert!(says(fast, rate, [0, 0], 250).is_empty());
    }
}

//! The rate that a host's own shaper gives the load.

use narrows_model::{Snapshot, keys};

/// The lowest rate of the classes that carried a load, where the shaper has classes that count (`htb`); else the lowest configured rate.
///
/// Which class a packet is in filters decide, which nobody can read off a tree. The load is what its device sent most of: the class in
/// which it was sent at least half as much as the busiest one, as did those above it.
pub(crate) fn own_rate(before: &Snapshot, after: &Snapshot) -> Option<f64> {
    let [rates, sent] = [keys::QDISC_CLASS_RATE, keys::QDISC_CLASS_SENT].map(|key| key.name.trim_end_matches('*'));
    let grew = after.counts_since(before);
    let classes: Vec<(u64, f64)> = grew
        .iter()
        .filter_map(|(key, bytes)| Some((*bytes, after.number(format!("{rates}{}", key.strip_prefix(sent)?))?)))
        .collect();
    let most = classes.iter().map(|(bytes, _)| *bytes).max().filter(|bytes| *bytes > 0);
    let carried = most.and_then(|most| {
        classes.iter().filter(|(bytes, _)| *bytes >= most / 2).map(|(_, rate)| *rate).reduce(f64::min)
    });
    let lowest = after.number(keys::QDISC_RATE);
    // The lowest of all classes may be another class's; that of another discipline holds whatever passes it.
    let of_class = after.text(keys::QDISC_RATE_KIND) == Some("htb");
    match (carried, lowest) {
        (Some(carried), Some(lowest)) if !of_class => Some(carried.min(lowest)),
        (Some(carried), _) => Some(carried),
        // What passes none of them is not shaped.
        (None, lowest) => lowest.filter(|_| !of_class || classes.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fact;
    use narrows_model::Unit;

    /// Its lowest rate, and of each class its name, its rate and what it sent.
    fn host(kind: &str, rate: i64, classes: &[(&str, i64, i64)]) -> Snapshot {
        let mut facts = vec![fact("qdisc.rate", rate, Unit::BitsPerSecond), fact("qdisc.rate.kind", kind, Unit::Text)];
        for (class, rate, sent) in classes {
            facts.push(fact(&format!("qdisc.class.rate.{class}"), *rate, Unit::BitsPerSecond));
            facts.push(fact(&format!("qdisc.class.sent.{class}"), *sent, Unit::Count));
        }
        Snapshot { facts, ..Snapshot::default() }
    }

    #[test]
    fn the_class_that_carried_the_load_gives_its_rate_not_the_slowest_one() {
        let tree =
            |sent: [i64; 3]| host("htb", 5, &[("1:1", 1_000, sent[0]), ("1:10", 5, sent[1]), ("1:20", 400, sent[2])]);
        let of = |grew: [i64; 3]| own_rate(&tree([10, 20, 30]), &tree([10 + grew[0], 20 + grew[1], 30 + grew[2]]));
        assert_eq!(of([100, 0, 100]), Some(400.0));
        assert_eq!(of([100, 100, 0]), Some(5.0));
        assert_eq!(of([100, 20, 80]), Some(400.0));
        assert_eq!(of([0, 0, 0]), None, "what passes no class is not shaped");
        assert_eq!(own_rate(&Snapshot::default(), &host("htb", 5, &[])), Some(5.0), "nothing is known of its classes");
    }

    #[test]
    fn another_disciplines_rate_holds_every_class() {
        let tree = |sent| host("tbf", 50, &[("1:10", 400, sent)]);
        assert_eq!(own_rate(&tree(0), &tree(9)), Some(50.0));
        assert_eq!(own_rate(&Snapshot::default(), &host("tbf", 50, &[])), Some(50.0));
    }
}

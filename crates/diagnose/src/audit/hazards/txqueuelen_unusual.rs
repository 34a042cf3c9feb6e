//! The device's transmit queue is not as long as the kernel makes it (1000 packets for Ethernet, `ether_setup` in
//! net/ethernet/eth.c).

use crate::audit::rule::{Check, Found, Rule, device, whole};
use narrows_model::words::show::nominal;
use narrows_model::words::units::{bps, micros};
use narrows_model::{Severity, Snapshot, Value, keys};

/// What the kernel gives an Ethernet device.
const USUAL: u64 = 1000;
/// Queueing disciplines that take their limit from the device; the others have one of their own.
const TAKE_IT: &[&str] = &["pfifo_fast", "pfifo", "bfifo", "prio", "htb"];

pub(super) const HAZARD: Rule = Rule {
    id: "txqueuelen-unusual",
    severity: Severity::Info,
    key: keys::NIC_TXQUEUELEN,
    needs: &[
        keys::NIC_TXQUEUELEN,
        keys::NIC_KIND,
        keys::NIC_MTU,
        keys::NIC_SPEED,
        keys::QDISC_KINDS,
        keys::NIC_NAME,
    ],
    matters: "It was changed from the default: a long queue adds delay when it is full and hides a slow link behind it; a short \
              one drops packets before they leave the host.",
    harmless: "With a queueing discipline that has its own limit (fq, fq_codel), or if it was raised for a long path with small \
               buffers.",
    check: Check::Host(|host| {
        let length = whole(host.number(keys::NIC_TXQUEUELEN)?);
        let ethernet = matches!(host.text(keys::NIC_KIND)?, "physical" | "virtual");
        (ethernet && length > 0 && length != USUAL && takes_it(host)).then(|| {
            let delay = delay(host, length).unwrap_or_default();
            Found::new(format!("the transmit queue holds {length} packets, {USUAL} is usual{delay}"))
                .fix(format!("ip link set dev {} txqueuelen {USUAL}", device(host)))
        })
    }),
};

/// Whether a queueing discipline that looks at it is in use, or may be.
fn takes_it(host: &Snapshot) -> bool {
    match host.get(keys::QDISC_KINDS).map(|fact| &fact.value) {
        Some(Value::List(kinds)) => kinds.iter().any(|kind| TAKE_IT.contains(&kind.as_str())),
        _ => true,
    }
}

/// How long a full queue takes to leave.
fn delay(host: &Snapshot, length: u64) -> Option<String> {
    let speed = host.number(keys::NIC_SPEED).filter(|speed| *speed > 0.0)?;
    let us = whole(length as f64 * host.number(keys::NIC_MTU)? * 8e6 / speed);
    Some(format!(": {} of delay at {} when it is full", micros(us), nominal(&bps(speed))))
}

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    fn says(length: i64, kind: &str, qdisc: Option<&str>) -> Option<(String, Option<String>)> {
        let mut facts = vec![
            ("nic.name", "eth1".into(), Unit::Text),
            ("nic.kind", kind.into(), Unit::Text),
            ("nic.txqueuelen", Value::Integer(length), Unit::Packets),
            ("nic.mtu", Value::Integer(1500), Unit::Bytes),
            ("nic.speed", Value::Integer(1_000_000_000), Unit::BitsPerSecond),
        ];
        facts.extend(qdisc.map(|kind| ("qdisc.kinds", vec!["mq".to_owned(), kind.to_owned()].into(), Unit::Text)));
        found(&HAZARD, &facts).map(|(says, command, _)| (says, command))
    }

    #[test]
    fn a_host_of_2007_that_was_tuned_to_ten_thousand() {
        let (words, command) = says(10_000, "physical", None).expect("found");
        assert_eq!(
            words,
            "the transmit queue holds 10000 packets, 1000 is usual: 120 ms of delay at 1 Gbit/s when it is full"
        );
        assert_eq!(command.as_deref(), Some("ip link set dev eth1 txqueuelen 1000"));
        assert!(says(100, "physical", Some("pfifo_fast")).is_some());
    }

    #[test]
    fn the_usual_other_devices_and_disciplines_with_a_limit_of_their_own_are_not() {
        assert!(says(1000, "physical", None).is_none());
        assert!(says(500, "tun", None).is_none());
        assert!(says(10_000, "physical", Some("fq_codel")).is_none());
    }
}

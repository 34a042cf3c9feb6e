//! All queues of a card interrupt the same core. Source: Documentation/core-api/irq/irq-affinity.rst, /proc/irq/*/effective_affinity_list.

use crate::audit::rule::{Check, Found, Rule, device, whole};
use narrows_model::{FactKey, Severity, Snapshot, Value, keys};

pub(super) const HAZARD: Rule = Rule {
    id: "interrupts-on-one-core",
    severity: Severity::Warning,
    key: keys::NIC_IRQ_CPUS,
    needs: &[
        keys::NIC_IRQ_CPUS,
        keys::NIC_IRQ_COUNT,
        keys::NIC_CHANNELS_COMBINED,
        keys::CPU_COUNT,
        keys::RPS_CPUS,
        keys::NIC_NAME,
    ],
    matters: "The queues share their flows out in vain: one core takes in all packets, and is full long before the others. Let \
              irqbalance share them out, or write another core to each /proc/irq/N/smp_affinity_list.",
    harmless: "For a single flow, and where no core is full.",
    check: Check::Host(|host| {
        let count = |key| host.number(key).map(whole);
        let (queues, cores) = (count(keys::NIC_CHANNELS_COMBINED)?, count(keys::CPU_COUNT)?);
        let on = only(host, keys::NIC_IRQ_CPUS)?;
        let shares_out = host.get(keys::RPS_CPUS).is_some() && only(host, keys::RPS_CPUS).is_none();
        (count(keys::NIC_IRQ_COUNT)? > 1 && queues > 1 && cores > 1 && !shares_out).then(|| {
            Found::new(format!("core {on} serves the interrupts of all {queues} queues of {}", device(host)))
                .rows([keys::NIC_IRQ_CPUS, keys::NIC_CHANNELS_COMBINED])
        })
    }),
};

/// The core of a list that has only one; of one without any, too, an empty word.
fn only(host: &Snapshot, key: FactKey) -> Option<&str> {
    match &host.get(key)?.value {
        Value::List(list) if list.len() == 1 && !list[0].contains('-') => Some(&list[0]),
        Value::List(list) if list.is_empty() => Some(""),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn several_queues_on_one_core() {
        let list = |cpus: &str| Value::List(cpus.split_terminator(',').map(str::to_owned).collect());
        let host = |cpus: &str, queues: i64, rps: &str| {
            found(
                &HAZARD,
                &[
                    ("nic.name", "eth0".into(), Unit::Text),
                    ("nic.irq.cpus", list(cpus), Unit::Cpu),
                    ("nic.irq.count", Value::Integer(queues + 1), Unit::Number),
                    ("nic.channels.combined", Value::Integer(queues), Unit::Number),
                    ("cpu.count", Value::Integer(8), Unit::Number),
                    ("rps.cpus", list(rps), Unit::Cpu),
                ],
            )
        };
        let (says, _, _) = host("3", 8, "").expect("found");
        assert_eq!(says, "core 3 serves the interrupts of all 8 queues of eth0");
        assert!(host("0-7", 8, "").is_none() && host("0,4", 8, "").is_none());
        assert!(host("3", 1, "").is_none() && host("3", 8, "0-7").is_none());
    }
}

//! A control group limits the CPU time. Source: Documentation/admin-guide/cgroup-v2.rst, cpu.max.

use crate::audit::rule::{Found, Look, Rule, whole};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "cpu-quota",
    severity: Severity::Notice,
    key: "cgroup.cpu_quota",
    needs: &[Key::new("cgroup.cpu_quota", Unit::Fraction), Key::new("cpu.count", Unit::Number)],
    matters: "Once the quota of a period (mostly 100 ms) is used up, everything in the group stands still until the next \
              one: transfers go in bursts.",
    harmless: "Where the quota is not used up: cpu.stat counts the periods that were throttled.",
    look: Look::Host(|host| {
        let (quota, count) = (host.number("cgroup.cpu_quota")?, host.number("cpu.count")?);
        (quota > 0.0 && quota < count)
            .then(|| Found::new(format!("a control group allows {quota:.2} of {} CPUs", whole(count))))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn below_what_the_host_has() {
        let host = |quota: f64| {
            found(
                &HAZARD,
                &[
                    ("cgroup.cpu_quota", Value::Float(quota), Unit::Fraction),
                    ("cpu.count", Value::Integer(4), Unit::Number),
                ],
            )
        };
        assert_eq!(host(1.5).expect("found").0, "a control group allows 1.50 of 4 CPUs");
        assert!(host(4.0).is_none());
    }
}

//! Some memory is swapped out.

use crate::audit::rule::{Found, Look, Rule, whole};
use narrows_model::words::units::bytes;
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "swap-in-use",
    severity: Severity::Info,
    key: "swap.used",
    needs: &[Key::new("swap.used", Unit::Bytes), Key::new("swap.total", Unit::Bytes)],
    matters: "An application whose pages come back from disk during a transfer stalls, and with it the connection.",
    harmless: "Where the pages are of programs that sleep: the kernel swaps such pages out for good. Only swapping during \
               the test counts.",
    look: Look::Host(|host| {
        let (used, total) = (host.number("swap.used")?, host.number("swap.total")?);
        (used > 0.0).then(|| Found::new(format!("{} of {} swap are in use", bytes(whole(used)), bytes(whole(total)))))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn any_use_is_told() {
        let host = |used: i64| {
            found(
                &HAZARD,
                &[
                    ("swap.used", Value::Integer(used), Unit::Bytes),
                    ("swap.total", Value::Integer(2 << 30), Unit::Bytes),
                ],
            )
        };
        assert_eq!(host(1 << 20).expect("found").0, "1 MiB of 2 GiB swap are in use");
        assert!(host(0).is_none());
    }
}

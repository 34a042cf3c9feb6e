//! `net.core.rmem_max` below `tcp_rmem`: it cuts what programs ask for, not what the kernel tunes.
//! Source: `sock_setsockopt` in net/core/sock.c; Documentation/networking/ip-sysctl.rst, tcp_rmem.

use crate::audit::rule::{Found, Look, Rule, sysctl, whole};
use narrows_model::words::units::bytes;
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "core-rmem-below-tcp",
    severity: Severity::Info,
    key: "core.rmem.max",
    needs: &[Key::new("core.rmem.max", Unit::Bytes), Key::new("tcp.rmem.max", Unit::Bytes)],
    matters: "A program that sets SO_RCVBUF gets at most this (doubled for bookkeeping) and loses the kernel's tuning: \
              asking for a large buffer makes it slower than not asking.",
    harmless: "For programs that leave their buffers to the kernel, as most do: net.core does not limit its tuning.",
    look: Look::Host(|host| {
        let (core, tcp) = (host.number("core.rmem.max")?, host.number("tcp.rmem.max")?);
        let says = format!("net.core.rmem_max is {}, tcp_rmem goes up to {}", bytes(whole(core)), bytes(whole(tcp)));
        (core < tcp).then(|| Found::new(says).mend(sysctl("net.core.rmem_max", whole(tcp))))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn the_case_of_two_hosts_in_2007() {
        let host = |core: i64, tcp: i64| {
            found(
                &HAZARD,
                &[
                    ("core.rmem.max", Value::Integer(core), Unit::Bytes),
                    ("tcp.rmem.max", Value::Integer(tcp), Unit::Bytes),
                ],
            )
        };
        let (says, command, _) = host(131_071, 20_000_000).expect("found");
        assert_eq!(says, "net.core.rmem_max is 128 KiB, tcp_rmem goes up to 19.1 MiB");
        assert_eq!(command.as_deref(), Some("sysctl -w net.core.rmem_max=20000000"));
        assert!(host(20_000_000, 20_000_000).is_none());
    }
}

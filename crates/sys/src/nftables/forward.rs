//! Tables that act on forwarded packets, for a device under test.

use super::{CREATE, Error, Hook, Part, Result, TABLE};
use super::{add_dropping, commit, dropping, expressions, message, rule, table_with_chain};
use crate::netlink::ACK;

/// `NFT_MSG_NEWFLOWTABLE`; not in libc.
const NEW_FLOW_TABLE: libc::c_int = 22;
const FLOW_TABLE: &str = "flows";
/// Rules per batch: as many as a send buffer of the usual size holds.
const RULES_AT_ONCE: usize = 400;

/// Of the forwarded packets, the first and then one of every `one_of` is counted and dropped.
/// Errors: the table exists; `one_of` is 0; the kernel has no `nf_tables`; no privilege.
pub fn add_forward_drop(table: &str, one_of: u32) -> Result<()> {
    add_dropping(table, Hook::Forward, |list| {
        expressions::number_packets(list, one_of);
        expressions::equals(list, &0_u32.to_ne_bytes());
    })
}

/// Adds that many rules at a hook, each of which every packet there is compared with, and none of which matches: each drops
/// packets from another address of 240.0.0.0/4, which is reserved. In an IPv6 header the same offset is the second half
/// of the source network, so that both families cost the same.
/// Errors: the table exists; the kernel has no `nf_tables`, or no memory for that many; no privilege. In that case
/// nothing is left.
pub fn add_misses(table: &str, hook: Hook, rules: u32) -> Result<()> {
    const SOURCE_IN_IPV4: u32 = 12;
    const RESERVED: u32 = 0xf000_0000;
    commit("make", table, table_with_chain(table, hook))?;
    let numbers: Vec<u32> = (0..rules).collect();
    let fill = || -> Result<()> {
        for numbers in numbers.chunks(RULES_AT_ONCE) {
            let one = |number: &u32| {
                dropping(table, |list| {
                    expressions::load_bytes(list, SOURCE_IN_IPV4, 4);
                    expressions::equals(list, &(RESERVED | number).to_be_bytes());
                })
            };
            commit("add rules to", table, only_last_answered(numbers.iter().map(one).collect()))?;
        }
        Ok(())
    };
    fill().inspect_err(|_| {
        // The first error is reported.
        let _ = super::delete_table(table);
    })
}

/// An error is reported in any case; hundreds of plain acknowledgements would not fit into the socket buffer.
fn only_last_answered(mut parts: Vec<Part>) -> Vec<Part> {
    if let Some((_, rest)) = parts.split_last_mut() {
        for (_, flags, _) in rest {
            *flags &= !ACK;
        }
    }
    parts
}

/// Packets that leave by a device and exceed a rate are counted and dropped: a bucket of `burst` packets that is filled
/// with `packets_per_second`.
/// Errors: the table exists; the rate is 0 or above 10^9; the kernel has no `nf_tables`; no privilege.
pub fn add_forward_police(table: &str, device: &str, packets_per_second: u64, burst: u32) -> Result<()> {
    add_dropping(table, Hook::Forward, |list| {
        expressions::load_output(list);
        expressions::equals(list, &padded(device));
        expressions::above_rate(list, packets_per_second, burst);
    })
}

/// A device's name as the kernel compares it.
fn padded(device: &str) -> [u8; libc::IFNAMSIZ] {
    let mut name = [0; libc::IFNAMSIZ];
    // The last byte stays zero.
    for (to, from) in name.iter_mut().take(libc::IFNAMSIZ - 1).zip(device.bytes()) {
        *to = from;
    }
    name
}

/// UDP and TCP between the devices takes the fast path of a flow table, from a connection's second packet on.
/// Errors: `ENOENT`: the kernel has no flow tables; otherwise as above.
pub fn add_flow_table(table: &str, devices: &[&str]) -> Result<()> {
    let mut parts = table_with_chain(table, Hook::Forward);
    parts.push(message(NEW_FLOW_TABLE, CREATE, |body| {
        let (name, hook, number, priority, list, device) = (2, 3, 1, 2, 3, 1);
        body.text(TABLE, table).text(name, FLOW_TABLE);
        body.nest(hook, |inner| {
            inner.be32(number, libc::NF_NETDEV_INGRESS as u32).be32(priority, 0);
            inner.nest(list, |inner| {
                for name in devices {
                    inner.text(device, name);
                }
            });
        });
    }));
    for protocol in [libc::IPPROTO_UDP, libc::IPPROTO_TCP] {
        parts.push(rule(table, |list| {
            expressions::load_protocol(list);
            expressions::equals(list, &[protocol as u8]);
            expressions::offload_flow(list, FLOW_TABLE);
        }));
    }
    commit("make", table, parts)
}

impl Error {
    /// Whether the kernel lacks the feature, according to the error for a kind of table that is not built in.
    pub fn is_lacking(&self) -> bool {
        matches!(self.source.errno(), Some(libc::ENOENT | libc::EOPNOTSUPP | libc::EAFNOSUPPORT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::Namespaces;
    use crate::nftables::{Counted, counted, delete_table, exists};

    fn in_a_namespace(work: impl FnOnce() + Send) {
        let made = Namespaces::create("test", || -> std::result::Result<_, crate::Error> { Ok(()) });
        let (namespaces, ()) = made.expect("this test makes network namespaces: it needs root");
        namespaces.run(work).expect("the namespace is entered");
    }

    #[test]
    fn forward_tables_are_added_and_removed() {
        in_a_namespace(|| {
            type Make = fn() -> Result<()>;
            let tables: [(Make, &str); 3] = [
                (|| add_forward_drop("own", 1000), "a drop"),
                (|| add_forward_police("own", "out0", 200_000, 64), "a limit"),
                (|| add_misses("own", Hook::Forward, 1), "one rule"),
            ];
            for (make, what) in tables {
                make().expect(what);
                assert_eq!(counted("own").expect("nf_tables"), Some(Counted::default()), "{what}");
                assert!(make().is_err(), "{what} twice");
                delete_table("own").expect("it goes");
                assert_eq!(counted("own").expect("nf_tables"), None, "{what}");
            }
        });
    }

    #[test]
    fn ten_thousand_rules_are_added_or_none() {
        in_a_namespace(|| {
            add_misses("own", Hook::Forward, 10_000).expect("memory");
            let rules = rules_of("own");
            assert_eq!(rules, 10_000);
            let twice = add_misses("own", Hook::Forward, 1).expect_err("there is one");
            assert!(twice.to_string().contains("own"), "{twice}");
            assert_eq!((rules_of("own"), exists("own").expect("nf_tables")), (10_000, true));
            delete_table("own").expect("it goes");
            assert_eq!((rules_of("own"), exists("own").expect("nf_tables")), (0, false));
        });
    }

    fn rules_of(table: &str) -> usize {
        use crate::netlink::{Builder, DUMP, Family, Socket};
        let mut request = Builder::with_header(&super::super::header(super::super::INET, 0));
        request.text(TABLE, table);
        let mut socket = Socket::open(Family::Netfilter).expect("netlink");
        let got = socket.request(super::super::GET_RULE, DUMP, &request.finish().expect("short"));
        got.map_or(0, |rules| rules.len())
    }

    #[test]
    fn a_flow_table_is_added_if_the_kernel_supports_it() {
        in_a_namespace(|| match add_flow_table("own", &["lo"]) {
            Ok(()) => delete_table("own").expect("it goes"),
            // Some kernels do not support the loopback device in a flow table.
            Err(error) => {
                assert!(error.is_lacking(), "{error}");
                assert_eq!(counted("own").expect("nf_tables"), None, "nothing is left");
            }
        });
    }

    #[test]
    fn a_name_is_truncated_at_its_limit() {
        assert_eq!(&padded("out0")[..5], b"out0\0");
        assert_eq!(padded("a-name-of-twenty-one-b")[15], 0);
    }
}

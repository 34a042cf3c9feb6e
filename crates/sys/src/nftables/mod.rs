//! Private tables in the packet filter (`nf_tables`): rules that drop and count.
//!
//! Each change is sent to the kernel as one batch, which is applied as a whole or not at all. A table belongs to the network
//! namespace of the calling thread. Source: kernel `include/uapi/linux/netfilter/nf_tables.h`, `nfnetlink.h`;
//! net/netfilter/nf_tables_api.c.

mod expressions;
mod forward;

pub use forward::{add_flow_table, add_forward_drop, add_forward_police, add_misses};

use crate::netlink::{
    self, ACK, Attribute, Builder, CREATE, DUMP, EXCLUSIVE, Family, Outgoing, Socket, attributes, find,
};
use thiserror::Error;

/// The operation, the table, and the kernel's error.
#[derive(Debug, Error)]
#[error("cannot {operation} filter table {table}: {source}")]
pub struct Error {
    /// A verb in the infinitive.
    pub operation: &'static str,
    pub table: String,
    #[source]
    pub source: netlink::Error,
}

/// A result of this module.
pub type Result<T> = std::result::Result<T, Error>;

/// The hook of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Packets for this host, reassembled (`NF_INET_LOCAL_IN`).
    Input,
    /// Packets that this host forwards (`NF_INET_FORWARD`).
    Forward,
    /// Packets that this host sends (`NF_INET_LOCAL_OUT`).
    Output,
}

impl Hook {
    const fn number(self) -> u32 {
        match self {
            Self::Input => 1,
            Self::Forward => 2,
            Self::Output => 3,
        }
    }
}

/// The sum of the counters of a table's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    pub packets: u64,
    /// Their bytes from the IP header on.
    pub bytes: u64,
}

const SUBSYSTEM: u16 = libc::NFNL_SUBSYS_NFTABLES as u16;
const GET_TABLE: u16 = kind(libc::NFT_MSG_GETTABLE);
const GET_RULE: u16 = kind(libc::NFT_MSG_GETRULE);
/// IPv4 and IPv6.
const INET: u8 = libc::NFPROTO_INET as u8;
const CHAIN: &str = "drops";
/// `NFTA_TABLE_NAME`, and in the other kinds of messages the name of the table too
const TABLE: u16 = 1;
/// `NFTA_RULE_EXPRESSIONS`
const EXPRESSIONS: u16 = 4;
/// `NFTA_LIST_ELEM`
const ELEMENT: u16 = 1;
/// `NFTA_EXPR_NAME` and `NFTA_EXPR_DATA`
const NAME: u16 = 1;
const DATA: u16 = 2;

/// `struct nfgenmsg`
const fn header(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

/// The kind of a message as netlink has it.
const fn kind(message: libc::c_int) -> u16 {
    SUBSYSTEM << 8 | message as u16
}

/// A message's kind, its `NLM_F_*` and its payload.
type Part = (u16, u16, Builder);

fn message(of: libc::c_int, flags: u16, fill: impl FnOnce(&mut Builder)) -> Part {
    let mut builder = Builder::with_header(&header(INET, 0));
    fill(&mut builder);
    (kind(of), flags | ACK, builder)
}

fn commit(operation: &'static str, table: &str, parts: Vec<Part>) -> Result<()> {
    let send = || -> netlink::Result<()> {
        let frame = header(0, SUBSYSTEM);
        let bodies = parts.into_iter().map(|(kind, flags, body)| Ok((kind, flags, body.finish()?)));
        let bodies = bodies.collect::<netlink::Result<Vec<_>>>()?;
        let bound = |kind| Outgoing { kind, flags: 0, payload: &frame };
        let mut batch = vec![bound(libc::NFNL_MSG_BATCH_BEGIN as u16)];
        batch.extend(bodies.iter().map(|(kind, flags, payload)| Outgoing { kind: *kind, flags: *flags, payload }));
        batch.push(bound(libc::NFNL_MSG_BATCH_END as u16));
        Socket::open(Family::Netfilter)?.batch(&batch).map(drop)
    };
    send().map_err(|source| Error { operation, table: table.to_owned(), source })
}

/// A new table with one chain at `hook`.
fn table_with_chain(table: &str, hook: Hook) -> Vec<Part> {
    let make_table = message(libc::NFT_MSG_NEWTABLE, CREATE | EXCLUSIVE, |body| {
        body.text(TABLE, table);
    });
    let make_chain = message(libc::NFT_MSG_NEWCHAIN, CREATE, |body| {
        let (name, hook_of, kind, number, priority) = (3, 4, 7, 1, 2);
        body.text(TABLE, table).text(name, CHAIN).text(kind, "filter");
        body.nest(hook_of, |inner| {
            inner.be32(number, hook.number()).be32(priority, 0);
        });
    });
    vec![make_table, make_chain]
}

/// A rule at the end of the table's chain.
fn rule(table: &str, fill: impl FnOnce(&mut Builder)) -> Part {
    let append = libc::NLM_F_APPEND as u16;
    message(libc::NFT_MSG_NEWRULE, CREATE | append, |body| {
        let chain = 2;
        body.text(TABLE, table).text(chain, CHAIN).nest(EXPRESSIONS, fill);
    })
}

/// Creates a table with one chain at `hook` and one rule: of the packets of that protocol (17 is UDP) the first and
/// then one of every `one_of` is counted and dropped. `one_of` 1 drops all.
/// Errors: the table exists; `one_of` is 0; the kernel has no `nf_tables`; no privilege.
pub fn add_drop(table: &str, hook: Hook, protocol: u8, one_of: u32) -> Result<()> {
    add_dropping(table, hook, |list| {
        expressions::load_protocol(list);
        expressions::equals(list, &[protocol]);
        expressions::number_packets(list, one_of);
        expressions::equals(list, &0_u32.to_ne_bytes());
    })
}

/// Creates a table with one chain at `hook` and one rule: packets for which `matches` continues are counted and dropped.
fn add_dropping(table: &str, hook: Hook, matches: impl FnOnce(&mut Builder)) -> Result<()> {
    let mut parts = table_with_chain(table, hook);
    parts.push(dropping(table, matches));
    commit("make", table, parts)
}

fn dropping(table: &str, matches: impl FnOnce(&mut Builder)) -> Part {
    rule(table, |list| {
        matches(list);
        expressions::count(list);
        expressions::drop_packet(list);
    })
}

/// Removes a table and its content; a missing one is not an error.
pub fn delete_table(table: &str) -> Result<()> {
    let delete = message(libc::NFT_MSG_DELTABLE, 0, |body| {
        body.text(TABLE, table);
    });
    match commit("take away", table, vec![delete]) {
        Err(error) if error.source.errno() == Some(libc::ENOENT) => Ok(()),
        other => other,
    }
}

/// Whether there is a table of that name.
/// Errors: the kernel has no `nf_tables`.
pub fn exists(table: &str) -> Result<bool> {
    let ask = || {
        let mut request = Builder::with_header(&header(INET, 0));
        request.text(TABLE, table);
        Socket::open(Family::Netfilter)?.request(GET_TABLE, 0, &request.finish()?)
    };
    match ask() {
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(false),
        Err(source) => Err(Error { operation: "read", table: table.to_owned(), source }),
        Ok(_) => Ok(true),
    }
}

/// The sum of the counters of a table's rules; `None` if there is no such table, or no rule in it.
/// Errors: the kernel has no `nf_tables`.
pub fn counted(table: &str) -> Result<Option<Counted>> {
    let ask = || -> netlink::Result<Vec<netlink::Message>> {
        let mut request = Builder::with_header(&header(INET, 0));
        request.text(TABLE, table);
        Socket::open(Family::Netfilter)?.request(GET_RULE, DUMP, &request.finish()?)
    };
    let rules = match ask() {
        Err(error) if error.errno() == Some(libc::ENOENT) => Vec::new(),
        other => other.map_err(|source| Error { operation: "read", table: table.to_owned(), source })?,
    };
    let mut sum = None;
    for rule in &rules {
        let body = rule.payload.get(4..).unwrap_or_default();
        if find(body, TABLE).and_then(|name| name.text()).as_deref() == Some(table) {
            let Counted { packets, bytes } = sum.unwrap_or_default();
            let more = counters_of(body);
            sum = Some(Counted { packets: packets + more.packets, bytes: bytes + more.bytes });
        }
    }
    Ok(sum)
}

fn counters_of(rule: &[u8]) -> Counted {
    let (bytes, packets) = (1, 2);
    let mut sum = Counted::default();
    let list = find(rule, EXPRESSIONS).map(|list| list.payload).unwrap_or_default();
    for element in attributes(list) {
        let is_counter = element.find(NAME).and_then(|name| name.text()).as_deref() == Some("counter");
        let number = |data: Attribute<'_>, kind| data.find(kind).and_then(|number| number.be64()).unwrap_or(0);
        if let Some(data) = element.find(DATA).filter(|_| is_counter) {
            sum.packets += number(data, packets);
            sum.bytes += number(data, bytes);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::Namespaces;
    use crate::rtnl::Links;
    use std::net::UdpSocket;
    use std::time::Duration;

    /// Runs in a separate network namespace with loopback up.
    fn in_a_namespace(work: impl FnOnce() + Send) {
        let up = || -> std::result::Result<_, crate::Error> {
            Links::open().and_then(|mut links| links.set_up("lo", true)).expect("the loopback link");
            Ok(())
        };
        let (namespaces, ()) =
            Namespaces::create("test", up).expect("this test makes network namespaces: it needs root");
        namespaces.run(work).expect("the namespace is entered");
    }

    fn pair(address: &str) -> (UdpSocket, UdpSocket) {
        let receiver = UdpSocket::bind(address).expect("loopback");
        receiver.set_read_timeout(Some(Duration::from_millis(50))).expect("set");
        let sender = UdpSocket::bind(address).expect("loopback");
        sender.connect(receiver.local_addr().expect("bound")).expect("connected");
        (sender, receiver)
    }

    #[test]
    fn every_tenth_incoming_packet_is_dropped_and_counted() {
        in_a_namespace(|| {
            assert_eq!(counted("own").expect("nf_tables"), None);
            add_drop("own", Hook::Input, 17, 10).expect("nf_tables");
            assert_eq!(counted("own").expect("a table"), Some(Counted::default()));
            assert!(add_drop("own", Hook::Input, 17, 10).expect_err("twice").to_string().contains("own"));
            for (address, ip_header) in [("127.0.0.1:0", 20), ("[::1]:0", 40)] {
                let before = counted("own").expect("a table").expect("a rule");
                let (sender, receiver) = pair(address);
                for _ in 0..100 {
                    sender.send(&[7; 50]).expect("the sender is not told");
                }
                let arrived = std::iter::from_fn(|| receiver.recv(&mut [0; 99]).ok()).count();
                let after = counted("own").expect("a table").expect("a rule");
                assert_eq!((arrived, after.packets - before.packets), (90, 10), "{address}");
                assert_eq!(after.bytes - before.bytes, 10 * (ip_header + 8 + 50));
            }
            delete_table("own").expect("it goes");
            assert_eq!(counted("own").expect("nf_tables"), None);
            delete_table("own").expect("it is gone already");
        });
    }

    #[test]
    fn a_dropped_send_is_an_error_and_other_protocols_pass() {
        in_a_namespace(|| {
            add_drop("own", Hook::Output, 17, 1).expect("nf_tables");
            let (sender, receiver) = pair("127.0.0.1:0");
            assert_eq!(sender.send(&[7; 50]).expect_err("refused").raw_os_error(), Some(libc::EPERM));
            assert!(receiver.recv(&mut [0; 99]).is_err());
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
            std::net::TcpStream::connect(listener.local_addr().expect("bound")).expect("TCP passes");
            assert_eq!(counted("own").expect("a table").map(|counted| counted.packets), Some(1));
        });
    }
}

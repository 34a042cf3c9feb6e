//! Removes from a capture what identifies a person's machines: hardware addresses, IP addresses, long identifiers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Replaces identifying data, consistently.
#[derive(Debug, Default)]
pub(super) struct Scrub {
    keep_addresses: bool,
    addresses: BTreeMap<IpAddr, IpAddr>,
    /// Hardware addresses in the names of interfaces, in the order of their stand-ins.
    named: RefCell<Vec<String>>,
}

impl Scrub {
    /// With or without IP addresses.
    pub(super) fn new(keep_addresses: bool) -> Self {
        Self { keep_addresses, addresses: BTreeMap::new(), named: RefCell::default() }
    }

    /// The documentation address that replaces `address` (RFC 5737, RFC 3849). Loopback and the unspecified address
    /// stay.
    pub(super) fn address(&mut self, address: IpAddr) -> IpAddr {
        if self.keep_addresses || address.is_loopback() || address.is_unspecified() {
            return address;
        }
        if let Some(known) = self.addresses.get(&address) {
            return *known;
        }
        let number = self.addresses.keys().filter(|known| known.is_ipv4() == address.is_ipv4()).count() + 1;
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        let stand_in = match address {
            IpAddr::V4(_) => {
                let [high, low] = number.to_be_bytes();
                let net = [[192, 0, 2], [198, 51, 100], [203, 0, 113]];
                let [a, b, c] = net.get(usize::from(high)).copied().unwrap_or([203, 0, 113]);
                IpAddr::V4(Ipv4Addr::new(a, b, c, low))
            }
            IpAddr::V6(v6) if v6.is_unicast_link_local() => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number).into(),
            IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number).into(),
        };
        self.addresses.insert(address, stand_in);
        stand_in
    }

    /// A text without hardware addresses beyond the vendor's part, without serial numbers and long identifiers.
    pub(super) fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            if line.starts_with("Serial") {
                continue; // the board's serial number in /proc/cpuinfo of some machines
            }
            let mut rest = line;
            while let Some(start) = rest.find(is_part) {
                let (before, from) = rest.split_at(start);
                let end = from.find(|c| !is_part(c)).unwrap_or(from.len());
                let (word, after) = from.split_at(end);
                out.push_str(before);
                match self.in_name(&out, word) {
                    Some(stand_in) => out.push_str(&stand_in),
                    None => out.push_str(&replaced(word)),
                }
                rest = after;
            }
            out.push_str(rest);
        }
        out
    }

    /// The hardware address in the name of an interface, `enx0060dd477d71` (systemd.net-naming-scheme(7)): the vendor's part stays, the
    /// rest becomes a number, so that names of one vendor stay distinct.
    fn in_name(&self, before: &str, word: &str) -> Option<String> {
        let end = word.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(word.len());
        if end != 12 || !["enx", "wlx", "wwx"].iter().any(|prefix| before.ends_with(prefix)) {
            return None;
        }
        let (digits, rest) = word.split_at(end);
        let mut named = self.named.borrow_mut();
        let at = named.iter().position(|known| known == digits).unwrap_or_else(|| {
            named.push(digits.to_owned());
            named.len() - 1
        });
        Some(format!("{}{:06x}{rest}", digits.get(..6)?, at + 1))
    }

    /// All strings inside JSON; IP addresses are replaced.
    pub(super) fn json(&mut self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => {
                *text = match text.parse::<IpAddr>() {
                    Ok(address) => self.address(address).to_string(),
                    Err(_) => self.text(text),
                }
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            serde_json::Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    // A version such as 5.4.0.1 parses as an address.
                    if name != "version" && name != "firmware" {
                        self.json(member);
                    }
                }
            }
            _ => {}
        }
    }

    /// A reason why something is missing: IP addresses are delimited by blanks and punctuation.
    pub(super) fn sentence(&mut self, text: &str) -> String {
        let words = text.split(' ').map(|word| {
            let core = word.trim_end_matches([':', ',', ';', ')']);
            match core.parse::<IpAddr>() {
                Ok(address) => format!("{}{}", self.address(address), word.get(core.len()..).unwrap_or_default()),
                Err(_) => self.text(word),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

fn is_part(c: char) -> bool {
    c.is_ascii_hexdigit() || c == ':' || c == '-' || c == '_'
}

fn replaced(word: &str) -> String {
    let groups: Vec<&str> = word.split(':').collect();
    if groups.len() >= 6 && groups.iter().all(|group| group.len() == 2) {
        let tail = groups.iter().skip(3).map(|_| "00");
        return groups.iter().take(3).copied().chain(tail).collect::<Vec<_>>().join(":");
    }
    // Names of containers and units: 32 or more hexadecimal digits, with or without the dashes of a UUID.
    let digits = word.chars().filter(char::is_ascii_hexdigit).count();
    let dashes = word.len() - digits;
    if digits >= 32 && dashes <= 4 && !word.contains(':') {
        return word.chars().map(|c| if c.is_ascii_hexdigit() { '0' } else { c }).collect();
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_addresses_keep_the_vendor_part() {
        let scrub = Scrub::default();
        assert_eq!(scrub.text("ether 00:60:dd:47:7d:71 up\n"), "ether 00:60:dd:00:00:00 up\n");
        assert_eq!(scrub.text("0000:03:00.0 is a bus address"), "0000:03:00.0 is a bus address");
    }

    #[test]
    fn names_of_interfaces_lose_their_hardware_address_and_stay_distinct() {
        let scrub = Scrub::default();
        let names = "enx0060dd477d71: wlx0060dd477d72 /sys/class/net/enx0060dd477d71/mtu eth0 enp3s0";
        let want = "enx0060dd000001: wlx0060dd000002 /sys/class/net/enx0060dd000001/mtu eth0 enp3s0";
        assert_eq!(scrub.text(names), want);
    }

    #[test]
    fn long_identifiers_and_serial_numbers_are_removed() {
        let scrub = Scrub::default();
        let id = "f578039ad28b98996e35a21c4b9836b4";
        assert_eq!(scrub.text(&format!("0::/docker-{id}.scope")), format!("0::/docker-{}.scope", "0".repeat(32)));
        assert_eq!(scrub.text("vm/123e4567-e89b-12d3-a456-426614174000"), "vm/00000000-0000-0000-0000-000000000000");
        assert_eq!(scrub.text("Model: x\nSerial\t: 0123\nend"), "Model: x\nend");
        assert_eq!(scrub.text("00000011 00000000 0000002a"), "00000011 00000000 0000002a");
    }

    #[test]
    fn an_address_is_replaced_consistently() {
        let mut scrub = Scrub::default();
        let mut json = serde_json::json!({"gateway": "10.1.2.3", "source": "10.1.2.4", "version": "5.4.0.1",
                                          "hops": ["10.1.2.3", "127.0.0.1", "fd00::5", "fe80::1"]});
        scrub.json(&mut json);
        assert_eq!(
            json,
            serde_json::json!({"gateway": "192.0.2.1", "source": "192.0.2.2", "version": "5.4.0.1",
                               "hops": ["192.0.2.1", "127.0.0.1", "2001:db8::1", "fe80::2"]})
        );
        assert_eq!(scrub.sentence("the route to 10.1.2.4: no, 10.1.2.3"), "the route to 192.0.2.2: no, 192.0.2.1");
    }
}

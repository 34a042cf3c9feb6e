//! An agent's interfaces, and how a plan names one of them.

use crate::error::SnmpError;

/// The maximum number of interfaces of one agent.
pub(crate) const MAX_INTERFACES: usize = 4096;
/// The maximum length of a name in bytes (RFC 2863: DisplayString of 255).
const LONGEST_NAME: usize = 255;
/// Names that an error lists.
const SHOWN: usize = 12;

/// An interface as its agent names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceName {
    /// ifIndex: the number used in requests. It may change when the device restarts.
    pub index: u32,
    /// ifName, such as `Gi0/5`, `xe-0/0/0`, `eth0`; the description if the agent has no names.
    pub name: String,
    /// ifDescr, such as `GigabitEthernet0/5`; empty if the agent has none.
    pub description: String,
}

/// A name from an agent: at most 255 bytes, without terminal control characters.
pub(crate) fn text(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(LONGEST_NAME)];
    let text = String::from_utf8_lossy(bytes);
    text.trim_end_matches('\0').chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The one interface that matches `wanted`: the exact name, then the exact description, and finally either of them ignoring case.
pub(crate) fn find(agent: &str, interfaces: &[InterfaceName], wanted: &str) -> Result<InterfaceName, SnmpError> {
    let by_name = |it: &InterfaceName| it.name == wanted;
    let by_description = |it: &InterfaceName| it.description == wanted;
    let in_any_case =
        |it: &InterfaceName| it.name.eq_ignore_ascii_case(wanted) || it.description.eq_ignore_ascii_case(wanted);
    let ways: [&dyn Fn(&InterfaceName) -> bool; 3] = [&by_name, &by_description, &in_any_case];
    let wanted: String = wanted.chars().take(LONGEST_NAME).collect();
    for way in ways {
        let found: Vec<&InterfaceName> = interfaces.iter().filter(|interface| way(interface)).collect();
        match found.as_slice() {
            [] => {}
            [one] => return Ok((*one).clone()),
            several => {
                let numbers: Vec<String> = several.iter().take(SHOWN).map(|one| format!("#{}", one.index)).collect();
                return Err(SnmpError::Ambiguous { agent: agent.to_owned(), wanted, numbers: numbers.join(", ") });
            }
        }
    }
    let mut known: Vec<&str> = interfaces.iter().take(SHOWN).map(|interface| interface.name.as_str()).collect();
    let more = format!("and {} more", interfaces.len().saturating_sub(SHOWN));
    if interfaces.len() > SHOWN {
        known.push(&more);
    }
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(SnmpError::NoInterface { agent: agent.to_owned(), wanted, known })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Vec<InterfaceName> {
        [(1, "Vl1", "Vlan1"), (5, "Gi0/5", "GigabitEthernet0/5"), (6, "Gi0/6", "GigabitEthernet0/6"), (7, "gi0/6", "x")]
            .map(|(index, name, description)| InterfaceName {
                index,
                name: name.into(),
                description: description.into(),
            })
            .to_vec()
    }

    #[test]
    fn an_interface_is_found_by_name_or_description() {
        let found = |wanted| find("sw", &table(), wanted).map(|interface| interface.index);
        assert_eq!(found("Gi0/6"), Ok(6), "the exact name goes before one of another case");
        assert_eq!(found("GigabitEthernet0/5"), Ok(5));
        assert_eq!(found("gigabitethernet0/5"), Ok(5));
    }

    #[test]
    fn a_missing_or_ambiguous_interface_is_an_error() {
        let error = |wanted| find("sw", &table(), wanted).expect_err(wanted).to_string();
        assert_eq!(error("Te1/1"), "SNMP agent sw has no interface `Te1/1`; it has Vl1, Gi0/5, Gi0/6, gi0/6");
        assert_eq!(error("GI0/6"), "SNMP agent sw has several interfaces `GI0/6`; select one by number, #6, #7");
        assert!(find("sw", &[], "x").expect_err("none").to_string().ends_with("it has none"));
        let many: Vec<_> =
            (0..40).map(|index| InterfaceName { index, name: format!("p{index}"), ..table()[0].clone() }).collect();
        let error = find("sw", &many, "q").expect_err("none").to_string();
        assert!(error.ends_with("p10, p11, and 28 more"), "{error}");
    }

    #[test]
    fn a_name_is_truncated_and_sanitised() {
        assert_eq!(text(b"eth0\0"), "eth0");
        assert_eq!(text(b"a\x1b[31mb\n"), "a?[31mb?");
        assert_eq!(text(&[b'x'; 300]).len(), 255);
        assert_eq!(text(&[0xff, b'a']), "\u{fffd}a");
    }
}

//! Names and values that an SNMP agent answers with.

pub(crate) fn run(bytes: &[u8]) {
    let counters = narrows_snmp::read_any(bytes);
    assert!(counters.len() <= bytes.len() / 9);
}

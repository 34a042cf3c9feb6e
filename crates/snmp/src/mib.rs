//! The objects that are read, one line each. Source: RFC 3418 (sysUpTime), RFC 2863 (IF-MIB).

use async_snmp::Oid;

/// A column of ifTable or ifXTable, or sysUpTime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) name: &'static str,
    arcs: &'static [u32],
    column: u32,
}

const IF_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1];
const IF_X_ENTRY: &[u32] = &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1];
const SYSTEM: &[u32] = &[1, 3, 6, 1, 2, 1, 1];

pub(crate) const SYS_UP_TIME: Object = Object { name: "sysUpTime", arcs: SYSTEM, column: 3 };
pub(crate) const IF_DESCR: Object = old("ifDescr", 2);
pub(crate) const IF_LAST_CHANGE: Object = old("ifLastChange", 9);
pub(crate) const IF_NAME: Object = new("ifName", 1);
pub(crate) const IF_HIGH_SPEED: Object = new("ifHighSpeed", 15);
pub(crate) const IF_DISCONTINUITY: Object = new("ifCounterDiscontinuityTime", 19);

/// A 64-bit counter, if there is one, and its 32-bit predecessor.
pub(crate) struct Pair {
    pub(crate) wide: Option<Object>,
    pub(crate) narrow: Object,
}

/// The counters of one direction, in the order of `SideCounters`.
pub(crate) type Side = [Pair; 6];

pub(crate) const INPUT: Side = [
    Pair { wide: Some(new("ifHCInOctets", 6)), narrow: old("ifInOctets", 10) },
    Pair { wide: Some(new("ifHCInUcastPkts", 7)), narrow: old("ifInUcastPkts", 11) },
    Pair { wide: Some(new("ifHCInMulticastPkts", 8)), narrow: new("ifInMulticastPkts", 2) },
    Pair { wide: Some(new("ifHCInBroadcastPkts", 9)), narrow: new("ifInBroadcastPkts", 3) },
    Pair { wide: None, narrow: old("ifInDiscards", 13) },
    Pair { wide: None, narrow: old("ifInErrors", 14) },
];

pub(crate) const OUTPUT: Side = [
    Pair { wide: Some(new("ifHCOutOctets", 10)), narrow: old("ifOutOctets", 16) },
    Pair { wide: Some(new("ifHCOutUcastPkts", 11)), narrow: old("ifOutUcastPkts", 17) },
    Pair { wide: Some(new("ifHCOutMulticastPkts", 12)), narrow: new("ifOutMulticastPkts", 4) },
    Pair { wide: Some(new("ifHCOutBroadcastPkts", 13)), narrow: new("ifOutBroadcastPkts", 5) },
    Pair { wide: None, narrow: old("ifOutDiscards", 19) },
    Pair { wide: None, narrow: old("ifOutErrors", 20) },
];

const fn old(name: &'static str, column: u32) -> Object {
    Object { name, arcs: IF_ENTRY, column }
}

const fn new(name: &'static str, column: u32) -> Object {
    Object { name, arcs: IF_X_ENTRY, column }
}

impl Object {
    /// The column itself, whose instances follow.
    pub(crate) fn column(self) -> Oid {
        Oid::new(self.arcs.iter().copied().chain([self.column]))
    }

    /// One instance: an interface's number, or 0 for a scalar.
    pub(crate) fn of(self, instance: u32) -> Oid {
        Oid::new(self.arcs.iter().copied().chain([self.column, instance]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_the_numbers_of_the_mib() {
        let dotted = |oid: Oid| oid.to_string();
        assert_eq!(dotted(SYS_UP_TIME.of(0)), "1.3.6.1.2.1.1.3.0");
        assert_eq!(dotted(INPUT[1].wide.expect("64 bits").of(3)), "1.3.6.1.2.1.31.1.1.1.7.3");
        assert_eq!(dotted(OUTPUT[1].wide.expect("64 bits").of(3)), "1.3.6.1.2.1.31.1.1.1.11.3");
        assert_eq!(dotted(INPUT[4].narrow.of(3)), "1.3.6.1.2.1.2.2.1.13.3");
        assert_eq!(dotted(IF_NAME.column()), "1.3.6.1.2.1.31.1.1.1.1");
    }
}

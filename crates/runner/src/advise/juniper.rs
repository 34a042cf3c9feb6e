//! Junos: an EX or QFX as the switch, an MX or SRX as the device.

use narrows_model::forwarding::advice::AdviceRole::{Router, Switch};
use narrows_model::forwarding::advice::{Advice, AdviceSystem, Handbook};

pub(super) const HANDBOOK: Handbook = Handbook {
    system: AdviceSystem::Juniper,
    typed: "after `configure`, then `commit`; what `show` and `clear` begin is typed before it. To undo all: `rollback 1`, `commit`",
    words: &[
        ("PORT", "each port that test frames pass, such as xe-0/0/0"),
        ("VLAN", "the name of the VLAN of one side of the device, such as bench"),
        ("PREFIX", "the port's own address with its length, such as 198.18.0.1/16"),
        ("ADDRESS", "the neighbour's address, of 198.18.0.0/15 or 2001:2::/48"),
        ("MAC", "its Ethernet address"),
        ("TESTER", "the address that narrows asks from"),
        ("NAME", "a community that nobody guesses"),
        ("PROFILE", "the storm control profile that was there"),
    ],
    advice: ADVICE,
};

const ADVICE: &[Advice] = &[
    Advice {
        id: "static-mac",
        roles: &[Switch],
        why: "The receiver never sends, so that the switch forgets it and floods the test to every port.",
        commands: &[
            "set vlans VLAN switch-options interface PORT static-mac MAC",
            "set protocols l2-learning global-mac-table-aging-time 1000000",
        ],
        undo: &[
            "delete vlans VLAN switch-options interface PORT static-mac MAC",
            "delete protocols l2-learning global-mac-table-aging-time",
        ],
        source: "RFC 2544, section 23; Junos CLI reference; without ELS: ethernet-switching-options mac-table-aging-time unlimited",
        presets: &[],
    },
    Advice {
        id: "static-neighbours",
        roles: &[Router],
        why: "A generator answers no ARP or neighbour request and a receiver sends none, so that a learned entry expires in the \
              middle of a trial.",
        commands: &[
            "set interfaces PORT unit 0 family inet address PREFIX arp ADDRESS mac MAC",
            "set interfaces PORT unit 0 family inet6 address PREFIX ndp ADDRESS mac MAC",
        ],
        undo: &[
            "delete interfaces PORT unit 0 family inet address PREFIX arp ADDRESS",
            "delete interfaces PORT unit 0 family inet6 address PREFIX ndp ADDRESS",
        ],
        source: "RFC 2544, sections 23 and 25; Junos CLI reference",
        presets: &[],
    },
    Advice {
        id: "spanning-tree",
        roles: &[Switch],
        why: "Spanning tree sends a frame every 2 s, which is in the counters, and blocks a port after each link-up.",
        commands: &["set protocols rstp interface PORT disable"],
        undo: &["delete protocols rstp interface PORT disable"],
        source: "IEEE 802.1D; only where no loop can be",
        presets: &[],
    },
    Advice {
        id: "discovery",
        roles: &[Switch, Router],
        why: "LLDP and LLDP-MED send a frame every 30 s, which is in every counter.",
        commands: &["set protocols lldp interface PORT disable", "set protocols lldp-med interface PORT disable"],
        undo: &["delete protocols lldp interface PORT disable", "delete protocols lldp-med interface PORT disable"],
        source: "IEEE 802.1AB",
        presets: &[],
    },
    Advice {
        id: "flow-control",
        roles: &[Switch, Router],
        why: "A pause frame stops the generator, so that the rate is the slowest port's and the loss is hidden in its queue.",
        commands: &["set interfaces PORT ether-options no-flow-control"],
        undo: &["delete interfaces PORT ether-options no-flow-control"],
        source: "IEEE 802.3, annex 31B; on MX and SRX: gigether-options",
        presets: &[],
    },
    Advice {
        id: "storm-control",
        roles: &[Switch],
        why: "Storm control is on by default at 80 % and takes a line-rate test to unknown addresses for a storm.",
        commands: &["delete interfaces PORT unit 0 family ethernet-switching storm-control"],
        undo: &["set interfaces PORT unit 0 family ethernet-switching storm-control PROFILE"],
        source: "Junos CLI reference, storm-control (ELS)",
        presets: &[],
    },
    Advice {
        id: "group-queries",
        roles: &[Switch],
        why: "A switch that snoops groups sends queries of its own and may hold back multicast test frames.",
        commands: &["deactivate protocols igmp-snooping vlan VLAN", "deactivate protocols mld-snooping vlan VLAN"],
        undo: &["activate protocols igmp-snooping vlan VLAN", "activate protocols mld-snooping vlan VLAN"],
        source: "RFC 4541",
        presets: &[],
    },
    Advice {
        id: "ipv6-own-traffic",
        roles: &[Router],
        why: "Router advertisements and duplicate address detection send frames that are in the counters, and a collision takes \
              the address away.",
        commands: &[
            "deactivate protocols router-advertisement interface PORT.0",
            "set interfaces PORT unit 0 family inet6 dad-disable",
        ],
        undo: &[
            "activate protocols router-advertisement interface PORT.0",
            "delete interfaces PORT unit 0 family inet6 dad-disable",
        ],
        source: "RFC 4861, RFC 4862; Junos CLI reference",
        presets: &[],
    },
    Advice {
        id: "redirects",
        roles: &[Router],
        why: "Redirects take frames out of the fast path to the routing engine.",
        commands: &[
            "set interfaces PORT unit 0 family inet no-redirects",
            "set interfaces PORT unit 0 family inet6 no-redirects",
        ],
        undo: &[
            "delete interfaces PORT unit 0 family inet no-redirects",
            "delete interfaces PORT unit 0 family inet6 no-redirects",
        ],
        source: "RFC 1812, section 5.2.7.2; Junos CLI reference",
        presets: &[],
    },
    Advice {
        id: "power-saving",
        roles: &[Switch],
        why: "An energy-efficient link needs microseconds to wake before each burst.",
        commands: &["delete interfaces PORT ether-options ieee-802-3az-eee"],
        undo: &["set interfaces PORT ether-options ieee-802-3az-eee"],
        source: "IEEE 802.3, clause 78; copper ports of some models",
        presets: &[],
    },
    Advice {
        id: "frame-size",
        roles: &[Switch, Router],
        why: "Frames above 1518 bytes are dropped as oversized where the port's MTU is not raised.",
        commands: &["set interfaces PORT mtu 9216"],
        undo: &["delete interfaces PORT mtu"],
        source: "RFC 2544, section 9; the MTU counts the Ethernet header, not the FCS",
        presets: &[],
    },
    Advice {
        id: "snmp-counters",
        roles: &[Switch, Router],
        why: "The books need 64-bit counters of each port; the agent answers from memory for some seconds, and narrows waits for that.",
        commands: &["set snmp community NAME authorization read-only clients TESTER/32"],
        undo: &["delete snmp community NAME"],
        source: "RFC 2863; Junos network management guide; better by v3: set snmp v3 usm local-engine user …",
        presets: &[],
    },
    Advice {
        id: "fresh-counters",
        roles: &[Switch, Router],
        why: "Counters that begin at 0 are read with the eye; narrows takes differences and needs it not.",
        commands: &["clear interfaces statistics PORT", "show interfaces PORT extensive | match \"packets|drops\""],
        undo: &[],
        source: "Junos CLI reference; `clear interfaces statistics` leaves the SNMP counters alone",
        presets: &[],
    },
];

//! The specification of a lab: the values that `lab up` takes, validated.

use crate::topology::{Role, Topology};
use crate::{Error, Result};
use narrows_model::lab::Impairment;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabSpec {
    /// Its name, unique on this machine.
    pub name: String,
    pub topology: Topology,
    /// The impairment of packets from the client to the server.
    pub up: Impairment,
    /// The impairment of packets from the server to the client.
    pub down: Impairment,
    /// The speed that the hosts' interfaces report, in bits per second: what a card says of itself, which tells nothing of the path.
    pub link_speed_bps: Option<u64>,
    /// The MTU of every interface, in bytes.
    pub mtu: u32,
    /// Random seed of the path.
    pub seed: u64,
    /// Whether an SNMP agent serves the counters of routers and switches.
    pub snmpd: bool,
}

impl Default for LabSpec {
    fn default() -> Self {
        Self {
            name: "lab".to_owned(),
            topology: Topology::Pair,
            up: Impairment::default(),
            down: Impairment::default(),
            link_speed_bps: None,
            mtu: 1500,
            seed: 1,
            snmpd: false,
        }
    }
}

impl LabSpec {
    pub fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        check_impairment(&self.up)?;
        check_impairment(&self.down)?;
        if !(1280..=65_521).contains(&self.mtu) {
            return Err(Error::BadImpairment(format!("MTU is {}, but must be from 1280 to 65521", self.mtu)));
        }
        let clean = Impairment::default();
        if !self.topology.has_path() && (self.up != clean || self.down != clean || self.link_speed_bps.is_some()) {
            return Err(Error::BadImpairment("this topology has no emulated path".to_owned()));
        }
        if self.snmpd && self.topology.hosts().iter().all(|host| host.role == Role::End) {
            return Err(Error::CannotRun("--snmpd needs a router or switch; use --topology dut or chain".to_owned()));
        }
        Ok(())
    }

    /// The speed that interfaces report, in Mbit/s: 10 Gbit/s where nothing else is asked for.
    pub fn link_speed_mbps(&self) -> u32 {
        let bps = self.link_speed_bps.unwrap_or(10_000_000_000);
        u32::try_from(bps / 1_000_000).unwrap_or(u32::MAX - 1).max(1)
    }
}

/// Validates a lab name: it becomes part of file names.
/// Errors: says what names are allowed.
pub fn check_name(name: &str) -> Result<()> {
    let good = (1..=32).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if good { Ok(()) } else { Err(Error::BadName(name.chars().take(64).collect())) }
}

/// Validates an impairment.
pub fn check_impairment(path: &Impairment) -> Result<()> {
    let bad = |text: String| Err(Error::BadImpairment(text));
    let chances = [
        ("loss", path.loss),
        ("burst_loss_enter", path.burst_loss_enter),
        ("burst_loss_leave", path.burst_loss_leave),
        ("burst_loss", path.burst_loss),
        ("reorder", path.reorder),
        ("duplicate", path.duplicate),
        ("corrupt", path.corrupt),
    ];
    for (name, chance) in chances {
        if !(0.0..=1.0).contains(&chance) {
            return bad(format!("{name} is {chance}, but must be from 0 to 1"));
        }
    }
    if path.rate_bps > 0 && path.rate_bps < 1000 || path.police_bps > 0 && path.police_bps < 1000 {
        return bad("a rate is 0 (none) or at least 1 kbit/s".to_owned());
    }
    if path.rate_bps > 1_000_000_000_000 || path.police_bps > 1_000_000_000_000 {
        return bad("a rate is at most 1 Tbit/s".to_owned());
    }
    if path.delay_us > 60_000_000 || path.jitter_us > 60_000_000 {
        return bad("a delay is at most 60 s".to_owned());
    }
    if path.outage_each_us > 0 && path.outage_us >= path.outage_each_us {
        return bad("an outage is shorter than the time from one to the next".to_owned());
    }
    if path.gather_us > 1_000_000 {
        return bad("packets are batched for at most 1 s".to_owned());
    }
    if path.overhead_bytes > 1000 {
        return bad(format!("overhead is {} bytes; the maximum is 1000", path.overhead_bytes));
    }
    if path.burst_bytes > 1 << 32 || path.police_burst_bytes > 1 << 32 || path.queue_bytes > 1 << 32 {
        return bad("a bucket or a queue is at most 4 GiB".to_owned());
    }
    if path.queue_packets > 10_000_000 {
        return bad("a queue is at most 10 million packets".to_owned());
    }
    if path.police_bps > 0 && path.police_burst_bytes < 2000 {
        return bad("a policer bucket below 2000 bytes passes no full packet; raise --police-burst".to_owned());
    }
    if path.mtu > 0 && path.mtu < 576 {
        return bad(format!("path MTU is {}, but must be at least 576", path.mtu));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_invalid_part_is_named() {
        type Change = fn(&mut Impairment);
        let cases: [(Change, &str); 6] = [
            (|path| path.loss = 1.5, "loss is 1.5"),
            (|path| path.duplicate = f64::NAN, "duplicate is NaN"),
            (|path| path.rate_bps = 10, "at least 1 kbit/s"),
            (|path| path.delay_us = 99_000_000, "at most 60 s"),
            (|path| path.police_bps = 1_000_000, "raise --police-burst"),
            (|path| path.mtu = 100, "at least 576"),
        ];
        for (change, words) in cases {
            let mut path = Impairment::default();
            change(&mut path);
            let error = check_impairment(&path).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(LabSpec::default().check().is_ok());
        let dut = || LabSpec { topology: Topology::Dut, ..LabSpec::default() };
        assert!(LabSpec { mtu: 9000, snmpd: true, ..dut() }.check().is_ok());
        let slow = LabSpec { up: Impairment { delay_us: 1, ..Impairment::default() }, ..dut() };
        assert!(slow.check().expect_err("no path").to_string().contains("no emulated path"));
        let pair = LabSpec { snmpd: true, ..LabSpec::default() };
        assert!(pair.check().expect_err("no router").to_string().contains("needs a router or switch"));
        for name in ["", "Lab", "1lab", "a/b", "../x", "a234567890123456789012345678901234"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_link_speed_says_nothing_of_the_path() {
        let gigabit = Impairment { rate_bps: 1_000_000_000, ..Impairment::default() };
        assert_eq!(LabSpec { up: gigabit, ..LabSpec::default() }.link_speed_mbps(), 10_000);
        let asked = LabSpec { link_speed_bps: Some(25_000_000_000), ..LabSpec::default() };
        assert_eq!(asked.link_speed_mbps(), 25_000);
    }
}

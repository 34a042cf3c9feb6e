//! The Linux part of the advice on this host: what narrows would set, what is so already, what cannot be set here, and what is
//! left to the user. Looking changes nothing; what is set is journalled as any other change ([`crate::tune`]).

use super::linux::HANDBOOK;
use crate::tune::{self, NotTogether, TuneError, Tuner};
use narrows_model::forwarding::ForwardingPlan;
use narrows_model::forwarding::advice::{Advice, AdviceFound, AdviceItem, AdviceRole, Preset, Seat, Standing};
use narrows_model::load::frames::Mac;
use narrows_model::{Change, Place, Setting};
use narrows_sys::rtnl::{BridgeOption, Links};
use narrows_sys::{Error, Result, ethtool, neighbour};
use std::net::IpAddr;

/// The role in which the journal notes what advice has set.
pub const ROLE: &str = "advise";

/// What the user says of this host.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// What it is in the benchmark.
    pub role: AdviceRole,
    /// Devices that test frames pass.
    pub devices: Vec<String>,
    /// Bridges that are the switch.
    pub bridges: Vec<String>,
    /// The plan, which knows the ports of the tester and who is at the other end.
    pub plan: Option<&'a ForwardingPlan>,
}

/// Looks at this host. Of a neighbour whose Ethernet address the kernel does not know the network is asked.
///
/// # Errors
/// A device or bridge that was named is none.
pub fn look(asked: &Asked<'_>) -> Result<AdviceFound> {
    let mut links = Links::open()?;
    let mut seat = Seat { devices: asked.devices.clone(), bridges: asked.bridges.clone(), ..Seat::default() };
    if let (Some(plan), AdviceRole::Tester) = (asked.plan, asked.role) {
        seat.devices.extend([&plan.generator, &plan.receiver].map(|port| port.device.clone()));
    }
    let mut known = std::collections::BTreeSet::new();
    seat.devices.retain(|device| known.insert(device.clone()));
    for device in &seat.devices {
        links.get(device)?;
    }
    for bridge in &seat.bridges {
        links.bridge_option(bridge, BridgeOption::StpState)?;
    }
    let mut missing = Vec::new();
    rings(&mut seat, &mut missing);
    neighbours(asked, &mut links, &mut seat, &mut missing);
    let mut found = AdviceFound {
        role: asked.role,
        seat: seat.devices.iter().chain(&seat.bridges).cloned().collect(),
        items: Vec::new(),
        left: Vec::new(),
    };
    for advice in HANDBOOK.advice.iter().filter(|advice| advice.roles.contains(&asked.role)) {
        let before = found.items.len();
        let settings = advice.presets.iter().flat_map(|preset| preset.settings(&seat));
        found.items.extend(settings.map(|setting| item(advice, setting)));
        let of_advice = missing.iter().filter(|item: &&AdviceItem| item.advice == advice.id);
        found.items.extend(of_advice.cloned());
        if found.items.len() == before {
            found.left.push(advice.id);
        }
    }
    Ok(found)
}

/// Sets what differs, all of it or nothing; it stays until it is undone or the host is booted.
///
/// # Errors
/// What could not be set, and that the rest was set back.
pub fn apply(tuner: &Tuner, found: &AdviceFound) -> std::result::Result<Vec<Change>, NotTogether> {
    tuner.apply_together(&found.to_set(), Place::Client)
}

/// The advice that a preset is part of.
fn id_of(wanted: Preset) -> &'static str {
    HANDBOOK.advice.iter().find(|advice| advice.presets.contains(&wanted)).map_or("", |advice| advice.id)
}

fn not_here(wanted: Preset, what: String, why: String) -> AdviceItem {
    AdviceItem { advice: id_of(wanted), what, setting: None, standing: Standing::NotHere(why) }
}

fn why(error: &Error) -> String {
    match error.errno() {
        Some(95) => "the driver cannot do it".to_owned(), // EOPNOTSUPP
        _ => error.source.to_string(),
    }
}

fn rings(seat: &mut Seat, missing: &mut Vec<AdviceItem>) {
    for device in &seat.devices {
        let told = ethtool::Device::open(device).and_then(|device| device.rings());
        match told {
            Ok(rings) if rings.rx_max > 0 && rings.tx_max > 0 => {
                seat.rings.push((device.clone(), rings.rx_max, rings.tx_max));
            }
            Ok(_) => missing.push(not_here(
                Preset::Rings,
                format!("rings of {device}"),
                "its driver tells no maximum".to_owned(),
            )),
            Err(error) => missing.push(not_here(Preset::Rings, format!("rings of {device}"), why(&error))),
        }
    }
}

/// Who is at the other end of the devices: for the tester the device under test, for this the tester.
fn neighbours(asked: &Asked<'_>, links: &mut Links, seat: &mut Seat, missing: &mut Vec<AdviceItem>) {
    let Some(plan) = asked.plan else { return };
    let ports = [&plan.generator, &plan.receiver];
    let ends: Vec<(Option<String>, IpAddr)> = match asked.role {
        AdviceRole::Tester => ports.map(|port| (Some(port.device.clone()), port.gateway)).to_vec(),
        AdviceRole::Router => ports.map(|port| (None, port.address)).to_vec(),
        AdviceRole::Switch => Vec::new(),
    };
    for (device, address) in ends {
        let found = device.map_or_else(|| device_towards(links, seat, address), Ok).and_then(|device| {
            let index = links.get(&device).map_err(Error::from).map_err(|error| why(&error))?.index;
            let mac = neighbour::resolve(address, index).map_err(|error| why(&error))?;
            Ok((device, address, Mac(mac)))
        });
        match found {
            Ok(neighbour) => seat.neighbours.push(neighbour),
            Err(why) => missing.push(not_here(Preset::Neighbours, format!("the neighbour {address}"), why)),
        }
    }
}

fn device_towards(links: &mut Links, seat: &Seat, address: IpAddr) -> std::result::Result<String, String> {
    let index = links.on_link(address).map_err(Error::from).map_err(|error| why(&error))?;
    let is_it = |device: &&String| links.get(device).is_ok_and(|link| Some(link.index) == index);
    let found = seat.devices.iter().find(is_it);
    found.cloned().ok_or_else(|| "it is on the link of no device that was named".to_owned())
}

fn item(advice: &Advice, setting: Setting) -> AdviceItem {
    let standing = match tune::look(&setting) {
        Ok((_, true)) => Standing::Already,
        Ok(_) if keeps_veth_alive(&setting) => {
            Standing::NotHere("without it a virtual pair takes no frames of XDP".to_owned())
        }
        Ok((now, false)) if now.is_empty() => Standing::NotHere("the device fixes it".to_owned()),
        Ok((now, false)) => Standing::Differs(now),
        Err(TuneError::System(error)) => Standing::NotHere(why(&error)),
        Err(error) => Standing::NotHere(error.to_string()),
    };
    AdviceItem { advice: advice.id, what: setting.to_string(), setting: Some(setting), standing }
}

/// A veth polls its queue, and so takes redirected frames, only with GRO or a program of its own (`drivers/net/veth.c`).
fn keeps_veth_alive(setting: &Setting) -> bool {
    let Setting::Offload { device, feature, on: false } = setting else { return false };
    let driver = ethtool::Device::open(device).and_then(|device| device.driver());
    feature == "gro" && driver.is_ok_and(|driver| driver.name == "veth")
}

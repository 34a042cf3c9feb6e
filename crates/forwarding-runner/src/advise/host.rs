//! The Linux advice on this host: what narrows would set, what is set already, what cannot be set here, and what is left to
//! the user. Only [`apply`] changes anything; it journals its changes as any other ([`narrows_runner::tune`]).

use narrows_forwarding::data::ForwardingPlan;
use narrows_forwarding::data::advice::{
    Advice, AdviceFound, AdviceItem, AdviceRole, Handbook, HostParts, Preset, SettingState,
};
use narrows_model::load::frames::Mac;
use narrows_model::{Change, Place, Setting};
use narrows_runner::tune::{self, NotTogether, TuneError, Tuner};
use narrows_sys::rtnl::{BridgeOption, Links};
use narrows_sys::{Error, Result, ethtool, neighbour};
use std::net::IpAddr;

/// The role under which the journal notes the changes.
pub const ROLE: &str = "advise";

/// The host as the user describes it.
#[derive(Debug, Clone)]
pub struct Described<'a> {
    /// Its role in the benchmark.
    pub role: AdviceRole,
    /// Interfaces that test frames pass.
    pub interfaces: Vec<String>,
    /// Bridges that are the switch.
    pub bridges: Vec<String>,
    /// The plan, which knows the tester's ports and their neighbours.
    pub plan: Option<&'a ForwardingPlan>,
}

/// Compares this host with the handbook. Resolves neighbours whose Ethernet address the kernel does not know.
pub fn compare(handbook: &Handbook, host: &Described<'_>) -> Result<AdviceFound> {
    let mut links = Links::open()?;
    let mut parts =
        HostParts { interfaces: host.interfaces.clone(), bridges: host.bridges.clone(), ..HostParts::default() };
    if let (Some(plan), AdviceRole::Tester) = (host.plan, host.role) {
        parts.interfaces.extend([&plan.generator, &plan.receiver].map(|port| port.device.clone()));
    }
    let mut known = std::collections::BTreeSet::new();
    parts.interfaces.retain(|interface| known.insert(interface.clone()));
    for interface in &parts.interfaces {
        links.get(interface)?;
    }
    for bridge in &parts.bridges {
        links.bridge_option(bridge, BridgeOption::StpState)?;
    }
    let mut unavailable = Vec::new();
    rings(&mut parts, &mut unavailable);
    neighbours(host, &mut links, &mut parts, &mut unavailable);
    let mut found = AdviceFound {
        role: host.role,
        interfaces: parts.interfaces.iter().chain(&parts.bridges).cloned().collect(),
        items: Vec::new(),
        manual: Vec::new(),
    };
    for advice in handbook.advice.iter().filter(|advice| advice.roles.contains(&host.role)) {
        let before = found.items.len();
        let settings = advice.presets.iter().flat_map(|preset| preset.settings(&parts));
        found.items.extend(settings.map(|setting| item(advice, setting)));
        let of_advice = unavailable.iter().filter(|it: &&Unavailable| advice.presets.contains(&it.preset));
        found.items.extend(of_advice.map(|it| AdviceItem {
            advice: advice.id.clone(),
            what: it.what.clone(),
            setting: None,
            state: SettingState::Unavailable(it.why.clone()),
        }));
        if found.items.len() == before {
            found.manual.push(advice.id.clone());
        }
    }
    Ok(found)
}

/// Sets what differs, all of it or nothing, until it is undone or the host is rebooted.
/// Errors: what could not be set; the rest was rolled back.
pub fn apply(tuner: &Tuner, found: &AdviceFound) -> std::result::Result<Vec<Change>, NotTogether> {
    tuner.apply_together(&found.to_set(), Place::Client)
}

/// A part of a preset that cannot be set on this host.
struct Unavailable {
    preset: Preset,
    what: String,
    why: String,
}

fn why(error: &Error) -> String {
    match error.errno() {
        Some(95) => "not supported by the driver".to_owned(), // EOPNOTSUPP
        _ => error.source.to_string(),
    }
}

fn rings(parts: &mut HostParts, unavailable: &mut Vec<Unavailable>) {
    for interface in &parts.interfaces {
        let why = match ethtool::Device::open(interface).and_then(|device| device.rings()) {
            Ok(rings) if rings.rx_max > 0 && rings.tx_max > 0 => {
                parts.rings.push((interface.clone(), rings.rx_max, rings.tx_max));
                continue;
            }
            Ok(_) => "the driver reports no maximum".to_owned(),
            Err(error) => why(&error),
        };
        unavailable.push(Unavailable { preset: Preset::Rings, what: format!("rings of {interface}"), why });
    }
}

/// The neighbours: for the tester the device under test, for the device the tester.
fn neighbours(host: &Described<'_>, links: &mut Links, parts: &mut HostParts, unavailable: &mut Vec<Unavailable>) {
    let Some(plan) = host.plan else { return };
    let ports = [&plan.generator, &plan.receiver];
    let ends: Vec<(Option<String>, IpAddr)> = match host.role {
        AdviceRole::Tester => ports.map(|port| (Some(port.device.clone()), port.gateway)).to_vec(),
        AdviceRole::Router => ports.map(|port| (None, port.address)).to_vec(),
        AdviceRole::Switch => Vec::new(),
    };
    for (interface, address) in ends {
        let found = interface.map_or_else(|| interface_towards(links, parts, address), Ok).and_then(|interface| {
            let index = links.get(&interface).map_err(Error::from).map_err(|error| why(&error))?.index;
            let mac = neighbour::resolve(address, index).map_err(|error| why(&error))?;
            Ok((interface, address, Mac(mac)))
        });
        match found {
            Ok(neighbour) => parts.neighbours.push(neighbour),
            Err(why) => {
                unavailable.push(Unavailable {
                    preset: Preset::Neighbours,
                    what: format!("the neighbour {address}"),
                    why,
                });
            }
        }
    }
}

fn interface_towards(links: &mut Links, parts: &HostParts, address: IpAddr) -> std::result::Result<String, String> {
    let index = links.on_link(address).map_err(Error::from).map_err(|error| why(&error))?;
    let is_it = |interface: &&String| links.get(interface).is_ok_and(|link| Some(link.index) == index);
    let found = parts.interfaces.iter().find(is_it);
    found.cloned().ok_or_else(|| "it is not on the link of a named interface".to_owned())
}

fn item(advice: &Advice, setting: Setting) -> AdviceItem {
    let state = match tune::look(&setting) {
        Ok((_, true)) => SettingState::AsAdvised,
        Ok(_) if keeps_veth_alive(&setting) => {
            SettingState::Unavailable("required for XDP transmit on a veth pair".to_owned())
        }
        Ok((now, false)) if now.is_empty() => SettingState::Unavailable("fixed by the interface".to_owned()),
        Ok((now, false)) => SettingState::Differs(now),
        Err(TuneError::System(error)) => SettingState::Unavailable(why(&error)),
        Err(error) => SettingState::Unavailable(error.to_string()),
    };
    AdviceItem { advice: advice.id.clone(), what: setting.to_string(), setting: Some(setting), state }
}

/// A veth polls its queue, and so takes redirected frames, only with GRO or a program of its own (`drivers/net/veth.c`).
fn keeps_veth_alive(setting: &Setting) -> bool {
    let Setting::Offload { device, feature, on: false } = setting else { return false };
    let driver = ethtool::Device::open(device).and_then(|device| device.driver());
    feature == "gro" && driver.is_ok_and(|driver| driver.name == "veth")
}

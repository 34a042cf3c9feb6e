//! Receive packet steering: the CPUs that a queue may hand packets to. Source: kernel `Documentation/networking/scaling.rst`.

use crate::collector::{Class, Collector, Context, Sink, with_device};
use crate::{Missing, parse};
use narrows_model::{Value, keys};

pub(super) const COLLECTOR: Collector = Collector {
    id: "rps",
    about: "CPUs that receive queues hand packets to",
    provides: &[keys::RPS_CPUS],
    class: Class::Inventory,
    can_run: with_device,
    collect,
};

const QUEUES_MAX: usize = 1024;

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    same_device(context)?;
    let directory = format!("/sys/class/net/{}/queues", context.link()?.name);
    let mut cpus = Vec::new();
    let queues = context.host.list(&directory)?;
    for queue in queues.iter().filter(|queue| queue.starts_with("rx-")).take(QUEUES_MAX) {
        let path = format!("{directory}/{queue}/rps_cpus");
        cpus.extend(parse::cpu_mask(&path, &context.host.read(&path)?)?);
    }
    sink.fact(keys::RPS_CPUS, Value::List(parse::ranges(&cpus)), format!("{directory}/rx-*/rps_cpus"));
    Ok(())
}

/// `/sys/class/net` shows the network namespace that it was mounted in: the interface there may be another one with the
/// same name.
fn same_device(context: &Context<'_>) -> Result<(), Missing> {
    let link = context.link()?;
    let directory = format!("/sys/class/net/{}", link.name);
    let index: u32 = context.host.number(&format!("{directory}/ifindex"))?;
    let mtu: u32 = context.host.number(&format!("{directory}/mtu"))?;
    let address = context.host.word(&format!("{directory}/address")).unwrap_or_default();
    // Only Ethernet has a hardware address here; loopback's is all zeroes in the file.
    let same_address = match &link.address {
        Some(own) => *own == address,
        None => link.loopback || address.is_empty(),
    };
    if index == link.index && mtu == link.mtu && same_address {
        return Ok(());
    }
    let why = format!("{directory} is another device: /sys here shows another network namespace than this one");
    Err(Missing::because(why))
}

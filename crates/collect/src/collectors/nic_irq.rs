//! The NIC's interrupts and the CPUs that serve them.

use crate::collector::{Class, Collector, Context, Sink, with_device};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic-irq",
    about: "interrupts of the device, the CPUs that serve them and those next to it",
    provides: &[keys::NIC_IRQ_COUNT, keys::NIC_IRQ_CPUS, keys::NIC_LOCAL_CPUS],
    class: Class::Inventory,
    can_run: with_device,
    collect,
};

/// MSI-X allows no more (PCI Express specification, 6.1.4.2).
const IRQS_MAX: usize = 2048;

/// The numbers of the device's interrupts and the directory or file that they were found in.
pub(super) fn interrupts(context: &Context<'_>) -> Result<(Vec<u32>, String), Missing> {
    let pci = context.pci()?;
    let msi = format!("{pci}/msi_irqs");
    if let Ok(names) = context.host.list(&msi) {
        let mut numbers: Vec<u32> = names.iter().take(IRQS_MAX).filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        if !numbers.is_empty() {
            return Ok((numbers, msi));
        }
    }
    let path = format!("{pci}/irq");
    match context.host.number::<u32>(&path)? {
        0 => Err(Missing::because("the device has no interrupt")),
        number => Ok((vec![number], path)),
    }
}

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let local = format!("{}/local_cpulist", context.pci()?);
    let cpus = context.host.read(&local).and_then(|text| parse::cpu_list(&local, &text));
    sink.put(keys::NIC_LOCAL_CPUS, cpus.map(|cpus| parse::ranges(&cpus)), local);
    let (numbers, source) = interrupts(context)?;
    sink.fact(keys::NIC_IRQ_COUNT, numbers.len() as u64, source);
    let mut cpus = Vec::new();
    let mut last = Missing::because("no interrupt of the device says which CPU serves it");
    for number in numbers {
        // The CPU that serves it now, otherwise the permitted ones.
        for file in ["effective_affinity_list", "smp_affinity_list"] {
            let path = format!("/proc/irq/{number}/{file}");
            match context.host.read(&path).and_then(|text| parse::cpu_list(&path, &text)) {
                Ok(list) if !list.is_empty() => {
                    cpus.extend(list);
                    break;
                }
                Ok(_) => {}
                Err(why) => last = why,
            }
        }
    }
    let cpus = if cpus.is_empty() { Err(last) } else { Ok(parse::ranges(&cpus)) };
    sink.put(keys::NIC_IRQ_CPUS, cpus, "/proc/irq/*/effective_affinity_list");
    Ok(())
}

//! The NIC's interrupt counts: `/sys/kernel/irq/*/per_cpu_count`, which is cheaper than all of `/proc/interrupts`.

use super::nic_irq::interrupts;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic-interrupts",
    about: "interrupts of the device so far",
    provides: &[keys::NIC_IRQ_INTERRUPTS],
    class: Class::Both,
    can_run: with_device,
    collect,
};

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let (numbers, _) = interrupts(context)?;
    let mut total = 0_u64;
    for number in numbers {
        let path = format!("/sys/kernel/irq/{number}/per_cpu_count");
        for word in context.host.read(&path)?.trim().split(',') {
            total = total.saturating_add(parse::number(&path, 1, word)?);
        }
    }
    sink.fact(keys::NIC_IRQ_INTERRUPTS, total, "/sys/kernel/irq/*/per_cpu_count");
    Ok(())
}

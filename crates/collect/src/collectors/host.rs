//! The host: its name, its kernel, and whether it is a virtual machine.

use crate::Missing;
use crate::collector::{Class, Collector, Context, always};
use crate::parse;
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "host",
    about: "name, kernel, virtualisation",
    provides: &[keys::HOST_NAME, keys::HOST_KERNEL, keys::HOST_VIRTUALISATION],
    class: Class::Inventory,
    can_run: always,
    collect: |context, sink| {
        for (key, path) in
            [(keys::HOST_NAME, "/proc/sys/kernel/hostname"), (keys::HOST_KERNEL, "/proc/sys/kernel/osrelease")]
        {
            sink.put(key, context.host.word(path), path);
        }
        let source = "/sys/class/dmi/id, /sys/hypervisor/type and the flags of /proc/cpuinfo";
        sink.put(keys::HOST_VIRTUALISATION, virtualisation(context), source);
        Ok(())
    },
};

/// Vendors and products of `/sys/class/dmi/id` and the hypervisor behind them.
const MAKERS: [(&str, &str); 9] = [
    ("qemu", "kvm"),
    ("kvm", "kvm"),
    ("vmware", "vmware"),
    ("virtualbox", "virtualbox"),
    ("xen", "xen"),
    ("amazon ec2", "amazon"),
    ("google compute engine", "google"),
    ("virtual machine", "hyper-v"),
    ("firecracker", "firecracker"),
];

/// `none`, the hypervisor's name, or `yes` if the CPU reports an unnamed hypervisor.
fn virtualisation(context: &Context<'_>) -> Result<String, Missing> {
    let cpuinfo = context.host.read("/proc/cpuinfo")?;
    let flags = parse::lines(&cpuinfo).find_map(|(_, line)| line.strip_prefix("flags"));
    let flagged = flags.map(|flags| parse::words(flags).any(|flag| flag == "hypervisor"));
    let named = context.host.word("/sys/hypervisor/type").ok().or_else(|| {
        let dmi = |file: &str| context.host.word(&format!("/sys/class/dmi/id/{file}")).unwrap_or_default();
        let text = format!("{} {}", dmi("sys_vendor"), dmi("product_name")).to_lowercase();
        MAKERS.iter().find(|(word, _)| text.contains(word)).map(|(_, name)| (*name).to_owned())
    });
    match (flagged, named) {
        (Some(false), _) => Ok("none".to_owned()),
        (_, Some(name)) => Ok(name),
        (Some(true), None) => Ok("yes".to_owned()),
        (None, None) => {
            Err(Missing::because("neither the CPU nor the firmware says whether this is a virtual machine"))
        }
    }
}

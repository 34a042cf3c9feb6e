//! Memory that the sockets of the host hold: `/proc/net/sockstat`.

use crate::collector::{Class, Collector, Context, Sink, always};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "sockstat",
    about: "memory that TCP and UDP sockets hold",
    provides: &[keys::TCP_MEM_USED, keys::UDP_MEM_USED],
    class: Class::Both,
    can_run: always,
    collect,
};

const PATH: &str = "/proc/net/sockstat";

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let text = context.host.read(PATH)?;
    sink.put(keys::TCP_MEM_USED, parse::number_after(PATH, &text, "TCP:", "mem"), PATH);
    sink.put(keys::UDP_MEM_USED, parse::number_after(PATH, &text, "UDP:", "mem"), PATH);
    Ok(())
}

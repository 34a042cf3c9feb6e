//! UDP's kernel parameters. Source: kernel `Documentation/networking/ip-sysctl.rst`.

use crate::collector::{Class, Collector, always};
use crate::settings::{self, Form, Setting};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "udp-settings",
    about: "UDP's kernel parameters",
    provides: &[keys::UDP_MEM_LOW, keys::UDP_MEM_PRESSURE, keys::UDP_MEM_HIGH, keys::UDP_RMEM_MIN, keys::UDP_WMEM_MIN],
    class: Class::Inventory,
    can_run: always,
    collect: |context, sink| settings::read(context, sink, SETTINGS),
};

const SETTINGS: &[Setting] = &[
    ("ipv4/udp_mem", Form::Numbers(&[keys::UDP_MEM_LOW, keys::UDP_MEM_PRESSURE, keys::UDP_MEM_HIGH])),
    ("ipv4/udp_rmem_min", Form::Number(keys::UDP_RMEM_MIN)),
    ("ipv4/udp_wmem_min", Form::Number(keys::UDP_WMEM_MIN)),
];

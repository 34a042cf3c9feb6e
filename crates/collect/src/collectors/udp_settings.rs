//! UDP's kernel parameters. Source: kernel `Documentation/networking/ip-sysctl.rst`.

use crate::collector::{Class, Collector, always};
use crate::settings::{self, Form, Setting};
use narrows_model::{Key, Unit};

pub(super) const COLLECTOR: Collector = Collector {
    id: "udp-settings",
    about: "UDP's kernel parameters",
    provides: &[
        Key::new("udp.mem.low", Unit::Pages),
        Key::new("udp.mem.pressure", Unit::Pages),
        Key::new("udp.mem.high", Unit::Pages),
        Key::new("udp.rmem_min", Unit::Bytes),
        Key::new("udp.wmem_min", Unit::Bytes),
    ],
    class: Class::Inventory,
    can_run: always,
    collect: |context, sink| {
        settings::read(context, sink, SETTINGS);
        Ok(())
    },
};

const SETTINGS: &[Setting] = &[
    ("ipv4/udp_mem", Form::Numbers(&["udp.mem.low", "udp.mem.pressure", "udp.mem.high"])),
    ("ipv4/udp_rmem_min", Form::Number("udp.rmem_min")),
    ("ipv4/udp_wmem_min", Form::Number("udp.wmem_min")),
];

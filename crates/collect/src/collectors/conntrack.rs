//! Connection tracking: entries and their limit.

use crate::collector::{Class, Collector, always};
use crate::settings::{self, Form, Setting};
use narrows_model::{Key, Unit};

pub(super) const COLLECTOR: Collector = Collector {
    id: "conntrack",
    about: "tracked connections and their limit",
    provides: &[Key::new("conntrack.count", Unit::Number), Key::new("conntrack.max", Unit::Number)],
    class: Class::Both,
    can_run: always,
    collect: |context, sink| {
        settings::read(context, sink, SETTINGS);
        Ok(())
    },
};

const SETTINGS: &[Setting] = &[
    ("netfilter/nf_conntrack_count", Form::Number("conntrack.count")),
    ("netfilter/nf_conntrack_max", Form::Number("conntrack.max")),
];

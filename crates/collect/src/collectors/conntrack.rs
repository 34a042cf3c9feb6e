//! Connection tracking: entries and their limit.

use crate::collector::{Class, Collector, always};
use crate::settings::{self, Form, Setting};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "conntrack",
    about: "tracked connections and their limit",
    provides: &[keys::CONNTRACK_COUNT, keys::CONNTRACK_MAX],
    class: Class::Both,
    can_run: always,
    collect: |context, sink| settings::read(context, sink, SETTINGS),
};

const SETTINGS: &[Setting] = &[
    ("netfilter/nf_conntrack_count", Form::Number(keys::CONNTRACK_COUNT)),
    ("netfilter/nf_conntrack_max", Form::Number(keys::CONNTRACK_MAX)),
];

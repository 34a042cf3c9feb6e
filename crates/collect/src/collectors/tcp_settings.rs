//! TCP's kernel parameters. Source: kernel `Documentation/networking/ip-sysctl.rst`.

use crate::collector::{Class, Collector, always};
use crate::settings::{self, Form, Setting};
use narrows_model::{Key, Unit};

pub(super) const COLLECTOR: Collector = Collector {
    id: "tcp-settings",
    about: "TCP's kernel parameters of this network namespace",
    provides: &[
        Key::new("tcp.rmem.min", Unit::Bytes),
        Key::new("tcp.rmem.default", Unit::Bytes),
        Key::new("tcp.rmem.max", Unit::Bytes),
        Key::new("tcp.wmem.min", Unit::Bytes),
        Key::new("tcp.wmem.default", Unit::Bytes),
        Key::new("tcp.wmem.max", Unit::Bytes),
        Key::new("tcp.mem.low", Unit::Pages),
        Key::new("tcp.mem.pressure", Unit::Pages),
        Key::new("tcp.mem.high", Unit::Pages),
        Key::new("tcp.sack", Unit::Flag),
        Key::new("tcp.timestamps", Unit::Flag),
        Key::new("tcp.window_scaling", Unit::Flag),
        Key::new("tcp.ecn", Unit::Number),
        Key::new("tcp.congestion_control", Unit::Text),
        Key::new("tcp.congestion_control.available", Unit::Text),
        Key::new("tcp.no_metrics_save", Unit::Flag),
        Key::new("tcp.mtu_probing", Unit::Number),
        Key::new("tcp.slow_start_after_idle", Unit::Flag),
        Key::new("tcp.moderate_rcvbuf", Unit::Flag),
        Key::new("tcp.adv_win_scale", Unit::Number),
        Key::new("tcp.notsent_lowat", Unit::Bytes),
        Key::new("tcp.autocorking", Unit::Flag),
        Key::new("tcp.limit_output_bytes", Unit::Bytes),
    ],
    class: Class::Both,
    can_run: always,
    collect: |context, sink| {
        settings::read(context, sink, SETTINGS);
        Ok(())
    },
};

const SETTINGS: &[Setting] = &[
    ("ipv4/tcp_rmem", Form::Numbers(&["tcp.rmem.min", "tcp.rmem.default", "tcp.rmem.max"])),
    ("ipv4/tcp_wmem", Form::Numbers(&["tcp.wmem.min", "tcp.wmem.default", "tcp.wmem.max"])),
    ("ipv4/tcp_mem", Form::Numbers(&["tcp.mem.low", "tcp.mem.pressure", "tcp.mem.high"])),
    ("ipv4/tcp_sack", Form::Flag("tcp.sack")),
    ("ipv4/tcp_timestamps", Form::Flag("tcp.timestamps")),
    ("ipv4/tcp_window_scaling", Form::Flag("tcp.window_scaling")),
    ("ipv4/tcp_ecn", Form::Number("tcp.ecn")),
    ("ipv4/tcp_congestion_control", Form::Word("tcp.congestion_control")),
    ("ipv4/tcp_available_congestion_control", Form::List("tcp.congestion_control.available")),
    ("ipv4/tcp_no_metrics_save", Form::Flag("tcp.no_metrics_save")),
    ("ipv4/tcp_mtu_probing", Form::Number("tcp.mtu_probing")),
    ("ipv4/tcp_slow_start_after_idle", Form::Flag("tcp.slow_start_after_idle")),
    ("ipv4/tcp_moderate_rcvbuf", Form::Flag("tcp.moderate_rcvbuf")),
    ("ipv4/tcp_adv_win_scale", Form::Number("tcp.adv_win_scale")),
    ("ipv4/tcp_notsent_lowat", Form::Number("tcp.notsent_lowat")),
    ("ipv4/tcp_autocorking", Form::Flag("tcp.autocorking")),
    ("ipv4/tcp_limit_output_bytes", Form::Number("tcp.limit_output_bytes")),
];

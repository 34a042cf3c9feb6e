//! TCP's kernel parameters. Source: kernel `Documentation/networking/ip-sysctl.rst`.

use crate::collector::{Class, Collector, always};
use crate::settings::{self, Form, Setting};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "tcp-settings",
    about: "TCP's kernel parameters of this network namespace",
    provides: &[
        keys::TCP_RMEM_MIN,
        keys::TCP_RMEM_DEFAULT,
        keys::TCP_RMEM_MAX,
        keys::TCP_WMEM_MIN,
        keys::TCP_WMEM_DEFAULT,
        keys::TCP_WMEM_MAX,
        keys::TCP_MEM_LOW,
        keys::TCP_MEM_PRESSURE,
        keys::TCP_MEM_HIGH,
        keys::TCP_SACK,
        keys::TCP_TIMESTAMPS,
        keys::TCP_WINDOW_SCALING,
        keys::TCP_ECN,
        keys::TCP_CONGESTION_CONTROL,
        keys::TCP_CONGESTION_CONTROL_AVAILABLE,
        keys::TCP_NO_METRICS_SAVE,
        keys::TCP_MTU_PROBING,
        keys::TCP_SLOW_START_AFTER_IDLE,
        keys::TCP_MODERATE_RCVBUF,
        keys::TCP_ADV_WIN_SCALE,
        keys::TCP_NOTSENT_LOWAT,
        keys::TCP_AUTOCORKING,
        keys::TCP_LIMIT_OUTPUT_BYTES,
    ],
    class: Class::Both,
    can_run: always,
    collect: |context, sink| settings::read(context, sink, SETTINGS),
};

const SETTINGS: &[Setting] = &[
    ("ipv4/tcp_rmem", Form::Numbers(&[keys::TCP_RMEM_MIN, keys::TCP_RMEM_DEFAULT, keys::TCP_RMEM_MAX])),
    ("ipv4/tcp_wmem", Form::Numbers(&[keys::TCP_WMEM_MIN, keys::TCP_WMEM_DEFAULT, keys::TCP_WMEM_MAX])),
    ("ipv4/tcp_mem", Form::Numbers(&[keys::TCP_MEM_LOW, keys::TCP_MEM_PRESSURE, keys::TCP_MEM_HIGH])),
    ("ipv4/tcp_sack", Form::Flag(keys::TCP_SACK)),
    ("ipv4/tcp_timestamps", Form::Flag(keys::TCP_TIMESTAMPS)),
    ("ipv4/tcp_window_scaling", Form::Flag(keys::TCP_WINDOW_SCALING)),
    ("ipv4/tcp_ecn", Form::Number(keys::TCP_ECN)),
    ("ipv4/tcp_congestion_control", Form::Word(keys::TCP_CONGESTION_CONTROL)),
    ("ipv4/tcp_available_congestion_control", Form::List(keys::TCP_CONGESTION_CONTROL_AVAILABLE)),
    ("ipv4/tcp_no_metrics_save", Form::Flag(keys::TCP_NO_METRICS_SAVE)),
    ("ipv4/tcp_mtu_probing", Form::Number(keys::TCP_MTU_PROBING)),
    ("ipv4/tcp_slow_start_after_idle", Form::Flag(keys::TCP_SLOW_START_AFTER_IDLE)),
    ("ipv4/tcp_moderate_rcvbuf", Form::Flag(keys::TCP_MODERATE_RCVBUF)),
    ("ipv4/tcp_adv_win_scale", Form::Number(keys::TCP_ADV_WIN_SCALE)),
    ("ipv4/tcp_notsent_lowat", Form::Number(keys::TCP_NOTSENT_LOWAT)),
    ("ipv4/tcp_autocorking", Form::Flag(keys::TCP_AUTOCORKING)),
    ("ipv4/tcp_limit_output_bytes", Form::Number(keys::TCP_LIMIT_OUTPUT_BYTES)),
];

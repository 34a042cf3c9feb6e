//! Kernel parameters below `net.`: the ones of the table, and no others.

use super::error::TuneError;
use super::knob::{Knob, not_in_table};
use super::qdisc;
use narrows_sys::sysctl;

/// What a value must look like.
enum Form {
    /// A whole number within limits.
    Number(i64, i64),
    /// Minimum, default and maximum bytes of a buffer.
    Triple,
    /// A congestion control. The kernel loads a module for any name that is set, so names are a list.
    Congestion,
    /// A qdisc, by the same reason of the list of those that are set as root.
    Qdisc,
}

impl Form {
    fn words(&self) -> String {
        match self {
            Self::Number(min, max) => format!("a number from {min} to {max}"),
            Self::Triple => format!("three increasing numbers from 1024 to {MAX}, separated by spaces"),
            Self::Congestion => format!("one that this kernel has loaded, or one of {}", CONGESTION.join(", ")),
            Self::Qdisc => format!("one of {}", qdisc::KINDS.join(", ")),
        }
    }
}

/// Every parameter that may be set on this host, and its values.
pub(crate) fn parameters() -> impl Iterator<Item = (String, String)> {
    TABLE.iter().chain(BENCH).map(|(key, form)| ((*key).to_owned(), form.words()))
}

/// Those of the kernel (net/ipv4/Kconfig).
const CONGESTION: &[&str] = &[
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// Whether the kernel has loaded it already.
fn is_loaded(congestion: &str) -> bool {
    let loaded = sysctl::read("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    loaded.split(' ').any(|name| name == congestion)
}

const MAX: i64 = i32::MAX as i64;

/// All that may be set. One line a key; source: Documentation/networking/ip-sysctl.rst, Documentation/admin-guide/sysctl/net.rst.
const TABLE: &[(&str, Form)] = &[
    ("net.core.default_qdisc", Form::Qdisc),
    ("net.core.netdev_budget", Form::Number(1, 1_000_000)),
    ("net.core.netdev_budget_usecs", Form::Number(1, 10_000_000)),
    ("net.core.netdev_max_backlog", Form::Number(1, MAX)),
    ("net.core.rmem_default", Form::Number(4096, MAX)),
    ("net.core.rmem_max", Form::Number(4096, MAX)),
    ("net.core.wmem_default", Form::Number(4608, MAX)),
    ("net.core.wmem_max", Form::Number(4608, MAX)),
    ("net.ipv4.tcp_congestion_control", Form::Congestion),
    ("net.ipv4.tcp_ecn", Form::Number(0, 5)),
    ("net.ipv4.tcp_limit_output_bytes", Form::Number(1, MAX)),
    ("net.ipv4.tcp_moderate_rcvbuf", Form::Number(0, 1)),
    ("net.ipv4.tcp_mtu_probing", Form::Number(0, 2)),
    ("net.ipv4.tcp_no_metrics_save", Form::Number(0, 1)),
    ("net.ipv4.tcp_notsent_lowat", Form::Number(1, 4_294_967_295)),
    ("net.ipv4.tcp_rmem", Form::Triple),
    ("net.ipv4.tcp_sack", Form::Number(0, 1)),
    ("net.ipv4.tcp_slow_start_after_idle", Form::Number(0, 1)),
    ("net.ipv4.tcp_timestamps", Form::Number(0, 2)),
    ("net.ipv4.tcp_window_scaling", Form::Number(0, 1)),
    ("net.ipv4.tcp_wmem", Form::Triple),
];

/// What a bench needs beside it, for this host's own user alone. `DEVICE` stands for one device's name, never for `all` or
/// `default`: forwarding of all devices at once changes further parameters, which no single value brings back.
const BENCH: &[(&str, Form)] = &[
    ("net.ipv4.conf.DEVICE.forwarding", Form::Number(0, 1)),
    ("net.ipv4.conf.DEVICE.rp_filter", Form::Number(0, 2)),
    ("net.ipv4.conf.DEVICE.send_redirects", Form::Number(0, 1)),
    ("net.ipv4.conf.all.rp_filter", Form::Number(0, 2)),
    ("net.ipv4.conf.all.send_redirects", Form::Number(0, 1)),
    ("net.ipv4.neigh.default.gc_thresh1", Form::Number(0, MAX)),
    ("net.ipv4.neigh.default.gc_thresh2", Form::Number(0, MAX)),
    ("net.ipv4.neigh.default.gc_thresh3", Form::Number(0, MAX)),
    ("net.ipv6.conf.DEVICE.accept_ra", Form::Number(0, 2)),
    ("net.ipv6.conf.DEVICE.dad_transmits", Form::Number(0, 1000)),
    ("net.ipv6.conf.DEVICE.force_forwarding", Form::Number(0, 1)),
    ("net.ipv6.conf.DEVICE.router_solicitations", Form::Number(-1, 1000)),
    ("net.ipv6.neigh.default.gc_thresh1", Form::Number(0, MAX)),
    ("net.ipv6.neigh.default.gc_thresh2", Form::Number(0, MAX)),
    ("net.ipv6.neigh.default.gc_thresh3", Form::Number(0, MAX)),
];

/// Whether a key is the one of the table, for any device.
fn is_of(pattern: &str, key: &str) -> bool {
    let Some((before, after)) = pattern.split_once("DEVICE") else { return pattern == key };
    let device = key.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    device.is_some_and(|device| !["", "all", "default"].contains(&device) && device.len() < 16 && !device.contains('.'))
}

/// Whether a key may be set for a bench alone.
pub(super) fn is_for_bench(key: &str) -> bool {
    BENCH.iter().any(|(pattern, _)| is_of(pattern, key))
}

/// One parameter and its new value.
pub(super) struct Sysctl<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a str,
}

impl Knob for Sysctl<'_> {
    fn what(&self) -> String {
        self.key.to_owned()
    }

    fn target(&self) -> String {
        self.value.to_owned()
    }

    fn check(&self) -> Result<(), TuneError> {
        let all = || TABLE.iter().chain(BENCH);
        let Some((_, form)) = all().find(|(pattern, _)| is_of(pattern, self.key)) else {
            return Err(not_in_table("the kernel parameter", self.key, all().map(|(key, _)| *key)));
        };
        let sound = match *form {
            Form::Number(min, max) => self.value.parse::<i64>().is_ok_and(|value| (min..=max).contains(&value)),
            Form::Triple => {
                let numbers: Option<Vec<i64>> =
                    self.value.split(' ').map(|word| word.parse().ok().filter(|n| (1024..=MAX).contains(n))).collect();
                numbers.is_some_and(|numbers| numbers.len() == 3 && numbers.is_sorted())
            }
            Form::Congestion => CONGESTION.contains(&self.value) || is_loaded(self.value),
            Form::Qdisc => qdisc::KINDS.contains(&self.value),
        };
        if sound { Ok(()) } else { Err(self.bad(self.value, form.words())) }
    }

    fn current(&self) -> Result<String, TuneError> {
        Ok(sysctl::normal(&sysctl::read(self.key)?))
    }

    fn write(&self, note: &str) -> Result<(), TuneError> {
        Ok(sysctl::write(self.key, note)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, value: &str) -> Result<(), String> {
        Sysctl { key, value }.check().map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_table_is_set() {
        assert_eq!(check("net.ipv4.tcp_rmem", "4096 131072 8388608"), Ok(()));
        for device in ["eth0", "eth0/100"] {
            assert_eq!(check(&format!("net.ipv4.conf.{device}.rp_filter"), "0"), Ok(()));
        }
        for key in [
            "net.ipv4.conf.all.forwarding",
            "net.ipv4.conf.default.forwarding",
            "net.ipv4.conf..forwarding",
            "net.ipv4.conf.a.b.forwarding",
            "net.ipv4.conf.forwarding",
            "net.ipv6.conf.all.force_forwarding",
        ] {
            assert!(check(key, "1").is_err(), "{key}");
        }
        for key in ["net.ipv4.ip_forward", "kernel.panic", "net.core.../../kernel/panic", "net/core/rmem_max", ""] {
            let error = check(key, "1").expect_err(key);
            assert!(error.starts_with("narrows does not set the kernel parameter"), "{error}");
        }
    }

    #[test]
    fn a_refusal_names_the_nearest_and_the_place_of_the_list() {
        let refused = |key: &str| check(key, "1").expect_err(key);
        assert_eq!(
            refused("net.ipv4.tcp_rmen"),
            "narrows does not set the kernel parameter `net.ipv4.tcp_rmen`; the nearest is net.ipv4.tcp_rmem or net.ipv4.tcp_wmem or \
             net.ipv4.tcp_ecn; `narrows list parameters` shows all that it sets"
        );
        assert!(refused("net.ipv4.conf.eth0.rp_filtr").contains("the nearest is net.ipv4.conf."));
        let far = refused("kernel.panic");
        assert!(far.ends_with("`kernel.panic`; `narrows list parameters` shows all that it sets"), "{far}");
        assert!(parameters().any(|(key, values)| key == "net.ipv4.tcp_sack" && values == "a number from 0 to 1"));
    }

    #[test]
    fn a_bad_value_says_what_would_be_one() {
        let error = check("net.ipv4.tcp_sack", "2").expect_err("out of range");
        assert_eq!(error, "`2` is no value for net.ipv4.tcp_sack: it must be a number from 0 to 1");
        for value in ["4096 131072", "4096 131072 1", "1 2 3", "4096  131072 8388608", "4096 x 8388608"] {
            assert!(check("net.ipv4.tcp_wmem", value).is_err(), "{value}");
        }
        assert!(check("net.ipv4.tcp_congestion_control", "cubic\nreno").is_err());
        assert!(check("net.ipv4.tcp_congestion_control", "bbr").is_ok());
    }

    #[test]
    fn no_name_loads_a_module_that_is_none_of_the_list() {
        for key in ["net.ipv4.tcp_congestion_control", "net.core.default_qdisc"] {
            for name in ["nosuch", "", "fq nosuch", "../fq"] {
                assert!(check(key, name).is_err(), "{key} {name}");
            }
        }
        for kind in ["fq", "fq_codel", "pfifo_fast"] {
            assert_eq!(check("net.core.default_qdisc", kind), Ok(()));
        }
        let loaded = sysctl::read("net.ipv4.tcp_available_congestion_control").expect("readable");
        loaded.split(' ').for_each(|name| assert_eq!(check("net.ipv4.tcp_congestion_control", name), Ok(())));
    }

    #[test]
    fn the_table_is_sorted_and_below_net() {
        for table in [TABLE, BENCH] {
            assert!(table.is_sorted_by_key(|(key, _)| *key));
            assert!(table.iter().all(|(key, _)| key.starts_with("net.")));
        }
        assert!(TABLE.iter().all(|(key, _)| !is_for_bench(key)));
    }
}

//! Kernel parameters below `net.`: the ones of the table, and no others.

use super::error::TuneError;
use super::knob::{Knob, not_in_table};
use super::qdisc;
use narrows_model::host::settings::{Group, MAX, PARAMETERS, Parameter, Values};
use narrows_sys::sysctl;

fn words(values: Values) -> String {
    match values {
        Values::Number(min, max) => format!("a number from {min} to {max}"),
        Values::Triple => format!("three increasing numbers from 1024 to {MAX}, separated by spaces"),
        Values::Congestion => format!("one that this kernel has loaded, or one of {}", CONGESTION.join(", ")),
        Values::Qdisc => format!("one of {}", qdisc::KINDS.join(", ")),
    }
}

/// Those that may be set and their values: those of any host by their names, then those of a bench.
fn settable() -> Vec<(&'static Parameter, Values)> {
    let mut all: Vec<_> = PARAMETERS.iter().filter_map(|it| Some((it, it.values?))).collect();
    all.sort_by_key(|(it, _)| (it.group == Group::Bench, it.sysctl));
    all
}

/// Every parameter that may be set on this host, and its values.
pub(crate) fn parameters() -> impl Iterator<Item = (String, String)> {
    settable().into_iter().map(|(it, values)| (it.sysctl.to_owned(), words(values)))
}

/// Those of the kernel (net/ipv4/Kconfig).
const CONGESTION: &[&str] = &[
    "bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "reno", "scalable",
    "vegas", "veno", "westwood", "yeah",
];

/// Whether the kernel has loaded it already.
fn is_loaded(congestion: &str) -> bool {
    let loaded = sysctl::read("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    loaded.split(' ').any(|name| name == congestion)
}

/// Whether a key may be set for a bench alone.
pub(super) fn is_for_bench(key: &str) -> bool {
    Parameter::of(key).is_some_and(|it| it.group == Group::Bench)
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
        let Some(values) = Parameter::of(self.key).and_then(|it| it.values) else {
            return Err(not_in_table("the kernel parameter", self.key, settable().iter().map(|(it, _)| it.sysctl)));
        };
        let sound = match values {
            Values::Number(min, max) => self.value.parse::<i64>().is_ok_and(|value| (min..=max).contains(&value)),
            Values::Triple => {
                let numbers: Option<Vec<i64>> =
                    self.value.split(' ').map(|word| word.parse().ok().filter(|n| (1024..=MAX).contains(n))).collect();
                numbers.is_some_and(|numbers| numbers.len() == 3 && numbers.is_sorted())
            }
            Values::Congestion => CONGESTION.contains(&self.value) || is_loaded(self.value),
            Values::Qdisc => qdisc::KINDS.contains(&self.value),
        };
        if sound { Ok(()) } else { Err(self.bad(self.value, words(values))) }
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
}

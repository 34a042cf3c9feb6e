//! The virtual interfaces of a host and what is below them, from the facts `layer.*`.

use narrows_model::{FactKey, Snapshot, Value, keys};

/// One interface on the way of a packet out of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layer<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: &'a str,
    mtu: i64,
    /// Bytes that a tunnel adds to each IP packet.
    pub(crate) overhead: i64,
    /// The other end of a tunnel, as an address of the underlay.
    pub(crate) remote: Option<&'a str>,
    /// Offloads that are off and can be switched on.
    pub(crate) off: &'a [String],
}

/// From the interface on the route down; empty where nothing is known to be below it.
pub(crate) fn layers(host: &Snapshot) -> Vec<Layer<'_>> {
    let layer = |number: usize| {
        let of = |key: FactKey| host.get(key.name.replace('*', &number.to_string())).map(|fact| &fact.value);
        let number = |key| match of(key) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        };
        Some(Layer {
            name: of(keys::LAYER_NAME)?.as_text()?,
            kind: of(keys::LAYER_KIND)?.as_text()?,
            mtu: number(keys::LAYER_MTU)?,
            overhead: number(keys::LAYER_OVERHEAD).unwrap_or(0),
            remote: of(keys::LAYER_REMOTE).and_then(Value::as_text),
            off: match of(keys::LAYER_OFF) {
                Some(Value::List(words)) => words,
                _ => &[],
            },
        })
    };
    (0..).map_while(layer).collect()
}

/// An interface whose packets do not fit one below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TooLarge {
    /// The interface.
    pub(crate) device: String,
    /// The largest MTU that fits.
    pub(crate) fits: u32,
    /// Both, with their MTUs.
    pub(crate) says: String,
}

/// The first interface whose largest packet, with the headers of the tunnels on its way, exceeds the MTU of one below it.
pub(crate) fn too_large(host: &Snapshot) -> Option<TooLarge> {
    let layers = layers(host);
    (0..layers.len()).find_map(|at| {
        let upper = layers.get(at)?;
        let mut added = upper.overhead;
        let narrowest = layers.get(at + 1..)?.iter().map(|lower| {
            let fits = lower.mtu - added;
            added += lower.overhead;
            (fits, lower)
        });
        let (fits, lower) = narrowest.min_by_key(|(fits, _)| *fits)?;
        let needs = match lower.mtu - fits {
            0 => String::new(),
            bytes => format!(" and its tunnel adds {bytes} bytes"),
        };
        (fits < upper.mtu && fits > 0).then(|| TooLarge {
            device: upper.name.to_owned(),
            fits: u32::try_from(fits).unwrap_or(0),
            says: format!(
                "{} ({}) has an MTU of {}{needs}, {} below it ({}) has an MTU of {}",
                upper.name, upper.kind, upper.mtu, lower.name, lower.kind, lower.mtu
            ),
        })
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use narrows_model::{Fact, Unit};

    /// The facts of layers: name, kind, MTU, overhead.
    pub(crate) fn stack(layers: &[(&str, &str, i64, i64)]) -> Vec<Fact> {
        let fact = |key: FactKey, number: usize, value: Value| Fact {
            key: key.name.replace('*', &number.to_string()),
            value,
            unit: key.unit,
            source: "test".into(),
        };
        let facts = layers.iter().enumerate().flat_map(|(number, (name, kind, mtu, overhead))| {
            [
                fact(keys::LAYER_NAME, number, (*name).into()),
                fact(keys::LAYER_KIND, number, (*kind).into()),
                fact(keys::LAYER_MTU, number, Value::Integer(*mtu)),
                fact(keys::LAYER_OVERHEAD, number, Value::Integer(*overhead)),
            ]
        });
        facts.collect()
    }

    fn found(stacked: &[(&str, &str, i64, i64)]) -> Option<(String, u32)> {
        let host = Snapshot { facts: stack(stacked), ..Snapshot::default() };
        too_large(&host).map(|found| (found.device, found.fits))
    }

    #[test]
    fn the_overhead_of_each_tunnel_counts() {
        let eth = ("eth0", "physical", 1500, 0);
        assert_eq!(found(&[("vx0", "vxlan", 1500, 50), eth]), Some(("vx0".into(), 1450)));
        assert_eq!(found(&[("vx0", "vxlan", 1450, 50), eth]), None);
        // A tunnel in a tunnel: the upper one is too large, and the lower one is not.
        assert_eq!(found(&[("gre1", "gre", 1450, 24), ("vx0", "vxlan", 1450, 50), eth]), Some(("gre1".into(), 1426)));
        assert_eq!(found(&[("br0", "bridge", 1500, 0), ("eth0", "physical", 1400, 0)]), Some(("br0".into(), 1400)));
        assert_eq!(found(&[eth]), None);
    }

    #[test]
    fn it_is_said_with_both_names() {
        let host =
            Snapshot { facts: stack(&[("vx0", "vxlan", 1450, 50), ("v1", "veth", 1400, 0)]), ..Snapshot::default() };
        let says = too_large(&host).expect("too large").says;
        let want = "vx0 (vxlan) has an MTU of 1450 and its tunnel adds 50 bytes, v1 below it (veth) has an MTU of 1400";
        assert_eq!(says, want);
        assert_eq!(Unit::Bytes, keys::LAYER_MTU.unit);
    }
}

//! Ports with addresses of both families, and the networks behind them.

use super::super::parse;
use super::{bad, file};
use narrows_model::Family;

/// The least plan with addresses of both families.
fn both_families(rest: &str) -> String {
    let six = |side: &str, net: &str, own: &str| {
        format!("gateway = \"{side}\"\naddress6 = \"2001:2:0:{net}::{own}\"\ngateway6 = \"2001:2:0:{net}::1\"")
    };
    file("", rest)
        .replace("gateway = \"198.18.0.1\"", &six("198.18.0.1", "100", "2"))
        .replace("gateway = \"198.19.0.1\"", &six("198.19.0.1", "200", "2"))
}

#[test]
fn a_port_may_have_both_families() {
    let plan = parse(&both_families("")).expect("a plan").plan;
    let families: Vec<Family> = plan.traffic.iter().map(|traffic| traffic.family).collect();
    assert_eq!(families, [Family::Ipv4, Family::Ipv6], "each family that the ports have");
    assert_eq!((plan.traffic[0].sizes[0], plan.traffic[1].sizes[0]), (64, 82));
    let six = plan.receiver.of(Family::Ipv6).expect("addresses of IPv6");
    assert_eq!(
        (six.address.to_string().as_str(), six.gateway.to_string().as_str()),
        ("2001:2:0:200::2", "2001:2:0:200::1")
    );
    let two = "[[traffic]]\nfamily = \"ipv6\"\nnetworks = 256\n[[traffic]]\nnetworks = 256\nbidirectional = true";
    let plan = parse(&both_families(two)).expect("a plan").plan;
    assert_eq!((plan.traffic[0].family, plan.traffic[1].family), (Family::Ipv6, Family::Ipv4));
    // The receiver alone has no IPv6: the line of the traffic says so, and without that traffic there is nothing to say.
    let one = both_families("[[traffic]]\nfamily = \"ipv6\"")
        .replace("address6 = \"2001:2:0:200::2\"\ngateway6 = \"2001:2:0:200::1\"\n", "");
    assert_eq!(
        bad(&one).to_string(),
        "line 15, column 10: traffic[0].family: it is \"ipv6\", but [receiver] has no address of this family; add \
        address6 and gateway6"
    );
    let plan = parse(&one.replace("[[traffic]]\nfamily = \"ipv6\"", "")).expect("a plan").plan;
    assert_eq!(plan.traffic.len(), 1);
}

#[test]
fn the_second_pair_is_judged_like_the_first() {
    let of = |from: &str, to: &str| bad(&both_families("").replace(from, to)).to_string();
    let missing = of("gateway6 = \"2001:2:0:200::1\"\n", "");
    assert!(missing.contains("receiver.gateway6: it is missing"), "{missing}");
    let four = of("\"2001:2:0:100::", "\"198.18.7.");
    assert!(four.contains("generator.address6: it is 198.18.7.2, but must be an IPv6 address"), "{four}");
    let twice = of("2001:2:0:200::2", "2001:2:0:100::2");
    assert!(twice.contains("receiver.address6: it is 2001:2:0:100::2, the same as generator.address6"), "{twice}");
    let six = |text: String| text.replace("198.18.0.", "2001:2:0:300::").replace("198.19.0.", "2001:2:0:400::");
    let both = bad(&six(both_families(""))).to_string();
    assert!(both.contains("generator.address: it is 2001:2:0:300::2, but with address6"), "{both}");
}

#[test]
fn networks_of_one_side_leave_the_other_alone() {
    let near = both_families("[[traffic]]\nfamily = \"ipv6\"\nnetworks = 3\nbidirectional = true")
        .replace("2001:2:0:200::", "2001:2:0:101::");
    assert_eq!(
        bad(&near).to_string(),
        "line 18, column 12: traffic[0].networks: 3 networks of 64 bits from 2001:2:0:100::2 to 2001:2:0:102::2 \
        include 2001:2:0:101::2, the address of [receiver]; choose port addresses that are further apart"
    );
    let outside = bad(&file("", "[[traffic]]\nnetworks = 256").replace("198.19.0.", "198.19.200.")).to_string();
    assert!(outside.contains("256 networks from 198.19.200.2 on end with 198.20.199.2, which"), "{outside}");
    let groups = file("allow-any-address = true", "[[traffic]]\nnetworks = 256").replace("198.19.0.", "223.255.255.");
    assert!(bad(&groups).to_string().contains("end with 224.0.254.2"));
}

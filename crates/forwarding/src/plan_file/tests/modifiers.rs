//! `modifiers` of a traffic: what they become, and what they cannot be.

use super::{bad, file, good, says};
use narrows_model::host::snmp::{Secret, SnmpAccess};
use narrows_model::load::frame_traffic::Modifier;

const SNMP_HOP: &str = "[[hop]]\nname = \"r\"\nunder-test = true\ninput = \"a\"\noutput = \"b\"\n\
    source = { kind = \"snmp\", agent = \"198.18.0.1\", community = \"c\" }\n";

#[test]
fn each_modifier_is_a_traffic_of_its_own_behind_the_one_without() {
    let traffic = "[[traffic]]\nsizes = [64]\nflows = 5\nmodifiers = [\"broadcast\", \"management\", \"routes\"]\n";
    let plan = good("", &format!("{traffic}[[traffic]]\nsizes = [512]\n{SNMP_HOP}")).plan;
    assert_eq!(plan.traffic.len(), 5);
    let of = |at: usize| plan.traffic[at].modifier.clone();
    assert_eq!((of(0), of(4)), (None, None));
    assert_eq!(of(1), Some(Modifier::Broadcast { every: 100 }));
    let Some(Modifier::Management { agent }) = of(2) else { panic!("{:?}", of(2)) };
    let community = SnmpAccess::V2c { community: Secret::new("c") };
    assert_eq!((agent.agent.as_str(), agent.access), ("198.18.0.1", community));
    assert_eq!(of(3), Some(Modifier::Routes { every_ms: 30_000, networks: 25 }));
    assert!(plan.traffic[..4].iter().all(|traffic| traffic.sizes == [64] && traffic.flows == 5));
    assert_eq!([0, 1, 2, 3, 4].map(|at| plan.unmodified(at)), [None, Some(0), Some(0), Some(0), None]);
    assert_eq!(plan.rows().len(), 5);
}

#[test]
fn a_modifier_of_ones_own() {
    let plan = good(
        "",
        r#"
[[traffic]]
modifiers = [
  { kind = "broadcast", share = 0.05 },
  { kind = "management", agent = "192.0.2.1:1161", version = "3", user = "lab", password = "secret-word" },
  { kind = "routes", every = "1s", networks = 3 },
  { kind = "broadcast" },
]
"#,
    )
    .plan;
    let of: Vec<_> = plan.traffic.iter().filter_map(|traffic| traffic.modifier.clone()).collect();
    assert_eq!((&of[0], &of[3]), (&Modifier::Broadcast { every: 20 }, &Modifier::Broadcast { every: 100 }));
    assert_eq!(of[2], Modifier::Routes { every_ms: 1_000, networks: 3 });
    let Modifier::Management { agent } = &of[1] else { panic!("{of:?}") };
    let password = Some(Secret::new("secret-word"));
    assert_eq!(agent.access, SnmpAccess::V3 { user: "lab".to_owned(), password });
}

#[test]
fn what_a_modifier_cannot_be() {
    let of = |entry: &str| says("", &format!("[[traffic]]\nmodifiers = [{entry}]")).join("\n");
    assert!(of("\"noise\"").contains("traffic[0].modifiers[0]: it is `noise`, but must be \"broadcast\""));
    assert!(of("3").contains("must be a table"));
    assert!(of("{ share = 0.1 }").contains("traffic[0].modifiers[0].kind: it is missing"));
    assert!(of("{ kind = \"broadcast\", share = 0.9 }").contains("a number from 0.0001 to 0.5"));
    assert!(
        of("{ kind = \"broadcast\", every = \"1s\" }").contains("a modifier of the kind \"broadcast\" has no every")
    );
    assert!(of("{ kind = \"routes\", networks = 26 }").contains("a whole number from 1 to 25"));
    assert!(of("\"broadcast\", \"broadcast\"").contains("modifiers[1]: it is in the list twice"));
    assert!(of("\"management\"").contains("the plan has no hop with an SNMP source; name the agent"));
    assert!(of("{ kind = \"management\", agent = \"192.0.2.1\" }").contains("community: it is missing"));
    assert!(says("", "[[traffic]]\nmodifiers = \"broadcast\"")[0].contains("a list of"));
    let ports = file("", "[[traffic]]\nmodifiers = [\"routes\"]")
        .replace("198.18.0.", "2001:2:0:1::")
        .replace("198.19.0.", "2001:2:0:2::");
    assert!(bad(&ports).to_string().contains("RIP version 2, for IPv4 only"), "{}", bad(&ports));
}

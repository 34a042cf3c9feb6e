//! Ports and hops of other hosts.

use super::*;

#[test]
fn a_port_may_be_on_another_host() {
    let far = |top: &str, words: &str| {
        file(top, "").replace("gateway = \"198.19.0.1\"", &format!("gateway = \"198.19.0.1\"\n{words}"))
    };
    let plan = parse(&far("", "host = \"rcv.lab:6000\"\ntoken-file = \"rcv.token\"")).expect("a plan").plan;
    assert_eq!(
        (plan.receiver.host.as_deref(), plan.receiver.token_file.as_deref()),
        (Some("rcv.lab:6000"), Some("rcv.token"))
    );
    assert!(plan.generator.host.is_none() && !plan.one_clock());
    let says = |text: String| bad(&text).to_string();
    assert!(says(far("", "host = \"a b\"")).contains("receiver.host: it is `a b`, but must be a host that runs"));
    assert!(says(far("", "token-file = \"rcv.token\"")).contains("receiver.token-file: the port has a token file but"));
    let private = far("allow-any-address = true", "host = \"rcv\"").replace("198.19.0.", "10.2.0.");
    assert!(says(private).contains("`narrows serve` on the port's host allows no others"));
    let private = far("allow-any-address = true", "host = \"rcv\"").replace("198.18.0.", "10.1.0.");
    assert!(says(private).contains("generator.address is 10.1.0.2, outside of"));
    let hop = "[[hop]]\nname = \"r\"\ninput = \"a\"\noutput = \"b\"\nsource = { kind = \"narrows\", host = \"r\", token-file = \"t\" }";
    let source = &good("", hop).plan.hops[0].source;
    assert_eq!(*source, CounterSource::Narrows { host: "r".to_owned(), token_file: Some("t".to_owned()) });
}

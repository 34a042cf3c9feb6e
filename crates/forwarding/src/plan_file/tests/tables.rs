//! Tables of the device as a factor: what they become, and what they cannot be.

use super::{good, says};
use narrows_model::host::table::TableKind;
use narrows_model::load::frame_traffic::Modifier;

const DUT: &str = "[[hop]]\nname = \"r\"\nunder-test = true\ninput = \"a\"\noutput = \"b\"\n\
    source = { kind = \"namespace\", name = \"dut\" }\n";

#[test]
fn each_size_of_a_table_is_a_traffic_of_its_own() {
    let traffic = "[[traffic]]\nsizes = [64]\nroutes = [1000, 1_000_000]\nrules = [10]\nneighbours = [65_536]\n";
    let plan = good("", &format!("{traffic}{DUT}")).plan;
    let of = |table, entries| Some(Modifier::Table { table, entries });
    let got: Vec<_> = plan.traffic.iter().map(|it| it.modifier.clone()).collect();
    let routes = [1_000, 1_000_000].map(|entries| of(TableKind::Routes, entries));
    let rest = [of(TableKind::Rules, 10), of(TableKind::Neighbours, 65_536)];
    assert_eq!(got, [&[None], &routes[..], &rest[..]].concat());
    assert!((1..5).all(|at| plan.unmodified(at) == Some(0)) && plan.tables.is_none());
    let commands = "[tables]\ninstall = [\"fill\", \"{file}\"]\nremove = [\"empty\"]\nwithin = \"5m\"\n";
    let tables = good("", &format!("{traffic}{commands}")).plan.tables.expect("commands");
    assert_eq!(
        (tables.install.len(), tables.remove.as_slice(), tables.within_ms),
        (2, &["empty".to_owned()][..], 300_000)
    );
}

#[test]
fn what_a_table_cannot_be() {
    let of = |key: &str| says("", &format!("[[traffic]]\nsizes = [64]\n{key}\n{DUT}")).join("\n");
    assert!(
        of("routes = [1_048_577]").contains("routes[0]: it is 1048577, but must be a whole number from 1 to 1048576")
    );
    assert!(of("rules = [0]").contains("from 1 to 100000") && of("neighbours = 3").contains("a list of numbers"));
    assert!(of("routes = [5, 5]").contains("routes[1]: it is in the list twice"));
    assert!(of("routes = [5]\nbidirectional = true").contains("the table leads to the receiver only"));
    let nowhere = says("", "[[traffic]]\nsizes = [64]\nroutes = [1000]");
    assert_eq!(
        nowhere,
        [
            "tables: no hop under test is a namespace of this machine, so that narrows cannot fill its tables; add [tables] \
          with install and remove"
        ]
    );
    let half = says("", "[[traffic]]\nsizes = [64]\nroutes = [1000]\n[tables]\ninstall = [\"fill\"]");
    assert!(half[0].starts_with("tables.remove: it is missing"), "{half:?}");
}

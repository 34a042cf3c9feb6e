//! The fuzz targets of `fuzz/`, with a small number of the same inputs in each run: a parser that panics is found by the gate, too.

// The targets of `fuzz/` are one table for cargo-fuzz, the driver and this test.
#[path = "../../../fuzz/src/lib.rs"]
#[allow(dead_code, unreachable_pub)] // it is a crate of its own there
mod targets;

use narrows_sys::files;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use targets::{Mutator, TARGETS};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn seeds(of: &Path) -> Vec<Vec<u8>> {
    let names = files::list(of).expect("a corpus");
    names.iter().map(|name| files::read(&of.join(name), 4 << 20).expect("a seed")).collect()
}

#[test]
fn no_input_breaks_a_parser() {
    for target in TARGETS {
        let corpus = seeds(&root().join("corpus").join(target.name));
        assert!(!corpus.is_empty(), "{}", target.name);
        corpus.iter().for_each(|seed| (target.run)(seed));
        let mut mutator = Mutator::new(corpus, 7);
        let mut inputs = BTreeSet::new();
        for _ in 0..target.tries {
            let input = mutator.next_input();
            (target.run)(input);
            inputs.insert(input.to_vec());
        }
        assert!(inputs.len() * 2 > target.tries, "{}: {} different inputs", target.name, inputs.len());
    }
}

#[test]
fn each_target_is_a_program_with_a_corpus() {
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    // Without this feature its target is left out.
    let without = |names: Vec<String>| names.into_iter().filter(|name| cfg!(feature = "snmp") || name != "snmp");
    let programs = files::list(&root().join("fuzz_targets")).expect("targets");
    let programs = programs.iter().filter_map(|name| name.strip_suffix(".rs")).map(str::to_owned).collect();
    assert_eq!(without(programs).collect::<BTreeSet<_>>(), names);
    assert_eq!(without(files::list(&root().join("corpus")).expect("corpora")).collect::<BTreeSet<_>>(), names);
    for name in &names {
        let program = files::read_text(&root().join(format!("fuzz_targets/{name}.rs"))).expect("a program");
        assert!(program.contains(&format!("narrows_fuzz::run(\"{name}\", bytes)")), "{program}");
    }
}

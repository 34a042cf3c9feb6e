//! Builds the programs of `bpf/` that walk through sockets and count drops, where the feature `xdp` asks for BPF.

// A build script has no other crate to ask: it runs before they are there.
#![allow(clippy::disallowed_methods)]

#[path = "../../bpf/clang.rs"]
mod clang;

use clang::Words;
use std::path::Path;

const WORDS: Words = Words { whom: "narrows", without: "cargo build -p narrows --no-default-features --features snmp" };

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if clang::is_wanted() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
        println!("cargo::rerun-if-changed={}", folder.display());
        clang::build(&folder, "sockets", &[], &WORDS);
        clang::build(&folder, "drops", &[], &WORDS);
    }
}

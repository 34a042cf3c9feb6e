//! Builds the empty XDP programs of `bpf/bare.c` where the feature `xdp` asks for them.

#![allow(clippy::disallowed_methods)] // a build script starts the compiler

#[path = "../bpf/clang.rs"]
mod clang;

use clang::Words;
use std::path::Path;

const WORDS: Words = Words { whom: "the bench", without: "cargo build --no-default-features" };

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if !clang::is_wanted() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bpf");
    for file in ["bare.c", "kernel.h"] {
        println!("cargo::rerun-if-changed={}", folder.join(file).display());
    }
    // Of these programs no one reads their packets.
    clang::build(&folder, "bare", &["-Wno-unused-parameter"], &WORDS);
}

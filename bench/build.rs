//! Builds the empty XDP programs of `bpf/bare.c` if the feature `xdp` is enabled.

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
    // These programs do not read packet contents.
    clang::build(&folder, "bare", &["-Wno-unused-parameter"], &WORDS);
}

//! Builds the empty XDP programs of `bpf/bare.c` where the feature `xdp` asks for them.

#![allow(clippy::disallowed_methods)] // a build script starts the compiler

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_XDP").is_none() {
        return;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bpf");
    println!("cargo::rerun-if-changed={}", sources.join("bare.c").display());
    println!("cargo::rerun-if-changed={}", sources.join("kernel.h").display());
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let built = Command::new(&clang)
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror"])
        // A header names helpers that only some programs call; a table's declaration is all of its initialiser.
        .args(["-Wno-unused-function", "-Wno-unused-variable", "-Wno-missing-field-initializers"])
        // Of these programs no one reads their packets.
        .arg("-Wno-unused-parameter")
        .arg("-c")
        .arg(sources.join("bare.c"))
        .arg("-o")
        .arg(Path::new(&out).join("bare.o"))
        .output();
    match built {
        Ok(done) if done.status.success() => {}
        Ok(done) => {
            for line in String::from_utf8_lossy(&done.stderr).lines() {
                println!("cargo::error={line}");
            }
            println!(
                "cargo::error=`{clang}` cannot build bpf/bare.c for the kernel; the bench needs clang 11 or newer"
            );
        }
        Err(error) => println!(
            "cargo::error=cannot run `{clang}` ({error}): install clang (Debian: apt-get install clang), name it in the \
             variable CLANG, or build without XDP: cargo build --no-default-features"
        ),
    }
}

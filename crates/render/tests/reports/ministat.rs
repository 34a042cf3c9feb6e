//! The output of ministat, byte for byte: stored by `fixtures/compare/make.py`, and compared with the program where it is installed.

#![allow(clippy::disallowed_methods)] // a test that runs a program

#[path = "../../../../fixtures/compare/random.rs"]
mod random;

use narrows_render::compare::ministat::{Options, ministat};
use random::Random;
use std::fmt::Write as _;
use std::process::Command;

/// The sets of a seed as text, and the options.
fn case(seed: u64) -> (Vec<(String, String)>, f64, Options) {
    let mut random = Random(seed);
    let level = [80.0, 90.0, 95.0, 98.0, 99.0, 99.5][usize::try_from(seed % 6).expect("small")];
    let width = usize::try_from(10 + random.below(70)).expect("small");
    let bars_apart = random.below(3) == 0;
    let (mean, spread, digits) =
        [(1000, 4, 1), (941_000, 900, 0), (450, 60, 3), (17, 1, 0)][usize::try_from(random.below(4)).expect("small")];
    let mut sets = Vec::new();
    let count = 3 + random.below(5);
    for name in ('a'..'h').take(usize::try_from(count).expect("small")) {
        let most = if random.below(9) == 0 { 60 } else { 14 };
        let n = 3 + random.below(most);
        let to = mean + random.below(4) * spread;
        let mut text = String::new();
        random.sample(n, to, spread).iter().for_each(|it| writeln!(text, "{it}e-{digits}").expect("a string"));
        sets.push((name.to_string(), text));
    }
    (sets, level, Options { plot: true, differences: true, heads: true, bars_apart, width })
}

fn ours(seed: u64) -> String {
    let (sets, level, options) = case(seed);
    let parsed =
        sets.into_iter().map(|(name, text)| (name, text.lines().map(|it| it.parse().expect("a number")).collect()));
    ministat(&narrows_views::compare::ministat(parsed.collect(), level).expect("sets"), options)
}

#[test]
fn two_hundred_and_forty_comparisons_are_those_of_ministat() {
    let stored = include_str!("../../../../fixtures/compare/ministat.txt");
    let stored: Vec<String> =
        stored.split_terminator(";\n").map(|it| it.replace("\n=", "\n")[1..].to_owned()).collect();
    assert_eq!(stored.len(), 240);
    for (seed, expected) in (0..).zip(&stored) {
        assert_eq!(ours(seed), *expected, "seed {seed}");
    }
}

#[test]
fn the_program_says_the_same() {
    let directory = std::env::temp_dir().join(format!("narrows-ministat-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    for seed in 1000..1040 {
        let (sets, level, options) = case(seed);
        for (name, text) in &sets {
            std::fs::write(directory.join(name), text).expect("written");
        }
        let mut command = Command::new("ministat");
        command.current_dir(&directory).args(["-c", &level.to_string(), "-w", &options.width.to_string()]);
        command.args(options.bars_apart.then_some("-s")).args(sets.iter().map(|it| &it.0));
        let Ok(said) = command.output() else {
            println!("NOT CHECKED: the output of ministat itself, since it is not installed");
            break;
        };
        assert_eq!(ours(seed), String::from_utf8_lossy(&said.stdout), "seed {seed}");
    }
    std::fs::remove_dir_all(&directory).expect("removed");
}

//! The help pages: every one fits into 80 columns, and `-h` into one screen.

use crate::world::alone;

/// Lines of one screen.
const SCREEN: usize = 45;
const COLUMNS: usize = 80;

/// The commands that a help page names.
fn commands(help: &str) -> Vec<String> {
    let all = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| line.starts_with("  "));
    all.filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

/// The long flags that a help page lists.
fn flags(help: &str) -> Vec<&str> {
    let listed = help.lines().filter_map(|line| line.trim_start().split_once("--"));
    let listed = listed.filter(|(before, _)| before.is_empty() || (before.starts_with('-') && before.ends_with(", ")));
    listed.filter_map(|(_, rest)| rest.split([' ', '=', '.']).next()).collect()
}

/// Checks a command and all below it; how many there are.
fn check(words: &[&str]) -> usize {
    let world = alone();
    let page = |flag: &str| {
        let said = world.run(&[words, &[flag]].concat());
        assert_eq!(said.code, Some(0), "{words:?} {flag}: {said:?}");
        said.out
    };
    let (short, long) = (page("-h"), page("--help"));
    for (flag, text) in [("-h", &short), ("--help", &long)] {
        let wide = text.lines().find(|line| line.chars().count() > COLUMNS);
        assert_eq!(wide, None, "narrows {} {flag}", words.join(" "));
    }
    assert!(short.lines().count() <= SCREEN, "narrows {} -h has {} lines", words.join(" "), short.lines().count());
    let missing: Vec<_> = flags(&short).into_iter().filter(|flag| !flags(&long).contains(flag)).collect();
    assert_eq!(missing, [""; 0], "narrows {}: --help has all", words.join(" "));
    1 + commands(&long).iter().map(|name| check(&[words, &[name]].concat())).sum::<usize>()
}

#[test]
fn every_page_fits_the_screen() {
    assert!(check(&[]) > 30, "all commands were found");
}

#[test]
fn every_table_of_exit_codes_says_which_verdicts_exit_with_0() {
    let root = format!("{}/../..", env!("CARGO_MANIFEST_DIR"));
    let page = |name: &str| std::fs::read_to_string(format!("{root}/{name}")).expect("a page");
    let help = alone().run(&["--help"]).out;
    for (name, text) in [("--help", help), ("README", page("README.md")), ("manual", page("docs/manual.md"))] {
        let (_, table) = text.split_once("Exit codes").expect(name);
        let table: String = table.chars().take(250).collect::<String>().to_lowercase();
        assert!(["healthy", "suspected", "unknown"].iter().all(|word| table.contains(word)), "{name}: {table}");
    }
}

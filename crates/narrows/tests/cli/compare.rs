//! `narrows compare`: numbers, runs of the store, ministat's output, bad input.

use crate::history::recorded;
use crate::world::{World, alone};

const A: &str = "941\n940\n942\n939.5\n941.5\n940.5\n";
const B: &str = "612\n611\n613\n610.5\n612.5\n611.5\n";

/// A world with 12 runs in its store, six of them with each tag, interleaved.
fn with_runs() -> World {
    let world = alone();
    for (n, tag) in (0..12).zip(["before", "after"].into_iter().cycle()) {
        let id = format!("20250101-0000{n:02}-000000{n:02}");
        let run = recorded(&format!("long-path-{tag}"), &id, n);
        assert_eq!(world.run(&["store", "import", &world.file(&format!("{n}.run.json"), &run)]).code, Some(0));
        assert_eq!(world.run(&["history", "tag", &id, tag]).code, Some(0));
    }
    world
}

#[test]
fn columns_of_numbers_are_compared_in_every_format() {
    let world = alone();
    let (a, b) = (world.file("a.txt", A), world.file("b.txt", B));
    let said = world.run(&["compare", &a, &b]).with_code(0);
    assert!(
        said.out.contains("B against A: different, -35.0 % (95 % interval -35.1 % to -34.8 %), p 0.0022"),
        "{said:?}"
    );
    let said = world.run(&["compare", &a, &a, "--margin", "2%"]);
    assert!(said.out.contains("B against A: the same within 2 %, +0.00 %"), "{said:?}");
    let few = world.file("few.txt", "1\n2\n3\n");
    let said = world.run(&["compare", &few, &few]);
    assert!(said.out.contains("cannot tell") && said.out.contains("too few values to prove a difference"), "{said:?}");
    let json = world.run(&["compare", &a, &b, "--format", "json"]).json();
    assert_eq!(
        (&json["schema"], &json["figures"][0]["comparisons"][0]["verdict"]),
        (&"narrows.compare/1".into(), &"different".into())
    );
    let csv = world.run(&["compare", &a, &b, "--format", "csv"]).out;
    assert_eq!(csv.lines().count(), 13, "{csv}");
    assert!(world.run(&["compare", &a, &b, "--format", "markdown"]).out.starts_with("# Comparison\n"));
}

#[test]
fn runs_of_the_store_are_compared_with_their_inventories() {
    let world = with_runs();
    let said = world.run(&["compare", "tag:before", "tag:after"]).with_code(0);
    for words in
        ["A  tag:before (6 runs)", "goodput up", "B against A: different", "Inventory of the first runs of A and B, "]
    {
        assert!(said.out.contains(words), "{words}: {said:?}");
    }
    assert!(!said.out.contains("not interleaved"), "{said:?}");
    let ids =
        ["20250101-000000-00000000,20250101-000002-00000002", "20250101-000001-00000001,20250101-000003-00000003"];
    let said = world.run(&["compare", ids[0], ids[1], "--figure", "idle RTT", "--paired"]);
    assert!(said.out.contains("A  20250101-000000-00000000,20250101-000002-00000002 (2 runs)"), "{said:?}");
    let said = world.run(&["compare", "tag:before", "tag:after", "--figure", "retransmits"]);
    assert!(said.code == Some(0) && said.out.contains("\nretransmits up\n"), "{said:?}");
    let sentence = world.sentence(2, &["compare", "tag:before", "tag:after", "--figure", "RTT"]);
    assert!(
        sentence.starts_with("cannot compare the figure `RTT`: the name is ambiguous; give one of `"),
        "{sentence}"
    );
    let said = world.run(&["compare", "last~1", "last,20250101-000009"]);
    assert!(said.code == Some(0) && said.out.contains("B  last,20250101-000009 (2 runs)"), "{said:?}");
    let file = world.path("0.run.json");
    assert_eq!(world.run(&["compare", &file.to_string_lossy(), "tag:after"]).code, Some(0));
    let sentence = world.sentence(2, &["compare", "tag:before", "tag:after", "--figure", "nosuch"]);
    assert!(
        sentence
            .starts_with("cannot compare run 20250101-000000-00000000: it has no figure `nosuch`; it has `goodput "),
        "{sentence}"
    );
}

#[test]
fn ministat_is_printed_as_it_does() {
    let world = alone();
    world.file("a", "1\n2\n3\n4\n5\n");
    world.file("b", "2 x\n4 y\n6\n\n# no\n8\n10\n");
    let said = world.run(&["compare", "--ministat", "-c", "90", "-w", "30", "-s", "a", "b"]);
    as_debian_prints_it(&said.out);
    let table = world.run(&["compare", "--ministat", "-n", "-q", "a"]).out;
    assert_eq!(table, "x   5             1             5             3             3     1.5811388\n");
    for (words, sentence) in [
        (vec!["-c", "93", "a"], "cannot compare at 93 %: ministat has 80, 90, 95, 98, 99 and 99.5"),
        (vec!["a", "a", "a", "a", "a", "a", "a", "a"], "cannot compare 8 sets: ministat takes 7 at most"),
        (vec!["-C", "2", "b"], "cannot read b as a column of numbers: line 1 has no number in column 2: `x`"),
        (vec!["-C", "3", "a"], "cannot compare a: it has fewer than 3 numbers; ministat needs 3"),
    ] {
        assert_eq!(world.sentence(2, &[&["compare", "--ministat"], &words[..]].concat()), sentence);
    }
}

/// What Debian's ministat prints of the same.
fn as_debian_prints_it(out: &str) {
    let expected = "x a
+ b
+------------------------------+
|x  *  x   *  x  +      +     +|
| |____A_____|                 |
|      |_________A_________|   |
+------------------------------+
    N           Min           Max        Median           Avg        Stddev
x   5             1             5             3             3     1.5811388
+   5             2            10             6             6     3.1622777
Difference at 90.0% confidence
\t3 +/- 2.94092
\t100% +/- 98.0306%
\t(Student's t, pooled s = 2.5)
";
    assert_eq!(out, expected);
}

#[test]
fn what_cannot_be_compared_is_named() {
    let world = alone();
    let (a, bad, empty) = (world.file("a", A), world.file("bad", "1\nx\n"), world.file("empty", "\n"));
    for (code, words, begin) in [
        (2, vec![&*a], "cannot compare 1 samples: give 2 to 26"),
        (
            1,
            vec![&a, "nosuch"],
            "cannot find `nosuch`: neither a file nor a run id nor tag:NAME; `narrows history` lists the runs",
        ),
        (1, vec![&a, "tag:nosuch"], "cannot find runs with the tag `nosuch`; `narrows history` lists the tags"),
        (2, vec!["-", "-"], "cannot read standard input twice: give - once"),
        (2, vec![&a, &bad], "cannot read "),
        (2, vec![&a, &empty], "cannot compare "),
        (
            2,
            vec![&a, &a, "--figure", "x"],
            "cannot compare the figure `x`: plain numbers have no names; leave --figure out",
        ),
    ] {
        let sentence = world.sentence(code, &[&["compare"], &words[..]].concat());
        assert!(sentence.starts_with(begin), "{sentence}");
    }
    let unlike = world.file("unlike", "1\n2\n");
    let sentence = world.sentence(2, &["compare", &a, &unlike, "--paired"]);
    assert!(sentence.ends_with(" as pairs: 2 values against 6; leave --paired out"), "{sentence}");
    let run = world.file("x.json", "{\"format\": 99}");
    assert!(world.sentence(1, &["compare", &a, &run]).contains("x.json"));
}

#[test]
fn a_proven_difference_has_an_exit_code_where_it_is_asked_for() {
    let world = alone();
    let numbers =
        |name: &str, from: u32| world.file(name, &(0..6).map(|nth| format!("{}\n", from + nth)).collect::<String>());
    let (low, high) = (numbers("low", 100), numbers("high", 200));
    let code = |a: &str, b: &str, what: &str| world.run(&["compare", a, b, "--fail-if", what]).code;
    for (what, falls, rises) in [("lower", 3, 0), ("higher", 0, 3), ("different", 3, 3)] {
        assert_eq!((code(&high, &low, what), code(&low, &high, what)), (Some(falls), Some(rises)), "{what}");
    }
    assert_eq!(code(&low, &low, "different"), Some(0));
    assert!(world.sentence(2, &["compare", &low, &high, "--fail-if", "worse"]).contains("lower, higher or different"));
    let few = world.file("few", "1\n2\n");
    assert!(world.sentence(1, &["compare", &few, &low, "--fail-if", "lower"]).contains("too few runs"));
}

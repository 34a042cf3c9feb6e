//! A sweep that is misworded, interrupted, gone on with.

use crate::world::{Running, SIGINT, SIGKILL, World, alone, on_loopback, word};

#[test]
fn a_sweep_that_cannot_be_is_named_with_its_limits() {
    for (words, sentence) in [
        (&["--size", "64,64"][..], "size 64 is given twice"),
        (&["--size", "8"], "size is 8, but must be from 20 to 65507"),
        (&["--size", "64,1M"], "size is 1048576, but must be from 20 to 65507"),
        (&["--size", "8G"], "invalid size of 8589934592 bytes: the maximum is 4294967295"),
        (&["--protocol", "udp,udp"], "a protocol or direction is given twice"),
        (&["--duration", "50ms"], "trial is 50 ms, but must be from 100 ms to 24 h"),
        (&["--duration", "1s", "--omit", "1s"], "omit is 1 s, but a trial lasts only 1 s"),
        (&["--repetitions", "0"], "repetitions is 0, but must be from 1 to 1000"),
        (&["--streams", "200"], "streams is 200, but must be from 1 to 128"),
    ] {
        assert_eq!(alone().sentence(2, &[&["sweep", "127.0.0.1"], words].concat()), sentence);
    }
    let said = alone().run(&["sweep", "127.0.0.1", "--size", "64,big"]);
    assert_eq!(said.code, Some(2));
    let error = "error: invalid value 'big' for '--size <SIZES>': invalid size `big`; write it like 64, 9k or 4M\n";
    assert!(said.err.starts_with(error), "{said:?}");
}

#[test]
fn a_sweep_over_parameters_that_cannot_be_is_named() {
    for (words, sentence) in [
        (
            &["--over", "streams"][..],
            "invalid --over `streams`; write it like streams=1,4, server:tcp_rmem=64k,1M or client:gro@eth0=on,off",
        ),
        (&["--over", "window=1"], "cannot sweep over window=1: factor.values: must have 2 to 16 different values"),
        (
            &["--over", "window=1k,big"],
            "cannot sweep over window=1k,big: factor.values: `big` is not a size such as 64k or 4M",
        ),
        (
            &["--over", "streams=1,2", "--protocol", "udp,tcp"],
            "cannot sweep over parameters with several protocols: give one",
        ),
        (&["--over", "streams=1,2", "-d", "both"], "cannot sweep over parameters in both directions: give up or down"),
        (&["--over", "streams=1,2", "-l", "64"], "cannot sweep over parameters with --size: only UDP takes one size"),
    ] {
        assert_eq!(alone().sentence(2, &[&["sweep", "127.0.0.1"], words].concat()), sentence);
    }
}

/// Five points, a second and more together, of which the first is measured.
fn begun<'a>(world: &World, port: &'a str, token: &'a str, file: &'a str) -> (Vec<&'a str>, Running) {
    let way = vec!["sweep", "127.0.0.1", "--port", port, "--token-file", token];
    let plan = ["--size", "64,128,256,512,1024", "--protocol", "udp", "--direction", "up", "--rate", "1M"];
    let rest = ["--duration", "300ms", "--no-search", "--output", file];
    let mut client = world.start(&[&way[..], &plan[..], &rest[..]].concat());
    client.await_error("[1/5] UDP up 64 B  ");
    (way, client)
}

#[test]
fn ctrl_c_before_the_first_point_is_no_failure_of_the_measurement() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let way = ["127.0.0.1", "--port", &port, "--token-file", &token, "-t", "20s"];
        for words in [
            &["sweep", "--size", "64", "--protocol", "tcp", "--direction", "up"][..],
            &["search", "--skip-calibration", "--no-profile", "--max", "2M", "--min", "1M"],
        ] {
            let mut client = world.start(&[words, &way].concat());
            match words[0] {
                "sweep" => client.await_error("1 point"),
                _ => client.await_line("search "),
            }
            client.signal(SIGINT);
            let said = client.end().with_code(130);
            assert!(said.err.ends_with("narrows: interrupted before anything was measured\n"), "{said:?}");
        }
    });
}

#[test]
fn ctrl_c_keeps_the_points_and_resume_measures_the_rest() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let file = word(&world.path("a.run.json"));
        let (way, client) = begun(world, &port, &token, &file);
        client.signal(SIGINT);
        let said = client.end().with_code(130);
        assert!(said.out.contains("UDP up") && said.out.contains("! interrupted after "), "{said:?}");
        assert!(said.err.ends_with(&format!("saved to {file}; continue with --resume {file}\n")), "{said:?}");

        // Another plan, another host and another run are refused.
        let resume = [&way[..], &["--resume", &file]].concat();
        let other = format!(
            "cannot resume {file} with another --size and --rate: drop that flag, or drop --resume to start a new sweep"
        );
        assert_eq!(world.sentence(2, &[&resume[..], &["--size", "64", "--rate", "2M"]].concat()), other);
        assert_eq!(
            world.sentence(2, &["sweep", "192.0.2.1", "--resume", &file]),
            format!("cannot resume {file}: it is a sweep of 127.0.0.1, not of 192.0.2.1")
        );

        let (csv, svg) = (word(&world.path("a.csv")), word(&world.path("a.svg")));
        let said =
            world.run(&[&resume[..], &["--rate", "1M", "--format", "csv", "--csv", &csv, "--svg", &svg]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.err.contains(" of 5 points remain: about ") && !said.err.contains("[1/5]"), "{said:?}");
        assert!(said.err.ends_with(&format!("saved to {file}\n")), "{said:?}");
        let sizes: Vec<_> = said.out.lines().skip(1).filter_map(|line| line.split(',').nth(3)).collect();
        assert_eq!(sizes, ["64", "128", "256", "512", "1024"], "{said:?}");
        let read = |path: &str| std::fs::read_to_string(path).expect("a file");
        assert_eq!(read(&csv), said.out);
        assert!(read(&svg).starts_with("<svg "));

        // What is complete is shown again, without another end; and so does `report`.
        let said = world.run(&["sweep", "127.0.0.1", "--resume", &file, "--quiet"]).quiet(0);
        assert_eq!(world.run(&["report", &file]).out, said.out);
        let json = world.run(&["report", &file, "--format", "json"]).json();
        assert_eq!((&json["schema"], &json["done"]), (&"narrows.sweep/1".into(), &5.into()));
        assert_eq!(
            world.sentence(2, &["report", &file, "--format", "ndjson"]),
            "cannot write a sweep as ndjson: unsupported format; use text, json, markdown, html or csv"
        );
    });
}

#[test]
fn a_server_that_dies_leaves_the_points() {
    on_loopback(|world| {
        let (server, port, token) = world.serve(&[]);
        let file = word(&world.path("a.run.json"));
        let (_, client) = begun(world, &port, &token, &file);
        server.signal(SIGKILL);
        let said = client.end().with_code(1);
        // Where a line of the report breaks depends on the number of the port.
        let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.out.contains("! failed: ") && words.contains(" of 5 points"), "{said:?}");
        let last = said.err.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("narrows: lost the server at 127.0.0.1:{port}: ")), "{said:?}");
        assert!(said.err.contains(&format!("continue with --resume {file}\n")), "{said:?}");
    });
}

#[test]
fn what_is_no_sweep_cannot_be_gone_on_with() {
    on_loopback(|world| {
        let missing = world.sentence(1, &["sweep", "127.0.0.1", "--resume", "nothere"]);
        assert!(missing.starts_with("cannot find run `nothere`"), "{missing}");
        let (_server, port, token) = world.serve(&[]);
        let file = word(&world.path("tcp.run.json"));
        let words = ["measure", "tcp", "127.0.0.1", "--port", &port, "--token-file", &token, "--output", &file];
        assert_eq!(world.run(&[&words[..], &["-t", "200ms", "--pacing-rate", "10M"]].concat()).code, Some(0));
        assert_eq!(
            world.sentence(2, &["sweep", "127.0.0.1", "--resume", &file]),
            format!("cannot resume {file}: not a sweep")
        );
    });
}

#[test]
fn a_place_that_cannot_be_written_is_said_before_anything_is_measured() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let blocked = word(&std::path::Path::new(&world.file("file", "x")).join("a.run.json"));
        let words = ["sweep", "127.0.0.1", "--port", &port, "--token-file", &token, "--output", &blocked];
        let sentence = world.sentence(1, &words);
        assert!(sentence.contains(&blocked) && sentence.contains("is not a directory"), "{sentence}");
    });
}

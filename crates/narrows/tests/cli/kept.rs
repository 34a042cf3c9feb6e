//! What a forwarding benchmark leaves on disk: looked at before it begins, written while it runs, whole in the end.

use crate::bench::{PORTS, with_router};
use crate::world::{World, alone, word};
use narrows_sys::netns::Namespaces;
use narrows_sys::{clock, sysctl};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

const LOADS: &str = "
[[traffic]]
sizes = [64, 512]

[worst-case]
duration = \"300ms\"
repetitions = 1
";

fn forward(router: &Namespaces) {
    let set = router.run(|| sysctl::write("net.ipv4.conf.in0.forwarding", "1"));
    set.expect("a network").expect("a parameter");
}

fn plan(world: &World) -> String {
    world.file("plan.toml", &format!("{PORTS}{LOADS}"))
}

#[test]
fn a_place_that_cannot_be_written_is_told_before_anything_is_sent() {
    let world = alone();
    let plan = plan(&world);
    let file = world.file("file", "x");
    let here = word(&world.path("."));
    let why = |flag: &str, place: &str| world.sentence(1, &["rfc2544", &plan, flag, place]);
    for flag in ["-o", "--html"] {
        assert_eq!(why(flag, &here), format!("cannot write {here}: it is a directory; name a file in it"));
        assert_eq!(
            why(flag, "none/report"),
            "cannot write none/report: directory none does not exist; create it \
            first"
        );
        assert_eq!(why(flag, &format!("{file}/a")), format!("cannot write {file}/a: {file} is not a directory"));
        // A device or a pipe is written into; it is the tester's port that is missing then.
        assert!(why(flag, "/dev/null").contains("port gen0 cannot be used"), "{}", why(flag, "/dev/null"));
        assert!(why(flag, "/proc/report").starts_with("cannot write /proc/report: "));
    }
    assert!(why("--svg", &file).starts_with(&format!("cannot make directory {file}: ")), "{}", why("--svg", &file));
    assert!(why("--svg", "/proc/pictures").starts_with("cannot make directory /proc/pictures: "));
    assert_eq!(
        world.sentence(2, &["rfc2544", &plan, "-o", "same", "--html", "same"]),
        "--html and --output name the same file"
    );
    let said = world.run(&["rfc2544", "--again", "old.json", "-o", "new.json"]);
    assert!(said.code == Some(2) && said.err.contains("cannot be used with"), "{said:?}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "x");
}

#[test]
fn a_record_is_kept_while_it_grows_and_says_that_it_is_a_part() {
    with_router(|world, router| {
        forward(router);
        let plan = plan(world);
        let running = world.start(&["rfc2544", &plan, "-o", "record.json", "--quiet"]);
        let record = world.path("record.json");
        // The first row is over, the second one is not.
        assert!((0..6000).any(|_| {
            clock::sleep(Duration::from_millis(5));
            record.exists()
        }));
        running.signal(9);
        running.end();
        let said = world.run(&["rfc2544", "--again", "record.json"]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.out.contains("ended early: partial record, saved 0:00:"), "{said:?}");
        assert!(said.out.contains("in row 1 of 2"), "{said:?}");
        let json = world.run(&["rfc2544", "--again", "record.json", "--format", "json"]).out;
        assert!(json.contains("\"ended\": \"partial record, saved"), "{json}");
        let left = narrows_sys::files::list(&world.path(".")).expect("a list");
        assert!(left.iter().filter(|name| name.ends_with(".part")).count() <= 1, "{left:?}");
    });
}

#[test]
fn a_whole_benchmark_is_kept_as_such_and_its_pictures_may_be_read() {
    with_router(|world, router| {
        forward(router);
        let plan = plan(world);
        let words = ["rfc2544", &plan, "-o", "record.json", "--svg", "pictures", "--html", "pictures/report.html"];
        let said = world.run(&words);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(!said.out.contains("ended early"), "{said:?}");
        let mode = |path: &str| std::fs::metadata(world.path(path)).expect("it is there").permissions().mode() & 0o777;
        std::fs::create_dir(world.path("usual")).expect("a directory");
        assert_eq!(mode("pictures"), mode("usual") & 0o755, "as the umask says");
        assert!(world.path("pictures/report.html").exists());
        let again = world.run(&["rfc2544", "--again", "record.json"]);
        assert_eq!((again.code, again.out), (Some(0), said.out));
    });
}

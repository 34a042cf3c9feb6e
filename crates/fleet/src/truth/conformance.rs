//! What every place answers that keeps the tests of a fleet.

use super::{DAYS_KEPT_MS, Lease, Point, Taken, Truth};
use crate::protocol::Found;
use crate::schedule::{HOUR_MS, Name, Planned};
use narrows_mesh::Load;

/// A fleet for [`conforms`].
pub fn of_ten_hosts() -> crate::plan::Fleet {
    let hosts: String = (0..10).map(|nth| format!("hosts.h{nth} = {{}}\n")).collect();
    let test = "[[mesh]]\nname = 'all'\n[[mesh.test]]\nkind = 'probe'\nevery = '1m'\n";
    crate::plan::Fleet::read(&format!("name = 'ten'\n{hosts}{test}")).expect("a fleet")
}

/// What every implementation answers for [`of_ten_hosts`]; fails where one does otherwise.
pub fn conforms<T: Truth<Error: std::fmt::Debug>>(truth: &mut T) {
    let planned = |due_ms: u64, from: usize, slot: u64| Planned {
        due_ms,
        name: Name { mesh: 0, test: 0, slot, load: Load { from, to: 9 } },
    };
    let tests = [planned(100, 1, 1), planned(200, 1, 2), planned(100, 2, 1)];
    assert_eq!(truth.planned().expect("a time"), None);
    assert_eq!(truth.plan(&tests).expect("planned"), 3);
    assert_eq!(truth.planned().expect("a time"), Some(200));
    assert_eq!(truth.plan(&[tests[0], planned(900, 1, 1)]).expect("planned"), 0, "a name is planned once");
    let names = tests.map(|it| it.name);
    assert_eq!(truth.open(0..=150).expect("open"), [(tests[0], None), (tests[2], None)]);
    let never = Lease { name: names[0], fence: 0, until_ms: 0 };
    assert_eq!(end(truth, &[(never, "mine")]), [Taken::TooLate], "nobody was given it");
    let lease = |truth: &mut T, names: &[Name], now, until| truth.lease(names, now, until).expect("leases");
    let unknown = Name { slot: 77, ..names[0] };
    let given = lease(truth, &[names[0], unknown], 150, 500);
    let first = given[0].expect("a lease");
    assert_eq!((first.name, first.until_ms, given[1]), (names[0], 500, None));
    assert_eq!(lease(truth, &names[..1], 160, 500), [None], "it has an owner");
    assert_eq!(truth.open(0..=100).expect("open"), [(tests[0], Some(first)), (tests[2], None)]);
    // The lease ends, another one takes it: what the first says does not count any more.
    let [second, slow] = [0, 1].map(|nth| lease(truth, &names[nth..=nth], 500, 2_000)[0].expect("it is free"));
    assert!(second.fence > first.fence);
    assert_eq!(end(truth, &[]), []);
    assert_eq!(
        end(truth, &[(first, "old"), (second, "new"), (second, "other"), (first, "old")]),
        [Taken::TooLate, Taken::Stored, Taken::Again, Taken::TooLate],
        "one of them counts, once"
    );
    assert_eq!(end(truth, &[(second, "new")]), [Taken::Again], "given twice");
    assert_eq!(lease(truth, &names[..1], 900, 999), [None], "it is over");
    // What somebody has is not missed before its lease ends; what nobody asked for is.
    assert!(truth.miss(0, 0, 100, 1_500).expect("missed").is_empty(), "it is not late");
    assert_eq!(truth.miss(0, 0, 1_000, 1_500).expect("missed"), [names[2]]);
    assert_eq!(truth.miss(0, 0, 1_000, 2_000).expect("missed"), [names[1]]);
    assert_eq!(end(truth, &[(slow, "late")]), [Taken::TooLate], "it is named as missed");
    assert!(truth.miss(0, 0, 9_000, 9_000).expect("missed").is_empty());
    assert_eq!(lease(truth, &names, 9_000, 9_900), [None; 3]);
    assert!(truth.open(0..=9_000).expect("open").is_empty(), "all are over");
    assert_eq!(end(truth, &[(Lease { name: unknown, ..first }, "")]), [Taken::TooLate]);
    assert_eq!(truth.results(0, 0, 100..=100).expect("results"), [(100, names[0], b"new".to_vec())]);
    // The clock was ahead: what it named as missed and is due later can be made, what is over stays so.
    truth.reopen(150).expect("open again");
    let open: Vec<Planned> = truth.open(0..=9_000).expect("open").into_iter().map(|(test, _)| test).collect();
    assert_eq!(open, [tests[1]]);
    let again = lease(truth, &names[1..2], 150, 151)[0].expect("it is free");
    assert_eq!(end(truth, &[(slow, "old")]), [Taken::TooLate]);
    assert_eq!(end(truth, &[(again, "made")]), [Taken::Stored]);
    assert_eq!(truth.results(0, 0, 101..=900).expect("results"), [(200, names[1], b"made".to_vec())]);
    assert!(truth.results(0, 0, 0..=99).expect("results").is_empty());
    folds(truth, names[0].load);
    let mut leads = |who, now, until| truth.lead(who, now, until).expect("an answer");
    // A place with a clock of its own may take its time.
    assert!(leads("a", 0, 60_000) && !leads("b", 10, 60_010) && leads("a", 20, 60_020), "one leads, and goes on");
    assert!(leads("a", 30, 30) && leads("b", 31, 60_031) && !leads("a", 40, 60_040), "until it gives up");
    let late = planned(5_000, 4, 9);
    truth.plan(&[late]).expect("planned");
    truth.miss_all(5_000, 9_000).expect("missed");
    assert_eq!(truth.open(5_000..=5_000).expect("open"), [(late, None)], "it is not late");
    let given = lease(truth, &[late.name], 9_000, 9_900)[0];
    truth.miss_all(5_001, 9_000).expect("missed");
    assert_eq!(truth.open(5_000..=5_000).expect("open"), [(late, given)], "somebody has it");
    truth.miss_all(5_001, 9_900).expect("missed");
    assert_eq!(truth.open(5_000..=5_000).expect("open"), []);
    assert_eq!(truth.kept().expect("a state"), None);
    truth.keep(b"one").expect("kept");
    truth.keep(b"two").expect("kept");
    assert_eq!(truth.kept().expect("a state").as_deref(), Some(&b"two"[..]));
}

fn end<T: Truth<Error: std::fmt::Debug>>(truth: &mut T, results: &[(Lease, &str)]) -> Vec<Taken> {
    let results: Vec<_> = results.iter().map(|(lease, result)| (*lease, result.as_bytes().to_vec())).collect();
    truth.end(&results).expect("ends")
}

/// Tests of two days become a figure for each, once.
fn folds<T: Truth<Error: std::fmt::Debug>>(truth: &mut T, load: Load) {
    let day = 24 * HOUR_MS;
    let probe = |rtt_us: f64, lost: u64| {
        let path = narrows_model::run::mesh::MeshPath {
            rtt_us: Some([rtt_us, 2.0 * rtt_us, 3.0 * rtt_us]),
            packets: Some([50, lost, 0]),
            ..Default::default()
        };
        serde_json::to_string(&Found::Probe(path)).expect("JSON")
    };
    let name = |slot| Name { mesh: 0, test: 0, slot, load };
    let due = |slot: u64| 10 * day + (slot - 1_000) * day / 2;
    let slots = [1_000, 1_001, 1_002];
    truth.plan(&slots.map(|slot| Planned { due_ms: due(slot), name: name(slot) })).expect("planned");
    for (slot, result) in [(1_000, probe(100.0, 3)), (1_001, probe(200.0, 0))] {
        let lease = truth.lease(&[name(slot)], 0, 1).expect("a lease")[0].expect("it is free");
        end(truth, &[(lease, &result)]);
    }
    // A diagnosis is no load of the day.
    let diagnosis = serde_json::to_string(&Found::Diagnosis(Err("why".to_owned()))).expect("JSON");
    truth.plan(&[Planned { due_ms: 10 * day + 1, name: name(77) }]).expect("planned");
    let lease = truth.lease(&[name(77)], 0, 1).expect("a lease")[0].expect("it is free");
    end(truth, &[(lease, &diagnosis)]);
    truth.miss(0, 0, 12 * day, 12 * day).expect("missed");
    let point = |due_ms, tests, failed, figures, packets| Point { due_ms, tests, failed, figures, packets };
    let first = point(due(1_000), 1, 0, Some([100.0, 200.0, 300.0]), [50, 3, 0]);
    let series = |truth: &mut T| truth.series(0, 0, load, 9 * day).expect("a series");
    let days = |truth: &mut T| truth.days(0, 0, load, 9 * day).expect("days");
    let found = series(truth);
    let points: Vec<Point> = found.iter().map(|(at_ms, result)| Point::of(*at_ms, result.as_deref())).collect();
    assert_eq!((points.len(), &points[0], points[3].failed), (4, &first, 1), "{found:?}");
    assert_eq!(days(truth), []);
    let both = point(10 * day, 2, 0, Some([100.0, 300.0, 600.0]), [100, 3, 0]);
    let folded = |truth: &mut T, before_ms| {
        // A little at a time; what the conformance made before is older.
        std::iter::from_fn(|| Some(truth.fold(before_ms, 1).expect("folded"))).take_while(|count| *count > 0).count()
    };
    assert!(folded(truth, 11 * day) >= 2);
    assert_eq!(folded(truth, 11 * day), 0, "it is done once");
    assert_eq!((days(truth), series(truth)), (vec![both], vec![found[3].clone()]));
    assert!(folded(truth, 12 * day) > 0);
    assert_eq!((days(truth).len(), series(truth).len()), (2, 0));
    folded(truth, 12 * day + DAYS_KEPT_MS);
    assert_eq!(truth.plan(&[Planned { due_ms: 900 * day, name: name(5_000) }]).expect("planned"), 1);
    // What changed of hosts, of both ends of a path.
    let says = |nth: usize| format!("tcp.sack: on → off {nth}");
    for (host, at_ms) in [(1, 700 * day), (9, 600 * day), (2, 700 * day), (1, 400 * day)] {
        truth.note(host, at_ms, &[says(host)]).expect("noted");
    }
    let notes = |truth: &mut T| truth.notes([1, 9], 0).expect("notes");
    assert_eq!(notes(truth), [(400 * day, 1, says(1)), (600 * day, 9, says(9)), (700 * day, 1, says(1))]);
    assert_eq!(truth.notes([1, 9], 650 * day).expect("notes"), [(700 * day, 1, says(1))]);
    truth.fold(901 * day, 9).expect("folded");
    assert_eq!(days(truth), [], "days are not kept for ever");
    assert_eq!(notes(truth).len(), 2, "nor are changes of settings");
}

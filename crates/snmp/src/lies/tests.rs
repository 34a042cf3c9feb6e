//! Each lie is told, the seed's among them, and no honest way is accused, whatever it drops.

use super::*;
use proptest::prelude::*;

fn hop(name: &str, input: u64, output: u64) -> HopCount {
    HopCount {
        hop: name.into(),
        input: Some(input),
        output: Some(output),
        drops: Vec::new(),
        uncertainty: 0,
        source: "SNMP".into(),
        silent: None,
    }
}

fn told(sent: u64, received: u64, hops: &[HopCount]) -> Vec<(String, &'static str)> {
    doubts(sent, received, hops)
        .into_iter()
        .map(|doubt| (format!("{} {:?}", doubt.hop, doubt.side), doubt.lie))
        .collect()
}

#[test]
fn the_seed_s_router_divided_by_1024() {
    // One second of the seed: the receiver counted 564,842 frames, the switch 565,821, the router showed 551.6 k.
    let line_rate = 1_488_095;
    let hops =
        [hop("switch", line_rate, line_rate), hop("router", line_rate, 551_604), hop("switch back", 565_821, 565_821)];
    let found = doubts(line_rate, 564_842, &hops);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].hop.as_str(), found[0].side, found[0].lie), ("router", Side::Output, "thousands"));
    // And had it shown the plain quotient:
    let hops =
        [hop("switch", line_rate, line_rate), hop("router", line_rate, 551), hop("switch back", 565_000, 565_000)];
    let found = doubts(line_rate, 564_842, &hops);
    assert_eq!(
        found[0].to_string(),
        "router (output) counts 1/1024 of the frames that the hops beside it count (551 of 565,000): the agent divides by 1024"
    );
}

#[test]
fn a_counter_of_32_bits_wraps() {
    let sent = 5_000_000_000;
    let found = doubts(sent, sent, &[hop("switch", sent, 705_032_704)]);
    assert_eq!(
        found[0].to_string(),
        "switch (output) counts 705,032,704 frames, 4,294,967,296 fewer than passed: it is a 32-bit counter that wraps at \
         4,294,967,296"
    );
    let twice = told(9_000_000_000, 9_000_000_000, &[hop("switch", 9_000_000_000 - 2 * (1 << 32), 9_000_000_000)]);
    assert_eq!(twice, [("switch Input".to_owned(), "wrapped")]);
}

#[test]
fn each_of_the_others() {
    let one = |input, output| told(1_000_000, 900_000, &[hop("a", input, output)]);
    assert_eq!(one(0, 950_000), [("a Input".to_owned(), "stuck")]);
    assert_eq!(one(1_000_000, 1_800_000), [("a Output".to_owned(), "doubled")]);
    assert_eq!(one(1_000_000, 800_000), [("a Output".to_owned(), "impossible")]);
    assert_eq!(one(1_200_000, 900_000), [("a Input".to_owned(), "impossible")]);
}

#[test]
fn a_possible_count_is_accused_only_by_both_neighbours() {
    // The receiver got next to nothing, so that no count is too small for it; but behind the liar as many passed as before.
    let hops = [hop("a", 10_000_000, 10_000_000), hop("b", 9765, 10_000_000)];
    assert_eq!(told(10_000_000, 5, &hops), [("b Input".to_owned(), "divided")]);
    // All the rest was dropped: nobody lies.
    let hops = [hop("a", 10_000_000, 10_000_000), hop("b", 10_000_000, 9765)];
    assert_eq!(told(10_000_000, 9765, &hops), []);
}

#[test]
fn silent_and_missing_counts_are_not_judged() {
    let silent = HopCount { silent: Some("no answer".into()), ..hop("a", 0, 0) };
    let half = HopCount { input: None, ..hop("b", 0, 950) };
    assert_eq!(told(1000, 900, &[silent, half]), []);
}

proptest! {
    #[test]
    fn no_honest_way_is_accused(
        sent in 0_u64..1 << 40,
        shares in proptest::collection::vec(0_u64..=1000, 0..9),
        noise in 0_u64..50,
    ) {
        // Each hop drops some of what comes, and may count up to `noise` frames of its own, as it says.
        let mut passed = sent;
        let mut hops = Vec::new();
        for (at, share) in shares.into_iter().enumerate() {
            let input = passed;
            passed = passed / 1000 * share;
            let own = noise * (at as u64 % 2);
            hops.push(HopCount { uncertainty: noise, ..hop(&format!("h{at}"), input + own, passed + own) });
        }
        // A count may look like a lie beside its neighbours only where these agree with each other and it does not.
        prop_assert_eq!(doubts(sent, passed, &hops), vec![]);
    }

    #[test]
    fn each_liar_is_found(frames in 6_000_000_000_u64..1 << 40, lie in 0_usize..4, at in 0_usize..6) {
        let (id, count) = [
            ("divided", frames / 1024),
            ("thousands", frames / 1024 * 1000),
            ("wrapped", frames % (1 << 32)),
            ("stuck", 0),
        ][lie];
        let mut hops = vec![hop("a", frames, frames), hop("b", frames, frames), hop("c", frames, frames)];
        let liar = &mut hops[at / 2];
        if at % 2 == 0 { liar.input = Some(count) } else { liar.output = Some(count) }
        let found = doubts(frames, frames, &hops);
        prop_assert_eq!(found.len(), 1);
        // What is left of a wrap may by chance look like something else; it is accused all the same.
        if id != "wrapped" {
            prop_assert_eq!(found[0].lie, id);
        }
    }
}

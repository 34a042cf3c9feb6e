//! The books in each case: balanced, lost with and without a reason, counters that cannot be right, counters that are missing.

use super::account;
use super::testing::{blurred, both_ways, dropping, hop, silent, trial};
use crate::data::modifiers::{BroadcastSeen, ManagementSeen, ModifierSeen};
use crate::data::{Accounting, ForwardingPlan, ForwardingTrial};
use crate::testing::plan;
use narrows_model::host::hop::HopCount;
use proptest::prelude::*;

const SENT: u64 = 1_000_000;

fn of(received: u64, hops: Vec<HopCount>) -> Accounting {
    account(&plan(), &trial(SENT, received, hops), 0)
}

fn line<'a>(books: &'a Accounting, hop: &str) -> &'a crate::data::AccountLine {
    books.lines.iter().find(|line| line.hop == hop).expect("a line")
}

#[test]
fn what_balances_says_nothing() {
    let books = of(SENT, vec![hop("switch", SENT, SENT), hop("router", SENT, SENT), hop("switch2", SENT, SENT)]);
    let names: Vec<&str> = books.lines.iter().map(|line| line.hop.as_str()).collect();
    assert_eq!(names, ["generator", "switch", "router", "switch2", "receiver"]);
    assert_eq!((books.lost, books.found.len(), books.disagreement.clone()), (0, 0, None));
    for line in &books.lines {
        assert!(line.lost_before.unwrap_or(0) == 0 && line.unexplained.unwrap_or(0) == 0 && line.trouble.is_none());
    }
}

#[test]
fn a_rule_that_drops_every_thousandth_frame_is_named_with_its_device() {
    let left = SENT - 1_000;
    let router = dropping("router", SENT, left, &[("nftables rule", 1_000), ("no route", 0)]);
    let books = of(left, vec![hop("switch", SENT, SENT), router, hop("switch2", left, left)]);
    assert_eq!(books.disagreement, None);
    assert_eq!(books.lost, 1_000);
    assert_eq!(books.found, ["1,000 frames dropped by router: nftables rule"]);
    assert_eq!(line(&books, "router").unexplained, Some(0));
}

#[test]
fn several_reasons_are_named_each_with_its_number() {
    let left = SENT - 1_203;
    let router = dropping("router", SENT, left, &[("nftables rule", 1_000), ("qdisc r1", 203)]);
    let books = of(left, vec![hop("switch", SENT, SENT), router, hop("switch2", left, left)]);
    assert_eq!(books.found, ["1,203 frames dropped by router: nftables rule 1,000, qdisc r1 203"]);
}

#[test]
fn what_the_ring_lost_never_reached_the_input_counter() {
    let left = SENT - 500;
    let router = dropping("router", left, left, &[("rx_missed r0", 500)]);
    let books = of(left, vec![hop("switch", SENT, SENT), router, hop("switch2", left, left)]);
    assert_eq!(books.found, ["500 frames dropped by router: rx_missed r0"]);
    assert_eq!((line(&books, "router").lost_before, line(&books, "router").unexplained), (Some(500), Some(0)));
    // A device whose input counts what its ring lost.
    let router = dropping("router", SENT, left, &[("rx_missed r0", 500)]);
    let books = of(left, vec![hop("switch", SENT, SENT), router, hop("switch2", left, left)]);
    assert_eq!(books.found, ["500 frames dropped by router: rx_missed r0"]);
    assert_eq!((line(&books, "router").lost_before, line(&books, "router").unexplained), (Some(0), Some(0)));
}

#[test]
fn a_loss_that_no_counter_explains_is_no_disagreement() {
    let left = SENT - 70;
    let on_the_wire = of(left, vec![hop("switch", SENT, SENT), hop("router", left, left), hop("switch2", left, left)]);
    assert_eq!(on_the_wire.disagreement, None);
    assert_eq!(on_the_wire.found, ["70 frames lost between switch and router, which no counter explains"]);
    assert_eq!(line(&on_the_wire, "router").lost_before, Some(70));
    let inside = of(left, vec![hop("switch", SENT, SENT), hop("router", SENT, left), hop("switch2", left, left)]);
    assert_eq!(inside.disagreement, None);
    assert_eq!(inside.found, ["70 frames lost in router, which none of its counters explains"]);
    assert_eq!(line(&inside, "router").unexplained, Some(70));
    let at_the_end = of(left, vec![hop("switch", SENT, SENT), hop("router", SENT, SENT), hop("switch2", SENT, SENT)]);
    assert_eq!(at_the_end.found, ["70 frames lost between switch2 and the receiver, which no counter explains"]);
}

#[test]
fn a_reason_for_a_part_leaves_the_rest_unexplained() {
    let left = SENT - 100;
    let router = dropping("router", SENT, left, &[("qdisc r1", 60)]);
    let books = of(left, vec![hop("switch", SENT, SENT), router, hop("switch2", left, left)]);
    let said =
        ["60 frames dropped by router: qdisc r1", "40 frames lost in router, which none of its counters explains"];
    assert_eq!(books.found, said);
    assert_eq!(line(&books, "router").unexplained, Some(40));
}

#[test]
fn the_seed_a_router_that_divides_by_1024() {
    // 565,821 by the switch, 564,842 at the receiver, 551,600 by the router.
    let seed = |router| {
        let hops = vec![hop("switch", 565_821, 565_821), router, hop("switch2", 564_842, 564_842)];
        account(&plan(), &trial(565_821, 564_842, hops), 0)
    };
    let books = seed(hop("router", 551_600, 551_600));
    let says = books.disagreement.clone().expect("a disagreement");
    assert!(says.starts_with("at router: it counts 551,600 frames in, but 564,842 came out at the receiver"), "{says}");
    assert!(says.contains("looks like 1000/1024"), "{says}");
    assert_eq!(line(&books, "router").trouble.as_deref(), Some(says.as_str()));
    assert!(line(&books, "switch").trouble.is_none() && line(&books, "switch2").trouble.is_none());
    assert_eq!(books.found, [""; 0], "nothing is said of where frames were lost by counters that are wrong");
    let says = seed(hop("router", 552, 551)).disagreement.expect("a disagreement");
    assert!(says.starts_with("at router:") && says.contains("looks like 1/1024"), "{says}");
}

#[test]
fn a_counter_of_32_bits_that_wrapped_is_named() {
    let sent = 6_000_000_000;
    let wrapped = sent - (1_u64 << 32);
    let hops = vec![hop("switch", wrapped, wrapped), hop("router", sent, sent), hop("switch2", sent, sent)];
    let says = account(&plan(), &trial(sent, sent, hops), 0).disagreement.expect("a disagreement");
    assert!(says.starts_with("at switch:") && says.contains("32-bit counter that wrapped"), "{says}");
    // Subtracted over its wrap as if it had 64 bits.
    let huge = SENT.wrapping_sub(1 << 32);
    let books = of(SENT, vec![hop("switch", huge, SENT), hop("router", SENT, SENT), hop("switch2", SENT, SENT)]);
    let says = books.disagreement.expect("a disagreement");
    assert!(says.starts_with("at switch:") && says.contains("32-bit counter that wrapped"), "{says}");
}

#[test]
fn more_than_was_sent_is_a_disagreement_beyond_the_counters_error() {
    let hops = |more| {
        vec![hop("switch", SENT, SENT), blurred(hop("router", SENT + more, SENT), 20), hop("switch2", SENT, SENT)]
    };
    assert_eq!(of(SENT, hops(20)).disagreement, None, "packets of its own");
    let says = of(SENT, hops(21)).disagreement.expect("a disagreement");
    assert_eq!(says, "at router: it counts 1,000,021 frames in, but only 1,000,000 were sent (± 20)");
}

#[test]
fn counts_that_grow_on_the_way_name_both_neighbours() {
    // 300,000 lost in all; that the router took more than the switch sent is impossible, but which of them is wrong?
    let received = 700_000;
    let hops = vec![hop("switch", SENT, 900_000), hop("router", 950_000, received), hop("switch2", received, received)];
    let books = of(received, hops);
    let says = books.disagreement.clone().expect("a disagreement");
    assert!(
        says.starts_with("between switch and router: router counts 950,000 frames in, 50,000 more than switch"),
        "{says}"
    );
    assert!(says.ends_with("one of them is wrong"), "{says}");
    let out_of_nothing =
        vec![hop("switch", SENT, SENT), hop("router", 800_000, 900_000), hop("switch2", received, received)];
    let says = of(received, out_of_nothing).disagreement.expect("a disagreement");
    assert!(says.starts_with("at router: router counts 900,000 frames out, 100,000 more than it counts in"), "{says}");
}

#[test]
fn a_pattern_tells_which_of_two_neighbours_is_wrong() {
    // The switch shows 1000/1024 of what it carried, and a real loss follows, so that its count is not impossible.
    let (shown, received) = (976_562, 900_000);
    let router = dropping("router", SENT, received, &[("qdisc r1", 100_000)]);
    let books = of(received, vec![hop("switch", shown, shown), router, hop("switch2", received, received)]);
    let says = books.disagreement.clone().expect("a disagreement");
    assert!(says.starts_with("at switch:") && says.contains("1000/1024"), "{says}");
    assert!(line(&books, "switch").trouble.is_some() && line(&books, "router").trouble.is_none());
}

#[test]
fn drops_beyond_what_is_missing_are_told_and_accuse_no_one() {
    let router = || dropping("router", SENT, SENT, &[("no route", 12)]);
    let balanced = of(SENT, vec![hop("switch", SENT, SENT), router(), hop("switch2", SENT, SENT)]);
    assert_eq!((balanced.disagreement.clone(), balanced.found.len()), (None, 0), "other traffic's");
    let left = SENT - 5;
    let twice = dropping("router", SENT, left, &[("qdisc r1", 5), ("tx_dropped r1", 5)]);
    let books = of(left, vec![hop("switch", SENT, SENT), twice, hop("switch2", left, left)]);
    assert_eq!(books.disagreement, None);
    assert_eq!(books.found, ["5 frames lost at router, by its counters for: qdisc r1 5, tx_dropped r1 5"]);
    assert!(line(&books, "router").trouble.as_deref().is_some_and(|why| why.contains("counted twice")));
}

#[test]
fn a_hop_without_counters_leaves_a_gap_and_no_zero() {
    let left = SENT - 9;
    let hops =
        vec![hop("switch", SENT, SENT), silent("router", "no answer from 192.0.2.1"), hop("switch2", left, left)];
    let books = of(left, hops);
    assert_eq!(books.disagreement, None);
    assert_eq!(books.found, ["9 frames lost between switch and switch2, where router gave no counters"]);
    let router = line(&books, "router");
    assert_eq!((router.input, router.lost_before, router.unexplained), (None, None, None));
    assert_eq!(router.trouble.as_deref(), Some("no answer from 192.0.2.1"));
    let none = of(left, Vec::new());
    assert_eq!(
        none.found,
        ["9 frames lost between the generator and the receiver, where switch and router and switch2 gave no counters"]
    );
    assert!(line(&none, "switch").trouble.is_some());
}

#[test]
fn an_output_alone_still_places_a_loss() {
    let left = SENT - 9;
    let router = HopCount { input: None, ..dropping("router", 0, left, &[("qdisc r1", 9)]) };
    let books = of(left, vec![hop("switch", SENT, SENT), router, hop("switch2", left, left)]);
    assert_eq!(
        (books.disagreement.clone(), books.found),
        (None, vec!["9 frames dropped by router: qdisc r1".to_owned()])
    );
}

#[test]
fn what_is_below_the_error_of_the_counters_is_not_placed() {
    let left = SENT - 3;
    let hops = ["switch", "router", "switch2"].map(|name| blurred(hop(name, left, left), 5)).to_vec();
    let books = of(left, hops);
    assert_eq!(books.disagreement, None);
    assert_eq!(books.found, ["3 frames lost, but the counters are not exact enough to say where (± 30)"]);
}

#[test]
fn more_received_than_sent_is_the_testers() {
    let books = of(SENT + 1, vec![hop("switch", SENT, SENT), hop("router", SENT, SENT), hop("switch2", SENT, SENT)]);
    assert_eq!(books.lost, -1);
    assert!(books.disagreement.is_some_and(|says| says.starts_with("the receiver counts 1,000,001 frames")));
}

#[test]
fn the_way_back_has_its_hops_in_reverse_and_its_own_counts() {
    let forth = [hop("switch", SENT, SENT), hop("router", SENT, SENT), hop("switch2", SENT, SENT)];
    let left = SENT - 4;
    let back =
        [hop("switch", left, left), dropping("router", SENT, left, &[("qdisc r0", 4)]), hop("switch2", SENT, SENT)];
    let trial = both_ways([SENT, SENT], [SENT, left], forth.into_iter().chain(back).collect());
    assert_eq!(account(&plan(), &trial, 0).lost, 0);
    let back = account(&plan(), &trial, 1);
    let names: Vec<&str> = back.lines.iter().map(|line| line.hop.as_str()).collect();
    assert_eq!(names, ["generator", "switch2", "router", "switch", "receiver"]);
    assert_eq!(back.found, ["4 frames dropped by router: qdisc r0"]);
    assert_eq!(account(&plan(), &trial, 2).lines, []);
}

#[test]
fn a_way_back_that_was_not_read_is_silent_and_not_that_of_the_way_forth() {
    let forth = vec![hop("switch", SENT, SENT), hop("router", SENT, SENT), hop("switch2", SENT, SENT)];
    let back = account(&plan(), &both_ways([SENT, SENT], [10, 10], forth), 1);
    assert_eq!(back.disagreement, None);
    assert!(line(&back, "router").trouble.as_deref().is_some_and(|why| why.contains("not read for this direction")));
}

proptest! {
    /// Frames only get fewer, and every counter is exact or within its error: nobody is accused, and what is lost is placed.
    #[test]
    fn honest_counters_are_never_accused(
        sent in 1_u64..10_000_000_000,
        losses in prop::collection::vec(0.0..0.5_f64, 7),
        honest in prop::collection::vec(0_u64..50, 6),
        spared in 0_usize..8,
        counted in any::<bool>(),
    ) {
        let mut left = sent;
        let mut posts = vec![sent];
        for (index, loss) in losses.iter().enumerate() {
            if index != spared {
                left -= (left as f64 * loss) as u64;
            }
            posts.push(left);
        }
        let received = left;
        let names = ["switch", "router", "switch2"];
        let hops = (0..3).map(|nth| {
            let (input, output) = (posts[1 + 2 * nth], posts[2 + 2 * nth]);
            let gone = input - output;
            let reasons = [("qdisc r1", gone)];
            let drops: &[(&str, u64)] = if counted { &reasons } else { &[] };
            blurred(dropping(names[nth], input + honest[2 * nth], output + honest[2 * nth + 1], drops), 50)
        });
        let books = account(&plan(), &trial(sent, received, hops.collect()), 0);
        prop_assert_eq!(&books.disagreement, &None);
        prop_assert_eq!(books.lost > 0, !books.found.is_empty());
    }

    #[test]
    fn any_counters_give_books(
        sent in any::<u64>(),
        received in any::<u64>(),
        counts in prop::collection::vec((any::<Option<u64>>(), any::<Option<u64>>(), any::<u64>(), any::<u64>()), 0..7),
    ) {
        let names = ["switch", "router", "switch2"];
        let hops = counts.into_iter().zip(names.into_iter().cycle()).map(|((input, output, drops, error), name)| HopCount {
            input,
            output,
            ..blurred(dropping(name, 0, 0, &[("rx_missed", drops), ("rule", drops / 3)]), error)
        });
        let books = account(&plan(), &trial(sent, received, hops.collect()), 0);
        prop_assert_eq!(books.lines.len(), 5);
        prop_assert!(received <= sent || books.disagreement.is_some());
    }
}

/// A trial in which so many frames to all stations left and came out beside the test frames.
fn with_broadcast(received: u64, sent_to_all: u64, came: u64, hops: Vec<HopCount>) -> Accounting {
    let seen = BroadcastSeen { due: sent_to_all, handed: sent_to_all, sent: sent_to_all, received: came };
    let modifier = Some(ModifierSeen::Broadcast { directions: vec![seen] });
    account(&plan(), &ForwardingTrial { modifier, ..trial(SENT, received, hops) }, 0)
}

#[test]
fn what_a_router_must_not_forward_is_neither_lost_nor_dropped() {
    let all = SENT + 10_000;
    let hops = vec![hop("switch", all, all), hop("router", all, SENT), hop("switch2", SENT, SENT)];
    let books = with_broadcast(SENT, 10_000, 0, hops);
    assert_eq!((books.lost, books.found.len(), books.disagreement.clone()), (0, 0, None));
    assert_eq!(books.broadcast.map(|it| (it.sent, it.received)), Some((10_000, 0)));
    let router = line(&books, "router");
    assert_eq!((router.not_forwarded, router.unexplained, router.drops.len()), (10_000, Some(0), 0));
    assert_eq!(line(&books, "receiver").lost_before, Some(0));
}

#[test]
fn a_bridge_that_floods_them_keeps_nothing_back() {
    let all = SENT + 10_000;
    let hops = vec![hop("switch", all, all), hop("router", all, all), hop("switch2", all, all)];
    let books = with_broadcast(SENT, 10_000, 10_000, hops);
    assert_eq!((books.lost, books.found.len(), books.disagreement.clone()), (0, 0, None));
    assert!(books.lines.iter().all(|line| line.not_forwarded == 0 && line.unexplained.unwrap_or(0) == 0));
}

#[test]
fn a_drop_counter_that_counts_them_is_not_a_loss() {
    // As Linux does in IPv6, beside a rule that drops test frames.
    let (all, left) = (SENT + 10_000, SENT - 300);
    let drops = [("nftables rule", 300), ("IPv6 discarded on the way in", 10_000)];
    let router = dropping("router", all, left, &drops);
    let books = with_broadcast(left, 10_000, 0, vec![hop("switch", all, all), router, hop("switch2", left, left)]);
    assert_eq!(books.found, ["300 frames dropped by router: nftables rule"]);
    assert_eq!(
        (books.lost, line(&books, "router").not_forwarded, line(&books, "router").unexplained),
        (300, 10_000, Some(0))
    );
}

#[test]
fn losses_beside_them_are_still_found() {
    let (all, left) = (SENT + 10_000, SENT - 70);
    let router = hop("router", all, left);
    let inside = with_broadcast(left, 10_000, 0, vec![hop("switch", all, all), router, hop("switch2", left, left)]);
    assert_eq!(inside.found, ["70 frames lost in router, which none of its counters explains"]);
    let hops = vec![hop("switch", all, all), silent("router", "no agent"), hop("switch2", left, left)];
    let unseen = with_broadcast(left, 10_000, 0, hops);
    assert_eq!(unseen.found, ["70 frames lost between switch and switch2, where router gave no counters"]);
    let alone = ForwardingPlan { hops: Vec::new(), ..plan() };
    let seen = BroadcastSeen { due: 500, handed: 500, sent: 500, received: 0 };
    let modifier = Some(ModifierSeen::Broadcast { directions: vec![seen] });
    let without = account(&alone, &ForwardingTrial { modifier, ..trial(SENT, left, Vec::new()) }, 0);
    assert_eq!((without.lost, line(&without, "receiver").not_forwarded), (70, 500));
    assert_eq!(without.found, ["70 frames lost between the generator and the receiver, which no counter explains"]);
}

#[test]
fn without_a_device_under_test_the_hop_that_misses_most_kept_them() {
    let all = SENT + 10_000;
    let mut nobody = plan();
    nobody.hops.iter_mut().for_each(|hop| hop.under_test = false);
    let seen = BroadcastSeen { due: 10_000, handed: 10_000, sent: 10_000, received: 0 };
    let modifier = Some(ModifierSeen::Broadcast { directions: vec![seen] });
    let hops = vec![hop("switch", all, all), hop("router", all, SENT), hop("switch2", SENT, SENT)];
    let books = account(&nobody, &ForwardingTrial { modifier, ..trial(SENT, SENT, hops) }, 0);
    assert_eq!((line(&books, "router").not_forwarded, books.found.len()), (10_000, 0));
}

#[test]
fn queries_and_updates_may_be_counted_by_every_hop() {
    let more = SENT + 120;
    let hops = || vec![hop("switch", more, more), hop("router", more, SENT), hop("switch2", SENT, SENT)];
    assert!(of(SENT, hops()).disagreement.is_some(), "more than was put in");
    let asked = ManagementSeen { asked: 60, answered: 60, ..ManagementSeen::default() };
    let modifier = Some(ModifierSeen::Management(asked));
    let books = account(&plan(), &ForwardingTrial { modifier, ..trial(SENT, SENT, hops()) }, 0);
    assert_eq!((books.disagreement, books.found.len()), (None, 0));
}

proptest! {
    #[test]
    fn books_with_frames_to_all_balance_as_those_without(
        lost in 0..1_000_u64, to_all in 0..50_000_u64, came in 0..50_000_u64, counted: bool
    ) {
        let came = came.min(to_all);
        let (all, left) = (SENT + to_all, SENT - lost + came);
        let (kept, rule) = (to_all - came, ("nftables rule", lost));
        let drops = [rule, ("discarded", if counted { kept } else { 0 })];
        let router = dropping("router", all, left, &drops);
        let books = with_broadcast(SENT - lost, to_all, came, vec![hop("switch", all, all), router, hop("switch2", left, left)]);
        prop_assert_eq!(books.disagreement, None);
        prop_assert_eq!(books.lost, i64::try_from(lost).unwrap_or(0));
        prop_assert!(books.lines.iter().all(|line| line.unexplained.unwrap_or(0) == 0 && line.lost_before.unwrap_or(0) == 0));
        let not_forwarded: u64 = books.lines.iter().map(|line| line.not_forwarded).sum();
        let dropped: u64 = books.lines.iter().flat_map(|line| &line.drops).map(|drop| drop.frames).sum();
        prop_assert_eq!((not_forwarded, dropped), (kept, lost));
    }
}

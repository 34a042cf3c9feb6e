//! `--underlay`: whether the limit of a load over a tunnel is in the tunnel or below it, by the same load below the tunnel.
//!
//! | The underlay carries | Then the limit is |
//! | --- | --- |
//! | clearly more, before and after the overlay was measured again | *inside* the tunnel |
//! | as little, and the verdict names the path or a device | *below* the tunnel |
//! | as little, and the verdict names the hosts, the load or nothing | in *neither* |
//! | a rate that varies as much as the two differ, and the path loses the same share of both | *below* the tunnel |
//! | anything else | *unknown* |
//!
//! The verdict of the overlay stays what it is.

use crate::causes;
use crate::evidence::tcp::{FlowView, Loss, TcpEvidence};
use crate::experiments::tcp::{AGAIN, UNDERLAY};
use crate::judge::{Evidence as _, Planned};
use crate::layers::{layers, too_large};
use crate::role::Role;
use narrows_model::run::report::{Layer, UnderlayView};
use narrows_model::run::{DiagnosePlan, RunPlan, Underlay};
use narrows_model::words::{figures::float, units};
use narrows_model::{Place, Run, Snapshot, Status, Verdict, keys};
use std::net::IpAddr;

/// One trial differs from the next by less: the underlay must carry so much more, beyond the headers of the tunnel.
const GAIN: f64 = 1.15;

/// Samples whose goodput is averaged before it is compared: those next to each other are not independent.
const BLOCK: usize = 3;

/// A core that is busier has no time to spare.
const FULL: f64 = 0.85;

/// The server's address below the tunnel, or why it is not known; `None` where the user does not want it measured.
pub fn address(run: &Run) -> Option<Result<IpAddr, String>> {
    let RunPlan::Diagnose(DiagnosePlan { underlay: Some(wanted), .. }) = &run.plan else { return None };
    Some(match wanted {
        Underlay::Address(address) => Ok(*address),
        Underlay::Tunnel => of_tunnel(&run.client),
    })
}

fn of_tunnel(client: &Snapshot) -> Result<IpAddr, String> {
    let name_it = "give the server's address below it with --underlay ADDRESS";
    let stack = layers(client);
    let known = stack.iter().find_map(|layer| layer.remote?.parse().ok());
    let text = |key| client.get(key).and_then(|fact| fact.value.as_text());
    let own = || Some((text(keys::NIC_NAME)?, text(keys::NIC_KIND)?));
    known.ok_or_else(|| match stack.iter().find(|layer| layer.overhead > 0).map(|it| (it.name, it.kind)).or_else(own) {
        Some((name, "tun")) => {
            format!("{name} is a TUN device, and only its program knows the other end of the tunnel; {name_it}")
        }
        Some((name, kind)) if stack.iter().any(|layer| layer.overhead > 0) => {
            format!("the kernel does not know the other end of the tunnel {name} ({kind}); {name_it}")
        }
        Some((name, kind)) => {
            format!("the route to the server leaves by {name} ({kind}), which is no tunnel; {name_it}")
        }
        None => format!("the interface on the route to the server is not known; {name_it}"),
    })
}

/// The next trial that the comparison needs: the load by the underlay, then once more over the overlay where the two differ.
pub fn next(run: &Run) -> Option<Planned> {
    let evidence = TcpEvidence::of(run, 0)?;
    let experiment = match evidence.made(&UNDERLAY) {
        None => &UNDERLAY,
        Some(under) if evidence.made(&AGAIN).is_none() && differ(&evidence, under) => &AGAIN,
        Some(_) => return None,
    };
    experiment.planned(&evidence.baseline())
}

fn differ(evidence: &TcpEvidence, under: &FlowView) -> bool {
    let ratio = carries(evidence, under) / evidence.goodput_bps();
    !(1.0 / GAIN..GAIN).contains(&ratio)
}

/// What the overlay would carry at the rate of the underlay, less the headers of its tunnels, bits a second.
fn carries(evidence: &TcpEvidence, under: &FlowView) -> f64 {
    let added: i64 = evidence.host(Role::Sender).map_or(0, |host| layers(host).iter().map(|it| it.overhead).sum());
    let of = |mss: f64| mss * evidence.wire_efficiency(mss) / (mss + added as f64 * evidence.wire_efficiency(mss));
    match (evidence.base.mss_bytes, under.mss_bytes) {
        (Some(over), Some(mss)) => under.goodput_bps * of(over) / evidence.wire_efficiency(mss),
        _ => under.goodput_bps,
    }
}

/// What is said of the layers; `None` where the underlay was not measured.
pub(crate) fn view(run: &Run, evidence: &TcpEvidence, verdict: &Verdict) -> Option<UnderlayView> {
    let address = address(run)?.ok()?.to_string();
    let under = evidence.made(&UNDERLAY)?;
    let again = evidence.made(&AGAIN);
    let overlay_bps: Vec<f64> = std::iter::once(&evidence.base).chain(again).map(|view| view.goodput_bps).collect();
    let (layer, why) = layer(evidence, under, &overlay_bps, verdict);
    Some(UnderlayView { address, goodput_bps: under.goodput_bps, overlay_bps, layer, why })
}

fn layer(evidence: &TcpEvidence, under: &FlowView, overlay_bps: &[f64], verdict: &Verdict) -> (Layer, String) {
    let carries = carries(evidence, under);
    let least = overlay_bps.iter().copied().fold(f64::INFINITY, f64::min);
    let most = overlay_bps.iter().copied().fold(0.0, f64::max);
    let unknown = |why: &str| (Layer::Unknown, why.to_owned());
    let varies = |why: &str| lost_alike(evidence, under, verdict).unwrap_or_else(|| unknown(why));
    let (more, less) = (carries >= GAIN * most, GAIN * carries <= least);
    if !more && most >= GAIN * least {
        return varies("the overlay itself carried more at one time than at the other");
    }
    if !more && !less {
        return as_little(verdict);
    }
    if overlay_bps.len() < 2 {
        return unknown("the two differ, and there was no time to measure the overlay once more");
    }
    if !beyond_chance(evidence, under) {
        return varies("both rates vary too much to compare them");
    }
    if less {
        return unknown("the underlay carried less than the overlay: something limits the two differently");
    }
    let reasons = reasons(evidence, under);
    if reasons.is_empty() {
        // What a few losses more or fewer leave differs by more than the rate varies within a load.
        let by_loss = verdict.causes.first().is_some_and(|cause| cause.id == "random-loss");
        if let Some(alike) = lost_alike(evidence, under, verdict).filter(|_| by_loss) {
            return alike;
        }
        let why = "the underlay carries more; no counter of the hosts shows why: the path may treat the tunnel's packets differently";
        return (Layer::Inside, why.to_owned());
    }
    (Layer::Inside, format!("the underlay carries more: {}", reasons.join("; ")))
}

/// Whether a cause is in a device of a host.
fn in_device(id: &str) -> bool {
    causes::tcp::TABLE.iter().any(|cause| cause.id == id && cause.device)
}

/// The underlay carries hardly more: where the limit is instead.
fn as_little(verdict: &Verdict) -> (Layer, String) {
    let says = |layer, why: String| (layer, format!("the underlay carries hardly more: {why}"));
    match verdict.causes.first() {
        _ if verdict.status == Status::Unknown => {
            says(Layer::Unknown, "what limits is below it or at the hosts".to_owned())
        }
        Some(cause) if cause.at == Place::Path || in_device(&cause.id) => {
            says(Layer::Below, format!("{} limits both", cause.id))
        }
        Some(cause) => says(Layer::Neither, format!("{} at the {} limits both", cause.id, cause.at)),
        None => says(Layer::Neither, "nothing limits either".to_owned()),
    }
}

/// Losses of each from which the shares of two loads are compared: with fewer, chance hides a share that is half of the other. And how rarely
/// chance makes them differ as much.
const LOST: u64 = 10;
const BY_CHANCE: f64 = 0.025;

/// That the path loses the same share of both. A rate behind losses at random varies from second to second, the share does not.
fn lost_alike(evidence: &TcpEvidence, under: &FlowView, verdict: &Verdict) -> Option<(Layer, String)> {
    let cause = verdict.causes.first().filter(|cause| cause.at == Place::Path)?;
    let over: Vec<Loss> =
        std::iter::once(&evidence.base).chain(evidence.made(&AGAIN)).filter_map(|view| view.loss_whole).collect();
    let sum = |losses: &[Loss]| losses.iter().fold([0, 0], |[lost, sent], loss| [lost + loss.lost(), sent + loss.sent]);
    let [over, under] = [sum(&over), sum(&[under.loss_whole?])];
    let alike = |a, b| narrows_stats::more_often(a, b).is_some_and(|chance| chance >= BY_CHANCE);
    if over[0] < LOST || under[0] < LOST || !alike(over, under) || !alike(under, over) {
        return None;
    }
    let share = |[lost, sent]: [u64; 2]| units::percent(float(lost) / float(sent.max(1)));
    let why = format!(
        "{} limits both: of the segments {} are lost over the tunnel, {} below it",
        cause.id,
        share(over),
        share(under)
    );
    Some((Layer::Below, why))
}

/// Whether the rates differ by more than they vary.
fn beyond_chance(evidence: &TcpEvidence, under: &FlowView) -> bool {
    let blocks = |view: &FlowView| -> Vec<f64> {
        let blocks = view.counted_bps.chunks_exact(BLOCK);
        blocks.map(|block| block.iter().sum::<f64>() / BLOCK as f64).collect()
    };
    let mut over = blocks(&evidence.base);
    over.extend(evidence.made(&AGAIN).map(blocks).unwrap_or_default());
    narrows_stats::gain(&over, &blocks(under)).is_some_and(|gain| gain.interval[0] > 1.0 || gain.interval[1] < 1.0)
}

/// What differs between the two loads.
fn reasons(evidence: &TcpEvidence, under: &FlowView) -> Vec<String> {
    let mut found = Vec::new();
    let ends = [Role::Sender, Role::Receiver];
    let fragments = [keys::SNMP_IP_FRAG_CREATES, keys::SNMP6_IP6_FRAG_CREATES];
    let created: u64 = fragments.iter().filter_map(|key| evidence.grew(Role::Sender, *key)).sum();
    let loss = evidence.base.loss_whole;
    if let Some(loss) = loss.filter(|loss| created >= loss.sent.max(100)) {
        found.push(format!("the tunnel's packets are fragmented ({created} fragments for {} segments)", loss.sent));
    }
    found.extend(ends.into_iter().filter_map(|role| too_large(evidence.host(role)?)).map(|it| it.says).take(1));
    if let (Some(over), Some(under)) = (loss.map(|it| it.rate()), under.loss_whole.map(|it| it.rate()))
        && over >= 0.001 + 3.0 * under
    {
        let [over, under] = [over, under].map(units::percent);
        found.push(format!("{over} of the segments are sent again over the tunnel, {under} below it"));
    }
    found.extend(ends.into_iter().filter_map(|role| busy(evidence, under, role)));
    found
}

/// That a core of a host is full of the tunnel's work, and which offloads would take some of it.
fn busy(evidence: &TcpEvidence, under: &FlowView, role: Role) -> Option<String> {
    let (over, below) = (evidence.end(role)?, under.end(role)?);
    let core = over.cores.iter().map(|core| core.busy).reduce(f64::max).filter(|busy| *busy >= FULL)?;
    // Each bit must cost more than without the tunnel.
    if over.machine_busy()? / evidence.goodput_bps() < GAIN * below.machine_busy()? / under.goodput_bps {
        return None;
    }
    let host = layers(evidence.host(role)?);
    let off: Vec<String> = host
        .iter()
        .flat_map(|layer| {
            let meant = |word: &&String| layer.overhead > 0 || *word == "tx" || word.contains("segmentation");
            layer.off.iter().filter(meant).map(|word| format!("{word} of {}", layer.name))
        })
        .collect();
    let off = if off.is_empty() { String::new() } else { format!(", with offloads off ({})", off.join(", ")) };
    Some(format!("a core of the {} is {} busy with the tunnel{off}", evidence.place(role), units::percent(core)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::layers::tests::stack;
    use crate::testing::{Scene, fact, ordinary_host, with};
    use narrows_model::{Fact, Unit};

    const ADDRESS: [u8; 4] = [198, 51, 100, 2];

    fn over(goodput_bps: f64) -> Scene {
        let layers = stack(&[("vx0", "vxlan", 1450, 50), ("eth0", "physical", 1500, 0)]);
        let remote = fact("layer.remote.0", "198.51.100.2", Unit::Text);
        let sender_facts: Vec<Fact> = ordinary_host().into_iter().chain(layers).chain([remote]).collect();
        Scene { goodput_bps, early_peak_bps: goodput_bps, mss: 1_398, sender_facts, ..Scene::default() }
    }

    fn run(over: &Scene, experiments: &[(&str, &Scene)]) -> Run {
        let mut run = over.run(experiments);
        if let RunPlan::Diagnose(plan) = &mut run.plan {
            plan.underlay = Some(Underlay::Tunnel);
        }
        run
    }

    /// The layer and why, and the id of the trial that is made next.
    fn told(over: &Scene, experiments: &[(&str, &Scene)]) -> (Option<(Layer, String)>, Option<&'static str>) {
        let run = run(over, experiments);
        let view = diagnose(&run, 0).expect("a baseline").accounts.underlay;
        (view.map(|view| (view.layer, view.why)), next(&run).map(|planned| planned.id))
    }

    fn under(goodput_bps: f64) -> Scene {
        Scene { goodput_bps, early_peak_bps: goodput_bps, ..Scene::default() }
    }

    #[test]
    fn the_underlay_is_the_tunnels_other_end_or_the_users_word() {
        let mut run = run(&over(900e6), &[]);
        assert_eq!(address(&run), Some(Ok(ADDRESS.into())));
        run.client.facts.retain(|fact| !fact.key.starts_with("layer."));
        let why = address(&run).expect("wanted").expect_err("no tunnel");
        assert!(
            why.contains("which is no tunnel; give the server's address below it with --underlay ADDRESS"),
            "{why}"
        );
        run.client.facts = with(run.client.facts, fact("nic.kind", "tun", Unit::Text));
        let why = address(&run).expect("wanted").expect_err("a program's");
        assert!(why.contains("only its program knows the other end"), "{why}");
        if let RunPlan::Diagnose(plan) = &mut run.plan {
            plan.underlay = Some(Underlay::Address(ADDRESS.into()));
        }
        assert_eq!(address(&run), Some(Ok(ADDRESS.into())));
    }

    #[test]
    fn an_underlay_that_carries_more_twice_has_the_limit_inside_the_tunnel() {
        let (slow, fast) = (over(300e6), under(900e6));
        assert_eq!(told(&slow, &[]).1, Some(UNDERLAY.id));
        let (layer, more) = told(&slow, &[(UNDERLAY.id, &fast)]);
        assert_eq!((layer.map(|it| it.0), more), (Some(Layer::Unknown), Some(AGAIN.id)));
        let (layer, more) = told(&slow, &[(UNDERLAY.id, &fast), (AGAIN.id, &over(310e6))]);
        let (layer, why) = layer.expect("measured");
        assert_eq!((layer, more), (Layer::Inside, None));
        assert!(why.contains("no counter of the hosts shows why"), "{why}");
    }

    #[test]
    fn an_overlay_that_became_as_fast_tells_nothing() {
        let (layer, _) = told(&over(300e6), &[(UNDERLAY.id, &under(900e6)), (AGAIN.id, &over(850e6))]);
        assert_eq!(layer.expect("measured").0, Layer::Unknown);
        let (layer, _) = told(&over(100e6), &[(UNDERLAY.id, &under(900e6)), (AGAIN.id, &over(150e6))]);
        assert_eq!(layer.expect("measured").0, Layer::Inside, "far above either");
    }

    #[test]
    fn rates_that_vary_as_much_as_they_differ_tell_nothing() {
        let wild = |scene: Scene| Scene { wobble: 0.9, ..scene };
        let (layer, _) =
            told(&wild(over(300e6)), &[(UNDERLAY.id, &wild(under(400e6))), (AGAIN.id, &wild(over(300e6)))]);
        assert_eq!(layer.expect("measured"), (Layer::Unknown, "both rates vary too much to compare them".to_owned()));
    }

    #[test]
    fn the_same_share_lost_of_both_is_lost_below_the_tunnel() {
        // 0.1 % at 1 ms.
        let lossy = |scene: Scene, wobble, goodput_bps, lost| {
            let (rtt_us, segments) = (1_100, 200_000);
            Scene {
                goodput_bps,
                early_peak_bps: 320e6,
                min_rtt_us: 1_000,
                rtt_us,
                cwnd: 30,
                lost,
                segments,
                wobble,
                ..scene
            }
        };
        let told = |wobble, below| {
            let (slow, under) = (lossy(over(300e6), wobble, 300e6, 200), lossy(under(400e6), wobble, 400e6, below));
            let half = Scene { segments: 40_000, ..lossy(over(150e6), wobble, 150e6, 41) };
            let experiments = [("paced-half", &half), (UNDERLAY.id, &under), (AGAIN.id, &slow)];
            told(&slow, &experiments).0.expect("measured")
        };
        // Whether the rates vary within a load or not.
        for wobble in [0.9, 0.0] {
            let (layer, why) = told(wobble, 190);
            assert_eq!(layer, Layer::Below, "{why}");
            assert!(why.contains("0.100 % are lost over the tunnel, 0.095 % below it"), "{why}");
        }
        // Of a tunnel that loses some itself, the shares differ.
        assert_eq!((told(0.9, 120).0, told(0.0, 120).0), (Layer::Unknown, Layer::Inside));
    }

    #[test]
    fn fragments_loss_and_full_cores_are_said_of_a_tunnel() {
        let slow = Scene { sender_counts: vec![("snmp.Ip.FragCreates", 1_200_000)], ..over(300e6) };
        let (layer, _) = told(&slow, &[(UNDERLAY.id, &under(900e6)), (AGAIN.id, &slow)]);
        assert!(layer.expect("measured").1.contains("the tunnel's packets are fragmented (1200000 fragments"));
        let lossy = Scene { lost: 20_000, ..over(300e6) };
        let (layer, _) = told(&lossy, &[(UNDERLAY.id, &under(900e6)), (AGAIN.id, &lossy)]);
        assert!(layer.expect("measured").1.contains("of the segments are sent again over the tunnel"));
    }

    #[test]
    fn an_underlay_that_carries_as_little_has_the_limit_below_or_in_neither() {
        // Of 1450 bytes 50 are the tunnel's: 5 % of difference are its headers.
        let (layer, more) = told(&over(900e6), &[(UNDERLAY.id, &under(941e6))]);
        assert_eq!((layer.expect("measured").0, more), (Layer::Below, None));
        let window = Scene { rwnd: 0.9, snd_wnd: 1 << 20, rcvbuf: 2 << 20, ..over(200e6) };
        let (layer, _) = told(&window, &[(UNDERLAY.id, &under(205e6))]);
        assert_ne!(layer.expect("measured").0, Layer::Inside);
    }
}

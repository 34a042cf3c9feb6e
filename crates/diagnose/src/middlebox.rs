//! What the two sockets of a connection show of a device between them: that it ends the connection and makes another one, removes options,
//! or lowers the MSS. Only what no path without such a device shows is said.

use crate::connection::pairs;
use crate::evidence::tcp::TcpEvidence;
use crate::judge::Evidence as _;
use crate::role::Role;
use narrows_model::{FactKey, TcpInfo, TcpTrial, Verdict, keys};

/// The options that a path removes, with the parameter of the hosts and the cause that names each.
const OPTIONS: [(u64, FactKey, &str, &str); 3] = [
    (TcpInfo::OPT_WSCALE, keys::TCP_WINDOW_SCALING, "window scaling", "window-scaling-off"),
    (TcpInfo::OPT_SACK, keys::TCP_SACK, "selective acknowledgements", "sack-off"),
    (TcpInfo::OPT_TIMESTAMPS, keys::TCP_TIMESTAMPS, "timestamps", ""),
];

/// An option that both hosts offer and the connection lacks.
fn removed(evidence: &TcpEvidence, pairs: &[[&TcpInfo; 2]], verdict: &Verdict) -> Vec<String> {
    let lacks = |option| !pairs.is_empty() && pairs.iter().flatten().all(|tcp| tcp.negotiated(option) == Some(false));
    let offered = |key| [Role::Sender, Role::Receiver].into_iter().all(|role| evidence.flag(role, key) == Some(true));
    let named = |id: &str| verdict.causes.iter().any(|cause| cause.id == id);
    let missing = OPTIONS.into_iter().filter(|(option, key, _, id)| lacks(*option) && offered(*key) && !named(id));
    missing
        .map(|(_, _, words, _)| {
            format!("both hosts offer {words}, and the connection has none: a device on the path removes the option")
        })
        .collect()
}

/// An MSS that was smaller on arrival than it was sent.
fn clamped(evidence: &TcpEvidence, pairs: &[[&TcpInfo; 2]]) -> Option<String> {
    // A host that probes for the MTU begins with small segments (`tcp_mtu_probing` 2).
    let probes = |role| evidence.number(role, keys::TCP_MTU_PROBING).is_none_or(|how| how >= 2.0);
    if evidence.load.mss_bytes.is_some() || probes(Role::Sender) || probes(Role::Receiver) {
        return None;
    }
    let flow = evidence.flow;
    pairs.iter().find_map(|[sender, receiver]| {
        let headers = u64::from(evidence.segment_header_bytes());
        let options = if evidence.base.timestamps { 12 } else { 0 };
        let seen = |tcp: &TcpInfo, peer: &TcpInfo| {
            // Both without the timestamps (`tcp_rcv_synsent_state_process`, `tcp_rcv_state_process`).
            let (uses, announced) = (tcp.snd_mss_bytes?, peer.advmss_bytes?);
            // The path MTU and half of a small window bound it as well (`tcp_sync_mss`, `tcp_bound_to_half_wnd`).
            let free = tcp.pmtu_bytes? >= announced + headers && tcp.snd_wnd_bytes? >= 4 * announced;
            (free && uses < announced).then_some((announced + options, uses + options))
        };
        let to_sender = seen(sender, receiver).map(|mss| (mss, flow.receiver(), flow.sender()));
        let ((announced, uses), from, to) =
            to_sender.or_else(|| seen(receiver, sender).map(|mss| (mss, flow.sender(), flow.receiver())))?;
        Some(format!(
            "the {from} announced an MSS of {announced} bytes, and the {to} got {uses}: a device on the path lowers it"
        ))
    })
}

/// Adds what is certain of such devices to a verdict.
pub(crate) fn add(verdict: &mut Verdict, evidence: &TcpEvidence, trial: TcpTrial<'_>) {
    let pairs = pairs(trial, evidence.flow);
    if let Some(split) = &evidence.split {
        // Its options and its MSS are those of another connection.
        let named = verdict.causes.iter().any(|cause| cause.id == "tcp-proxy");
        verdict.hazards.extend(
            (!named).then(|| format!("a proxy on the path ends the TCP connection and makes another one: {split}")),
        );
        return;
    }
    verdict.hazards.extend(removed(evidence, &pairs, verdict));
    verdict.hazards.extend(clamped(evidence, &pairs));
}

#[cfg(test)]
mod tests {
    use crate::diagnose;
    use crate::testing::{Scene, fact, ordinary_host, tcp_end, with};
    use narrows_model::{Run, TcpInfo, Unit};

    /// What is said beside the verdict, where the sockets of client and server differ so from a scene's.
    fn said(scene: Scene, change: [fn(&mut TcpInfo); 2]) -> Vec<String> {
        let facts = || with(ordinary_host(), fact("tcp.mtu_probing", 0_i64, Unit::Number));
        let mut run: Run = Scene { sender_facts: facts(), receiver_facts: facts(), ..scene }.run(&[]);
        let trial = &mut run.trials[0].trial;
        for (end, change) in [&mut trial.client, &mut trial.server].into_iter().zip(change) {
            for sample in tcp_end(end).streams.iter_mut().flat_map(|stream| &mut stream.samples) {
                (sample.tcp.advmss_bytes, sample.tcp.pmtu_bytes) = (Some(1_448), Some(1_500));
                sample.tcp.wscale = Some((11 << 4) | 7);
                change(&mut sample.tcp);
            }
        }
        diagnose(&run, 0).expect("a baseline").verdict.hazards
    }

    /// The server's side of the scales above.
    const SAME: fn(&mut TcpInfo) = |tcp| tcp.wscale = Some((7 << 4) | 11);

    #[test]
    fn two_sockets_with_scales_of_two_connections_have_a_proxy_between_them() {
        let nothing: Vec<String> = Vec::new();
        assert_eq!(said(Scene::default(), [|_| {}, SAME]), nothing);
        let of_proxy = [
            "a proxy on the path ends the TCP connection and makes another one: the server announced a window scale of 11, and the client \
             got 7",
        ];
        assert_eq!(said(Scene::default(), [|_| {}, |tcp| tcp.wscale = Some((11 << 4) | 11)]), of_proxy);
        // Without the option the field means nothing.
        let off = TcpInfo::OPT_SACK | TcpInfo::OPT_TIMESTAMPS;
        let strips =
            ["both hosts offer window scaling, and the connection has none: a device on the path removes the option"];
        assert_eq!(said(Scene { options: off, ..Scene::default() }, [|_| {}, |tcp| tcp.wscale = Some(0)]), strips);
    }

    #[test]
    fn an_mss_that_shrinks_on_its_way_is_lowered_there_and_not_by_a_host_or_its_mtu() {
        let scene = || Scene { mss: 1_348, ..Scene::default() };
        let lowers =
            ["the server announced an MSS of 1460 bytes, and the client got 1360: a device on the path lowers it"];
        assert_eq!(said(scene(), [|_| {}, SAME]), lowers);
        let nothing: Vec<String> = Vec::new();
        assert_eq!(
            said(
                scene(),
                [
                    |tcp| tcp.pmtu_bytes = Some(1_400),
                    |tcp| {
                        SAME(tcp);
                        tcp.snd_mss_bytes = Some(1_448);
                    }
                ]
            ),
            nothing
        );
        assert_eq!(
            said(
                scene(),
                [
                    |tcp| tcp.snd_wnd_bytes = Some(2_700),
                    |tcp| {
                        SAME(tcp);
                        tcp.snd_mss_bytes = Some(1_448);
                    }
                ]
            ),
            nothing
        );
        let mut asked = scene();
        asked.load.mss_bytes = Some(1_360);
        assert_eq!(said(asked, [|_| {}, SAME]), nothing);
    }
}

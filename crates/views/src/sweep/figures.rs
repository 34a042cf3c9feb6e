//! The figures of a point, from the views of plain measurements.

use narrows_model::run::measure::EndCpu;
use narrows_model::{Flow, Place, SweepFigures, TcpTrial, UdpTrial};

/// One for each flow of a UDP trial.
pub fn of_udp(trial: UdpTrial<'_>) -> Vec<SweepFigures> {
    let summary = crate::measure::udp::summary(trial);
    let figures = summary.flows.iter().map(|it| {
        let (sent, received) = (it.total.sent.as_ref(), it.total.received.as_ref());
        let (sender, receiver) = costs(it.flow, &summary.client, &summary.server);
        SweepFigures {
            flow: it.flow,
            sending_bps: sent.map(|part| part.bps),
            sending_pps: sent.map(|part| part.pps),
            receiving_bps: received.map(|part| part.bps),
            receiving_pps: received.map(|part| part.pps),
            unsent: sent.map(|part| part.unsent),
            lost: received.map(|part| part.lost),
            loss: received.and_then(|part| part.loss),
            delay_growth_us: trial.delay_growth(it.flow).filter(|growth| growth.is_robust).map(|growth| growth.us),
            lossless: None,
            segmentation_offload: segmented(trial, it.flow),
            sender,
            receiver,
        }
    });
    figures.collect()
}

/// Whether the sender of a flow handed batches to the kernel as one; `None` where it recorded nothing.
fn segmented(trial: UdpTrial<'_>, flow: Flow) -> Option<bool> {
    let sender = trial.end(flow.sender())?;
    let methods = sender.streams.iter().filter(|stream| stream.flow == flow).map(|stream| stream.method.as_str());
    methods.map(|method| method.contains("segment")).reduce(|one, other| one || other)
}

/// One for each flow of a TCP trial. What TCP put on the wire as packets is not seen, so only messages are counted.
pub fn of_tcp(trial: TcpTrial<'_>) -> Vec<SweepFigures> {
    let message_bits = f64::from(trial.plan.message_bytes.max(1)) * 8.0;
    let summary = crate::measure::tcp::summary(trial);
    let figures = summary.flows.iter().map(|it| {
        let seconds = it.total.to_s - it.total.from_s;
        let sending_bps = it.sent_bytes.filter(|_| seconds > 0.0).map(|bytes| bytes as f64 * 8.0 / seconds);
        let (sender, receiver) = costs(it.total.flow, &summary.client, &summary.server);
        SweepFigures {
            flow: it.total.flow,
            sending_bps,
            sending_pps: sending_bps.map(|bps| bps / message_bits),
            receiving_bps: (it.total.seen_by == it.total.flow.receiver()).then_some(it.total.goodput_bps),
            receiving_pps: None,
            unsent: None,
            lost: None,
            loss: None,
            delay_growth_us: None,
            lossless: None,
            segmentation_offload: None,
            sender,
            receiver,
        }
    });
    figures.collect()
}

/// What a flow cost the end that sends it and the one that receives it.
fn costs(flow: Flow, client: &Option<EndCpu>, server: &Option<EndCpu>) -> (Option<EndCpu>, Option<EndCpu>) {
    let of = |place: Place| if place == Place::Client { client.clone() } else { server.clone() };
    (of(flow.sender()), of(flow.receiver()))
}

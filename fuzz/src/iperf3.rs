//! The protocol of iperf3: what clients and servers send on the control connection, and datagrams.
use narrows_wire::iperf3::control::COOKIE;
use narrows_wire::iperf3::{Cookie, Inbox, MAX_PARAMS, Params, Results, datagram, far, own};

pub(crate) fn run(bytes: &[u8]) {
    if let Some(cookie) = bytes.first_chunk::<COOKIE>().and_then(Cookie::decode) {
        assert_eq!(Cookie::decode(cookie.bytes()), Some(cookie));
    }
    let mut inbox = Inbox::default();
    inbox.push(bytes);
    if let Ok(Some(text)) = inbox.json(MAX_PARAMS) {
        assert!(text.len() <= MAX_PARAMS);
        read(&text);
    }
    let _ = (inbox.byte(), inbox.codes(true));
    read(bytes);
    for wide in [false, true] {
        if let Some(header) = datagram::Header::decode(wide, bytes) {
            let mut written = [0; 16];
            header.encode(wide, &mut written);
            let read = datagram::Header::decode(wide, &written).expect("a header");
            assert_eq!(read.sequence, header.sequence);
        }
    }
    assert!(datagram::reply(bytes).is_none_or(|reply| datagram::is_reply(&reply)));
}

/// Parameters and results as JSON.
fn read(text: &[u8]) {
    if let Ok(params) = Params::parse(text) {
        let again = params.to_json("fuzz").to_string();
        assert_eq!(Params::parse(again.as_bytes()), Ok(params.clone()));
        let plan = params.plan(1_000);
        let _ = plan.check();
        let _ = Params::of(&plan);
    }
    if let Ok(results) = Results::parse(text) {
        let again = results.to_json().to_string();
        assert_eq!(Results::parse(again.as_bytes()).map(|it| it.streams.len()), Ok(results.streams.len()));
        let plan = narrows_model::LoadPlan::from(narrows_model::TcpPlan::default());
        let mut record = plan.partial_record(narrows_model::Place::Client, &[], String::new());
        let far = far::record(&plan, &mut record, Some(&results));
        let _ = own::results(&far, 0, None);
    }
}

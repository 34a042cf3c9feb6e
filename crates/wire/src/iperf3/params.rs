//! The parameters of a test: JSON from the client. What iperf3 checks strictly is written exactly as it does; what comes is read leniently.

use super::{MAX_STREAMS, datagram, errors};
use narrows_model::{Application, DatagramSizes, Direction, Limit, LoadPlan, TcpPlan, UdpPlan, UdpRate, ZeroCopy};
use serde_json::{Map, Value, json};

/// The protocol of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
}

/// What a client asks for. 0 is: as the server decides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Params {
    pub protocol: Protocol,
    /// Seconds at the begin that no result counts.
    pub omit_s: u64,
    /// Seconds after those; 0 where bytes or blocks end the test.
    pub time_s: u64,
    /// Bytes of all streams together that end the test.
    pub bytes: u64,
    /// Blocks that end it.
    pub blocks: u64,
    /// Streams of each direction.
    pub parallel: u32,
    pub reverse: bool,
    pub bidirectional: bool,
    /// Bytes of a read, a write or a datagram.
    pub length: u32,
    /// Socket buffers in bytes.
    pub window: u32,
    /// `TCP_MAXSEG`.
    pub mss: u16,
    /// `TCP_NODELAY`.
    pub no_delay: bool,
    /// Bits per second of each stream.
    pub rate_bps: u64,
    /// `SO_MAX_PACING_RATE` in bits per second.
    pub pacing_bps: u64,
    /// Datagrams or blocks in a row.
    pub burst: u32,
    /// The byte of DSCP and ECN.
    pub tos: u8,
    /// `TCP_CONGESTION`.
    pub congestion: Option<String>,
    /// The sender uses `sendfile`.
    pub zero_copy: bool,
    /// UDP counters have 64 bits.
    pub wide_counters: bool,
    /// Datagrams are not fragmented.
    pub dont_fragment: bool,
    /// The server's own report is part of its results.
    pub server_output: bool,
    /// Who the client is, encrypted.
    pub auth_token: Option<String>,
}

/// Why a test is refused, with iperf3's code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct ParamsError {
    /// See [`errors`].
    pub code: i32,
    /// For the server's log.
    pub why: String,
}

fn refused(why: impl Into<String>) -> ParamsError {
    ParamsError { code: errors::PARAMS, why: why.into() }
}

impl Params {
    /// Reads and checks the parameters.
    pub fn parse(text: &[u8]) -> Result<Self, ParamsError> {
        let value: Value = serde_json::from_slice(text).map_err(|error| refused(format!("no JSON: {error}")))?;
        let Value::Object(map) = value else { return Err(refused("the parameters are no object")) };
        if map.get("sctp").is_some_and(|it| *it == Value::Bool(true)) {
            return Err(ParamsError { code: 131, why: "SCTP is not supported".to_owned() });
        }
        let flag = |key: &str| matches!(map.get(key), Some(Value::Bool(true)));
        let protocol = if flag("udp") { Protocol::Udp } else { Protocol::Tcp };
        let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
        let max_length = if protocol == Protocol::Udp { datagram::MAX_BYTES } else { 1 << 20 };
        Ok(Self {
            protocol,
            omit_s: number(&map, "omit", 600)?,
            time_s: number(&map, "time", 86_400)?,
            bytes: number(&map, "num", 1 << 60)?,
            blocks: number(&map, "blockcount", 1 << 50)?,
            parallel: (number(&map, "parallel", MAX_STREAMS.into())? as u32).max(1),
            reverse: flag("reverse"),
            bidirectional: flag("bidirectional"),
            length: number(&map, "len", max_length.into())? as u32,
            window: number(&map, "window", 512 << 20)? as u32,
            mss: number(&map, "MSS", 32_767)? as u16,
            no_delay: flag("nodelay"),
            rate_bps: number(&map, "bandwidth", 1 << 50)?,
            pacing_bps: number(&map, "fqrate", 1 << 50)?,
            burst: number(&map, "burst", 1000)? as u32,
            tos: number(&map, "TOS", 255)? as u8,
            congestion: text("congestion"),
            zero_copy: number(&map, "zerocopy", 255)? > 0,
            wide_counters: number(&map, "udp_counters_64bit", 1)? > 0,
            dont_fragment: number(&map, "dont_fragment", 1)? > 0,
            server_output: number(&map, "get_server_output", 1)? > 0,
            auth_token: text("authtoken"),
        })
    }

    /// The parameters as a client sends them.
    pub fn to_json(&self, client_version: &str) -> Value {
        let protocol = if self.protocol == Protocol::Udp { "udp" } else { "tcp" };
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
        put(protocol, true.into());
        let counts = [("omit", self.omit_s), ("time", self.time_s), ("num", self.bytes), ("blockcount", self.blocks)];
        counts.into_iter().for_each(|(key, count)| put(key, count.into()));
        put("parallel", self.parallel.into());
        let flags = [("nodelay", self.no_delay), ("reverse", self.reverse), ("bidirectional", self.bidirectional)];
        flags.into_iter().filter(|(_, set)| *set).for_each(|(key, _)| put(key, true.into()));
        let numbers = [
            ("MSS", self.mss.into()),
            ("window", self.window.into()),
            ("len", self.length.into()),
            ("bandwidth", self.rate_bps),
            ("fqrate", self.pacing_bps),
            ("pacing_timer", 1000),
            ("burst", self.burst.into()),
            ("TOS", self.tos.into()),
            ("zerocopy", self.zero_copy.into()),
            ("udp_counters_64bit", self.wide_counters.into()),
            ("dont_fragment", self.dont_fragment.into()),
            ("get_server_output", self.server_output.into()),
        ];
        numbers.into_iter().filter(|(_, number)| *number > 0).for_each(|(key, number)| put(key, number.into()));
        let texts = [("congestion", &self.congestion), ("authtoken", &self.auth_token)];
        texts
            .into_iter()
            .filter_map(|(key, text)| Some((key, text.clone()?)))
            .for_each(|(key, text)| put(key, json!(text)));
        put("client_version", client_version.into());
        Value::Object(map)
    }

    /// Which way the data goes.
    pub const fn direction(&self) -> Direction {
        match (self.bidirectional, self.reverse) {
            (true, _) => Direction::Both,
            (false, true) => Direction::Down,
            (false, false) => Direction::Up,
        }
    }

    /// Whether bytes or blocks end the test, not its time.
    pub const fn is_counted(&self) -> bool {
        self.time_s == 0 && (self.bytes > 0 || self.blocks > 0)
    }

    /// The same load as a plan of narrows; `limit`: when this end gives up, for the client ends the test.
    pub fn tcp_plan(&self, limit: Limit) -> TcpPlan {
        let some = |bytes: u32| (bytes > 0).then_some(bytes);
        TcpPlan {
            streams: self.parallel,
            direction: self.direction(),
            limit,
            omit_ms: self.omit_s * 1000,
            message_bytes: some(self.length).unwrap_or(128 << 10),
            keeps_message_bytes: true,
            send_buffer_bytes: some(self.window),
            receive_buffer_bytes: some(self.window),
            congestion_control: self.congestion.clone(),
            mss_bytes: (self.mss > 0).then_some(self.mss),
            dscp: self.tos >> 2,
            no_delay: self.no_delay,
            pacing_bps: (self.pacing_bps > 0).then_some(self.pacing_bps.max(8_000)),
            zero_copy: if self.zero_copy { ZeroCopy::On } else { ZeroCopy::Auto },
            application: Application {
                write_bps: self.rate_bps.saturating_mul(self.parallel.into()),
                ..Application::default()
            },
            ..TcpPlan::default()
        }
    }
}

impl Params {
    /// Bytes of a datagram: what the client says, or what 3.12 takes where it cannot know more.
    const DATAGRAM: u32 = 1460;

    /// The same load over UDP as a plan of narrows, which ends after `duration_ms` at the latest.
    pub fn udp_plan(&self, duration_ms: u64) -> UdpPlan {
        let some = |bytes: u32| (bytes > 0).then_some(bytes);
        let rate = match self.rate_bps {
            0 => UdpRate::Max,
            bps => UdpRate::Bps(bps.saturating_mul(self.parallel.into())),
        };
        UdpPlan {
            streams: self.parallel,
            direction: self.direction(),
            rate_up: rate,
            rate_down: rate,
            sizes: DatagramSizes::Sequence(vec![some(self.length).unwrap_or(Self::DATAGRAM).max(UdpPlan::MIN_BYTES)]),
            duration_ms,
            omit_ms: self.omit_s * 1000,
            burst_datagrams: some(self.burst),
            send_buffer_bytes: some(self.window),
            receive_buffer_bytes: some(self.window),
            dscp: self.tos >> 2,
            allow_fragments: !self.dont_fragment,
            ..UdpPlan::default()
        }
    }

    /// The load as a plan of narrows. The client ends a test; `duration_ms` is when this end gives up.
    pub fn plan(&self, duration_ms: u64) -> LoadPlan {
        match self.protocol {
            // An end that counts bytes gives up when none moved for a while.
            Protocol::Tcp if self.is_counted() => self.tcp_plan(Limit::BytesPerStream(1 << 50)).into(),
            Protocol::Tcp => self.tcp_plan(Limit::DurationMs(duration_ms)).into(),
            Protocol::Udp => self.udp_plan(duration_ms).into(),
        }
    }
}

impl Params {
    /// What a client asks for with a plan of narrows.
    /// Errors: what iperf3 cannot do, in a sentence.
    pub fn of(plan: &LoadPlan) -> Result<Self, String> {
        let mut params = Self::default();
        let direction = match plan {
            LoadPlan::Tcp(plan) => {
                params.of_tcp(plan)?;
                plan.direction
            }
            LoadPlan::Udp(plan) => {
                params.of_udp(plan)?;
                plan.direction
            }
            _ => return Err("iperf3 has no such load: only tcp and udp can be measured against it".to_owned()),
        };
        (params.reverse, params.bidirectional) = (direction == Direction::Down, direction == Direction::Both);
        if let Some(ms) = plan.duration_ms() {
            let counted_ms = ms.saturating_sub(plan.omitted_ms());
            // A server of iperf3 counts whole seconds, and this end ends the test.
            params.time_s = counted_ms.div_ceil(1000).max(1);
        }
        params.omit_s = plan.omitted_ms().div_ceil(1000);
        if params.omit_s * 1000 != plan.omitted_ms() {
            return Err("iperf3 omits whole seconds; give --omit in seconds".to_owned());
        }
        Ok(params)
    }

    /// The same plan with an omitted part that iperf3 can have: the nearest whole second.
    pub fn fitted(plan: &LoadPlan) -> LoadPlan {
        let mut plan = plan.clone();
        let omit_ms = match &mut plan {
            LoadPlan::Tcp(plan) => &mut plan.omit_ms,
            LoadPlan::Udp(plan) => &mut plan.omit_ms,
            _ => return plan,
        };
        *omit_ms = omit_ms.saturating_add(500) / 1000 * 1000;
        plan
    }

    fn of_tcp(&mut self, plan: &TcpPlan) -> Result<(), String> {
        if plan.application.read_bps > 0 || plan.application.read_cpu_us_per_mib > 0 {
            return Err(
                "a server of iperf3 imitates no application that reads; drop --app-read-rate and --app-read-cpu"
                    .to_owned(),
            );
        }
        let streams = u64::from(plan.streams.max(1));
        self.parallel = plan.streams;
        self.length = plan.message_bytes.min(1 << 20);
        self.window = plan.send_buffer_bytes.or(plan.receive_buffer_bytes).unwrap_or(0);
        self.mss = plan.mss_bytes.unwrap_or(0);
        self.no_delay = plan.no_delay;
        self.rate_bps = plan.application.write_bps / streams;
        self.pacing_bps = plan.pacing_bps.unwrap_or(0);
        self.tos = plan.dscp << 2;
        self.congestion.clone_from(&plan.congestion_control);
        self.zero_copy = plan.zero_copy == ZeroCopy::On;
        if let Limit::BytesPerStream(bytes) = plan.limit {
            self.bytes = bytes.saturating_mul(streams);
        }
        Ok(())
    }

    fn of_udp(&mut self, plan: &UdpPlan) -> Result<(), String> {
        let streams = u64::from(plan.streams.max(1));
        self.protocol = Protocol::Udp;
        self.parallel = plan.streams;
        self.length = match &plan.sizes {
            DatagramSizes::Largest => 0,
            DatagramSizes::Sequence(sizes) if sizes.len() == 1 => sizes[0],
            DatagramSizes::Sequence(_) => return Err("iperf3 sends datagrams of one size; give one --size".to_owned()),
        };
        if plan.rate_up != plan.rate_down && plan.direction == Direction::Both {
            return Err("iperf3 has one rate for both directions; drop --rate-down".to_owned());
        }
        let flow = plan.flows().first().copied().unwrap_or_default();
        self.rate_bps = match plan.rate(flow) {
            UdpRate::Bps(bps) => (bps / streams).max(1),
            UdpRate::Max => 0,
            UdpRate::Pps(_) => return Err("iperf3 has no rate in datagrams a second; give --rate in bit/s".to_owned()),
        };
        self.burst = plan.burst_datagrams.unwrap_or(0);
        self.window = plan.send_buffer_bytes.or(plan.receive_buffer_bytes).unwrap_or(0);
        self.tos = plan.dscp << 2;
        self.wide_counters = true;
        Ok(())
    }
}

/// A number of the parameters, 0 where it is missing or negative. Old versions write it as `1e+06`.
fn number(map: &Map<String, Value>, key: &str, most: u64) -> Result<u64, ParamsError> {
    let Some(value) = map.get(key) else { return Ok(0) };
    let number = match value {
        Value::Bool(set) => u64::from(*set),
        _ => value.as_u64().or_else(|| value.as_f64().map(|number| number as u64)).unwrap_or(0),
    };
    if number > most {
        return Err(refused(format!("{key} is {number}, but the maximum is {most}")));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As Debian's 3.12 sends them with `-P 2 -R -w 256K -M 1200 -C cubic --get-server-output`.
    const SENT: &str = r#"{"tcp":true,"omit":1,"time":10,"num":0,"blockcount":0,"MSS":1200,"parallel":2,"reverse":true,
        "window":262144,"len":131072,"pacing_timer":1000,"congestion":"cubic","get_server_output":1,"client_version":"3.12"}"#;

    #[test]
    fn parameters_of_a_client_are_a_plan() {
        let params = Params::parse(SENT.as_bytes()).expect("sound");
        assert_eq!((params.direction(), params.parallel, params.server_output), (Direction::Down, 2, true));
        let plan = params.tcp_plan(Limit::DurationMs(11_000));
        assert_eq!((plan.omit_ms, plan.mss_bytes, plan.send_buffer_bytes), (1000, Some(1200), Some(262_144)));
        assert_eq!(plan.congestion_control.as_deref(), Some("cubic"));
        assert_eq!(Params::parse(params.to_json("3.12").to_string().as_bytes()), Ok(params));
    }

    #[test]
    fn a_default_that_iperf3_cannot_have_is_rounded_and_a_given_one_refused() {
        for (omit_ms, whole_ms) in [(0, 0), (250, 0), (500, 1000), (750, 1000), (1000, 1000), (2000, 2000)] {
            let plan = LoadPlan::from(TcpPlan { omit_ms, limit: Limit::DurationMs(3_000), ..TcpPlan::default() });
            let fitted = Params::fitted(&plan);
            assert_eq!((fitted.omitted_ms(), Params::of(&fitted).map(|it| it.omit_s)), (whole_ms, Ok(whole_ms / 1000)));
            assert_eq!(Params::of(&plan).is_ok(), omit_ms == whole_ms);
        }
    }

    #[test]
    fn limits_are_named() {
        let why = |text: &str| Params::parse(text.as_bytes()).expect_err("refused").why;
        assert_eq!(why(r#"{"tcp":true,"parallel":129}"#), "parallel is 129, but the maximum is 128");
        assert_eq!(why(r#"{"udp":true,"len":70000}"#), "len is 70000, but the maximum is 65507");
        assert_eq!(why(r#"[1]"#), "the parameters are no object");
        assert_eq!(why(r#"{"sctp":true}"#), "SCTP is not supported");
        assert!(why("no").starts_with("no JSON"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Params::parse(&bytes);
        }

        #[test]
        fn any_number_is_within_its_limit(number: f64) {
            if let Ok(params) = Params::parse(format!(r#"{{"parallel":{number:e},"len":{number:e}}}"#).as_bytes()) {
                prop_assert!((1..=MAX_STREAMS).contains(&params.parallel) && params.length <= 1 << 20);
            }
        }
    }
}

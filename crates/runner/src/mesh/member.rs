//! A member of a mesh: a server of this run alone, and the loads that the conductor orders.
//!
//! It has no files: key and token are in memory, and it ends when its standard input does, whoever ended that.

use super::orders::{Answer, CONNECTS, Hello, LoadOrder, Loaded, Order, SILENCE, heard, line, say};
use crate::instruments::LiveInstruments;
use crate::live::LiveEnds;
use crate::measure::{self, Watch};
use crate::remote::{Options, Remote, TargetSpec};
use crate::server::{ServeConfig, ServeError, Server};
use crate::{Stop, VERSION};
use narrows_model::run::measure::EndCpu;
use narrows_model::words::figures::float;
use narrows_model::{LoadPlan, Place, Progress, Trial};
use narrows_views::measure::tcp;
use std::io::{BufReader, stdin, stdout};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc;

const INSTRUMENTS: LiveInstruments = LiveInstruments { collect: true };

/// Serves, and obeys the orders of standard input until that ends; then this process does.
pub fn obey() -> Result<(), ServeError> {
    // A directory that cannot be: what others keep there, a member has not.
    let state = PathBuf::from("/dev/null/narrows");
    let server = Server::start(ServeConfig { port: 0, of_one_run: true, ..ServeConfig::new(state, INSTRUMENTS) })?;
    let token = server.token().map(narrows_wire::Token::reveal).unwrap_or_default();
    let hello = Hello { version: VERSION.to_owned(), port: server.port(), token };
    let (orders, heard_orders) = mpsc::channel();
    // In a thread of its own: the end of the input ends the process in the middle of a load, too.
    std::thread::spawn(move || {
        let mut input = BufReader::new(stdin());
        while let Ok(Some(line)) = line(&mut input) {
            if orders.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    let (todo, working) = mpsc::channel::<Order>();
    std::thread::spawn(move || {
        let mut output = stdout();
        let said = say(&mut output, &Answer::Hello(hello));
        let obeyed = said.and_then(|()| working.iter().try_for_each(|order| say(&mut output, &answer(order))));
        std::process::exit(i32::from(obeyed.is_err()));
    });
    while let Ok(line) = heard_orders.recv_timeout(SILENCE) {
        // Who speaks another language cannot be obeyed.
        let Ok(order) = heard(&line) else { std::process::exit(1) };
        if !matches!(order, Order::Beat) && todo.send(order).is_err() {
            break;
        }
    }
    std::process::exit(0)
}

fn answer(order: Order) -> Answer {
    match order {
        Order::Beat => Answer::Failed("nothing was asked".to_owned()),
        Order::Inventory => {
            Answer::Inventory(Box::new(narrows_collect::inventory(&narrows_collect::Live::new(), None)))
        }
        Order::Reach(all) => Answer::Reached(reach(&all)),
        Order::Load(order) => load(order).map_or_else(Answer::Failed, Answer::Loaded),
    }
}

/// Tries them all at once.
fn reach(all: &[SocketAddr]) -> Vec<Option<String>> {
    std::thread::scope(|scope| {
        let one = |to: SocketAddr| TcpStream::connect_timeout(&to, CONNECTS).err().map(|error| error.to_string());
        let trying: Vec<_> = all.iter().map(|to| scope.spawn(move || one(*to))).collect();
        trying.into_iter().map(|it| crate::result_of(it.join())).collect()
    })
}

/// Shows no progress.
struct Quiet;

impl Watch for Quiet {
    fn begins(&mut self, _plan: &LoadPlan) {}
    fn progress(&mut self, _place: Place, _progress: &Progress) {}
    fn ended(&mut self, _trial: &Trial) {}
}

fn load(order: LoadOrder) -> Result<Loaded, String> {
    let token = order.token.parse().map_err(|_| "invalid token of the other host".to_owned())?;
    let spec = TargetSpec { asked: order.to.to_string(), family: None, port: order.to.port(), token: Some(token) };
    let remote = Remote::connect(&spec, &Options::new(INSTRUMENTS)).map_err(|error| error.to_string())?;
    let session = remote.open_session(&mut |_, _| true).map_err(|error| error.to_string())?;
    let target = remote.target();
    let down = order.plan.direction == narrows_model::Direction::Down;
    let mut ends = LiveEnds::new(remote, session, INSTRUMENTS, None, Stop::new());
    let plan = LoadPlan::Tcp(order.plan);
    let run = measure::measure(&mut ends, &plan, target, (String::new(), String::new()), &mut Quiet);
    let report = tcp::build(&run).ok_or_else(|| match run.ending {
        narrows_model::Ending::Failed(why) => why,
        _ => "nothing was measured".to_owned(),
    })?;
    let flow = report.summary.flows.first().ok_or("nothing was measured")?;
    let busy =
        |end: Option<&EndCpu>| end.and_then(|end| end.host).map(|host| 1.0 - host.idle / float(host.cores.into()));
    let ends = [busy(report.summary.client.as_ref()), busy(report.summary.server.as_ref())];
    Ok(Loaded {
        goodput_bps: flow.total.goodput_bps,
        retransmits: flow.total.columns.retransmits,
        busy: if down { [ends[1], ends[0]] } else { ends },
    })
}

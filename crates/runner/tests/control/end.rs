//! One end of the control plane without the command line: the tests start it as a process of its own, to kill it.
//!
//! ```text
//! end serve STATE [tune] [stdio]     serves, and says `ready PORT`
//! end trial TOKEN HOST MS            runs a trial, and says `moving` as soon as data flows
//! end change TOKEN HOST KEY VALUE    changes a kernel parameter of the server, says `changed`, and stays
//! ```

use narrows_model::{Limit, Setting, TcpPlan};
use narrows_runner::Stop;
use narrows_runner::live::LiveInstruments;
use narrows_runner::remote::{Options, Remote, TargetSpec};
use narrows_runner::server::{ServeConfig, Server};
use narrows_runner::trust::read_token;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", state, flags @ ..] => serve(state, flags),
        ["trial", token, host, ms] => trial(token, host, ms.parse()?),
        ["change", token, host, key, value] => change(token, host, key, value),
        _ => Err("see the head of this file for its words".into()),
    }
}

fn serve(state: &str, flags: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut config = ServeConfig::new(state.into(), LiveInstruments::All);
    config.port = 0;
    config.allow_tune = flags.contains(&"tune");
    config.stdio = flags.contains(&"stdio");
    let quiet = config.stdio;
    let handle = Server::start(config)?;
    if !quiet {
        println!("ready {}", handle.port());
    }
    handle.wait();
    Ok(())
}

fn connect(token: &str, host: &str) -> Result<Remote, Box<dyn Error>> {
    let token = Some(read_token(Path::new(token))?);
    let spec = TargetSpec { asked: host.to_owned(), family: None, port: 0, token };
    Ok(Remote::connect(&spec, &Options::new(LiveInstruments::All))?)
}

fn trial(token: &str, host: &str, ms: u64) -> Result<(), Box<dyn Error>> {
    let remote = connect(token, host)?;
    let mut session = remote.open_session(&mut |_, _| true)?;
    let plan = TcpPlan { limit: Limit::DurationMs(ms), interval_ms: 50, ..TcpPlan::default() };
    session.trial(&plan.clone().into(), &Stop::new(), &mut |_, _| println!("moving"))?;
    Ok(())
}

fn change(token: &str, host: &str, key: &str, value: &str) -> Result<(), Box<dyn Error>> {
    let remote = connect(token, host)?;
    let session = remote.open_session(&mut |_, _| true)?;
    session.apply(&Setting::Sysctl { key: key.to_owned(), value: value.to_owned() })?;
    println!("changed");
    // Until the input ends: who started it decides when.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    drop(session);
    Ok(())
}

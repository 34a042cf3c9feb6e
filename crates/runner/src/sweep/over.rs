//! `narrows sweep --over`: words of the command line to the plan of a campaign, so that its checks, its order, its journal and its store
//! are the same.

use crate::campaign::plan::{self, CampaignPlan};
use narrows_model::host::buffers::TcpBuffer;
use narrows_model::words::units::parse_size;
use std::fmt::Write as _;

/// Flags of the load that can be varied.
const FLAGS: [&str; 3] = ["streams", "congestion-control", "window"];
/// Settings of a device.
const SETTINGS: [&str; 2] = ["mtu", "qdisc"];

/// What a sweep over factors measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverPlan {
    /// The server, as the user names it.
    pub host: String,
    /// `PARAMETER=a,b,c`, once or twice.
    pub over: Vec<String>,
    /// The load: keys of a plan with their values.
    pub load: Vec<(&'static str, String)>,
    /// How often each combination is measured.
    pub repetitions: u32,
    /// Of the random order.
    pub seed: u64,
}

/// The plan of the campaign that a sweep is.
/// Errors: what is wrong with it, a line each.
pub fn plan(over: &OverPlan) -> Result<CampaignPlan, String> {
    if over.over.len() > 2 {
        return Err(format!(
            "cannot sweep over {} parameters: the maximum is 2; see `narrows campaign`",
            over.over.len()
        ));
    }
    let mut text = format!(
        "name = \"sweep\"\nhosts = [{}]\nrepetitions = {}\nseed = {}\n[load]\n",
        quoted(&over.host)?,
        over.repetitions,
        over.seed
    );
    for (key, value) in &over.load {
        let _ = writeln!(text, "{key} = {}", quoted(value)?);
    }
    for words in &over.over {
        text += &factor(words)?;
    }
    plan::parse(&text, false).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(|it| format!("{}: {}", it.key, it.says)).collect();
        format!("cannot sweep over {}: {}", over.over.join(" and "), lines.join("; "))
    })
}

/// A factor of a plan: `[client:|server:|both:]NAME[@DEVICE]=a,b,c`.
fn factor(words: &str) -> Result<String, String> {
    let wrong = || {
        format!("invalid --over `{words}`; write it like streams=1,4, server:tcp_rmem=64k,1M or client:gro@eth0=on,off")
    };
    let (name, values) = words.split_once('=').ok_or_else(wrong)?;
    let (at, what) = match name.split_once(':') {
        Some((at @ ("client" | "server" | "both"), rest)) => (Some(at), rest),
        Some(_) => return Err(wrong()),
        None => (None, name),
    };
    let (what, device) = what.split_once('@').map_or((what, None), |(what, device)| (what, Some(device)));
    let values: Vec<&str> = values.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
    let mut text = format!("[[factor]]\nname = {}\n", quoted(name)?);
    let buffer = TcpBuffer::of(what);
    let values: Result<Vec<String>, String> = values
        .iter()
        .map(|it| match (buffer, parse_size(it)) {
            (Some(buffer), Ok(bytes)) => buffer.numbers(None, bytes),
            _ => (*it).to_owned(),
        })
        .map(|it| quoted(&it))
        .collect();
    let kind = if FLAGS.contains(&what) {
        if at.is_some() || device.is_some() {
            return Err(format!("invalid --over `{words}`: {what} is of the load, not of a host or a device"));
        }
        format!("flag = {}", quoted(what)?)
    } else if let Some(device) = device {
        let kind = if SETTINGS.contains(&what) { "set" } else { "offload" };
        format!("{kind} = {}\ndevice = {}", quoted(what)?, quoted(device)?)
    } else {
        let key = if what.starts_with("tcp_") { format!("net.ipv4.{what}") } else { what.to_owned() };
        format!("sysctl = {}", quoted(&key)?)
    };
    let _ = writeln!(text, "{kind}\nvalues = [{}]", values?.join(", "));
    if !FLAGS.contains(&what) {
        let _ = writeln!(text, "at = \"{}\"", at.unwrap_or("both"));
    }
    Ok(text)
}

/// A string of TOML.
fn quoted(word: &str) -> Result<String, String> {
    if word.contains(['"', '\\']) || word.contains(char::is_control) {
        return Err(format!(
            "invalid word `{}`: quotes, backslashes and control characters are not allowed",
            word.escape_debug()
        ));
    }
    Ok(format!("\"{word}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(over: &[&str]) -> Result<CampaignPlan, String> {
        plan(&OverPlan {
            host: "server".to_owned(),
            over: over.iter().map(|it| (*it).to_owned()).collect(),
            load: vec![("kind", "tcp".to_owned()), ("duration", "1000ms".to_owned())],
            repetitions: 3,
            seed: 7,
        })
    }

    #[test]
    fn parameters_of_the_load_of_hosts_and_of_devices_become_factors() {
        let plan = of(&["window=32k,1M", "server:tcp_rmem=64k,16M,4096 87380 6291456"]).expect("a plan");
        assert_eq!((plan.levels(), plan.repetitions, plan.seed), (vec![2, 3], 3, 7));
        let rmem: Vec<&str> = plan.factors[1].levels.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(rmem, ["4096 65536 65536", "4096 131072 16777216", "4096 87380 6291456"]);
        let plan = of(&["client:gro@eth0=on,off", "mtu@eth0=1500,9000"]).expect("a plan");
        assert_eq!(plan.factors[0].levels[0].settings.len(), 1);
        assert_eq!(plan.factors[1].levels[1].settings.len(), 2, "both hosts");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong: Vec<String> = [
            &["streams"][..],
            &["moon:tcp_rmem=1,2"],
            &["client:streams=1,2"],
            &["streams=1"],
            &["streams=1,many"],
            &["net.nothing=1,2"],
            &["colour@eth0=on,off"],
            &["window=0,\"x\""],
            &["streams=1,2", "window=1k,2k", "tcp_sack=0,1"],
        ]
        .into_iter()
        .map(|words| of(words).expect_err("wrong"))
        .collect();
        insta::assert_snapshot!(wrong.join("\n"));
    }
}

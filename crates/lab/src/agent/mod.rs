//! SNMP agents on routers and switches of a lab: net-snmp's `snmpd`, if it is installed. Nothing else of the lab needs it.
//!
//! An agent listens on UDP port 161 of every address of its host. One of them is on the management port, which carries no
//! test traffic. snmpd caches interface counters for 3 s and has no configuration option for that; an SNMP SET lowers it to 1
//! s (`nsCacheTimeout` of NET-SNMP-AGENT-MIB). A reader of counters waits that long after the last frame.
//!
//! snmpd reads its configuration once, from a temporary directory that is removed as soon as the agent answers. The agent
//! ends with the lab, however the lab ends.

mod set;

use crate::host::Host;
use crate::spec::LabSpec;
use crate::topology::Role;
use crate::{Error, Result};
use narrows_model::Family;
use narrows_sys::{clock, files, random, udp};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// The port of SNMP (RFC 3417).
const PORT: u16 = 161;
/// Community for reading (v2c), and the user name of v3.
const NAME: &str = "narrows";
/// The user's password, for both SHA and AES.
const PASSWORD: &str = "narrows-lab";

/// Where `snmpd` is searched.
const PROGRAMS: [&str; 4] = ["/usr/sbin/snmpd", "/usr/local/sbin/snmpd", "/sbin/snmpd", "/usr/bin/snmpd"];
/// How long an agent may take until it answers.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait for an answer before the request is repeated.
const ANSWER: Duration = Duration::from_millis(100);
/// How long an agent caches counters, in seconds: the minimum that it accepts.
const CACHE_SECONDS: u8 = 1;

/// A running agent; it ends when this is dropped.
///
/// It is also bound to the thread that started it, which must live as long as the lab.
#[derive(Debug)]
pub struct Agent {
    status: AgentStatus,
    child: Child,
}

/// How to query an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// The host whose counters it serves.
    pub host: String,
    /// Where it listens: an address that the tester reaches without the ports under test.
    pub address: SocketAddr,
    /// Community of version 2c, and user of version 3.
    pub name: String,
    /// Password of version 3, for SHA, and for AES if requested.
    pub password: String,
}

impl Agent {
    /// How to query it.
    pub const fn status(&self) -> &AgentStatus {
        &self.status
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Not an error: it may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts an agent for each router and switch, if the lab asks for agents.
pub(crate) fn start_all(spec: &LabSpec, hosts: &[Host]) -> Result<Vec<Agent>> {
    let managed = |host: &&Host| matches!(host.plan().role, Role::Router | Role::Device | Role::Switch);
    hosts.iter().filter(|_| spec.snmpd).filter(managed).map(start).collect()
}

fn start(host: &Host) -> Result<Agent> {
    let program = PROGRAMS.iter().find(|program| files::exists(Path::new(program))).ok_or_else(|| {
        Error::CannotRun(
            "snmpd is not installed; install net-snmp's agent (Debian: `apt install snmpd`), or drop --snmpd"
                .to_owned(),
        )
    })?;
    let scratch = Scratch::new()?;
    let secret = hexadecimal(&random::bytes::<16>()?);
    scratch.write("snmpd.conf", &configuration(host.name(), &secret))?;
    let log = scratch.path("log");
    let mut command = host.command(program);
    // Stays in the foreground, reads no other configuration, loads no MIB files.
    command.args(["-f", "-C", "-m", "", "-M", "", "-c"]).arg(scratch.path("snmpd.conf"));
    command.arg("-Lf").arg(&log).arg("-p").arg(scratch.path("pid"));
    command.env("SNMP_PERSISTENT_DIR", scratch.path("state")).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|source| narrows_sys::Error::new("run", *program, source))?;
    let mut agent = Agent { status: status(host)?, child };
    await_answer(host, &mut agent.child, &secret).map_err(|cause| {
        let said = files::read_text(&log).unwrap_or_default();
        let said = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing").trim();
        Error::CannotRun(format!("snmpd on {} {cause}; last output: {said}", host.name()))
    })?;
    Ok(agent)
}

/// The management port, or the only address of a host that has none.
fn status(host: &Host) -> Result<AgentStatus> {
    let managed = host.plan().interfaces.iter().rev().find_map(|interface| interface.addresses);
    let address: Option<IpAddr> = managed.map(|addresses| addresses.of(Family::Ipv4));
    let address = address.ok_or_else(|| Error::CannotRun(format!("{} has no address to ask", host.name())))?;
    let (name, password) = (NAME.to_owned(), PASSWORD.to_owned());
    Ok(AgentStatus { host: host.name().to_owned(), address: (address, PORT).into(), name, password })
}

/// `secret` is the lab's own community, for writing.
fn configuration(host: &str, secret: &str) -> String {
    format!(
        "agentaddress udp:{PORT},udp6:{PORT}\n\
         sysName {host}\n\
         rocommunity {NAME}\n\
         rocommunity6 {NAME}\n\
         createUser {NAME} SHA \"{PASSWORD}\" AES \"{PASSWORD}\"\n\
         rouser {NAME} auth\n\
         rwcommunity {secret} 127.0.0.1\n"
    )
}

/// Sets how long the agent caches counters; repeats the request until the agent confirms it.
fn await_answer(host: &Host, child: &mut Child, secret: &str) -> std::result::Result<(), String> {
    let request = set::interface_cache_timeout(secret, CACHE_SECONDS);
    let socket = host.run(|| udp::socket::connect(SocketAddr::from(([127, 0, 0, 1], PORT))));
    let socket = socket.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    socket.set_read_timeout(Some(ANSWER)).map_err(|error| error.to_string())?;
    let began = clock::now();
    let mut last = "does not answer".to_owned();
    while began.elapsed() < PATIENCE {
        if let Ok(Some(ended)) = child.try_wait() {
            return Err(format!("ended at once ({ended})"));
        }
        let mut buffer = [0; 512];
        // Refused until the agent listens.
        let answered = socket.send(&request).and_then(|_| socket.recv(&mut buffer));
        match answered.map(|length| set::error_status(buffer.get(..length).unwrap_or_default())) {
            Ok(Some(0)) => return Ok(()),
            Ok(status) => last = format!("does not take a shorter cache (error status {status:?})"),
            Err(_) => {}
        }
        clock::sleep(Duration::from_millis(20));
    }
    Err(last)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A directory for the owner alone, removed when this value is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let name = format!("narrows-snmpd-{}", hexadecimal(&random::bytes::<8>()?));
        let directory = std::env::temp_dir().join(name);
        files::make_directory(&directory)?;
        Ok(Self(directory))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        Ok(files::write_whole(&self.path(name), text.as_bytes(), 0o600)?)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nobody is left to report to.
        let _ = files::remove_tree(&self.0);
    }
}

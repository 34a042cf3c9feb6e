//! The control connection over standard input and output, as `ssh HOST narrows serve --stdio` gives it: HTTP/2 without TLS,
//! since ssh has the peer's trust already. When the input ends, so does the server.

use super::listen;
use super::rights::Caller;
use super::shared::Shared;
use std::net::IpAddr;
use std::sync::Arc;

/// Addresses and ports of both ends, set by sshd: `client-address client-port server-address server-port`.
const SSH_CONNECTION: &str = "SSH_CONNECTION";

fn ssh_field(index: usize) -> Option<IpAddr> {
    let text = std::env::var(SSH_CONNECTION).ok()?;
    // A scope (`%eth0`) means nothing to the other end.
    text.split(' ').nth(index)?.split('%').next()?.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// The address by which the client reached this host.
pub(super) fn own_address() -> Option<IpAddr> {
    ssh_field(2)
}

pub(super) async fn serve(shared: Arc<Shared>) {
    let stream = tokio::io::join(tokio::io::stdin(), tokio::io::stdout());
    let caller = Caller { address: ssh_field(0), pending: None };
    listen::control(&shared, stream, caller).await;
    shared.stop();
}

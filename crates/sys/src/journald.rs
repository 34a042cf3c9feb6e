//! Messages for systemd's journal, by its native protocol: one datagram with a field per line (systemd.journal-fields(7)).

use crate::{Error, Result};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

pub const SOCKET: &str = "/run/systemd/journal/socket";

/// A way to the journal. It never waits: what finds no room is an error.
#[derive(Debug)]
pub struct Journald {
    socket: UnixDatagram,
    to: PathBuf,
}

impl Journald {
    /// A socket for messages to `to`: [`SOCKET`].
    /// Errors: out of descriptors, or nobody listens there.
    pub fn open(to: &Path) -> Result<Self> {
        let failed = |error| Error::new("write to the journal at", to.display().to_string(), error);
        let socket = UnixDatagram::unbound().map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        // Only tried: the address is given with each message, so that a restarted journald is found.
        UnixDatagram::unbound().and_then(|probe| probe.connect(to)).map_err(failed)?;
        Ok(Self { socket, to: to.to_owned() })
    }

    /// Sends one line as a message of priority *info* under the name of this program.
    /// Errors: the line has a line break, nobody listens, or there is no room.
    pub fn send(&self, line: &str) -> Result<()> {
        let failed = |error| Error::new("write to the journal at", self.to.display().to_string(), error);
        if line.contains('\n') {
            return Err(failed(std::io::Error::other("the message has more than one line")));
        }
        let fields = format!("SYSLOG_IDENTIFIER=narrows\nPRIORITY=6\nMESSAGE={line}\n");
        self.socket.send_to(fields.as_bytes(), &self.to).map(drop).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_datagram_of_fields() {
        let path = std::env::temp_dir().join(format!("narrows-journald-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        assert!(
            Journald::open(&path)
                .expect_err("nobody listens")
                .to_string()
                .starts_with("cannot write to the journal at")
        );
        let listener = UnixDatagram::bind(&path).expect("a socket");
        let journal = Journald::open(&path).expect("a listener");
        journal.send("{\"event\":\"start\"}").expect("sent");
        assert!(journal.send("two\nFIELD=forged").is_err(), "a line break would begin another field");
        let mut buffer = [0; 256];
        let length = listener.recv(&mut buffer).expect("received");
        let text = std::str::from_utf8(&buffer[..length]).expect("text");
        assert_eq!(text, "SYSLOG_IDENTIFIER=narrows\nPRIORITY=6\nMESSAGE={\"event\":\"start\"}\n");
        drop(listener);
        std::fs::remove_file(&path).expect("removed");
        assert!(journal.send("x").is_err());
    }
}

//! The error codes of iperf3, and its words for them.

/// The code and the words of iperf3.
const WORDS: &[(i32, &str)] = &[
    (RATE, "total required bandwidth is larger than server limit"),
    (DURATION, "client's requested duration exceeds the server's maximum permitted limit"),
    (105, "unable to send cookie to server"),
    (106, "unable to receive cookie at server"),
    (110, "received an unknown control message (ensure other side is iperf3 and not iperf)"),
    (PARAMS, "unable to receive parameters from client"),
    (117, "unable to receive results"),
    (119, "the client has terminated"),
    (120, "the server has terminated"),
    (121, "the server is busy running a test. try again later"),
    (123, "unable to set TCP/SCTP MSS"),
    (124, "unable to set socket buffer size"),
    (125, "unable to set IP TOS"),
    (130, "unable to set socket window size"),
    (131, "protocol does not exist"),
    (CONGESTION, "unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this host"),
    (140, "unable to set socket pacing"),
    (141, "socket buffer size not set correctly"),
    (AUTH, "test authorization failed"),
    (IDLE, "idle timeout for receiving data"),
    (145, "unable to set IP Do-Not-Fragment flag"),
    (160, "server test duration expired"),
    (200, "unable to create a new stream"),
    (201, "unable to initialize stream"),
    (203, "unable to connect stream"),
    (ACCEPT, "unable to accept stream connection"),
    (205, "unable to write to stream socket"),
    (206, "unable to read from stream socket"),
    (208, "stream has an invalid id"),
];

/// The rate of a test is above the server's limit.
pub const RATE: i32 = 27;
pub const DURATION: i32 = 37;
/// The parameters cannot be read.
pub const PARAMS: i32 = 114;
/// The congestion control does not exist or is not allowed.
pub const CONGESTION: i32 = 134;
/// The user or the password is wrong, or none was sent.
pub const AUTH: i32 = 142;
/// Nothing came for too long.
pub const IDLE: i32 = 144;
/// A stream was not opened.
pub const ACCEPT: i32 = 204;

/// iperf3's words for a code; the number where there are none.
pub fn words(code: i32) -> String {
    let known = WORDS.iter().find(|(of, _)| *of == code);
    known.map_or_else(|| format!("error {code}"), |(_, words)| (*words).to_owned())
}

/// The words for a code and an error of the operating system, as an iperf3 client prints them.
pub fn both(code: i32, errno: i32) -> String {
    match errno {
        0 => words(code),
        _ => format!("{}: {}", words(code), std::io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_words_of_iperf3() {
        assert_eq!(words(AUTH), "test authorization failed");
        assert_eq!(words(999), "error 999");
        assert_eq!(both(AUTH, 0), "test authorization failed");
        assert!(both(CONGESTION, 2).ends_with("this host: No such file or directory (os error 2)"));
    }
}

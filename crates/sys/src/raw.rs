//! The calls that most modules make: descriptors, socket options, addresses, waits.

use crate::deputy::{self, Wish};
use crate::error::{Error, Result, check};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::Duration;

/// Takes the descriptor that a call just made; `-1` is an error.
pub(crate) fn owned(result: libc::c_int, operation: &'static str, object: impl Into<String>) -> Result<OwnedFd> {
    check(result, operation, object)?;
    // SAFETY: the kernel just gave us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

/// A socket that programs which this process starts do not inherit.
pub(crate) fn socket(
    family: libc::c_int,
    kind: libc::c_int,
    protocol: libc::c_int,
    operation: &'static str,
    object: impl Into<String>,
) -> Result<OwnedFd> {
    // SAFETY: socket takes plain numbers.
    owned(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) }, operation, object)
}

/// Binds a socket to an address in the kernel's form, which `T` is.
pub(crate) fn bind<T: Copy>(
    socket: impl AsFd,
    address: &T,
    length: usize,
    operation: &'static str,
    object: impl Into<String>,
) -> Result<()> {
    let length = length.min(size_of::<T>()) as libc::socklen_t;
    // SAFETY: the address lives through the call and is at least as long as told.
    let result = unsafe { libc::bind(socket.as_fd().as_raw_fd(), std::ptr::from_ref(address).cast(), length) };
    check(result, operation, object).map(drop)
}

/// A packet socket of the device with that index (0: not bound yet), for packets of that protocol (0: none).
pub(crate) fn bind_packet_socket(
    socket: &OwnedFd,
    index: u32,
    protocol: libc::c_int,
    operation: &'static str,
    object: impl Into<String>,
) -> Result<()> {
    // SAFETY: sockaddr_ll is plain data for which zeroes are valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = u16::try_from(protocol).unwrap_or(0).to_be();
    address.sll_ifindex = i32::try_from(index).unwrap_or(-1);
    bind(socket, &address, size_of::<libc::sockaddr_ll>(), operation, object)
}

/// Sets an option whose value is plain data.
pub(crate) fn set_option<T: Copy>(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
    operation: &'static str,
    object: impl FnOnce() -> String,
) -> Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: the pointer and the length are of one live value of plain data.
    let result = unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, value, length) };
    if result < 0 { Err(Error::last(operation, object())) } else { Ok(()) }
}

/// Sets the first of these sizes of a buffer that is permitted: the forced one is above the limit for ordinary users. The deputy of
/// this process may force it, too.
pub(crate) fn set_buffer(
    socket: impl AsFd,
    names: [(libc::c_int, &'static str); 2],
    bytes: u32,
    object: &str,
) -> Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let [forced, plain] = names.map(|(name, operation)| {
        let socket = socket.as_fd();
        move || set_option(socket, libc::SOL_SOCKET, name, &bytes, operation, || object.to_owned())
    });
    let wish = match names[0].0 {
        libc::SO_RCVBUFFORCE => Wish::ReceiveBuffer(bytes.unsigned_abs()),
        _ => Wish::SendBuffer(bytes.unsigned_abs()),
    };
    forced().or_else(|_| if deputy::ask(&socket, &wish) { Ok(()) } else { plain() })
}

/// Reads an option into `bytes`; returns how many the kernel filled.
pub(crate) fn option_bytes(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    bytes: &mut [u8],
    operation: &'static str,
    object: impl Into<String>,
) -> Result<usize> {
    let mut length = bytes.len() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the pointer and the length are of one slice, which the kernel may fill; `length` says how much it did.
    let result = unsafe { libc::getsockopt(fd, level, name, bytes.as_mut_ptr().cast(), &raw mut length) };
    check(result, operation, object)?;
    Ok((length as usize).min(bytes.len()))
}

/// Reads an option that is one number of 32 bits.
pub(crate) fn option_u32(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    operation: &'static str,
    object: impl Into<String>,
) -> Result<u32> {
    let mut bytes = [0; 4];
    option_bytes(socket, level, name, &mut bytes, operation, object)?;
    Ok(u32::from_ne_bytes(bytes))
}

/// Frames that a packet socket dropped for lack of room since the last call (`PACKET_STATISTICS`).
pub(crate) fn packet_drops(socket: &OwnedFd, operation: &'static str) -> Result<u32> {
    // `struct tpacket_stats`: packets, drops.
    let mut bytes = [0; 8];
    let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
    option_bytes(socket, level, name, &mut bytes, operation, "a packet socket")?;
    let [.., a, b, c, d] = bytes;
    Ok(u32::from_ne_bytes([a, b, c, d]))
}

/// A request about the device of that name.
pub(crate) fn device_request(device: &str) -> libc::ifreq {
    // SAFETY: all zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().take(room).zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// Gives a message `bytes` of control buffer. The length is a `size_t` in glibc, a `socklen_t` and padding in musl.
pub(crate) fn set_control(message: &mut libc::msghdr, control: *mut u8, bytes: usize) {
    message.msg_control = control.cast();
    message.msg_controllen = bytes as _;
}

/// How much of its control buffer a message uses.
#[allow(clippy::unnecessary_cast)] // of 32 bits in musl
pub(crate) fn control_bytes(message: &libc::msghdr) -> usize {
    message.msg_controllen as usize
}

/// Sends messages in one call; returns how many the kernel accepted. By number: musl's `sendmmsg` makes one call per message.
///
/// # Safety
/// Everything that the messages point to lives through the call. They began as zeroes: the kernel reads musl's padding.
pub(crate) unsafe fn send_messages(
    socket: impl AsFd,
    messages: &mut [libc::mmsghdr],
    flags: libc::c_int,
) -> io::Result<usize> {
    let fd = socket.as_fd().as_raw_fd();
    let count = libc::c_uint::try_from(messages.len()).unwrap_or(libc::c_uint::MAX);
    // SAFETY: the slice and its length; the rest is up to the caller.
    let sent = unsafe { libc::syscall(libc::SYS_sendmmsg, fd, messages.as_mut_ptr(), count, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives messages in one call; returns how many there were. By number: the type of the flags depends on the C library.
///
/// # Safety
/// As for [`send_messages`], and nothing that the messages point to is borrowed elsewhere.
pub(crate) unsafe fn receive_messages(
    socket: impl AsFd,
    messages: &mut [libc::mmsghdr],
    flags: libc::c_int,
) -> io::Result<usize> {
    let fd = socket.as_fd().as_raw_fd();
    let count = libc::c_uint::try_from(messages.len()).unwrap_or(libc::c_uint::MAX);
    let no_limit: *mut libc::timespec = std::ptr::null_mut();
    // SAFETY: the slice and its length; the rest is up to the caller.
    let got = unsafe { libc::syscall(libc::SYS_recvmmsg, fd, messages.as_mut_ptr(), count, flags, no_limit) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Waits for events on descriptors until the time is over (`None`: no limit); returns those of each. A wait that was
/// interrupted or took too long is without any.
pub(crate) fn poll<const N: usize>(
    descriptors: [(BorrowedFd<'_>, libc::c_short); N],
    time: Option<Duration>,
) -> io::Result<[libc::c_short; N]> {
    let mut polls = descriptors.map(|(fd, events)| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 });
    let limit = time.map(|time| libc::timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: libc::c_long::from(time.subsec_nanos()),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the pollfds and a timespec live through the call, their number is given; no signal mask.
    let ready = unsafe { libc::ppoll(polls.as_mut_ptr(), N as libc::nfds_t, limit, std::ptr::null()) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok([0; N]) } else { Err(error) };
    }
    Ok(polls.map(|poll| poll.revents))
}

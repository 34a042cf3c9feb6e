//! Names and addresses by the resolver of this host. The calls block as long as it takes.

use crate::{Error, Result, net};
use std::ffi::CStr;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

/// The addresses of a host, by the order of the resolver.
/// Errors: there is no such name, or the resolver does not answer.
pub fn addresses(host: &str) -> Result<Vec<IpAddr>> {
    let found = (host, 0).to_socket_addrs().map_err(|error| Error::new("resolve", host, error))?;
    let mut all: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    all.dedup();
    Ok(all)
}

/// The name of an address by reverse lookup; `None`: it has none, or the resolver does not answer.
pub fn name_of(address: IpAddr) -> Option<String> {
    let (raw, length) = net::raw_address(&SocketAddr::new(address, 0));
    let mut name = [0 as libc::c_char; 1025];
    // SAFETY: an address of `length` valid bytes and a buffer of the length that is given; no service is asked for.
    let result = unsafe {
        libc::getnameinfo(
            (&raw const raw).cast(),
            length,
            name.as_mut_ptr(),
            1025,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    if result != 0 {
        return None;
    }
    // SAFETY: the call succeeded and wrote a string that ends with a zero.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    name.to_str().ok().map(str::to_owned)
}

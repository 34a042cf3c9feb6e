//! Kernel parameters below `/proc/sys/net`, by their dotted keys, in the calling thread's network namespace.

use crate::{Error, Result, files};
use std::io;
use std::path::PathBuf;

/// The maximum length of a value.
const VALUE_MAX: usize = 4096;

/// Reads a parameter: words separated by single blanks, without the newline.
/// Errors: an invalid key; a parameter that this kernel or namespace does not have.
pub fn read(key: &str) -> Result<String> {
    let text = files::read_text(&path(key)?).map_err(|error| explain("read", key, error))?;
    Ok(normal(&text))
}

/// Writes a parameter.
/// Errors: an invalid key, a value with several lines, no permission, or a value that the kernel rejects.
pub fn write(key: &str, value: &str) -> Result<()> {
    let path = path(key)?;
    let value = value.trim();
    if value.is_empty() || value.len() > VALUE_MAX || value.chars().any(|c| c.is_control() && c != '\t') {
        let cause = io::Error::other(format!("a value is one line of 1 to {VALUE_MAX} bytes"));
        return Err(Error::new("write kernel parameter", key, cause));
    }
    files::write_kernel(&path, &format!("{value}\n")).map_err(|error| explain("write", key, error))
}

/// Whether this kernel and namespace have the parameter.
pub fn exists(key: &str) -> bool {
    path(key).is_ok_and(|path| files::exists(&path))
}

/// Words separated by single blanks: how a value is stored and compared.
pub fn normal(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The file of a key. As with `sysctl`, a `/` inside a key is a `.` of the name: `net.ipv4.conf.eth0/100.rp_filter`.
/// Errors: a key outside of `net.`, with characters other than letters, digits and `_ . - /`, or with an empty or
/// dotted part.
pub fn path(key: &str) -> Result<PathBuf> {
    let fail = |cause: &str| Err(Error::new("use kernel parameter", key, io::Error::other(cause.to_owned())));
    if key.len() > 255 {
        return fail("the key is longer than 255 bytes");
    }
    if !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte)) {
        return fail("a key has only letters, digits and `_ . - /`");
    }
    let Some(rest) = key.strip_prefix("net.") else {
        return fail("only keys below `net.` are used");
    };
    let mut path = PathBuf::from("/proc/sys/net");
    for part in rest.split('.') {
        let part = part.replace('/', ".");
        if part.is_empty() || part.bytes().all(|byte| byte == b'.') {
            return fail("a key has no empty parts");
        }
        path.push(part);
    }
    Ok(path)
}

fn explain(what: &'static str, key: &str, error: Error) -> Error {
    let operation = if what == "read" { "read kernel parameter" } else { "write kernel parameter" };
    let cause = match error.errno() {
        Some(libc::ENOENT) => io::Error::other("this kernel or network namespace does not have it"),
        Some(libc::EACCES | libc::EPERM) => io::Error::other(
            "not permitted: it needs root and, if it belongs to the whole machine, must be set outside of containers and network namespaces",
        ),
        Some(libc::EINVAL) => io::Error::other("the kernel does not take this value"),
        _ => error.source,
    };
    Error::new(operation, key, cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_becomes_a_path() {
        for (key, expected) in [
            ("net.ipv4.tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem"),
            ("net.ipv4.conf.eth0/100.rp_filter", "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"),
            ("net.netfilter.nf_conntrack_max", "/proc/sys/net/netfilter/nf_conntrack_max"),
        ] {
            assert_eq!(path(key).expect(key), PathBuf::from(expected));
        }
    }

    #[test]
    fn a_key_outside_proc_sys_net_is_refused() {
        for key in
            ["", "net", "net.", "kernel.panic", "net..core", "net.//.//.kernel.panic", "net./", "net.ipv4.a b", "net.ä"]
        {
            let error = path(key).expect_err(key).to_string();
            assert!(error.starts_with("cannot use kernel parameter "), "{error}");
        }
        assert!(path(&format!("net.{}", "a".repeat(300))).is_err());
    }

    #[test]
    fn a_parameter_is_read_and_a_missing_one_explained() {
        let value = read("net.ipv4.tcp_rmem").expect("every kernel has it");
        assert_eq!(value.split(' ').count(), 3, "{value}");
        let error = read("net.ipv4.no_such_thing").expect_err("none").to_string();
        assert_eq!(
            error,
            "cannot read kernel parameter net.ipv4.no_such_thing: this kernel or network namespace does not have it"
        );
    }

    #[test]
    fn a_value_of_several_lines_is_refused_before_it_is_written() {
        let error = write("net.ipv4.no_such_thing", "1\n2").expect_err("two lines").to_string();
        assert!(error.contains("a value is one line"), "{error}");
    }
}

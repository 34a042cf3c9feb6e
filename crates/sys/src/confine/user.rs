//! The user and the groups of this process.

use crate::error::check;
use crate::{Error, Result, files};
use std::io;
use std::path::Path;

/// An entry of `/etc/passwd` (passwd(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub id: u32,
    /// The number of its group.
    pub group: u32,
}

/// The user of that name in `/etc/passwd`, which is read as it is: no name service is asked, since that would run its code.
pub fn find(name: &str) -> Option<User> {
    find_in(&files::read_text(Path::new("/etc/passwd")).ok()?, name)
}

/// A user without a name: its number, and the group of the same number.
pub fn numbered(word: &str) -> Option<User> {
    word.parse().ok().map(|id| User { name: word.to_owned(), id, group: id })
}

fn find_in(text: &str, name: &str) -> Option<User> {
    let line = text.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let mut number = || fields.next()?.parse().ok();
    Some(User { name: name.to_owned(), id: number()?, group: number()? })
}

/// Whether the user namespace of this process has this user and its group (`/proc/self/uid_map`, `gid_map`).
pub fn is_mapped(user: &User) -> bool {
    let has = |path: &str, id: u32| {
        let map = files::read_text(Path::new(path)).unwrap_or_default();
        map.lines().any(|line| {
            let mut numbers = line.split_whitespace().map(str::parse::<u64>);
            let (Some(Ok(first)), _, Some(Ok(count))) = (numbers.next(), numbers.next(), numbers.next()) else {
                return false;
            };
            (first..first.saturating_add(count)).contains(&u64::from(id))
        })
    };
    has("/proc/self/uid_map", user.id) && has("/proc/self/gid_map", user.group)
}

/// Makes this process that user's, for good: its group alone, then its user.
/// Errors: no privilege for it; root could be regained.
pub fn become_user(user: &User) -> Result<()> {
    let (own, group) = (user.id, user.group);
    let mut death: libc::c_int = 0;
    // SAFETY: each call takes plain numbers, a null list of length zero, or a pointer to a number that lives through it.
    unsafe {
        libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut death);
        let parent = libc::getppid();
        check(libc::setgroups(0, std::ptr::null()), "leave the groups of", "this process")?;
        check(libc::setresgid(group, group, group), "take the group of", &user.name)?;
        check(libc::setresuid(own, own, own), "become user", &user.name)?;
        // A new user clears the signal at the parent's end.
        if death != 0 {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, death), "bind to its parent", "this process")?;
            if libc::getppid() != parent {
                return Err(Error::new("bind to its parent", "this process", io::Error::other("it has ended")));
            }
        }
        if own != 0 && libc::setresuid(0, 0, 0) == 0 {
            return Err(Error::new("become user", &user.name, io::Error::other("root can be regained")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let text = "root:x:0:0:root:/root:/bin/sh\n# nobody\nnobodyelse:x:7:7::/:\nnobody:x:65534:65533:n:/:/sbin/n\nbad:x:1\n";
        let user = User { name: "nobody".into(), id: 65534, group: 65533 };
        assert_eq!(find_in(text, "nobody"), Some(user));
        for name in ["", "nobod", "bad", "x"] {
            assert_eq!(find_in(text, name), None, "{name}");
        }
        assert!(is_mapped(&User { name: "root".into(), id: 0, group: 0 }) || !crate::process::is_root());
    }
}

//! Random bytes from the kernel: for names and tokens that cannot be guessed.

use crate::{Error, Result};

/// Fills `bytes` from `getrandom(2)`; blocks only in the first moments after boot.
/// Errors: the kernel's error; kernels before 3.17 do not have the call.
pub fn fill(bytes: &mut [u8]) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &mut bytes[done..];
        // SAFETY: pointer and length describe `rest`, which the call fills.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(got) {
            Ok(got) => done += got,
            Err(_) => {
                let error = Error::last("read", "random bytes");
                if error.errno() != Some(libc::EINTR) {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// `N` random bytes.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        assert_ne!(bytes::<16>().unwrap(), bytes::<16>().unwrap());
        fill(&mut []).unwrap();
    }
}

//! How many descriptors the process may have.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::process::StartError;

/// Sets both limits to `wanted`; without one, as many as the hard limit lets have, since each file that a client holds
/// costs a descriptor.
///
/// # Errors
/// If a limit that was asked for is refused, but for want of privilege, which is only worth a warning.
pub(super) fn set_open_files(wanted: Option<u64>) -> Result<(), StartError> {
    let limit = wanted.or_else(|| getrlimit(Resource::Nofile).maximum);
    match (setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }), wanted) {
        (Ok(()), _) => Ok(()),
        (Err(errno), Some(wanted)) if errno != Errno::PERM => {
            Err(StartError::new(format_args!("limit open descriptors to {wanted}"), errno))
        }
        (Err(errno), _) => {
            tracing::warn!(%errno, ?wanted, "the limit of open descriptors stays as it was");
            Ok(())
        }
    }
}

//! Capabilities of the process: trimmed to those that serving files takes.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};
use rustix::thread::{
    capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
};

use crate::process::StartError;

/// To act on files as their owners would, whoever they are, and for one last `chroot(2)`.
pub(super) const SERVING: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SYS_CHROOT);

/// Leaves at most `wanted` in the bounding, permitted and effective sets, and nothing in the others: there will be no
/// exec to pass anything on to.
pub(super) fn keep(wanted: CapabilitySet) -> Result<(), StartError> {
    let held = held()?;
    for number in numbers(wanted.difference(held.permitted)) {
        tracing::warn!("capability {} is not held, so files may be refused to the container", name(number));
    }
    // First, while SETPCAP is there.
    trim_bounding_set(held.effective, wanted)?;
    set(held.permitted.intersection(wanted))?;
    clear_ambient_capability_set().map_err(|errno| StartError::new("clear the ambient capabilities", errno))
}

/// Takes `unwanted` from what the process may still use; the rest stays as it is.
pub(super) fn give_up(unwanted: CapabilitySet) -> Result<(), StartError> {
    let held = held()?;
    let sets = CapabilitySets {
        effective: held.effective.difference(unwanted),
        permitted: held.permitted.difference(unwanted),
        inheritable: held.inheritable.difference(unwanted),
    };
    set_capabilities(None, sets).map_err(refused)
}

fn held() -> Result<CapabilitySets, StartError> {
    capabilities(None).map_err(|errno| StartError::new("read the process's capabilities", errno))
}

fn set(all: CapabilitySet) -> Result<(), StartError> {
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: all, permitted: all, inheritable }).map_err(refused)
}

fn refused(errno: Errno) -> StartError {
    StartError::new("give up capabilities", errno)
}

fn numbers(set: CapabilitySet) -> impl Iterator<Item = u32> {
    (0..u64::BITS).filter(move |number| set.bits() >> number & 1 == 1)
}

/// Of those that are ever wanted: a table of all would be private memory of every gofer.
fn name(number: u32) -> &'static str {
    match number {
        0 => "CHOWN",
        1 => "DAC_OVERRIDE",
        2 => "DAC_READ_SEARCH",
        3 => "FOWNER",
        4 => "FSETID",
        6 => "SETGID",
        7 => "SETUID",
        18 => "SYS_CHROOT",
        _ => "of another kind",
    }
}

fn trim_bounding_set(effective: CapabilitySet, wanted: CapabilitySet) -> Result<(), StartError> {
    if !effective.contains(CapabilitySet::SETPCAP) {
        return Ok(());
    }
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if wanted.contains(one) {
            continue;
        }
        match remove_capability_from_bounding_set(one) {
            // Beyond the last that this kernel knows, which only /proc could tell, and that is out of sight.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(errno) => {
                return Err(StartError::new(format_args!("take capability {number} from the bounding set"), errno));
            }
        }
    }
    Ok(())
}

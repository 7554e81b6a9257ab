//! The differences that are meant; nothing else is excused. Each has its line in `docs/parity.md`.

use gofer_protocol::Errno;

use crate::step::{Kind, Outcome, Step};

/// Why two different outcomes are as they should be.
pub(crate) fn reason(step: &Step, stock: &Outcome, ours: &Outcome) -> Option<&'static str> {
    match (step.kind, &stock.result, &ours.result) {
        // D9: a descriptor of a removed file.
        (Kind::ReadLink | Kind::ListXattr, Ok(_), Err(Errno::EINVAL)) => Some("reading a removed link"),
        // E22 and E24 open no removed file again; E26 and ours do.
        (Kind::Open, Err(Errno::EINVAL), Ok(_)) => Some("opening a removed file"),
        (Kind::SetStat, Ok(stock), Ok(ours)) => set_stat(stock, ours),
        _ => None,
    }
}

fn set_stat(stock: &str, ours: &str) -> Option<&'static str> {
    let reply = |mask: u32, errno: u32| format!("SetStatReply {{ failure_mask: {mask:#x}, failure_errno: {errno} }}");
    // E22 and E24 use fchmod(2) on the O_PATH descriptor of a symlink; later ones, and ours, the kernel's own answer.
    if stock == reply(2, 9) && ours == reply(2, 95) {
        return Some("the mode of a symlink");
    }
    // D1: the times of a symlink, which the original sets by its path though it is removed.
    (stock == reply(0x40, 2) && ours == reply(0, 0)).then_some("the times of a removed symlink")
}

//! The differences that are meant; nothing else is excused. Each has its line in `docs/parity.md`.

use gofer_protocol::Errno;

use crate::step::{Kind, Outcome, Step};

/// Why two different outcomes are as they should be.
pub(crate) fn reason(step: &Step, stock: &Outcome, ours: &Outcome) -> Option<&'static str> {
    match (step.kind, &stock.result, &ours.result) {
        // D9: a descriptor of a removed file.
        (Kind::ReadLink | Kind::ListXattr, Ok(_), Err(Errno::EINVAL)) => Some("reading a removed link"),
        _ => None,
    }
}
